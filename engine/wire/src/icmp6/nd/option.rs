//! Options of neighbour discovery (RFC 4861 §4.6): type, length in units of 8 bytes, data.
//!
//! ```text
//! 0    1    2                      8 × len
//! +----+----+------------ ... -----+
//! |type|len | data                 |
//! +----+----+------------ ... -----+
//! ```

use core::net::Ipv6Addr;

use crate::header::room;
use crate::{MacAddress, WireError};

/// What errors call it.
const NAME: &str = "neighbour discovery option";

/// A prefix in a router advertisement (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// Length of the prefix in bits, as sent: it may exceed 128.
    pub length: u8,
    /// 0x80: on the link; 0x40: hosts may make addresses of it.
    pub flags: u8,
    /// How long it is valid, in seconds; all ones: for ever.
    pub valid_s: u32,
    /// How long addresses made of it are preferred, in seconds; all ones: for ever.
    pub preferred_s: u32,
    /// The prefix; bits behind the length mean nothing.
    pub prefix: Ipv6Addr,
}

/// One option (RFC 4861 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NdOption<'a> {
    /// MAC address of the sender.
    SourceMac(MacAddress),
    /// MAC address of the target.
    TargetMac(MacAddress),
    /// A prefix of the link.
    Prefix(PrefixInformation),
    /// MTU of the link in bytes.
    Mtu(u32),
    /// Anything else: its type and what stands behind type and length.
    Other {
        /// Type.
        kind: u8,
        /// 6 bytes and a multiple of 8.
        data: &'a [u8],
    },
}

impl<'a> NdOption<'a> {
    /// Bytes of the option, if it is 8 to 2,040 in steps of 8.
    fn units(&self) -> Option<u8> {
        let len = match self {
            NdOption::SourceMac(_) | NdOption::TargetMac(_) | NdOption::Mtu(_) => 8,
            NdOption::Prefix(_) => 32,
            NdOption::Other { data, .. } => data.len() + 2,
        };
        u8::try_from(len / 8).ok().filter(|units| *units > 0 && len.is_multiple_of(8))
    }

    fn parse(kind: u8, data: &'a [u8]) -> Self {
        match (kind, data) {
            (1, [a, b, c, d, e, f]) => NdOption::SourceMac(MacAddress([*a, *b, *c, *d, *e, *f])),
            (2, [a, b, c, d, e, f]) => NdOption::TargetMac(MacAddress([*a, *b, *c, *d, *e, *f])),
            (5, [0, 0, mtu @ ..]) => match mtu.first_chunk() {
                Some(mtu) if mtu.len() == data.len() - 2 => NdOption::Mtu(u32::from_be_bytes(*mtu)),
                _ => NdOption::Other { kind, data },
            },
            (3, data) => match data.first_chunk::<30>() {
                Some(bytes) if data.len() == 30 => {
                    NdOption::Prefix(PrefixInformation::parse(bytes))
                }
                _ => NdOption::Other { kind, data },
            },
            _ => NdOption::Other { kind, data },
        }
    }

    /// Writes the option and returns its length, a multiple of 8.
    ///
    /// # Errors
    /// The option is longer than its length field can say, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let units = self.units().ok_or(WireError::Invalid {
            header: NAME,
            reason: "an option has 8 to 2040 bytes, in steps of 8",
        })?;
        let len = usize::from(units) * 8;
        let out = room(out, len)?;
        let prefix;
        let mtu;
        let (kind, data): (u8, &[u8]) = match self {
            NdOption::SourceMac(mac) => (1, &mac.0),
            NdOption::TargetMac(mac) => (2, &mac.0),
            NdOption::Prefix(information) => {
                prefix = information.bytes();
                (3, &prefix)
            }
            NdOption::Mtu(value) => {
                let [a, b, c, d] = value.to_be_bytes();
                mtu = [0, 0, a, b, c, d];
                (5, &mtu)
            }
            NdOption::Other { kind, data } => (*kind, data),
        };
        for (to, from) in out.iter_mut().zip([kind, units].iter().chain(data)) {
            *to = *from;
        }
        Ok(len)
    }
}

impl PrefixInformation {
    fn parse(bytes: &[u8; 30]) -> Self {
        let [length, flags, rest @ ..] = *bytes;
        let word = |at: usize| {
            let chunk = rest.get(at..).and_then(|tail| tail.first_chunk());
            chunk.map_or(0, |word| u32::from_be_bytes(*word))
        };
        let prefix =
            rest.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |p| Ipv6Addr::from_octets(*p));
        Self { length, flags, valid_s: word(0), preferred_s: word(4), prefix }
    }

    fn bytes(&self) -> [u8; 30] {
        let mut out = [0; 30];
        let head = [self.length, self.flags];
        let words = [self.valid_s.to_be_bytes(), self.preferred_s.to_be_bytes(), [0; 4]];
        let prefix = self.prefix.octets();
        let all = head.iter().chain(words.as_flattened()).chain(&prefix);
        for (to, from) in out.iter_mut().zip(all) {
            *to = *from;
        }
        out
    }
}

/// Options whose lengths have been checked: none is zero, all fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// No options.
    pub const NONE: Options<'static> = Options(&[]);

    /// Takes options whose lengths are right. A length of zero or one beyond the end condemns the
    /// whole message (RFC 4861 §4.6).
    ///
    /// # Errors
    /// The length of an option is zero, or it ends beyond the message.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut walk = Walk(bytes);
        while walk.next().is_some() {}
        if walk.0.is_empty() {
            return Ok(Self(bytes));
        }
        let reason = "an option has length zero or runs beyond the message";
        Err(WireError::Invalid { header: NAME, reason })
    }

    /// The bytes that they stand in.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The options one by one.
    pub const fn iter(self) -> Walk<'a> {
        Walk(self.0)
    }

    /// The first MAC address of the sender.
    pub fn source_mac(self) -> Option<MacAddress> {
        self.iter().find_map(|option| match option {
            NdOption::SourceMac(mac) => Some(mac),
            _ => None,
        })
    }

    /// The first MAC address of the target.
    pub fn target_mac(self) -> Option<MacAddress> {
        self.iter().find_map(|option| match option {
            NdOption::TargetMac(mac) => Some(mac),
            _ => None,
        })
    }
}

impl<'a> IntoIterator for Options<'a> {
    type Item = NdOption<'a>;
    type IntoIter = Walk<'a>;

    fn into_iter(self) -> Walk<'a> {
        self.iter()
    }
}

/// Walks options; each step takes at least 8 bytes.
#[derive(Clone, Debug)]
pub struct Walk<'a>(&'a [u8]);

impl<'a> Iterator for Walk<'a> {
    type Item = NdOption<'a>;

    fn next(&mut self) -> Option<NdOption<'a>> {
        let [kind, units, ..] = *self.0 else {
            return None;
        };
        let (option, rest) = self.0.split_at_checked(usize::from(units) * 8)?;
        let data = option.get(2..)?;
        self.0 = rest;
        Some(NdOption::parse(kind, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_that_lie_condemn_the_message() {
        for bytes in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1], &[1, 1, 0, 0]]
        {
            assert!(Options::new(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn the_walk_ends_and_options_are_inverse(bytes in prop::collection::vec(0u8..6, 0..120)) {
            prop_assert!(Walk(&bytes).count() <= bytes.len() / 8);
            for option in Walk(&bytes) {
                let mut out = [0; 64];
                let len = option.emit(&mut out).unwrap();
                let again = Walk(&out[..len]).next();
                prop_assert_eq!(again, Some(option));
            }
        }
    }
}
