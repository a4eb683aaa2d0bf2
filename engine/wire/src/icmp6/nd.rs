//! Neighbour discovery (RFC 4861 §4): solicitations and advertisements with their options.
//!
//! ```text
//! 0    1    2         4                   8              24
//! +----+----+---------+-------------------+--------------+--------   NS, NA
//! |135 | 0  | check   | R S O, reserved   | target       | options
//! +----+----+---------+----+----+---------+---------+----+----+---   RA
//! |134 | 0  | check   |hops|M O | lifetime| reachable, retrans | options
//! +----+----+---------+----+----+---------+--------------------+---
//! ```

mod option;

use core::fmt;
use core::net::Ipv6Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use option::{NdOption, Options, PrefixInformation, Walk};

use super::kind;
use crate::ip6::address;
use crate::{Header, WireError};

/// Types of options that [`NdOption`] has no form of its own for.
pub mod option_kind {
    /// A route behind the router (RFC 4191 §2.3).
    pub const ROUTE_INFORMATION: u8 = 24;
    /// Addresses of name servers (RFC 8106 §5.1).
    pub const RDNSS: u8 = 25;
    /// Domains to search names in (RFC 8106 §5.2).
    pub const DNSSL: u8 = 31;
}

/// Flags of a router advertisement (RFC 4861 §4.2, RFC 4191 §2.2).
pub mod router_flags {
    /// Addresses by DHCPv6.
    pub const MANAGED: u8 = 0x80;
    /// Other configuration by DHCPv6.
    pub const OTHER: u8 = 0x40;
    /// The router's preference, two bits.
    pub const PREFERENCE: u8 = 0x18;
}

/// Flags of a prefix (RFC 4861 §4.6.2).
pub mod prefix_flags {
    /// On the link.
    pub const ON_LINK: u8 = 0x80;
    /// Hosts may make addresses of it.
    pub const AUTONOMOUS: u8 = 0x40;
}

/// The hop limit that proves that no router was on the way (RFC 4861 §3.1).
pub const HOP_LIMIT: u8 = 255;

/// A neighbour solicitation or advertisement on packet bytes, 24 bytes, options behind it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NeighborHeader {
    /// [`kind::NEIGHBOR_SOLICITATION`] or [`kind::NEIGHBOR_ADVERTISEMENT`].
    pub kind: u8,
    /// Zero.
    pub code: u8,
    checksum: U16,
    flags: [u8; 4],
    target: [u8; 16],
}

impl Header for NeighborHeader {
    const NAME: &'static str = "neighbour discovery";
}

impl NeighborHeader {
    /// The address asked for or answered.
    #[inline(always)]
    pub fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.target)
    }

    /// The flags of an advertisement.
    #[inline(always)]
    pub fn flags(&self) -> NeighborFlags {
        NeighborFlags(self.flags[0] & 0xe0)
    }
}

/// The flags of a neighbour advertisement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighborFlags(u8);

impl NeighborFlags {
    /// The sender is a router.
    pub const ROUTER: Self = Self(0x80);
    /// The answer to a solicitation.
    pub const SOLICITED: Self = Self(0x40);
    /// The MAC address replaces a known one.
    pub const OVERRIDE: Self = Self(0x20);

    /// All flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A message of neighbour discovery in plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Is there a router?
    RouterSolicitation {
        /// Options.
        options: Options<'a>,
    },
    /// There is one.
    RouterAdvertisement {
        /// What hosts shall put into their packets; 0: not said.
        hop_limit: u8,
        /// 0x80: addresses by DHCPv6; 0x40: other configuration by DHCPv6.
        flags: u8,
        /// How long the router is a default router, in seconds.
        lifetime_s: u16,
        /// How long a neighbour counts as reachable, in milliseconds; 0: not said.
        reachable_ms: u32,
        /// Time between solicitations, in milliseconds; 0: not said.
        retransmit_ms: u32,
        /// Options.
        options: Options<'a>,
    },
    /// Who has the target?
    NeighborSolicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// Options.
        options: Options<'a>,
    },
    /// The sender has it.
    NeighborAdvertisement {
        /// Router, solicited, override.
        flags: NeighborFlags,
        /// The address answered.
        target: Ipv6Addr,
        /// Options.
        options: Options<'a>,
    },
}

/// What stands between the first 8 bytes and the options: nothing, two timers or the target.
pub(super) struct Fixed {
    bytes: [u8; 16],
    len: usize,
}

impl Fixed {
    pub(super) const NONE: Self = Self { bytes: [0; 16], len: 0 };

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<'a> Message<'a> {
    /// Reads what stands behind the checksum of a message of this type.
    pub(super) fn parse(kind: u8, rest: [u8; 4], data: &'a [u8]) -> Result<Self, WireError> {
        let truncated = |need: usize| WireError::Truncated {
            header: NeighborHeader::NAME,
            need: 8 + need,
            have: 8 + data.len(),
        };
        let [hop_limit, flags, lifetime @ ..] = rest;
        match kind {
            kind::ROUTER_SOLICITATION => {
                Ok(Message::RouterSolicitation { options: Options::new(data)? })
            }
            kind::ROUTER_ADVERTISEMENT => {
                let (timers, options) = data.split_first_chunk::<8>().ok_or(truncated(8))?;
                let timers = u64::from_be_bytes(*timers);
                Ok(Message::RouterAdvertisement {
                    hop_limit,
                    flags,
                    lifetime_s: u16::from_be_bytes(lifetime),
                    reachable_ms: (timers >> 32) as u32,
                    retransmit_ms: timers as u32,
                    options: Options::new(options)?,
                })
            }
            _ => {
                let (target, options) = data.split_first_chunk::<16>().ok_or(truncated(16))?;
                let (target, options) = (Ipv6Addr::from_octets(*target), Options::new(options)?);
                if kind == kind::NEIGHBOR_SOLICITATION {
                    return Ok(Message::NeighborSolicitation { target, options });
                }
                let flags = NeighborFlags(hop_limit & 0xe0);
                Ok(Message::NeighborAdvertisement { flags, target, options })
            }
        }
    }

    /// Type, the four bytes behind the checksum, the fixed part and the options.
    pub(super) fn parts(&self) -> (u8, [u8; 4], Fixed, &'a [u8]) {
        let with = |target: Ipv6Addr| Fixed { bytes: target.octets(), len: 16 };
        match *self {
            Message::RouterSolicitation { options } => {
                (kind::ROUTER_SOLICITATION, [0; 4], Fixed::NONE, options.as_bytes())
            }
            Message::RouterAdvertisement {
                hop_limit,
                flags,
                lifetime_s,
                reachable_ms,
                retransmit_ms,
                options,
            } => {
                let [a, b] = lifetime_s.to_be_bytes();
                let timers = u64::from(reachable_ms) << 32 | u64::from(retransmit_ms);
                let fixed = Fixed { bytes: (u128::from(timers) << 64).to_be_bytes(), len: 8 };
                (kind::ROUTER_ADVERTISEMENT, [hop_limit, flags, a, b], fixed, options.as_bytes())
            }
            Message::NeighborSolicitation { target, options } => {
                (kind::NEIGHBOR_SOLICITATION, [0; 4], with(target), options.as_bytes())
            }
            Message::NeighborAdvertisement { flags, target, options } => {
                (kind::NEIGHBOR_ADVERTISEMENT, [flags.0, 0, 0, 0], with(target), options.as_bytes())
            }
        }
    }

    /// Its options.
    pub const fn options(&self) -> Options<'a> {
        match *self {
            Message::RouterSolicitation { options }
            | Message::RouterAdvertisement { options, .. }
            | Message::NeighborSolicitation { options, .. }
            | Message::NeighborAdvertisement { options, .. } => options,
        }
    }

    /// The rules of RFC 4861 §6.1.1, §6.1.2, §7.1.1 and §7.1.2 that [`super::Message::parse`]
    /// cannot see, for they need the IPv6 header.
    ///
    /// # Errors
    /// The message breaks one of these rules; [`NdBad`] names it.
    pub fn check(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        hop_limit: u8,
    ) -> Result<(), NdBad> {
        if hop_limit != HOP_LIMIT {
            return Err(NdBad::HopLimit);
        }
        let from_nobody = address::is_unspecified(source);
        let says_its_mac = self.options().source_mac().is_some();
        match *self {
            Message::RouterSolicitation { .. } if from_nobody && says_its_mac => {
                Err(NdBad::MacOfNobody)
            }
            Message::RouterAdvertisement { .. } if !address::is_link_local(source) => {
                Err(NdBad::SourceNotLinkLocal)
            }
            Message::NeighborSolicitation { target, .. }
            | Message::NeighborAdvertisement { target, .. }
                if address::is_multicast(target) =>
            {
                Err(NdBad::TargetIsMulticast)
            }
            Message::NeighborSolicitation { .. } if from_nobody && says_its_mac => {
                Err(NdBad::MacOfNobody)
            }
            Message::NeighborSolicitation { .. }
                if from_nobody && !address::is_solicited_node(destination) =>
            {
                Err(NdBad::ProbeNotToSolicitedNode)
            }
            Message::NeighborAdvertisement { flags, .. }
                if flags.contains(NeighborFlags::SOLICITED)
                    && address::is_multicast(destination) =>
            {
                Err(NdBad::SolicitedToGroup)
            }
            _ => Ok(()),
        }
    }
}

/// Why a message of neighbour discovery must be dropped silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NdBad {
    /// The hop limit is not 255: it may come from afar.
    HopLimit,
    /// A MAC address for the source ::.
    MacOfNobody,
    /// A router advertisement from an address that is not link-local.
    SourceNotLinkLocal,
    /// The target is a multicast group.
    TargetIsMulticast,
    /// A solicitation from :: to something else than a solicited-node group.
    ProbeNotToSolicitedNode,
    /// An advertisement to a group with the solicited flag.
    SolicitedToGroup,
}

impl fmt::Display for NdBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NdBad::HopLimit => "neighbour discovery with a hop limit below 255",
            NdBad::MacOfNobody => "neighbour discovery with a MAC address for the source ::",
            NdBad::SourceNotLinkLocal => {
                "router advertisement from an address that is not link-local"
            }
            NdBad::TargetIsMulticast => "neighbour discovery for a multicast target",
            NdBad::ProbeNotToSolicitedNode => "solicitation from :: not to a solicited-node group",
            NdBad::SolicitedToGroup => "solicited advertisement to a multicast group",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MacAddress, icmp6};
    use std::vec::Vec;

    const MAC: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

    fn at(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn a_solicitation_carries_the_mac_of_its_sender() {
        let mut options = [0; 8];
        assert_eq!(NdOption::SourceMac(MAC).emit(&mut options), Ok(8));
        let (source, target) = (at("fe80::1"), at("fe80::2"));
        let group = address::solicited_node(target);
        let solicitation =
            Message::NeighborSolicitation { target, options: Options::new(&options).unwrap() };
        let message = icmp6::Message::Nd(solicitation);
        let mut out = [0; 32];
        assert_eq!(message.emit(source, group, &mut out), Ok(32));
        assert_eq!(out[24..], [1, 1, 2, 0xfe, 0, 0, 0, 1]);
        assert_eq!(NeighborHeader::overlay(&out).unwrap().target(), target);
        assert_eq!(icmp6::Message::parse(source, group, &out), Ok(message));
        assert_eq!(solicitation.options().source_mac(), Some(MAC));
        assert_eq!(solicitation.check(source, group, 255), Ok(()));
        assert_eq!(solicitation.check(source, group, 254), Err(NdBad::HopLimit));
        assert_eq!(solicitation.check(at("::"), group, 255), Err(NdBad::MacOfNobody));
    }

    #[test]
    fn what_rfc_4861_forbids_is_named() {
        let (options, target) = (Options::NONE, at("fe80::2"));
        let probe = Message::NeighborSolicitation { target, options };
        assert_eq!(probe.check(at("::"), target, 255), Err(NdBad::ProbeNotToSolicitedNode));
        assert_eq!(probe.check(at("::"), address::solicited_node(target), 255), Ok(()));
        let group = Message::NeighborSolicitation { target: at("ff02::1"), options };
        assert_eq!(group.check(at("fe80::1"), target, 255), Err(NdBad::TargetIsMulticast));
        let flags = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
        let answer = Message::NeighborAdvertisement { flags, target, options };
        assert_eq!(answer.check(target, address::ALL_NODES, 255), Err(NdBad::SolicitedToGroup));
        assert_eq!(answer.check(target, at("fe80::1"), 255), Ok(()));
    }

    #[test]
    fn a_router_advertisement_is_read_and_written() {
        let prefix = PrefixInformation {
            length: 64,
            flags: 0xc0,
            valid_s: 86_400,
            preferred_s: 14_400,
            prefix: at("2001:db8::"),
        };
        let wanted = [NdOption::SourceMac(MAC), NdOption::Mtu(1500), NdOption::Prefix(prefix)];
        let mut options = [0; 48];
        let mut len = 0;
        for option in &wanted {
            len += option.emit(&mut options[len..]).unwrap();
        }
        let message = icmp6::Message::Nd(Message::RouterAdvertisement {
            hop_limit: 64,
            flags: 0x40,
            lifetime_s: 1800,
            reachable_ms: 30_000,
            retransmit_ms: 1000,
            options: Options::new(&options).unwrap(),
        });
        let mut out = [0; 64];
        assert_eq!(message.emit(at("fe80::1"), address::ALL_NODES, &mut out), Ok(64));
        assert_eq!(icmp6::Message::parse(at("fe80::1"), address::ALL_NODES, &out), Ok(message));
        let icmp6::Message::Nd(parsed) = message else { unreachable!() };
        assert_eq!(parsed.options().iter().collect::<Vec<_>>(), wanted);
        let global = parsed.check(at("2001:db8::1"), address::ALL_NODES, 255);
        assert_eq!(global, Err(NdBad::SourceNotLinkLocal));
    }
}
