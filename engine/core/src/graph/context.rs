//! What a node can reach while it runs.

use std::cell::RefCell;
use std::ops::Deref;

use crate::cpu::Variant;
use crate::graph::arc::{ARCS_MAX, ArcId, FEATURES_PER_CHAIN_MAX};
use crate::graph::builtin::NULL;
use crate::graph::counters::{InterfaceCounters, WorkerCounters};
use crate::graph::drop_reason::DropReason;
use crate::graph::interface::{InterfaceRow, InterfaceRows};
use crate::graph::node::{DROP, Reason};
use crate::graph::outbox::Outbox;
use crate::graph::trace::Tracer;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::memory::buffer::BufferCache;
use crate::memory::epoch::Pass;
use crate::memory::packet::{Packet, PacketFlags};
use crate::worker::event::{Event, Events};
use crate::worker::handoff::Handoff;
use crate::worker::ticks::Ticks;

/// Bytes of the two addresses in front of a frame (IEEE 802.3 §3.1.1).
const ADDRESSES_BYTES: usize = 12;

/// What all nodes and stages of a pass reach alike.
pub struct WorkerContext<'p> {
    /// What is read under it cannot outlive the pass.
    pub pass: Pass<'p>,
    /// Nanoseconds since some moment before the start; read once per pass.
    pub now_ns: u64,
    /// The worker's counters.
    pub counters: &'p WorkerCounters,
    pub(crate) rows: &'p InterfaceRows,
    pub(crate) events: &'p RefCell<Events>,
}

/// One pass of one worker, lent to the nodes that run in it.
pub struct Context<'p> {
    pub(crate) shared: WorkerContext<'p>,
    /// The worker.
    pub worker: WorkerId,
    /// The node that runs.
    pub node: NodeId,
    /// In a transmit queue: the interface that sends.
    pub tx: InterfaceId,
    /// Where buffers come from and go to.
    pub buffers: &'p mut BufferCache,
    /// The form in which loops over packets run.
    pub variant: Variant,
    pub(crate) outbox: &'p mut Outbox,
    pub(crate) handoff: &'p mut Handoff,
    pub(crate) tracer: &'p mut Tracer,
    pub(crate) ticks: &'p mut Ticks,
}

impl<'p> Deref for Context<'p> {
    type Target = WorkerContext<'p>;

    #[inline(always)]
    fn deref(&self) -> &WorkerContext<'p> {
        &self.shared
    }
}

/// Where packets of an interface go behind a feature that stands in an arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    place: u8,
    is_end: bool,
    /// The next feature, or the arc's end.
    pub next: NodeId,
}

impl Behind {
    /// Is it the arc's end?
    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self.is_end
    }

    /// Let a packet go on there.
    #[inline(always)]
    pub fn take(self, packet: &mut Packet) -> NodeId {
        packet.arc_place = self.place;
        self.next
    }
}

impl<'p> Context<'p> {
    /// An interface's row; `None` when it does not exist (any more).
    #[inline(always)]
    pub fn interface(&self, id: InterfaceId) -> Option<&'p InterfaceRow> {
        self.rows.get(id, self.pass)
    }

    /// This worker's counters of an interface.
    #[inline(always)]
    pub fn interface_counters(&self, id: InterfaceId) -> &'p InterfaceCounters {
        self.counters.interface(id)
    }

    /// Count an event of the running node (or a death that the node itself carries out).
    #[inline]
    pub fn count(&self, reason: impl Reason, n: u64) {
        self.counters.reason(self.node, reason.number()).add(n);
    }

    /// Begin to walk `arc` on `interface`: its first feature, or `default`.
    #[inline(always)]
    pub fn enter_arc(
        &self,
        arc: ArcId,
        interface: InterfaceId,
        packet: &mut Packet,
        default: NodeId,
    ) -> NodeId {
        packet.arc_place = 0;
        self.interface(interface).map_or(default, |row| row.first(arc, default))
    }

    /// Walk on: the feature behind the running one, or `default`. With a `default` of [`DROP`],
    /// which is that of an interface that is gone, the packet dies as `node-removed`.
    #[inline(always)]
    pub fn next_in_arc(
        &self,
        arc: ArcId,
        interface: InterfaceId,
        packet: &mut Packet,
        default: NodeId,
    ) -> NodeId {
        next_in_arc(self.interface(interface), arc, packet, default)
    }

    /// Give a frame that the router made, addresses and protocol in front, what frames of
    /// `interface` carry between the two: a sub-interface's tags. False when there is no such
    /// interface, or no room.
    #[must_use]
    pub fn encapsulate(&self, interface: InterfaceId, packet: &mut Packet) -> bool {
        let Some(row) = self.interface(interface) else { return false };
        let between = row.encapsulation.bytes();
        between.is_empty() || packet.insert(ADDRESSES_BYTES, between)
    }

    /// What stands behind `feature` in `arc` on `interface` as it is configured now, or `default`:
    /// for stages, who ask once for a vector, and for packets that a feature has kept for a while.
    /// [`DROP`] is as in [`next_in_arc`](Self::next_in_arc).
    pub fn behind(
        &self,
        arc: ArcId,
        interface: InterfaceId,
        feature: NodeId,
        default: NodeId,
    ) -> Behind {
        let default = end_or_removed(default);
        let end = Behind { place: FEATURES_PER_CHAIN_MAX as u8, is_end: true, next: default };
        let Some(row) = self.interface(interface) else { return end };
        let chain = &row.chains[arc.0 as usize % ARCS_MAX];
        let Some(own) = chain.iter().position(|node| node == feature) else { return end };
        let place = own as u8 + 1;
        let next = chain.at(place);
        Behind { place, is_end: next.is_none(), next: next.unwrap_or(default) }
    }

    /// Write down, if the packet is traced, that the running node sends it to `next`. The engine
    /// does so for what stays in the vector; this is for packets that a node takes out and keeps,
    /// hands off or emits. `next` is the node itself when the packet stays.
    #[inline]
    pub fn trace(&mut self, packet: &Packet, next: NodeId) {
        if packet.has(PacketFlags::TRACED) {
            self.tracer.record_one(self.node, packet, next);
        }
    }

    /// Send one packet to a node, beside the vector that is being run.
    #[inline]
    pub fn emit(&mut self, packet: Packet, next: NodeId) {
        self.outbox.put(next, packet, true, false, self.buffers, self.counters);
    }

    /// `made` is a part of `original`, with what is known of it ([`Packet::take_facts_of`]), or
    /// descends from it at least ([`Packet::descend_from`]): it takes its place in the order of
    /// packets.
    #[inline]
    pub fn follow(&mut self, made: &Packet, original: &Packet) {
        self.outbox.follow(made, original);
    }

    /// Let one packet die beside the vector, for a reason of the running node.
    pub fn kill(&mut self, mut packet: Packet, reason: impl Reason) {
        packet.hand_over(DropReason::of(self.node, reason));
        self.emit(packet, DROP);
    }

    /// Tell the control thread; counted, and false, when its ring is full.
    pub fn notify(&mut self, event: Event) -> bool {
        put_event(self.events, self.counters, event)
    }

    /// Hand a packet to another worker, who sends it to `next`. It comes back when the ring between
    /// the two is full, or `worker` is this one or does not exist.
    ///
    /// # Errors
    /// The ring to that worker is full; the packet comes back.
    pub fn hand_off(
        &mut self,
        packet: Packet,
        worker: WorkerId,
        next: NodeId,
    ) -> Result<(), Packet> {
        self.handoff.put(worker, packet, next, self.outbox.age())
    }

    /// Back-pressure: the worker reads none of its receive queues in its next pass (from a tick: in
    /// this one). For a node that keeps packets until a ring to another worker has room; packets
    /// wait in the device meanwhile. Handed-over packets and ticks go on.
    pub fn hold_receive(&mut self) {
        self.handoff.hold_receive();
    }

    /// Back-pressure on other workers: this one takes nothing that they hand over next, in this
    /// pass or the following one. For a node that keeps packets and ends that by itself: two
    /// workers that wait for each other so would wait for ever.
    pub fn hold_handed_over(&mut self) {
        self.handoff.hold_handed_over();
    }

    /// Have the running node's [`tick`](crate::graph::node::Node::tick) called at `due_ns`, unless
    /// it is called earlier anyway.
    #[inline]
    pub fn tick_at(&mut self, due_ns: u64) {
        self.ticks.set(self.node, due_ns);
    }

    /// A packet is about to be kept in a node for a while: note how many nodes it has visited, so
    /// that waiting does not make it young.
    pub fn keep_age(&self, packet: &mut Packet) {
        packet.note_age(self.outbox.age());
    }

    /// A copy of a packet is traced with the original.
    pub fn is_traced(packet: &Packet) -> bool {
        packet.has(PacketFlags::TRACED)
    }
}

/// Tell the control thread; counted, and false, when its ring is full.
pub(crate) fn put_event(events: &RefCell<Events>, counters: &WorkerCounters, event: Event) -> bool {
    let is_told = events.borrow_mut().put(event).is_ok();
    if !is_told {
        counters.events_lost.add(1);
    }
    is_told
}

/// The feature behind the one that a packet has met on an arc of an interface, or `default`.
#[inline(always)]
pub(crate) fn next_in_arc(
    row: Option<&InterfaceRow>,
    arc: ArcId,
    packet: &mut Packet,
    default: NodeId,
) -> NodeId {
    packet.arc_place = packet.arc_place.saturating_add(1);
    let next = row.and_then(|row| row.chains[arc.0 as usize % ARCS_MAX].at(packet.arc_place));
    next.unwrap_or_else(|| end_or_removed(default))
}

/// The end of an arc. [`DROP`] stands for that of an interface that is gone: a death there would
/// have no reason, so its packets go to the node that counts them as `node-removed`.
#[inline(always)]
fn end_or_removed(end: NodeId) -> NodeId {
    if end == DROP { NULL } else { end }
}
