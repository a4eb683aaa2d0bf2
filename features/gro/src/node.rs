//! `gro`: the segments of a TCP flow that are in one vector leave as super-frames.

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::graph::node::{DROP, Never, Node, NodeSpec};
use quiver_core::memory::buffer::Offload;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_offload::segment::{SEGMENT_TCP4, SEGMENT_TCP6};
use quiver_wire::{Header, Ip4Header, checksum};

use crate::flows::{Flows, Planned};
use crate::segment::{FLAGS_LAST, TCP_CHECKSUM_AT};

/// The node's name.
pub(crate) const NAME: &str = "gro";

quiver_core::reasons! {
    /// What became of segments.
    pub enum GroEvent {
        /// Made.
        SuperFrame = info "super-frame", "super-frames made of TCP segments";
        /// Part of one.
        Coalesced = info "coalesced", "TCP segments that became part of a super-frame";
        /// Left as it was.
        BadChecksum = info "bad-checksum", "TCP segments that stay alone: their checksum, or that \
            of the segment before them, is wrong";
    }
}

struct Gro {
    flows: Flows,
    /// The packets of the vector while it is put together anew; all empty between two vectors.
    packets: Box<[Option<Packet>; FRAME_PACKETS_MAX]>,
}

/// Where a packet goes behind this node.
#[inline]
fn behind(cx: &Context<'_>, packet: &mut Packet) -> NodeId {
    let tx = packet.tx;
    let device = cx.interface(tx).map_or(DROP, |row| row.tx);
    cx.next_in_arc(INTERFACE_OUTPUT, tx, packet, device)
}

/// Make the first packet's headers those of the whole, which is in it already.
fn finish(packet: &mut Packet, planned: &Planned) -> Option<()> {
    let Planned { first, flags, payload_bytes } = *planned;
    let tcp_bytes = first.payload - first.tcp + usize::from(payload_bytes);
    let sum = first.pseudo_header(packet.bytes(), tcp_bytes)?;
    let bytes = packet.bytes_mut();
    if first.is_ip6 {
        let length = first.tcp - first.ip - 40 + tcp_bytes;
        put(bytes, first.ip + 4, length as u16)?;
    } else {
        put(bytes, first.ip + 2, (first.tcp - first.ip + tcp_bytes) as u16)?;
        let sum = checksum::header_checksum(Ip4Header::overlay(bytes.get(first.ip..)?)?);
        put(bytes, first.ip + 10, sum)?;
    }
    *bytes.get_mut(first.tcp + 13)? |= flags & FLAGS_LAST;
    put(bytes, first.tcp + TCP_CHECKSUM_AT, !sum.checksum())?;
    *packet.offload_mut() = Offload {
        checksum_bytes: tcp_bytes as u16,
        checksum_offset: TCP_CHECKSUM_AT as u16,
        segment_bytes: first.payload_bytes as u16,
        payload_bytes,
        segment_kind: if first.is_ip6 { SEGMENT_TCP6 } else { SEGMENT_TCP4 },
        encapsulations: 0,
    };
    packet.set(PacketFlags::OFFLOAD);
    Some(())
}

fn put(bytes: &mut [u8], at: usize, word: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&word.to_be_bytes());
    Some(())
}

impl Gro {
    /// Make the super-frames that are planned, and send them and the other packets in the order of
    /// the vector.
    fn send(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let count = frame.len();
        for (place, packet) in self.packets.iter_mut().zip(frame.drain()) {
            *place = Some(packet);
        }
        let Gro { flows, packets } = self;
        for place in 0..count {
            let Some(mut packet) = packets[place].take() else { continue };
            let next = behind(cx, &mut packet);
            if let Some(planned) = flows.planned(place) {
                let payload = planned.first.payload;
                packet.join_all(flows.behind(place).filter_map(|place| {
                    let mut part = packets[place].take()?;
                    cx.trace(&part, next);
                    // Its headers lie in its first buffer.
                    let _ = part.pull(payload);
                    Some(part)
                }));
                let is_finished = finish(&mut packet, planned).is_some();
                debug_assert!(is_finished, "headers that were read can be written");
            }
            cx.trace(&packet, next);
            cx.emit(packet, next);
        }
    }
}

impl Node for Gro {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let counts = self.flows.plan(frame.packets());
        cx.count(GroEvent::BadChecksum, counts.bad);
        if counts.super_frames == 0 {
            let cx = &*cx;
            return frame.route(|packet| Ok::<_, Never>(behind(cx, packet)));
        }
        cx.count(GroEvent::SuperFrame, counts.super_frames);
        cx.count(GroEvent::Coalesced, counts.coalesced);
        self.send(cx, frame);
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NAME, "Coalesces TCP segments into super-frames", |_| {
        Box::new(Gro {
            flows: Flows::new(),
            packets: Box::new([const { None }; FRAME_PACKETS_MAX]),
        })
    })
    .takes_offloads()
    .reasons::<GroEvent>()
    .describe(|record, names| {
        format!("{} bytes go on to {}", record.packet_bytes, names.node(record.next))
    })
}
