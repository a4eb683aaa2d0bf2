//! The numbers in IPv4's protocol and IPv6's next-header field (IANA protocol numbers).

use core::fmt;

/// An IP protocol number, or the type of an IPv6 extension header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// IGMP.
    pub const IGMP: Self = Self(2);
    /// IPv4 in IP.
    pub const IPV4: Self = Self(4);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// DCCP.
    pub const DCCP: Self = Self(33);
    /// IPv6 in IP.
    pub const IPV6: Self = Self(41);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// GRE.
    pub const GRE: Self = Self(47);
    /// ESP.
    pub const ESP: Self = Self(50);
    /// Authentication header.
    pub const AUTHENTICATION: Self = Self(51);
    /// ICMPv6.
    pub const ICMP6: Self = Self(58);
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Self = Self(60);
    /// VRRP.
    pub const VRRP: Self = Self(112);
    /// L2TPv3.
    pub const L2TP: Self = Self(115);
    /// SCTP.
    pub const SCTP: Self = Self(132);
    /// UDP-Lite.
    pub const UDP_LITE: Self = Self(136);

    /// Whether its header starts with a source and a destination port of 16 bits each.
    #[inline]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::DCCP | Self::SCTP | Self::UDP_LITE)
    }

    /// The field's name for it, if it has one here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::HOP_BY_HOP => "hop-by-hop",
            Self::ICMP => "icmp",
            Self::IGMP => "igmp",
            Self::IPV4 => "ipv4",
            Self::TCP => "tcp",
            Self::UDP => "udp",
            Self::DCCP => "dccp",
            Self::IPV6 => "ipv6",
            Self::ROUTING => "routing",
            Self::FRAGMENT => "fragment",
            Self::GRE => "gre",
            Self::ESP => "esp",
            Self::AUTHENTICATION => "ah",
            Self::ICMP6 => "icmp6",
            Self::NO_NEXT_HEADER => "no-next-header",
            Self::DESTINATION_OPTIONS => "destination-options",
            Self::VRRP => "vrrp",
            Self::L2TP => "l2tp",
            Self::SCTP => "sctp",
            Self::UDP_LITE => "udp-lite",
            _ => return None,
        })
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "protocol {}", self.0),
        }
    }
}

impl fmt::Debug for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
