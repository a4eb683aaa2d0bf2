//! The headers that a profile can name: where their fields lie, what they hold when nothing is
//! said.

use super::scalar::Kind;

/// The default of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// This.
    Value(u128),
    /// What the frame around it makes right.
    Derived(Role),
    /// Nothing would be right.
    Required,
}

/// The rule for a derived field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The EtherType of the header that follows.
    NextEtherType,
    /// The IP protocol of the header that follows.
    NextProtocol,
    /// Bytes from so many behind the header's start to the end of the frame.
    Length(usize),
    /// Bytes of the header in units of four.
    HeaderWords,
    /// Bytes of the header behind the first eight, in units of eight (RFC 8200 §4).
    ExtensionUnits,
    /// Over this header alone.
    HeaderChecksum,
    /// Over this header and all behind it (ICMP for IPv4).
    Checksum,
    /// As `Checksum`, and over the addresses of the IP header below (TCP, ICMPv6).
    PseudoChecksum,
    /// As `PseudoChecksum`; a sum of zero is sent as 0xffff, and there is none in front of a
    /// tunnel.
    UdpChecksum,
    /// 1 on the last label of a stack (RFC 3032 §2.1).
    BottomOfStack,
    /// The sending port's MAC address.
    OwnMac,
    /// The MAC address of the sending port's gateway.
    GatewayMac,
    /// The sending port's first address of the kind.
    OwnAddress,
    /// The first address of the kind of the port where the frames go; with a segment list the first
    /// segment.
    PeerAddress,
    /// The port of the tunnel that follows, otherwise 1024.
    TunnelPort,
    /// Segments less one (RFC 8754 §2).
    LastSegment,
    /// Set when the header has a key (RFC 2890).
    KeyPresent,
}

/// One field.
#[derive(Debug)]
pub struct FieldSpec {
    /// In the profile.
    pub name: &'static str,
    /// Its first bit from the start of the header.
    pub bit: usize,
    /// Its width, bits.
    pub bits: usize,
    /// How it is written.
    pub kind: Kind,
    /// When nothing is said.
    pub default: Default,
}

/// One kind of header.
#[derive(Debug)]
pub struct HeaderSpec {
    /// In the profile.
    pub name: &'static str,
    /// Bytes without what varies in length.
    pub bytes: usize,
    /// In their order.
    pub fields: &'static [FieldSpec],
    /// The field that a bare value sets.
    pub principal: Option<&'static str>,
    /// The key of bytes that follow the fixed part: what they are, and of what their number is a
    /// multiple.
    pub tail: Option<(&'static str, usize)>,
    /// Says in an Ethernet header that it follows.
    pub ether_type: Option<u16>,
    /// Says in an IP header that it follows.
    pub protocol: Option<u8>,
}

const fn field(
    name: &'static str,
    bit: usize,
    bits: usize,
    kind: Kind,
    default: Default,
) -> FieldSpec {
    FieldSpec { name, bit, bits, kind, default }
}

const fn number(name: &'static str, bit: usize, bits: usize, value: u128) -> FieldSpec {
    field(name, bit, bits, Kind::Number, Default::Value(value))
}

const fn derived(name: &'static str, bit: usize, bits: usize, role: Role) -> FieldSpec {
    field(name, bit, bits, Kind::Number, Default::Derived(role))
}

const fn header(
    name: &'static str,
    bytes: usize,
    ether_type: Option<u16>,
    protocol: Option<u8>,
    fields: &'static [FieldSpec],
) -> HeaderSpec {
    HeaderSpec { name, bytes, fields, principal: None, tail: None, ether_type, protocol }
}

const TAG: &[FieldSpec] = &[
    number("priority", 0, 3, 0),
    number("dei", 3, 1, 0),
    field("id", 4, 12, Kind::Number, Default::Required),
    derived("type", 16, 16, Role::NextEtherType),
];

const EXTENSION: &[FieldSpec] = &[
    derived("next_header", 0, 8, Role::NextProtocol),
    derived("length", 8, 8, Role::ExtensionUnits),
];

/// Ethernet II (IEEE 802.3 §3.1.1).
pub static ETHERNET: HeaderSpec = header(
    "ethernet",
    14,
    Some(0x6558),
    Some(143),
    &[
        field("dst", 0, 48, Kind::Mac, Default::Derived(Role::GatewayMac)),
        field("src", 48, 48, Kind::Mac, Default::Derived(Role::OwnMac)),
        derived("type", 96, 16, Role::NextEtherType),
    ],
);

/// IPv4 (RFC 791).
pub static IP4: HeaderSpec = HeaderSpec {
    tail: Some(("options", 4)),
    ..header(
        "ip4",
        20,
        Some(0x0800),
        Some(4),
        &[
            number("version", 0, 4, 4),
            derived("ihl", 4, 4, Role::HeaderWords),
            number("dscp", 8, 6, 0),
            number("ecn", 14, 2, 0),
            derived("length", 16, 16, Role::Length(0)),
            number("id", 32, 16, 0),
            number("df", 49, 1, 0),
            number("mf", 50, 1, 0),
            number("fragment_offset", 51, 13, 0),
            number("ttl", 64, 8, 64),
            derived("protocol", 72, 8, Role::NextProtocol),
            derived("checksum", 80, 16, Role::HeaderChecksum),
            field("src", 96, 32, Kind::Ip4, Default::Derived(Role::OwnAddress)),
            field("dst", 128, 32, Kind::Ip4, Default::Derived(Role::PeerAddress)),
        ],
    )
};

/// IPv6 (RFC 8200 §3).
pub static IP6: HeaderSpec = header(
    "ip6",
    40,
    Some(0x86dd),
    Some(41),
    &[
        number("version", 0, 4, 6),
        number("traffic_class", 4, 8, 0),
        number("flow_label", 12, 20, 0),
        derived("length", 32, 16, Role::Length(40)),
        derived("next_header", 48, 8, Role::NextProtocol),
        number("hop_limit", 56, 8, 64),
        field("src", 64, 128, Kind::Ip6, Default::Derived(Role::OwnAddress)),
        field("dst", 192, 128, Kind::Ip6, Default::Derived(Role::PeerAddress)),
    ],
);

/// UDP (RFC 768).
pub static UDP: HeaderSpec = header(
    "udp",
    8,
    None,
    Some(17),
    &[
        number("src_port", 0, 16, 1024),
        derived("dst_port", 16, 16, Role::TunnelPort),
        derived("length", 32, 16, Role::Length(0)),
        derived("checksum", 48, 16, Role::UdpChecksum),
    ],
);

/// VXLAN (RFC 7348 §5).
pub static VXLAN: HeaderSpec = HeaderSpec {
    principal: Some("vni"),
    ..header(
        "vxlan",
        8,
        None,
        None,
        &[number("flags", 0, 8, 0x08), field("vni", 32, 24, Kind::Number, Default::Required)],
    )
};

/// GRE (RFC 2784) with or without a key (RFC 2890).
pub static GRE: HeaderSpec = header(
    "gre",
    4,
    None,
    Some(47),
    &[
        derived("key_present", 2, 1, Role::KeyPresent),
        derived("protocol", 16, 16, Role::NextEtherType),
        number(GRE_KEY, 32, 32, 0),
    ],
);

/// The field that makes a GRE header four bytes longer.
pub const GRE_KEY: &str = "key";

/// A segment routing header (RFC 8754 §2).
pub static SRH: HeaderSpec = HeaderSpec {
    tail: Some((SEGMENTS, 16)),
    ..header(
        "srh",
        8,
        None,
        Some(43),
        &[
            derived("next_header", 0, 8, Role::NextProtocol),
            derived("length", 8, 8, Role::ExtensionUnits),
            number("type", 16, 8, 4),
            derived("segments_left", 24, 8, Role::LastSegment),
            derived("last_entry", 32, 8, Role::LastSegment),
            number("flags", 40, 8, 0),
            number("tag", 48, 16, 0),
        ],
    )
};

/// The segments of a segment routing header, in the order of travel.
pub const SEGMENTS: &str = "segments";

/// Bytes as they are.
pub static RAW: HeaderSpec =
    HeaderSpec { tail: Some(("hex", 1)), ..header("raw", 0, None, None, &[]) };

static REST: [HeaderSpec; 10] = [
    HeaderSpec { principal: Some("id"), ..header("vlan", 4, Some(0x8100), None, TAG) },
    HeaderSpec { principal: Some("id"), ..header("dot1ad", 4, Some(0x88a8), None, TAG) },
    HeaderSpec {
        principal: Some("label"),
        ..header(
            "mpls",
            4,
            Some(0x8847),
            Some(137),
            &[
                field("label", 0, 20, Kind::Number, Default::Required),
                number("traffic_class", 20, 3, 0),
                derived("bottom", 23, 1, Role::BottomOfStack),
                number("ttl", 24, 8, 64),
            ],
        )
    },
    HeaderSpec { tail: Some(("options", 8)), ..header("hop_by_hop", 2, None, Some(0), EXTENSION) },
    HeaderSpec {
        tail: Some(("options", 8)),
        ..header("destination_options", 2, None, Some(60), EXTENSION)
    },
    header(
        "fragment",
        8,
        None,
        Some(44),
        &[
            derived("next_header", 0, 8, Role::NextProtocol),
            number("offset", 16, 13, 0),
            number("more", 31, 1, 0),
            number("id", 32, 32, 0),
        ],
    ),
    HeaderSpec {
        tail: Some(("options", 4)),
        ..header(
            "tcp",
            20,
            None,
            Some(6),
            &[
                number("src_port", 0, 16, 1024),
                number("dst_port", 16, 16, 1024),
                number("seq", 32, 32, 0),
                number("ack", 64, 32, 0),
                derived("data_offset", 96, 4, Role::HeaderWords),
                field("flags", 104, 8, Kind::TcpFlags, Default::Value(0x10)),
                number("window", 112, 16, 8192),
                derived("checksum", 128, 16, Role::PseudoChecksum),
                number("urgent", 144, 16, 0),
            ],
        )
    },
    header(
        "icmp4",
        8,
        None,
        Some(1),
        &[
            number("type", 0, 8, 8),
            number("code", 8, 8, 0),
            derived("checksum", 16, 16, Role::Checksum),
            number("id", 32, 16, 0),
            number("seq", 48, 16, 0),
        ],
    ),
    header(
        "icmp6",
        8,
        None,
        Some(58),
        &[
            number("type", 0, 8, 128),
            number("code", 8, 8, 0),
            derived("checksum", 16, 16, Role::PseudoChecksum),
            number("id", 32, 16, 0),
            number("seq", 48, 16, 0),
        ],
    ),
    header(
        "arp",
        28,
        Some(0x0806),
        None,
        &[
            number("hardware_type", 0, 16, 1),
            number("protocol_type", 16, 16, 0x0800),
            number("hardware_length", 32, 8, 6),
            number("protocol_length", 40, 8, 4),
            field("op", 48, 16, Kind::ArpOperation, Default::Value(1)),
            field("src_mac", 64, 48, Kind::Mac, Default::Derived(Role::OwnMac)),
            field("src_ip", 112, 32, Kind::Ip4, Default::Derived(Role::OwnAddress)),
            field("dst_mac", 144, 48, Kind::Mac, Default::Value(0)),
            field("dst_ip", 192, 32, Kind::Ip4, Default::Derived(Role::PeerAddress)),
        ],
    ),
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static HeaderSpec> {
    [&ETHERNET, &IP4, &IP6, &UDP, &VXLAN, &GRE, &SRH, &RAW].into_iter().chain(&REST)
}

/// By the profile's name.
pub fn by_name(name: &str) -> Option<&'static HeaderSpec> {
    all().find(|header| header.name == name)
}

impl HeaderSpec {
    /// The place of a field by its name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Is it the same kind of header?
    pub fn is(&self, other: &HeaderSpec) -> bool {
        self.name == other.name
    }

    /// The keys that it has, for messages.
    pub fn keys(&self) -> String {
        let tail = self.tail.map(|(name, _)| name);
        let names: Vec<&str> = self.fields.iter().map(|field| field.name).chain(tail).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_one_behind_the_other_inside_their_header() {
        for header in all() {
            let mut end = 0;
            for field in header.fields {
                assert!(field.bit >= end, "{}.{}", header.name, field.name);
                end = field.bit + field.bits;
                assert!(
                    end <= header.bytes * 8 || field.name == GRE_KEY,
                    "{}.{}",
                    header.name,
                    field.name
                );
            }
            assert!(header.principal.is_none_or(|name| header.place(name).is_some()));
            assert!(by_name(header.name).is_some_and(|found| found.is(header)));
        }
    }
}
