//! Classes of service, and the headers that they are read from and written to.

/// Where a class came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Something outside of the packet.
    External,
    /// The priority code point of the outermost VLAN tag (IEEE 802.1Q §9.6), 0 to 7.
    Vlan,
    /// The traffic class of the outermost label (RFC 5462 §2), 0 to 7.
    Mpls,
    /// The traffic class of the IP header, 0 to 255, with zeros in the place of ECN.
    Ip,
}

impl Source {
    /// All of them; a source is the number of its place.
    pub const ALL: [Source; 4] = [Source::External, Source::Vlan, Source::Mpls, Source::Ip];
    /// Those that are headers of a packet, outermost first.
    pub const HEADERS: [Source; 3] = [Source::Vlan, Source::Mpls, Source::Ip];

    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            Source::External => "ext",
            Source::Vlan => "vlan",
            Source::Mpls => "mpls",
            Source::Ip => "ip",
        }
    }

    /// The greatest value of a class from there.
    pub const fn value_max(self) -> u8 {
        match self {
            Source::External | Source::Ip => u8::MAX,
            Source::Vlan | Source::Mpls => 7,
        }
    }

    /// The source of this word.
    pub fn of_word(word: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.word() == word)
    }
}

/// A class of service, as it goes with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Where it came from.
    pub source: Source,
    /// What it is.
    pub value: u8,
}

impl Class {
    /// As a packet has it ([`Packet::class`](quiver_core::Packet::class)).
    #[inline(always)]
    pub const fn bits(self) -> u16 {
        (self.source as u16) << 8 | self.value as u16
    }

    /// From those bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Class {
        let source = match bits >> 8 & 3 {
            0 => Source::External,
            1 => Source::Vlan,
            2 => Source::Mpls,
            _ => Source::Ip,
        };
        Class { source, value: bits as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_classes_are_inverse() {
        for source in Source::ALL {
            for value in 0..=u8::MAX {
                let class = Class { source, value };
                assert_eq!(Class::from_bits(class.bits()), class);
            }
            assert_eq!(Source::of_word(source.word()), Some(source));
        }
    }
}
