//! Fields of headers that masks and matches name by words.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::key::{L3, L4_OF_IP4, L4_OF_IP6};

/// The header that a field is in, in the words of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    L2,
    Ip4,
    Ip6,
    L4,
}

impl Group {
    pub const fn words(self) -> &'static str {
        match self {
            Group::L2 => "l2",
            Group::Ip4 => "l3 ip4",
            Group::Ip6 => "l3 ip6",
            Group::L4 => "l4",
        }
    }
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mac,
    Ip4,
    Ip6,
    /// A number in decimal, or in hexadecimal with 0x.
    Number,
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    pub group: Group,
    pub word: &'static str,
    /// Where it begins in its group's header: for L4, behind the header in front.
    offset: usize,
    pub bytes: usize,
    kind: Kind,
}

const fn field(
    group: Group,
    word: &'static str,
    (offset, bytes): (usize, usize),
    kind: Kind,
) -> Field {
    Field { group, word, offset, bytes, kind }
}

/// All of them, in the order in which they are written.
pub(crate) static FIELDS: [Field; 13] = [
    field(Group::L2, "src", (6, 6), Kind::Mac),
    field(Group::L2, "dst", (0, 6), Kind::Mac),
    field(Group::L2, "proto", (12, 2), Kind::Number),
    field(Group::Ip4, "src", (12, 4), Kind::Ip4),
    field(Group::Ip4, "dst", (16, 4), Kind::Ip4),
    field(Group::Ip4, "proto", (9, 1), Kind::Number),
    field(Group::Ip4, "tos", (1, 1), Kind::Number),
    field(Group::Ip4, "ttl", (8, 1), Kind::Number),
    field(Group::Ip6, "src", (8, 16), Kind::Ip6),
    field(Group::Ip6, "dst", (24, 16), Kind::Ip6),
    field(Group::Ip6, "proto", (6, 1), Kind::Number),
    field(Group::L4, "src_port", (0, 2), Kind::Number),
    field(Group::L4, "dst_port", (2, 2), Kind::Number),
];

impl Field {
    /// Where it begins in a key. `l3` is the header of layer 3 that the words name.
    pub fn at(&self, l3: Option<Group>) -> usize {
        self.offset
            + match (self.group, l3) {
                (Group::L2, _) => 0,
                (Group::L4, Some(Group::Ip6)) => L4_OF_IP6,
                (Group::L4, _) => L4_OF_IP4,
                (Group::Ip4 | Group::Ip6, _) => L3,
            }
    }

    /// Does a length behind a slash mean something?
    pub fn is_address(&self) -> bool {
        matches!(self.kind, Kind::Ip4 | Kind::Ip6)
    }

    /// A value of the field, read; `None` when it is none.
    pub fn read(&self, text: &str) -> Option<Vec<u8>> {
        match self.kind {
            Kind::Ip4 => Some(text.parse::<Ipv4Addr>().ok()?.octets().to_vec()),
            Kind::Ip6 => Some(text.parse::<Ipv6Addr>().ok()?.octets().to_vec()),
            Kind::Mac => {
                let parts = text.split(':').map(|part| u8::from_str_radix(part, 16).ok());
                let bytes: Vec<u8> = parts.collect::<Option<_>>()?;
                (bytes.len() == self.bytes).then_some(bytes)
            }
            Kind::Number => {
                let number = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                    None => text.parse().ok()?,
                };
                let bytes = number.to_be_bytes();
                let (head, tail) = bytes.split_at(bytes.len() - self.bytes);
                head.iter().all(|byte| *byte == 0).then(|| tail.to_vec())
            }
        }
    }

    /// A value of the field, written.
    pub fn write(&self, bytes: &[u8]) -> String {
        match (self.kind, bytes) {
            (Kind::Ip4, bytes) if let Ok(octets) = <[u8; 4]>::try_from(bytes) => {
                Ipv4Addr::from(octets).to_string()
            }
            (Kind::Ip6, bytes) if let Ok(octets) = <[u8; 16]>::try_from(bytes) => {
                Ipv6Addr::from(octets).to_string()
            }
            (Kind::Mac, bytes) => {
                let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                parts.join(":")
            }
            (_, bytes) => {
                bytes.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte)).to_string()
            }
        }
    }

    /// What stands in a message for a value of the field.
    pub fn example(&self) -> &'static str {
        match self.kind {
            Kind::Mac => "a MAC address such as 02:00:00:00:00:01",
            Kind::Ip4 => "an IPv4 address such as 192.0.2.1",
            Kind::Ip6 => "an IPv6 address such as 2001:db8::1",
            Kind::Number if self.bytes == 1 => "a number from 0 to 255",
            Kind::Number => "a number from 0 to 65535",
        }
    }
}
