//! What the headend does with the packet that it encapsulates, IPv4 or IPv6: the hop that is counted, and what
//! its sender hears.

use quiver_core::Packet;
use quiver_tables::IcmpErrorRequest;
use quiver_tables::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::ip6::{MTU_MIN, address};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, checksum, icmp4, icmp6};

pub use super::reasons::HeadendDrop;

/// Time exceeded in transit (RFC 792, RFC 4443 §3.3).
const TIME_EXCEEDED4: IcmpErrorRequest =
    IcmpErrorRequest { kind: icmp4::kind::TIME_EXCEEDED, code: 0, detail: 0 };
const TIME_EXCEEDED6: IcmpErrorRequest =
    IcmpErrorRequest { kind: icmp6::kind::TIME_EXCEEDED, code: 0, detail: 0 };
/// Beyond the scope of the source address (RFC 4443 §3.1).
const BEYOND_SCOPE: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp6::kind::DESTINATION_UNREACHABLE,
    code: icmp6::unreachable::BEYOND_SCOPE,
    detail: 0,
};
/// The smallest MTU that IPv4 hosts are told of, in bytes (RFC 791: what every link carries).
const IP4_MTU_MIN: usize = 68;

/// A packet's sender is told something, which is counted.
pub type Told = (IcmpErrorRequest, HeadendDrop);

/// IPv4 or IPv6 inside.
pub trait Inner: IpFamily {
    /// The node that encapsulates it.
    const NODE: &'static str;
    /// The node that sends ICMP errors about it.
    const ERROR_NODE: &'static str;
    /// How the header in front names it.
    const PROTOCOL: IpProtocol;

    /// Traffic class and hops left, when it may be forwarded without a closer look.
    fn plain(bytes: &[u8]) -> Option<(u8, u8)>;

    /// One hop less to live.
    fn count_hop(bytes: &mut [u8]);

    /// Traffic class and hops left.
    fn class_hops(bytes: &[u8]) -> Option<(u8, u8)>;

    /// What its sender hears when it may not be forwarded.
    fn refused(bytes: &[u8]) -> Result<Option<Told>, HeadendDrop>;

    /// What its sender hears when it must not be longer than `mtu_bytes`; nothing when it cannot be made
    /// smaller, and what is around it must be fragmented (RFC 2473 §7).
    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest>;
}

impl Inner for Ip6 {
    const NODE: &'static str = "sr-pl-rewrite-encaps";
    const ERROR_NODE: &'static str = "ip6-icmp-error";
    const PROTOCOL: IpProtocol = IpProtocol::IPV6;

    #[inline(always)]
    fn plain(bytes: &[u8]) -> Option<(u8, u8)> {
        let header = Ip6Header::overlay(bytes)?;
        let local = header.source_bits() >> 118 == 0xfe80 >> 6;
        ((header.hop_limit() > 1) & !local).then(|| (header.traffic_class(), header.hop_limit()))
    }

    #[inline(always)]
    fn count_hop(bytes: &mut [u8]) {
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.decrement_hop_limit();
        }
    }

    fn class_hops(bytes: &[u8]) -> Option<(u8, u8)> {
        Ip6Header::overlay(bytes).map(|header| (header.traffic_class(), header.hop_limit()))
    }

    fn refused(bytes: &[u8]) -> Result<Option<Told>, HeadendDrop> {
        let header = Ip6Header::overlay(bytes).ok_or(HeadendDrop::Truncated)?;
        if address::is_link_local(header.source()) {
            return Ok(Some((BEYOND_SCOPE, HeadendDrop::LinkLocalSource)));
        }
        Ok((header.hop_limit() <= 1).then_some((TIME_EXCEEDED6, HeadendDrop::HopLimit)))
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
    const NODE: &'static str = "sr-pl-rewrite-encaps-v4";
    const ERROR_NODE: &'static str = "ip4-icmp-error";
    const PROTOCOL: IpProtocol = IpProtocol::IPV4;

    #[inline(always)]
    fn plain(bytes: &[u8]) -> Option<(u8, u8)> {
        let header = Ip4Header::overlay(bytes)?;
        (header.ttl() > 1).then(|| (header.traffic_class, header.ttl()))
    }

    #[inline(always)]
    fn count_hop(bytes: &mut [u8]) {
        if let Some(header) = Ip4Header::overlay_mut(bytes) {
            checksum::decrement_ttl(header);
        }
    }

    fn class_hops(bytes: &[u8]) -> Option<(u8, u8)> {
        Ip4Header::overlay(bytes).map(|header| (header.traffic_class, header.ttl()))
    }

    fn refused(bytes: &[u8]) -> Result<Option<Told>, HeadendDrop> {
        let header = Ip4Header::overlay(bytes).ok_or(HeadendDrop::Truncated)?;
        Ok((header.ttl() <= 1).then_some((TIME_EXCEEDED4, HeadendDrop::HopLimit)))
    }

    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        let header = Ip4Header::overlay(packet.bytes())?;
        let detail = u16::try_from(mtu_bytes.max(IP4_MTU_MIN)).unwrap_or(u16::MAX);
        let code = icmp4::unreachable::FRAGMENTATION_NEEDED;
        let request = IcmpErrorRequest { kind: icmp4::kind::DESTINATION_UNREACHABLE, code, detail };
        header.dont_fragment().then_some(request)
    }
}
