//! Sampled traces: what each node saw and decided about a packet, written down by the worker as
//! bytes and put in words by the control thread.

use crate::graph::drop_reason::DropReason;
use crate::graph::filter::SharedFilter;
use crate::graph::frame::Frame;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::memory::packet::handover::{Handover, MarkedHandover};
use crate::memory::packet::{Packet, PacketFlags};

/// Bytes of the packet that a record keeps.
pub const TRACE_BYTES: usize = 160;
/// Records that one packet can have on average; more and the trace is cut.
const RECORDS_PER_PACKET: usize = 24;
/// Packets that can be traced at a time.
pub const TRACED_PACKETS_MAX: usize = 4096;

/// One node's line in the story of one packet.
#[derive(Clone, Debug)]
pub struct TraceRecord {
    /// Which packet, counted from 1 on the worker that marked it.
    pub packet: u32,
    /// The worker that marked it: another one when the packet was handed over.
    pub marked_by: WorkerId,
    /// The node.
    pub node: NodeId,
    /// Where it sent the packet; the drop node for a death, itself for a sink.
    pub next: NodeId,
    /// Time stamp counter.
    pub clocks: u64,
    /// [`Packet::rx`](crate::memory::packet::Packet::rx) afterwards.
    pub rx: InterfaceId,
    /// [`Packet::tx`](crate::memory::packet::Packet::tx) afterwards.
    pub tx: InterfaceId,
    /// The packet's index afterwards; [`handed_over`](TraceRecord::handed_over) reads it.
    pub index: u32,
    /// [`Packet::hash`](crate::memory::packet::Packet::hash) afterwards.
    pub hash: u32,
    /// Bytes in the packet.
    pub packet_bytes: u32,
    /// Bytes of [`data`](Self::data) that are used.
    pub length: u8,
    /// Bytes of layer 2 header kept in front of the packet's first byte in `data`.
    pub data: [u8; TRACE_BYTES],
}

impl TraceRecord {
    /// What the node handed over, in a record whose `next` says that it is of this type.
    pub fn handed_over<T: Handover>(&self) -> T {
        T::from_index(self.index)
    }

    /// What the node handed over, if it is of this type.
    pub fn handed_over_if<T: MarkedHandover>(&self) -> Option<T> {
        T::is_marked(self.index).then(|| self.handed_over())
    }

    /// Why the packet dies, in a record whose `next` is the drop node.
    pub fn drop_reason(&self) -> DropReason {
        self.handed_over::<DropReason>().with_node(self.node)
    }

    /// The packet's first bytes as the node left them.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..(self.length as usize).min(TRACE_BYTES)]
    }
}

/// A finished trace on its way to the operator.
#[derive(Clone, Debug)]
pub struct WorkerTrace {
    /// Whose.
    pub worker: WorkerId,
    /// All records, in the order in which they were written.
    pub records: Vec<TraceRecord>,
    /// Records that found no room.
    pub cut: u64,
}

/// Packets that are still to be marked.
#[derive(Clone)]
pub(crate) struct Wanted {
    input: NodeId,
    /// How many more.
    packets: u32,
    /// Only those that it chooses.
    filter: Option<SharedFilter>,
}

/// What one worker traces.
#[derive(Default)]
pub(crate) struct Tracer {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) records: Vec<TraceRecord>,
    pub(crate) cut: u64,
    packets: u32,
    /// Counts how often traces were forgotten: what was marked before is not written down any more,
    /// however long it was kept somewhere.
    generation: u8,
}

/// What the header line of a traced packet holds: who marked it (6 bits), in which generation (6),
/// and which packet of that worker it is (20).
#[derive(Clone, Copy)]
struct Mark(u32);

impl Mark {
    fn new(worker: WorkerId, generation: u8, packet: u32) -> Mark {
        Mark(
            u32::from(worker.0 & 0x3f) << 26
                | u32::from(generation & 0x3f) << 20
                | packet & 0xf_ffff,
        )
    }

    fn worker(self) -> WorkerId {
        WorkerId((self.0 >> 26) as u16)
    }

    fn is_of(self, generation: u8) -> bool {
        (self.0 >> 20) as u8 & 0x3f == generation & 0x3f
    }

    fn packet(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

impl Tracer {
    /// Room for `packets` more beside `kept` records; made by the control thread, merged on the
    /// worker.
    pub(crate) fn with_room(
        input: NodeId,
        packets: u32,
        filter: Option<SharedFilter>,
        kept: usize,
    ) -> Tracer {
        let packets = packets.min(TRACED_PACKETS_MAX as u32);
        let records = (kept + packets as usize * RECORDS_PER_PACKET)
            .min(TRACED_PACKETS_MAX * RECORDS_PER_PACKET);
        Tracer {
            wanted: {
                let mut wanted = Vec::with_capacity(16);
                wanted.push(Wanted { input, packets, filter });
                wanted
            },
            records: Vec::with_capacity(records),
            cut: 0,
            packets: 0,
            generation: 0,
        }
    }

    /// Records that there are, and those that packets still to come may need.
    pub(crate) fn records_wanted(&self) -> usize {
        let packets: usize = self.wanted.iter().map(|w| w.packets as usize).sum();
        self.records.len() + packets * RECORDS_PER_PACKET
    }

    /// Continue `older`'s counts of packets in this newer one.
    pub(crate) fn continue_from(&mut self, older: &Tracer) {
        self.packets = older.packets;
        self.generation = older.generation;
        for wanted in &older.wanted {
            if self.wanted.len() < self.wanted.capacity()
                && !self.wanted.iter().any(|w| w.input == wanted.input)
            {
                self.wanted.push(wanted.clone());
            }
        }
        let room = self.records.capacity() - self.records.len();
        self.records.extend(older.records.iter().take(room).cloned());
    }

    /// Begin again behind `older`: what it marked is forgotten.
    pub(crate) fn forget(&mut self, older: &Tracer) {
        self.generation = older.generation.wrapping_add(1);
    }

    /// Mark packets that an input of `worker` has just received.
    #[inline]
    pub(crate) fn mark(&mut self, worker: WorkerId, input: NodeId, frame: &mut Frame) {
        let (generation, mut is_marked) = (self.generation, false);
        let Some(wanted) = self.wanted.iter_mut().find(|w| w.input == input && w.packets > 0)
        else {
            return;
        };
        for packet in frame.packets_mut() {
            if wanted.packets == 0 {
                break;
            }
            if wanted.filter.as_ref().is_some_and(|filter| !filter.chooses(packet.bytes())) {
                continue;
            }
            wanted.packets -= 1;
            self.packets += 1;
            packet.set(PacketFlags::TRACED);
            packet.header_line_mut().trace = Mark::new(worker, generation, self.packets).0;
            is_marked = true;
        }
        frame.traced |= is_marked;
    }

    /// Write down what `node` did with the traced packets of a vector.
    #[cold]
    pub(crate) fn record(&mut self, node: NodeId, frame: &Frame, sink: bool) {
        for (place, packet) in frame.packets().iter().enumerate() {
            if packet.has(PacketFlags::TRACED) {
                let next = if sink { node } else { frame.next_of(place) };
                self.record_one(node, packet, next);
            }
        }
    }

    /// Write down what `node` did with one traced packet.
    #[cold]
    pub(crate) fn record_one(&mut self, node: NodeId, packet: &Packet, next: NodeId) {
        let mark = Mark(packet.header_line().trace);
        if !mark.is_of(self.generation) {
            return;
        }
        if self.records.len() == self.records.capacity() {
            self.cut += 1;
            return;
        }
        let mut data = [0; TRACE_BYTES];
        let length = packet.segment_length().min(TRACE_BYTES);
        data[..length].copy_from_slice(&packet.bytes()[..length]);
        self.records.push(TraceRecord {
            packet: mark.packet(),
            marked_by: mark.worker(),
            node,
            next,
            clocks: crate::cpu::clocks(),
            rx: packet.rx,
            tx: packet.tx,
            index: packet.index(),
            hash: packet.hash,
            packet_bytes: packet.length() as u32,
            length: length as u8,
            data,
        });
    }
}
