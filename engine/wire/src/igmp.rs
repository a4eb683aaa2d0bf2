//! IGMP (RFC 1112 appendix I, RFC 2236, RFC 3376): hosts say which groups they listen to, routers
//! ask.
//!
//! ```text
//! 0    1    2         4                   8    9    10        12
//! +----+----+---------+-------------------+----+----+---------+---------   query of version 3
//! |0x11|code| check   | group             |S,R | int| sources | source …
//! +----+----+---------+-------------------+----+----+---------+---------
//! |0x22| 0  | check   | 0       | records | record …                       report of version 3
//! +----+----+---------+-------------------+---------
//! ```

use core::net::Ipv4Addr;

use crate::WireError;
use crate::checksum::Sum;
use crate::header::room;

/// What errors call it.
const NAME: &str = "IGMP";
/// Bytes of a message of versions 1 and 2, and of the head of a report of version 3.
pub const MESSAGE_LEN: usize = 8;
/// Bytes of a query of version 3 without sources.
pub const QUERY_LEN: usize = 12;
/// Bytes of a record without sources.
pub const RECORD_LEN: usize = 8;
/// Where reports of version 3 go (RFC 3376 §4.2.14).
pub const ALL_REPORTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// Where those go who leave (RFC 2236 §3).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

/// Types of messages.
pub mod kind {
    /// Which groups are listened to?
    pub const QUERY: u8 = 0x11;
    /// A group, version 1.
    pub const REPORT_V1: u8 = 0x12;
    /// A group, version 2.
    pub const REPORT_V2: u8 = 0x16;
    /// A group no more, version 2.
    pub const LEAVE: u8 = 0x17;
    /// Records, version 3.
    pub const REPORT_V3: u8 = 0x22;
}

/// Types of records (RFC 3376 §4.2.12, RFC 3810 §5.2.12).
pub mod record {
    /// Listened to: these sources.
    pub const IS_INCLUDE: u8 = 1;
    /// Listened to: all but these sources.
    pub const IS_EXCLUDE: u8 = 2;
    /// From now on: these sources.
    pub const TO_INCLUDE: u8 = 3;
    /// From now on: all but these sources.
    pub const TO_EXCLUDE: u8 = 4;
    /// These sources, too.
    pub const ALLOW: u8 = 5;
    /// These sources no more.
    pub const BLOCK: u8 = 6;
}

/// What versions 3 of IGMP and 2 of MLD add to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryMore<'a> {
    /// Routers do not change their timers.
    pub suppress: bool,
    /// How often reports are repeated; 0: not said.
    pub robustness: u8,
    /// Time between queries in seconds, coded as [`from_code8`].
    pub interval_code: u8,
    /// The sources asked for, 4 or 16 bytes each.
    pub sources: &'a [u8],
}

/// A message in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Which groups are listened to?
    Query {
        /// The longest time for an answer in tenths of a second, coded as [`from_code8`]; 0 in
        /// version 1.
        response_code: u8,
        /// The group asked for; unspecified: all.
        group: Ipv4Addr,
        /// Version 3.
        more: Option<QueryMore<'a>>,
    },
    /// A group is listened to.
    Report {
        /// Version 1 or 2.
        version: u8,
        /// The group.
        group: Ipv4Addr,
    },
    /// A group is listened to no more.
    Leave {
        /// The group.
        group: Ipv4Addr,
    },
    /// Records of version 3.
    Records {
        /// How many there are.
        count: u16,
        /// The records.
        bytes: &'a [u8],
    },
}

/// A time of 8 bits: itself up to 127, then a floating-point number (RFC 3376 §4.1.1).
pub const fn from_code8(code: u8) -> u32 {
    if code < 128 {
        return code as u32;
    }
    ((code & 0x0f) as u32 | 0x10) << (((code >> 4) & 7) + 3)
}

/// The code of a time, rounded down to one that can be said: the inverse of [`from_code8`].
pub const fn to_code8(value: u32) -> u8 {
    if value < 128 {
        return value as u8;
    }
    let value = if value > from_code8(255) { from_code8(255) } else { value };
    let exponent = value.ilog2() - 7;
    0x80 | ((exponent as u8) << 4) | ((value >> (exponent + 3)) as u8 & 0x0f)
}

impl<'a> Message<'a> {
    /// Reads a message (all of `bytes`) whose checksum is right. A query of a length that no
    /// version has is refused (RFC 3376 §7.1).
    ///
    /// # Errors
    /// The message is truncated, its checksum is wrong, or its length does not fit its type.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let [kind, code, _, _, a, b, c, d] = *bytes
            .first_chunk::<MESSAGE_LEN>()
            .ok_or(WireError::Truncated { header: NAME, need: MESSAGE_LEN, have: bytes.len() })?;
        let invalid = |reason| WireError::Invalid { header: NAME, reason };
        if !Sum::new().bytes(bytes).is_good() {
            return Err(invalid("checksum is wrong"));
        }
        let group = Ipv4Addr::new(a, b, c, d);
        match kind {
            kind::QUERY => {
                let more = match bytes.get(MESSAGE_LEN..).unwrap_or_default() {
                    [] => None,
                    more => Some(
                        QueryMore::parse(more, 4)
                            .ok_or(invalid("a query of a length that none has"))?,
                    ),
                };
                Ok(Message::Query { response_code: code, group, more })
            }
            kind::REPORT_V1 => Ok(Message::Report { version: 1, group }),
            kind::REPORT_V2 => Ok(Message::Report { version: 2, group }),
            kind::LEAVE => Ok(Message::Leave { group }),
            kind::REPORT_V3 => {
                let bytes = bytes.get(MESSAGE_LEN..).unwrap_or_default();
                Ok(Message::Records { count: u16::from_be_bytes([c, d]), bytes })
            }
            _ => Err(invalid("a type that nothing here has a use for")),
        }
    }

    /// Bytes of the message.
    pub fn len(&self) -> usize {
        MESSAGE_LEN
            + match self {
                Message::Query { more: Some(more), .. } => more.len(),
                Message::Records { bytes, .. } => bytes.len(),
                _ => 0,
            }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes a message, checksum included, and returns its length.
    ///
    /// # Errors
    /// A list of sources or records is too long for its count, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut more = [0; 4];
        let (kind, code, group, tail) = match *self {
            Message::Query { response_code, group, more: None } => {
                (kind::QUERY, response_code, group, &[][..])
            }
            Message::Query { response_code, group, more: Some(said) } => {
                more = said.head(4)?;
                (kind::QUERY, response_code, group, said.sources)
            }
            Message::Report { version: 1, group } => (kind::REPORT_V1, 0, group, &[][..]),
            Message::Report { group, .. } => (kind::REPORT_V2, 0, group, &[][..]),
            Message::Leave { group } => (kind::LEAVE, 0, group, &[][..]),
            Message::Records { count, bytes } => {
                let [a, b] = count.to_be_bytes();
                (kind::REPORT_V3, 0, Ipv4Addr::new(0, 0, a, b), bytes)
            }
        };
        let more =
            if matches!(self, Message::Query { more: Some(_), .. }) { &more[..] } else { &[] };
        let [a, b, c, d] = group.octets();
        let mut head = [kind, code, 0, 0, a, b, c, d];
        let [high, low] = Sum::new().bytes(&head).bytes(more).bytes(tail).checksum().to_be_bytes();
        (head[2], head[3]) = (high, low);
        let length = MESSAGE_LEN + more.len() + tail.len();
        for (to, from) in room(out, length)?.iter_mut().zip(head.iter().chain(more).chain(tail)) {
            *to = *from;
        }
        Ok(length)
    }
}

impl QueryMore<'_> {
    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        4 + self.sources.len()
    }

    /// What stands before the sources, which have `width` bytes each.
    pub(crate) fn head(&self, width: usize) -> Result<[u8; 4], WireError> {
        let count = u16::try_from(self.sources.len() / width);
        let [a, b] = count
            .map_err(|_| WireError::Invalid { header: NAME, reason: "too many sources" })?
            .to_be_bytes();
        Ok([u8::from(self.suppress) << 3 | self.robustness.min(7), self.interval_code, a, b])
    }
}

impl<'a> QueryMore<'a> {
    /// Reads what stands behind the group; sources have `width` bytes each.
    pub(crate) fn parse(bytes: &'a [u8], width: usize) -> Option<Self> {
        let ([flags, interval_code, a, b], rest) = bytes.split_first_chunk::<4>()?;
        let count = usize::from(u16::from_be_bytes([*a, *b]));
        let sources = rest.get(..count * width)?;
        Some(Self {
            suppress: flags & 8 != 0,
            robustness: flags & 7,
            interval_code: *interval_code,
            sources,
        })
    }
}

/// A record of a report, read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// One of [`record`].
    pub kind: u8,
    /// The group, 4 or 16 bytes.
    pub group: &'a [u8],
    /// The sources, as wide each.
    pub sources: &'a [u8],
}

/// The records of a report, one after the other (RFC 3376 §4.2.4, RFC 3810 §5.2.4).
#[derive(Clone, Debug)]
pub struct Records<'a> {
    left: u16,
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Records<'a> {
    /// So many records; addresses have `width` bytes.
    pub fn new(count: u16, bytes: &'a [u8], width: usize) -> Self {
        Self { left: count, bytes, width }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut read = || {
            let ([kind, auxiliary_words, a, b], rest) = self.bytes.split_first_chunk::<4>()?;
            let (group, rest) = rest.split_at_checked(self.width)?;
            let count = usize::from(u16::from_be_bytes([*a, *b]));
            let (sources, rest) = rest.split_at_checked(count * self.width)?;
            self.bytes = rest.get(4 * usize::from(*auxiliary_words)..)?;
            Some(RecordView { kind: *kind, group, sources })
        };
        let record = read();
        if record.is_none() {
            self.left = 0;
        }
        Some(
            record.ok_or(WireError::Invalid { header: NAME, reason: "a record beyond the report" }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    #[test]
    fn codes_are_those_of_rfc_3376() {
        assert_eq!(
            (from_code8(0), from_code8(127), from_code8(128), from_code8(255)),
            (0, 127, 128, 31_744)
        );
        assert!((0..=255).all(|code| to_code8(from_code8(code)) == code));
        assert_eq!((from_code8(to_code8(129)), from_code8(to_code8(999_999))), (128, 31_744));
    }

    #[test]
    fn the_version_of_a_query_is_told_by_its_length() {
        let mut bytes = [0; 16];
        let old = Message::Query { response_code: 100, group: GROUP, more: None };
        assert_eq!(old.emit(&mut bytes), Ok(8));
        assert_eq!(Message::parse(&bytes[..8]), Ok(old));
        let mut new = [0x11, 100, 0, 0, 239, 1, 2, 3, 0x0a, 125, 0, 1, 10, 0, 0, 1];
        let sum = Sum::new().bytes(&new).checksum().to_be_bytes();
        new[2..4].copy_from_slice(&sum);
        let more = QueryMore {
            suppress: true,
            robustness: 2,
            interval_code: 125,
            sources: &[10, 0, 0, 1],
        };
        let whole = Message::Query { response_code: 100, group: GROUP, more: Some(more) };
        assert_eq!(Message::parse(&new), Ok(whole));
        assert_eq!((whole.emit(&mut bytes), whole.len(), bytes), (Ok(16), 16, new));
        for length in [9, 10, 11, 12, 15] {
            let mut cut = new;
            cut[2..4].fill(0);
            let sum = Sum::new().bytes(&cut[..length]).checksum().to_be_bytes();
            cut[2..4].copy_from_slice(&sum);
            assert!(Message::parse(&cut[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn records_are_read_until_the_report_ends() {
        let bytes = [
            4, 1, 0, 2, 239, 1, 1, 1, 10, 0, 0, 1, 10, 0, 0, 2, 0xaa, 0xaa, 0xaa,
            0xaa, // two sources, auxiliary
            3, 0, 0, 0, 239, 1, 1, 2, // none
            6, 0, 0, 1, 239, 1, 1, 3, // cut
        ];
        let mut records = Records::new(9, &bytes, 4);
        let read = [(); 4].map(|()| records.next());
        let first =
            RecordView { kind: 4, group: &[239, 1, 1, 1], sources: &[10, 0, 0, 1, 10, 0, 0, 2] };
        let second = RecordView { kind: 3, group: &[239, 1, 1, 2], sources: &[] };
        assert_eq!(read[..2], [Some(Ok(first)), Some(Ok(second))]);
        assert!(matches!(read[2..], [Some(Err(_)), None]));
        assert_eq!(Records::new(2, &bytes, 4).count(), 2);
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let mut bytes = [0; 8];
        Message::Leave { group: GROUP }.emit(&mut bytes).unwrap();
        bytes[7] ^= 1;
        assert!(Message::parse(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            kind in 0usize..5, code: u8, group: u32,
            tail in prop::collection::vec(any::<u8>(), 0..40)
        ) {
            let group = Ipv4Addr::from_bits(group);
            let message = match kind {
                0 => Message::Query { response_code: code, group, more: None },
                1 => Message::Report { version: 1, group },
                2 => Message::Report { version: 2, group },
                3 => Message::Leave { group },
                _ => Message::Records { count: u16::from(code), bytes: &tail },
            };
            let mut out = [0; 64];
            let length = message.emit(&mut out).unwrap();
            prop_assert_eq!(Message::parse(&out[..length]), Ok(message));
        }

        #[test]
        fn no_bytes_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..40),
            kind in prop::sample::select(&[0x11u8, 0x12, 0x16, 0x17, 0x22][..])
        ) {
            let _ = Message::parse(&bytes);
            if bytes.len() >= 8 {
                bytes[0] = kind;
                bytes[2..4].fill(0);
                let sum = Sum::new().bytes(&bytes).checksum().to_be_bytes();
                bytes[2..4].copy_from_slice(&sum);
                let _ = Message::parse(&bytes);
            }
        }
    }
}
