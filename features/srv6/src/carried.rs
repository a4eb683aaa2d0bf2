//! The packet or frame that other headers are put in front of: the hop that is counted, what its sender hears, and
//! the flow that it belongs to.

use std::net::Ipv6Addr;

use quiver_core::Packet;
use quiver_core::packet::PacketFlags;
use quiver_tables::IcmpErrorRequest;
use quiver_tables::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::ip6::extension::Walk;
use quiver_wire::{EtherType, Header, Ip4Header, Ip6Header, IpProtocol, checksum, icmp4, icmp6};

use crate::endpoint::segments::NEXT_HEADER_PLACE;

/// Beyond the scope of the source address (RFC 4443 §3.1).
pub(crate) const BEYOND_SCOPE: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp6::kind::DESTINATION_UNREACHABLE,
    code: icmp6::unreachable::BEYOND_SCOPE,
    detail: 0,
};
/// The smallest MTU that IPv4 hosts are told of, in bytes (RFC 791: what every link carries).
const IP4_MTU_MIN: usize = 68;
/// Odd, with as many ones as zeros: spreads the bits of a flow's hash.
const SPREAD: u32 = 0x9e37_79b1;

/// What is read of its header.
#[derive(Clone, Copy)]
pub struct Facts {
    pub class: u8,
    pub hops: u8,
    /// May its source not leave its link?
    pub is_local: bool,
}

/// IPv4 or IPv6.
pub trait Carried: IpFamily {
    /// How the header in front names it.
    const PROTOCOL: IpProtocol;
    /// The node that sends ICMP errors about it.
    const ERROR_NODE: &'static str;
    /// Time exceeded in transit (RFC 792, RFC 4443 §3.3).
    const TIME_EXCEEDED: IcmpErrorRequest;

    /// Unreachable because of what is wrong on the way between the ends of a tunnel (RFC 2473 §8.2, §8.3).
    const UNREACHABLE: IcmpErrorRequest;

    fn facts(bytes: &[u8]) -> Option<Facts>;

    /// Bytes of the packet, as its header says.
    fn length(bytes: &[u8]) -> Option<usize>;

    /// One hop less to live.
    fn count_hop(bytes: &mut [u8]);

    /// What its sender hears when it must not be longer than `mtu_bytes`; nothing when it cannot be made smaller,
    /// and what is around it must be fragmented (RFC 2473 §7).
    fn too_big(packet: &Packet, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        Self::too_big_of(packet.bytes(), packet.length(), mtu_bytes)
    }

    /// The same of a packet of `length` bytes that begins with these.
    fn too_big_of(bytes: &[u8], length: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest>;
}

impl Carried for Ip6 {
    const PROTOCOL: IpProtocol = IpProtocol::IPV6;
    const ERROR_NODE: &'static str = "ip6-icmp-error";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp6::kind::TIME_EXCEEDED, code: 0, detail: 0 };
    const UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest {
        kind: icmp6::kind::DESTINATION_UNREACHABLE,
        code: icmp6::unreachable::ADDRESS,
        detail: 0,
    };

    fn length(bytes: &[u8]) -> Option<usize> {
        Ip6Header::overlay(bytes).map(|header| usize::from(header.payload_length()) + Ip6Header::LEN)
    }

    #[inline(always)]
    fn facts(bytes: &[u8]) -> Option<Facts> {
        let header = Ip6Header::overlay(bytes)?;
        // fe80::/10, by its first two bytes alone.
        let is_local = (header.source_bits() >> 112) as u16 & 0xffc0 == 0xfe80;
        Some(Facts { class: header.traffic_class(), hops: header.hop_limit(), is_local })
    }

    #[inline(always)]
    fn count_hop(bytes: &mut [u8]) {
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.decrement_hop_limit();
        }
    }

    fn too_big_of(_: &[u8], length: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        // A packet of the smallest MTU must pass (RFC 8200 §5, RFC 2473 §7.1).
        let mtu_bytes = mtu_bytes.max(MTU_MIN);
        let detail = u16::try_from(mtu_bytes).unwrap_or(u16::MAX);
        let request = IcmpErrorRequest { kind: icmp6::kind::PACKET_TOO_BIG, code: 0, detail };
        (length > mtu_bytes).then_some(request)
    }
}

impl Carried for Ip4 {
    const PROTOCOL: IpProtocol = IpProtocol::IPV4;
    const ERROR_NODE: &'static str = "ip4-icmp-error";
    const TIME_EXCEEDED: IcmpErrorRequest =
        IcmpErrorRequest { kind: icmp4::kind::TIME_EXCEEDED, code: 0, detail: 0 };
    const UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest {
        kind: icmp4::kind::DESTINATION_UNREACHABLE,
        code: icmp4::unreachable::HOST,
        detail: 0,
    };

    fn length(bytes: &[u8]) -> Option<usize> {
        Ip4Header::overlay(bytes).map(|header| usize::from(header.total_length()))
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

    fn too_big_of(bytes: &[u8], _: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        let header = Ip4Header::overlay(bytes)?;
        let detail = u16::try_from(mtu_bytes.max(IP4_MTU_MIN)).unwrap_or(u16::MAX);
        let code = icmp4::unreachable::FRAGMENTATION_NEEDED;
        let request = IcmpErrorRequest { kind: icmp4::kind::DESTINATION_UNREACHABLE, code, detail };
        header.dont_fragment().then_some(request)
    }
}

/// The label of a flow (RFC 6437 §3, RFC 8986 §5.1): 20 bits of its hash, never 0.
#[inline(always)]
pub(crate) fn flow_label(hash: u32) -> u32 {
    (hash.wrapping_mul(SPREAD) >> 12).max(1)
}

/// The hash of a frame's flow: of the packet in it, behind up to two VLAN tags, or of its addresses.
#[inline(always)]
pub(crate) fn frame_hash(frame: &[u8]) -> u32 {
    let mut at = 12;
    for _ in 0..=2 {
        let kind = frame.get(at..).and_then(|rest| rest.first_chunk::<2>());
        let behind = || frame.get(at + 2..).unwrap_or_default();
        match kind.map(|kind| EtherType(u16::from_be_bytes(*kind))) {
            Some(EtherType::VLAN | EtherType::SERVICE_VLAN) => at += 4,
            Some(EtherType::IPV4) => return Ip4::flow_hash(behind()).unwrap_or(1),
            Some(EtherType::IPV6) => return Ip6::flow_hash(behind()).unwrap_or(1),
            _ => break,
        }
    }
    let mut hash = 0u64;
    for word in frame.get(..12).unwrap_or_default().as_chunks::<4>().0 {
        hash =
            (hash ^ u64::from(u32::from_be_bytes(*word))).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    (hash ^ hash >> 32) as u32
}

/// A large packet that a device is to cut: with other headers in front it would not be recognized.
#[derive(Debug)]
pub(crate) struct Unsegmented;

/// A checksum that is left to a device lies so many bytes further behind.
#[cold]
pub(crate) fn move_offload(packet: &mut Packet, count: usize) -> Result<(), Unsegmented> {
    if !packet.has(PacketFlags::OFFLOAD) {
        return Ok(());
    }
    if packet.offload().segment_bytes != 0 {
        return Err(Unsegmented);
    }
    // What was in front is counted in the offset, and is there no more.
    let behind = usize::from(packet.offload().checksum_start).saturating_sub(usize::from(packet.l2_bytes));
    packet.offload_mut().checksum_start = (behind + count) as u16;
    Ok(())
}

/// An IPv6 packet too big though it is no longer than the smallest MTU, which may not be fragmented here: its sender
/// hears what there is room for.
pub(crate) fn packet_too_big(room: usize) -> IcmpErrorRequest {
    IcmpErrorRequest { kind: icmp6::kind::PACKET_TOO_BIG, code: 0, detail: room as u16 }
}

/// Where an SRH is put into an IPv6 packet: behind hop-by-hop options (RFC 8200 §4.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SrhPlace {
    at: usize,
    named_at: usize,
    /// What stands there now.
    pub next: u8,
}

impl SrhPlace {
    /// Nothing for what is no IPv6 packet.
    pub fn of(bytes: &[u8]) -> Option<SrhPlace> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let first = Walk::new(header.next_header(), behind).next().and_then(Result::ok);
        let hop_by_hop = first.filter(|extension| extension.kind == IpProtocol::HOP_BY_HOP);
        let at = Ip6Header::LEN + hop_by_hop.map_or(0, |extension| extension.bytes.len());
        let named_at = if hop_by_hop.is_some() { Ip6Header::LEN } else { NEXT_HEADER_PLACE };
        Some(SrhPlace { at, named_at, next: *bytes.get(named_at)? })
    }

    /// Put it there, or nothing, and let the packet go `to` its first segment; false without headroom. Its own next
    /// header is [`next`](Self::next).
    pub fn put(self, packet: &mut Packet, srh: &[u8], to: Ipv6Addr) -> Result<bool, Unsegmented> {
        let length = packet.length() + srh.len();
        move_offload(packet, srh.len())?;
        if !packet.insert(self.at, srh) {
            return Ok(false);
        }
        let bytes = packet.bytes_mut();
        if !srh.is_empty()
            && let Some(named) = bytes.get_mut(self.named_at)
        {
            *named = IpProtocol::ROUTING.0;
        }
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.set_destination(to);
            header.set_payload_length((length - Ip6Header::LEN) as u16);
        }
        packet.l2_bytes = 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_core::buffer::{BufferPool, DATA_BYTES_DEFAULT};
    use quiver_core::memory::PageSize;

    #[test]
    fn a_checksum_that_is_left_to_a_device_lies_behind_what_is_put_in() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).unwrap();
        let mut cache = pool.cache();
        for hop_by_hop in [false, true] {
            let options = [17, 0, 1, 4, 0, 0, 0, 0];
            let options = if hop_by_hop { &options[..] } else { &[] };
            let mut frame = vec![0; 14];
            frame.extend([0x60, 0, 0, 0, 0, 8 + options.len() as u8, if hop_by_hop { 0 } else { 17 }, 64]);
            frame.extend([0xfc; 32]);
            frame.extend(options);
            let udp = [0xaa, 0xaa, 0, 9, 0, 8, 0, 0];
            frame.extend(udp);
            let mut packet = cache.packet().unwrap();
            assert!(packet.append(&frame, &mut cache));
            packet.set(PacketFlags::OFFLOAD);
            packet.offload_mut().checksum_start = (frame.len() - 8) as u16;
            packet.offload_mut().segment_bytes = 0;
            assert!(packet.pull(14));
            packet.l2_bytes = 14;
            let place = SrhPlace::of(packet.bytes()).unwrap();
            assert_eq!(place.next, 17);
            let srh = [[place.next, 2, 4, 0, 0, 0, 0, 0].as_slice(), &[0xfd; 16]].concat();
            assert!(place.put(&mut packet, &srh, Ipv6Addr::LOCALHOST).unwrap());
            let start = usize::from(packet.offload().checksum_start) - usize::from(packet.l2_bytes);
            assert_eq!(packet.bytes()[start..], udp);
            let at = 40 + options.len();
            assert_eq!(packet.bytes()[at..at + 24], srh);
            assert_eq!(
                (packet.bytes()[5], packet.bytes()[if hop_by_hop { 40 } else { 6 }]),
                ((at - 8) as u8, 43)
            );
        }
    }

    #[test]
    fn frames_of_one_flow_have_one_hash_with_and_without_tags() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        let plain = frame_hash(&frame);
        frame.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(frame_hash(&frame), plain);
        frame.splice(12..12, [0x88, 0xa8, 0, 9]);
        assert_eq!(frame_hash(&frame), plain);
        let at = frame.len() - 1;
        frame[at] = 3;
        assert_ne!(frame_hash(&frame), plain);
    }

    proptest! {
        #[test]
        fn no_frame_panics(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = frame_hash(&frame);
        }
    }
}
