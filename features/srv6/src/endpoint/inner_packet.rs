//! What is inside a packet at a SID that ends it: the plain case by one look, the others step by
//! step.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_encap::decapsulated::{InnerDestination, ip4_fast, ip6_fast};
use quiver_forwarding::ip::Ip6;
use quiver_wire::ip6::Ip6Header;
use quiver_wire::srh::SrhHeader;
use quiver_wire::{Header, IpProtocol};

/// Ethernet inside (RFC 8986 §10.1, IANA protocol numbers).
pub(crate) const ETHERNET: IpProtocol = IpProtocol(143);

/// The protocol inside, and where it begins, counted from the IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    pub protocol: IpProtocol,
    pub at: usize,
}

/// Behind nothing but the IPv6 header, or that and an SRH in which no segments are left. What is
/// unusual is said to be inside at 0.
#[inline(always)]
pub(crate) fn parse_inside(packet: &Packet) -> Inside {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else {
        return Inside { protocol: IpProtocol::NO_NEXT_HEADER, at: 0 };
    };
    let protocol = header.next_header();
    if protocol != IpProtocol::ROUTING {
        return Inside { protocol, at: Ip6Header::LEN };
    }
    let Some(srh) = SrhHeader::overlay(behind) else { return Inside { protocol, at: 0 } };
    let length =
        srh.length_if_ended(behind.len()).filter(|_| packet.has_none(PacketFlags::OFFLOAD));
    Inside { protocol: srh.next_header(), at: length.map_or(0, |length| Ip6Header::LEN + length) }
}

/// The destination of the packet inside, which is left, if nothing is unusual about it and it is of
/// a family that is `taken` (IPv4, IPv6); else nothing happens.
#[inline(always)]
pub(crate) fn parse_inner(packet: &mut Packet, taken: (bool, bool)) -> Option<InnerDestination> {
    let Inside { protocol, at } = parse_inside(packet);
    let inner = match protocol {
        IpProtocol::IPV4 if taken.0 => InnerDestination::Ip4(ip4_fast::<Ip6>(packet, at)?),
        IpProtocol::IPV6 if taken.1 => InnerDestination::Ip6(ip6_fast::<Ip6>(packet, at)?),
        _ => return None,
    };
    packet.set_carried();
    Some(inner)
}
