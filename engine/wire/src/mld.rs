//! Multicast listener discovery (RFC 2710, RFC 3810): IGMP's part in ICMPv6. Messages of version 1
//! are 24 bytes, queries of version 2 at least 28.
//!
//! ```text
//! 0    1    2         4         6         8              24   25   26        28
//! +----+----+---------+---------+---------+--------------+----+----+---------+---------
//! |130 | 0  | check   | code    | 0       | group        |S,R | int| sources | source …
//! +----+----+---------+---------+---------+--------------+----+----+---------+---------
//! |143 | 0  | check   | 0       | records | record …
//! +----+----+---------+---------+---------+---------
//! ```

use core::net::Ipv6Addr;

use crate::WireError;
use crate::header::room;
use crate::igmp::QueryMore;

/// What errors call it.
const NAME: &str = "MLD";
/// Bytes of a record without sources.
pub const RECORD_LEN: usize = 20;
/// Where reports of version 2 go (RFC 3810 §5.2.14).
pub const ALL_REPORTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// Types of messages.
pub mod kind {
    /// Which groups are listened to?
    pub const QUERY: u8 = 130;
    /// A group, version 1.
    pub const REPORT_V1: u8 = 131;
    /// A group no more, version 1.
    pub const DONE: u8 = 132;
    /// Records, version 2.
    pub const REPORT_V2: u8 = 143;
}

/// A message in plain values. The checksum is ICMPv6's ([`crate::icmp6::is_good`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Which groups are listened to?
    Query {
        /// The longest time for an answer in milliseconds, coded as [`from_code16`].
        response_code: u16,
        /// The group asked for; unspecified: all.
        group: Ipv6Addr,
        /// Version 2.
        more: Option<QueryMore<'a>>,
    },
    /// A group is listened to.
    Report {
        /// The group.
        group: Ipv6Addr,
    },
    /// A group is listened to no more.
    Done {
        /// The group.
        group: Ipv6Addr,
    },
    /// Records of version 2.
    Records {
        /// How many there are.
        count: u16,
        /// The records.
        bytes: &'a [u8],
    },
}

/// A time of 16 bits: itself up to 32,767, then a floating-point number (RFC 3810 §5.1.3).
pub const fn from_code16(code: u16) -> u32 {
    if code < 32_768 {
        return code as u32;
    }
    ((code & 0x0fff) as u32 | 0x1000) << (((code >> 12) & 7) + 3)
}

/// The code of a time, rounded down to one that can be said: the inverse of [`from_code16`].
pub const fn to_code16(value: u32) -> u16 {
    if value < 32_768 {
        return value as u16;
    }
    let value = if value > from_code16(u16::MAX) { from_code16(u16::MAX) } else { value };
    let exponent = value.ilog2() - 15;
    0x8000 | ((exponent as u16) << 12) | ((value >> (exponent + 3)) as u16 & 0x0fff)
}

impl<'a> Message<'a> {
    /// Reads a message (all of `bytes`, from the ICMPv6 type on). A query of a length that no
    /// version has is refused (RFC 3810 §8.1).
    ///
    /// # Errors
    /// The message is truncated, or its length does not fit its type.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let truncated = |need| WireError::Truncated { header: NAME, need, have: bytes.len() };
        let ([kind, _, _, _, a, b, c, d], rest) =
            bytes.split_first_chunk::<8>().ok_or(truncated(8))?;
        if *kind == kind::REPORT_V2 {
            return Ok(Message::Records { count: u16::from_be_bytes([*c, *d]), bytes: rest });
        }
        let (group, rest) = rest.split_first_chunk::<16>().ok_or(truncated(24))?;
        let group = Ipv6Addr::from_octets(*group);
        let invalid = |reason| WireError::Invalid { header: NAME, reason };
        match *kind {
            kind::QUERY => {
                let more = match rest {
                    [] => None,
                    more => Some(
                        QueryMore::parse(more, 16)
                            .ok_or(invalid("a query of a length that none has"))?,
                    ),
                };
                Ok(Message::Query { response_code: u16::from_be_bytes([*a, *b]), group, more })
            }
            kind::REPORT_V1 => Ok(Message::Report { group }),
            kind::DONE => Ok(Message::Done { group }),
            _ => Err(invalid("no message of MLD")),
        }
    }

    /// Bytes of the message.
    pub fn len(&self) -> usize {
        match self {
            Message::Query { more: Some(more), .. } => 24 + more.len(),
            Message::Records { bytes, .. } => 8 + bytes.len(),
            _ => 24,
        }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes a message with a checksum of zero, and returns its length.
    ///
    /// # Errors
    /// A list of sources or records is too long for its count, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let octets;
        let (mut more, mut sources) = ([0; 4], None);
        if let Message::Query { more: Some(said), .. } = self {
            (more, sources) = (said.head(16)?, Some(said.sources));
        }
        let (kind, words, tail): (u8, [u16; 2], &[u8]) = match *self {
            Message::Query { response_code, group, .. } => {
                octets = group.octets();
                (kind::QUERY, [response_code, 0], &octets)
            }
            Message::Report { group } => {
                octets = group.octets();
                (kind::REPORT_V1, [0, 0], &octets)
            }
            Message::Done { group } => {
                octets = group.octets();
                (kind::DONE, [0, 0], &octets)
            }
            Message::Records { count, bytes } => (kind::REPORT_V2, [0, count], bytes),
        };
        let ([a, b], [c, d]) = (words[0].to_be_bytes(), words[1].to_be_bytes());
        let head = [kind, 0, 0, 0, a, b, c, d];
        let more = if sources.is_some() { &more[..] } else { &[] };
        let sources = sources.unwrap_or_default();
        let length = head.len() + tail.len() + more.len() + sources.len();
        let bytes = head.iter().chain(tail).chain(more).chain(sources);
        for (to, from) in room(out, length)?.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_those_of_rfc_3810() {
        let known = [0, 32_767, 32_768, 65_535].map(from_code16);
        assert_eq!(known, [0, 32_767, 32_768, 8_387_584]);
        assert!((0..=u16::MAX).all(|code| to_code16(from_code16(code)) == code));
    }

    #[test]
    fn a_query_of_version_2_is_written_as_it_is_read() {
        let more =
            QueryMore { suppress: true, robustness: 2, interval_code: 125, sources: &[7; 32] };
        let query = Message::Query { response_code: 1000, group: ALL_REPORTS, more: Some(more) };
        let mut bytes = [0; 60];
        assert_eq!((query.emit(&mut bytes), query.len()), (Ok(60), 60));
        assert_eq!(Message::parse(&bytes), Ok(query));
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            kind in 0usize..4, code: u16, group: u128,
            tail in prop::collection::vec(any::<u8>(), 0..40)
        ) {
            let group = Ipv6Addr::from_bits(group);
            let message = match kind {
                0 => Message::Query { response_code: code, group, more: None },
                1 => Message::Report { group },
                2 => Message::Done { group },
                _ => Message::Records { count: code, bytes: &tail },
            };
            let mut out = [0; 64];
            let length = message.emit(&mut out).unwrap();
            prop_assert_eq!(Message::parse(&out[..length]), Ok(message));
        }

        #[test]
        fn no_bytes_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..60),
            kind in prop::sample::select(&[130u8, 131, 132, 143][..])
        ) {
            let _ = Message::parse(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _ = Message::parse(&bytes);
        }
    }
}
