//! The ends of an outer packet, as its IP header says, and as an ICMP error quotes it.

use std::net::{IpAddr, Ipv4Addr};

use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::nodes;
use quiver_wire::icmp4::Icmp4Header;
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::table::bits;
use crate::outer::OuterHeader;
use crate::relay::UnderlayError;

/// Who sent an outer packet to whom, IPv4 addresses mapped, and what it carries.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The outer source.
    pub source: u128,
    /// The outer destination.
    pub destination: u128,
    /// What follows the outer header and its extensions.
    pub protocol: IpProtocol,
    /// Where that begins.
    pub header_len: usize,
    /// Bytes of the packet, as the header says.
    pub length: usize,
}

/// IPv4 or IPv6 outside, at the end of a tunnel.
pub trait OuterEnds: OuterHeader {
    /// The smallest MTU that a router of the underlay is believed to tell (RFC 1191 §3, RFC 8201
    /// §4).
    const PATH_MTU_MIN: u16;
    /// The claims of nodes on ICMP errors by the protocol of the packet that is quoted.
    const ERROR_CLAIMS: &'static str;
    /// The claims of nodes on packets for the router itself.
    const CLAIMS: &'static str;
    /// The claims of nodes on packets that no tunnel is for, by the protocol of the outer header.
    const REST_CLAIMS: &'static str;
    /// The claims of nodes on ICMP errors about packets that no tunnel sends, by the protocol of
    /// the packet that is quoted.
    const REST_ERROR_CLAIMS: &'static str;
    /// The node for packets that a host behind the router may wait for.
    const PUNT: &'static str;

    /// The ends of the packet that `bytes` begin with.
    fn ends(bytes: &[u8]) -> Option<Ends>;

    /// What [`ends`](Self::ends) follows from, but for the length, of a header that nothing stands
    /// between and its payload; `None` for others. Headers with the same have the same ends.
    type Fixed: Copy + PartialEq;

    /// See [`Fixed`](Self::Fixed).
    fn fixed(bytes: &[u8]) -> Option<Self::Fixed>;

    /// What an ICMP error says, and where the packet begins that it quotes.
    fn quoted(bytes: &[u8]) -> Option<(UnderlayError, usize)>;

    /// Do these bytes begin a fragment other than the first, which has no tunnel's header?
    fn is_later_fragment(bytes: &[u8]) -> bool;
}

impl OuterEnds for Ip4 {
    const PATH_MTU_MIN: u16 = 68;
    const ERROR_CLAIMS: &'static str = "icmp4-error-about-tunnel";
    const CLAIMS: &'static str = "ip4-protocol";
    const REST_CLAIMS: &'static str = "ip4-protocol-without-tunnel";
    const REST_ERROR_CLAIMS: &'static str = "icmp4-error-without-tunnel";
    const PUNT: &'static str = nodes::ip4::PUNT;

    #[inline(always)]
    fn ends(bytes: &[u8]) -> Option<Ends> {
        let header = Ip4Header::overlay(bytes)?;
        let mapped = |address: Ipv4Addr| bits(IpAddr::V4(address));
        Some(Ends {
            source: mapped(header.source()),
            destination: mapped(header.destination()),
            protocol: header.protocol(),
            header_len: header.header_len(),
            length: header.total_length().into(),
        })
    }

    /// The ends and the protocol of a header without options.
    type Fixed = (u32, u32, IpProtocol);

    #[inline(always)]
    fn fixed(bytes: &[u8]) -> Option<Self::Fixed> {
        let header = Ip4Header::overlay(bytes)?;
        let fixed = (header.source_bits(), header.destination_bits(), header.protocol());
        (header.header_len() == Ip4Header::LEN).then_some(fixed)
    }

    fn quoted(bytes: &[u8]) -> Option<(UnderlayError, usize)> {
        let at = Ip4Header::overlay(bytes)?.header_len();
        let icmp = Icmp4Header::overlay(bytes.get(at..)?)?;
        Some((UnderlayError::of_icmp4(icmp), at + Icmp4Header::LEN))
    }

    fn is_later_fragment(bytes: &[u8]) -> bool {
        Ip4Header::overlay(bytes).is_some_and(|header| header.fragment_offset() != 0)
    }
}

impl OuterEnds for Ip6 {
    const PATH_MTU_MIN: u16 = MTU_MIN as u16;
    const ERROR_CLAIMS: &'static str = "icmp6-error-about-tunnel";
    const CLAIMS: &'static str = "ip6-protocol";
    const REST_CLAIMS: &'static str = "ip6-protocol-without-tunnel";
    const REST_ERROR_CLAIMS: &'static str = "icmp6-error-without-tunnel";
    const PUNT: &'static str = nodes::ip6::PUNT;

    #[inline(always)]
    fn ends(bytes: &[u8]) -> Option<Ends> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let mut ends = Ends {
            source: header.source_bits(),
            destination: header.destination_bits(),
            protocol: header.next_header(),
            header_len: Ip6Header::LEN,
            length: usize::from(header.payload_length()) + Ip6Header::LEN,
        };
        if is_extension(ends.protocol) {
            let upper = upper_layer(ends.protocol, behind).ok()?;
            ends.protocol = upper.protocol;
            ends.header_len += upper.offset;
        }
        Some(ends)
    }

    /// The ends and the protocol of a header without extensions.
    type Fixed = (u128, u128, IpProtocol);

    #[inline(always)]
    fn fixed(bytes: &[u8]) -> Option<Self::Fixed> {
        let header = Ip6Header::overlay(bytes)?;
        let next = header.next_header();
        let fixed = (header.source_bits(), header.destination_bits(), next);
        (!is_extension(next)).then_some(fixed)
    }

    fn quoted(bytes: &[u8]) -> Option<(UnderlayError, usize)> {
        let (header, message) = icmp6::within(bytes)?;
        let (icmp, quoted) = Icmp6Header::split(message)?;
        let end = Ip6Header::LEN + usize::from(header.payload_length());
        Some((UnderlayError::of_icmp6(icmp), end.checked_sub(quoted.len())?))
    }

    fn is_later_fragment(bytes: &[u8]) -> bool {
        let Some((header, behind)) = Ip6Header::split(bytes) else { return false };
        let upper = upper_layer(header.next_header(), behind).ok();
        upper.and_then(|upper| upper.fragment).is_some_and(|fragment| fragment.offset != 0)
    }
}

#[inline(always)]
fn is_extension(next: IpProtocol) -> bool {
    matches!(
        next,
        IpProtocol::HOP_BY_HOP
            | IpProtocol::ROUTING
            | IpProtocol::FRAGMENT
            | IpProtocol::DESTINATION_OPTIONS
    )
}
