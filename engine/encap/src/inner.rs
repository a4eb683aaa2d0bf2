//! The inner packet, IPv4 or IPv6: the hop that is counted, and what its sender is told.

use quiver_core::Packet;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, checksum, icmp4, icmp6};

/// Beyond the scope of the source address (RFC 4443 §3.1).
pub const BEYOND_SCOPE: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp6::kind::DESTINATION_UNREACHABLE,
    code: icmp6::unreachable::BEYOND_SCOPE,
    detail: 0,
};
/// The smallest MTU that IPv4 hosts are told of, in bytes (RFC 791: what every link carries).
const IP4_MTU_MIN: usize = 68;

/// Fields of the inner header that an outer header depends on.
#[derive(Clone, Copy, Debug)]
pub struct InnerFields {
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// May its source not leave its link?
    pub is_link_local: bool,
}

/// Why an inner packet may not be forwarded; its sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A link-local source (RFC 4291 §2.5.6).
    LinkLocalSource,
    /// The hop limit or TTL ends here.
    HopLimit,
}

/// A packet that is shorter than its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// IPv4 or IPv6 inside.
pub trait InnerPacket: IpFamily {
    /// How an outer IP header names it.
    const PROTOCOL: IpProtocol;
    /// The node that sends ICMP errors about it.
    const ERROR_NODE: &'static str;
    /// Time exceeded in transit (RFC 792, RFC 4443 §3.3).
    const TIME_EXCEEDED: IcmpErrorRequest;
    /// Unreachable because of an error between the ends of a tunnel (RFC 2473 §8.2, §8.3).
    const UNREACHABLE: IcmpErrorRequest;

    /// The node that fragments a packet for the adjacency in the packet's index.
    const FRAGMENT_NODE: &'static str;

    /// Does a packet of `length` bytes that begins with these forbid routers to fragment what is
    /// around it? An IPv4 packet by its flag (RFC 2003 §3.1), an IPv6 packet unless it has the
    /// smallest length that every path must take (RFC 4213 §3.2.2).
    fn forbids_fragments(bytes: &[u8], length: usize) -> bool;

    /// What is read of the header.
    fn fields(bytes: &[u8]) -> Option<InnerFields>;

    /// Bytes of the packet, as its header says.
    fn total_length(bytes: &[u8]) -> Option<usize>;

    /// One hop less to live.
    fn decrement_hop_limit(bytes: &mut [u8]);

    /// The error for the sender of a packet of `length` bytes that begins with these and must not
    /// be longer than `mtu_bytes`. `None` when the packet cannot be made smaller: then the outer
    /// packet must be fragmented (RFC 2473 §7).
    fn too_big_of(bytes: &[u8], length: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest>;

    /// As [`too_big_of`](Self::too_big_of), for a packet that is there.
    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        Self::too_big_of(packet.bytes(), packet.longest_on_wire(), mtu_bytes)
    }

    /// Count a hop of a packet that may be forwarded; returns its traffic class and the hops that
    /// are left. `None`, and nothing changes, for a packet that [`refusal`](Self::refusal) is for.
    #[inline(always)]
    fn forward(bytes: &mut [u8]) -> Option<(u8, u8)> {
        let fields = Self::fields(bytes)?;
        if (fields.hop_limit <= 1) | fields.is_link_local {
            return None;
        }
        Self::decrement_hop_limit(bytes);
        Some((fields.traffic_class, fields.hop_limit - 1))
    }

    /// Why the packet may not be forwarded, if so, and what its sender is told.
    ///
    /// # Errors
    /// The packet is truncated.
    fn refusal(bytes: &[u8]) -> Result<Option<(IcmpErrorRequest, Refused)>, Truncated> {
        let fields = Self::fields(bytes).ok_or(Truncated)?;
        if fields.is_link_local {
            return Ok(Some((BEYOND_SCOPE, Refused::LinkLocalSource)));
        }
        Ok((fields.hop_limit <= 1).then_some((Self::TIME_EXCEEDED, Refused::HopLimit)))
    }
}

impl InnerPacket for Ip6 {
    const PROTOCOL: IpProtocol = IpProtocol::IPV6;
    const ERROR_NODE: &'static str = "ip6-icmp-error";
    const FRAGMENT_NODE: &'static str = "ip6-frag";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp6::kind::TIME_EXCEEDED, code: 0, detail: 0 };
    const UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest {
        kind: icmp6::kind::DESTINATION_UNREACHABLE,
        code: icmp6::unreachable::ADDRESS,
        detail: 0,
    };

    #[inline(always)]
    fn forbids_fragments(_: &[u8], length: usize) -> bool {
        length > MTU_MIN
    }

    fn total_length(bytes: &[u8]) -> Option<usize> {
        Ip6Header::overlay(bytes)
            .map(|header| usize::from(header.payload_length()) + Ip6Header::LEN)
    }

    #[inline(always)]
    fn fields(bytes: &[u8]) -> Option<InnerFields> {
        let header = Ip6Header::overlay(bytes)?;
        // fe80::/10, by its first two bytes alone.
        let is_link_local = (header.source_bits() >> 112) as u16 & 0xffc0 == 0xfe80;
        Some(InnerFields {
            traffic_class: header.traffic_class(),
            hop_limit: header.hop_limit(),
            is_link_local,
        })
    }

    #[inline(always)]
    fn decrement_hop_limit(bytes: &mut [u8]) {
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.decrement_hop_limit();
        }
    }

    fn too_big_of(_: &[u8], length: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        // A packet of the smallest MTU must pass (RFC 8200 §5, RFC 2473 §7.1).
        let mtu_bytes = mtu_bytes.max(MTU_MIN);
        (length > mtu_bytes).then(|| packet_too_big(mtu_bytes))
    }
}

impl InnerPacket for Ip4 {
    const PROTOCOL: IpProtocol = IpProtocol::IPV4;
    const ERROR_NODE: &'static str = "ip4-icmp-error";
    const FRAGMENT_NODE: &'static str = "ip4-frag";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp4::kind::TIME_EXCEEDED, code: 0, detail: 0 };
    const UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest {
        kind: icmp4::kind::DESTINATION_UNREACHABLE,
        code: icmp4::unreachable::HOST,
        detail: 0,
    };

    #[inline(always)]
    fn forbids_fragments(bytes: &[u8], _: usize) -> bool {
        Ip4Header::overlay(bytes).is_some_and(Ip4Header::dont_fragment)
    }

    fn total_length(bytes: &[u8]) -> Option<usize> {
        Ip4Header::overlay(bytes).map(|header| usize::from(header.total_length()))
    }

    #[inline(always)]
    fn fields(bytes: &[u8]) -> Option<InnerFields> {
        let header = Ip4Header::overlay(bytes)?;
        Some(InnerFields {
            traffic_class: header.traffic_class,
            hop_limit: header.ttl(),
            is_link_local: false,
        })
    }

    #[inline(always)]
    fn decrement_hop_limit(bytes: &mut [u8]) {
        if let Some(header) = Ip4Header::overlay_mut(bytes) {
            checksum::decrement_ttl(header);
        }
    }

    fn too_big_of(bytes: &[u8], _: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        let header = Ip4Header::overlay(bytes)?;
        let detail = u16::try_from(mtu_bytes.max(IP4_MTU_MIN)).unwrap_or(u16::MAX);
        let code = icmp4::unreachable::FRAGMENTATION_NEEDED;
        let request = IcmpErrorRequest { kind: icmp4::kind::DESTINATION_UNREACHABLE, code, detail };
        header.dont_fragment().then_some(request)
    }
}

/// Packet too big (RFC 4443 §3.2), whatever the smallest MTU is: for an IPv6 packet that may not be
/// fragmented here.
pub fn packet_too_big(mtu_bytes: usize) -> IcmpErrorRequest {
    let detail = u16::try_from(mtu_bytes).unwrap_or(u16::MAX);
    IcmpErrorRequest { kind: icmp6::kind::PACKET_TOO_BIG, code: 0, detail }
}
