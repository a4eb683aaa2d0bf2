//! The flow of an inner packet or frame, for the outer header: its label, and the path that it
//! takes.

use quiver_core::Packet;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::EtherType;

use crate::ecn;

/// Odd, with as many ones as zeros: spreads the bits of a flow's hash.
const SPREAD: u32 = 0x9e37_79b1;

/// The IPv6 flow label of a flow (RFC 6437 §3, RFC 6438): 20 bits of its hash, never 0.
#[inline(always)]
pub fn flow_label(hash: u32) -> u32 {
    (hash.wrapping_mul(SPREAD) >> 12).max(1)
}

/// The IP packet in a frame, behind up to two VLAN tags: its family, and where it begins.
#[inline(always)]
pub fn packet_in_frame(frame: &[u8]) -> Option<(Family, usize)> {
    let mut at = 12;
    for _ in 0..=2 {
        let kind = frame.get(at..).and_then(|rest| rest.first_chunk::<2>())?;
        match EtherType(u16::from_be_bytes(*kind)) {
            EtherType::VLAN | EtherType::SERVICE_VLAN => at += 4,
            EtherType::IPV4 => return Some((Family::Ip4, at + 2)),
            EtherType::IPV6 => return Some((Family::Ip6, at + 2)),
            _ => return None,
        }
    }
    None
}

/// What the outer header in front of a frame has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFlow {
    /// The hash of its flow.
    pub hash: u32,
    /// The ECN field of the IP packet in it, which an outer header takes over (RFC 6040 §4.1, RFC
    /// 9601 §5); Not-ECT where there is none.
    pub ecn: u8,
}

/// The ECN field of the IP packet that begins there.
#[inline(always)]
fn inner_ecn(frame: &[u8], inner: Option<(Family, usize)>) -> u8 {
    let class = match inner {
        Some((Family::Ip4, at)) => frame.get(at + 1).copied(),
        Some((Family::Ip6, at)) => frame.get(at + 1).map(|low| low >> 4),
        None => None,
    };
    class.unwrap_or(0) & ecn::MASK
}

/// The hash of the flow of the IP packet that begins there, or of the frame's addresses.
#[inline(always)]
fn inner_hash(frame: &[u8], inner: Option<(Family, usize)>) -> u32 {
    match inner {
        Some((Family::Ip4, at)) => {
            return Ip4::flow_hash(frame.get(at..).unwrap_or_default()).unwrap_or(1);
        }
        Some((Family::Ip6, at)) => {
            return Ip6::flow_hash(frame.get(at..).unwrap_or_default()).unwrap_or(1);
        }
        None => {}
    }
    let mut hash = 0u64;
    for word in frame.get(..12).unwrap_or_default().as_chunks::<4>().0 {
        hash = (hash ^ u64::from(u32::from_be_bytes(*word)))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
    (hash ^ hash >> 32) as u32
}

/// The hash of a frame's flow: of the packet in it, behind up to two VLAN tags, or of its
/// addresses.
#[inline(always)]
pub fn frame_hash(frame: &[u8]) -> u32 {
    inner_hash(frame, packet_in_frame(frame))
}

/// What an outer header has of a frame, with the hash of [`kept_frame_hash`].
#[inline(always)]
pub fn kept_frame_flow(packet: &mut Packet) -> FrameFlow {
    let (frame, kept) = (packet.bytes(), packet.hash);
    let inner = packet_in_frame(frame);
    let hash = if kept == 0 { inner_hash(frame, inner) } else { kept };
    let ecn = inner_ecn(frame, inner);
    packet.hash = hash;
    FrameFlow { hash, ecn }
}

/// The hash of a frame's flow, computed once and kept in [`Packet::hash`].
#[inline(always)]
pub fn kept_frame_hash(packet: &mut Packet) -> u32 {
    if packet.hash == 0 {
        packet.hash = frame_hash(packet.bytes());
    }
    packet.hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_of_one_flow_have_one_hash_with_and_without_tags() {
        let mut frame = vec![2; 12];
        frame.extend([
            8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2,
        ]);
        let untagged = frame_hash(&frame);
        frame.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(frame_hash(&frame), untagged);
        frame.splice(12..12, [0x88, 0xa8, 0, 9]);
        assert_eq!(frame_hash(&frame), untagged);
        let at = frame.len() - 1;
        frame[at] = 3;
        assert_ne!(frame_hash(&frame), untagged);
    }

    proptest! {
        #[test]
        fn no_frame_panics(frame in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = frame_hash(&frame);
        }
    }
}
