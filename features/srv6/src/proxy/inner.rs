//! What a proxy does with an IPv4 or IPv6 packet that comes back from a function.

use quiver_core::Packet;
use quiver_tables::IcmpErrorRequest;
use quiver_tables::ip::{Addresses, Ip4, Ip6, IpFamily};
use quiver_wire::ip6::{MTU_MIN, address};
use quiver_wire::{Header, Ip4Header, Ip6Header, checksum, icmp4, icmp6};

use super::back::Coming;

/// The smallest MTU that IPv4 hosts are told of, in bytes (RFC 791: what every link carries).
const IP4_MTU_MIN: usize = 68;
/// Beyond the scope of the source address (RFC 4443 §3.1).
pub(super) const BEYOND_SCOPE: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp6::kind::DESTINATION_UNREACHABLE,
    code: icmp6::unreachable::BEYOND_SCOPE,
    detail: 0,
};

/// What is read of its header.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub class: u8,
    pub hops: u8,
    /// May its source not leave its link?
    pub is_local: bool,
}

/// IPv4 or IPv6.
pub(super) trait Inner: IpFamily {
    const NODE: &'static str;
    const COMING: Coming;
    const LOOKUP: &'static str;
    /// The node that sends ICMP errors about it.
    const ERROR: &'static str;
    const TIME_EXCEEDED: IcmpErrorRequest;

    /// Is it for the router itself, or for the link: neighbour discovery, routing protocols, a ping?
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool;

    fn facts(bytes: &[u8]) -> Option<Facts>;

    /// One hop less to live.
    fn count_hop(bytes: &mut [u8]);

    /// What its sender hears when it must not be longer than `mtu_bytes`; nothing when it cannot be made smaller,
    /// and what is around it must be fragmented (RFC 2473 §7).
    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest>;
}

impl Inner for Ip6 {
    const NODE: &'static str = super::from_function::IP6;
    const COMING: Coming = Coming::Ip6;
    const LOOKUP: &'static str = "ip6-lookup";
    const ERROR: &'static str = "ip6-icmp-error";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp6::kind::TIME_EXCEEDED, code: 0, detail: 0 };

    #[inline(always)]
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool {
        let Some(header) = Ip6Header::overlay(bytes) else { return false };
        let to = header.destination();
        address::is_multicast(to) || address::is_link_local(to) || own.is_some_and(|own| own.has6(to))
    }

    #[inline(always)]
    fn facts(bytes: &[u8]) -> Option<Facts> {
        let header = Ip6Header::overlay(bytes)?;
        let is_local = header.source_bits() >> 118 == 0xfe80 >> 6;
        Some(Facts { class: header.traffic_class(), hops: header.hop_limit(), is_local })
    }

    #[inline(always)]
    fn count_hop(bytes: &mut [u8]) {
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.decrement_hop_limit();
        }
    }

    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        // A packet of the smallest MTU must pass (RFC 8200 §5, RFC 2473 §7.1).
        let mtu_bytes = mtu_bytes.max(MTU_MIN);
        let detail = u16::try_from(mtu_bytes).unwrap_or(u16::MAX);
        let request = IcmpErrorRequest { kind: icmp6::kind::PACKET_TOO_BIG, code: 0, detail };
        (packet.length() > mtu_bytes).then_some(request)
    }
}

impl Inner for Ip4 {
    const NODE: &'static str = super::from_function::IP4;
    const COMING: Coming = Coming::Ip4;
    const LOOKUP: &'static str = "ip4-lookup";
    const ERROR: &'static str = "ip4-icmp-error";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp4::kind::TIME_EXCEEDED, code: 0, detail: 0 };

    #[inline(always)]
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool {
        let Some(header) = Ip4Header::overlay(bytes) else { return false };
        let to = header.destination();
        to.is_multicast() || to.is_broadcast() || own.is_some_and(|own| own.has4(to))
    }

    #[inline(always)]
    fn facts(bytes: &[u8]) -> Option<Facts> {
        let header = Ip4Header::overlay(bytes)?;
        Some(Facts { class: header.traffic_class, hops: header.ttl(), is_local: false })
    }

    #[inline(always)]
    fn count_hop(bytes: &mut [u8]) {
        if let Some(header) = Ip4Header::overlay_mut(bytes) {
            checksum::decrement_ttl(header);
        }
    }

    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        let header = Ip4Header::overlay(packet.bytes())?;
        let detail = u16::try_from(mtu_bytes.max(IP4_MTU_MIN)).unwrap_or(u16::MAX);
        let code = icmp4::unreachable::FRAGMENTATION_NEEDED;
        let request = IcmpErrorRequest { kind: icmp4::kind::DESTINATION_UNREACHABLE, code, detail };
        header.dont_fragment().then_some(request)
    }
}
