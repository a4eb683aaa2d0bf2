//! The floor of SRv6 headends: the header is checked and looked up as for forwarding, and one ready
//! header of two segments goes in front of every packet, Ethernet's included.

use quiver_core::Frame;
use quiver_core::cpu::Variant;
use quiver_core::memory::packet::Packet;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::IpTables;
use quiver_wire::{Header, Ip4Header, Ip6Header, checksum, flow};

use super::Counted;
use super::blocks::{BLOCK, Layer, LookUpBlock};

/// Ethernet, IPv6, an SRH of two segments.
const FRONT_BYTES: usize = 14 + 40 + 40;
/// What the front is copied from.
static FRONT: [[u8; 32]; 3] = [[0; 32]; 3];

/// Put the front before a packet.
#[inline(always)]
fn put(packet: &mut Packet, class: u8, hash: u32, counted: &mut Counted) {
    let length = packet.segment_length();
    counted.odd += u64::from(!packet.push_blocks(&FRONT, FRONT_BYTES));
    if let Some(outer) = packet.bytes_mut().get_mut(14..).and_then(Ip6Header::overlay_mut) {
        outer.set_class_and_flow(class, hash >> 12);
        outer.set_payload_length((length + 40) as u16);
    }
    counted.bytes += (length + FRONT_BYTES) as u64;
}

/// Check, look up, count the hop, hash the flow, put the front before it.
#[inline(always)]
pub fn encapsulate(
    inner: Layer,
    variant: Variant,
    frame: &mut Frame,
    tables: &IpTables,
    counted: &mut Counted,
) {
    let packets = frame.packets_mut();
    packets.iter().take(8).for_each(Packet::prefetch);
    let count = packets.len();
    let mut asked = LookUpBlock::new();
    let mut at = 0;
    while at < count {
        let block = (count - at).min(BLOCK);
        for i in 0..block {
            if let Some(ahead) = packets.get(at + i + 8) {
                ahead.prefetch();
            }
            counted.odd += u64::from(!asked.check(inner, i, &packets[at + i]));
        }
        asked.look_up(inner, variant, tables, block);
        for (packet, found) in packets[at..at + block].iter_mut().zip(&asked.found) {
            packet.hand_over(NextHopIndex(found.0));
            let mut about = (0, 1);
            if inner == Layer::Frame {
                let behind = packet.bytes().get(14..).unwrap_or_default();
                if let Some((header, behind)) = Ip4Header::split(behind) {
                    about.1 = flow::hash_ip4(header, behind);
                }
            } else if packet.pull(14) {
                if inner == Layer::Ip4 {
                    if let Some((header, behind)) = Ip4Header::split_mut(packet.bytes_mut()) {
                        about = (header.traffic_class, flow::hash_ip4(header, behind));
                        checksum::decrement_ttl(header);
                    }
                } else if let Some((header, behind)) = Ip6Header::split_mut(packet.bytes_mut()) {
                    about = (header.traffic_class(), flow::hash_ip6(header, behind));
                    header.decrement_hop_limit();
                }
            }
            put(packet, about.0, about.1, counted);
        }
        at += block;
    }
    counted.packets += count as u64;
}
