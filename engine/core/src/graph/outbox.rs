//! Vectors on their way: what nodes have decided and the loop has not yet carried out.

use std::collections::VecDeque;

use crate::graph::counters::{NODES_MAX, WorkerCounters};
use crate::graph::drop_reason::DropReason;
use crate::graph::frame::{FRAME_PACKETS_MAX, Frame, Sorting};
use crate::graph::node::DROP;
use crate::graph::order::Order;
use crate::graph::visits::Age;
use crate::ids::NodeId;
use crate::memory::buffer::BufferCache;
use crate::memory::packet::{Packet, PacketFlags};

/// Vectors that a worker has: enough for a full vector whose packets go to as many nodes, as behind
/// a thousand tunnels, and for the copies of a flooded one beside it. When all are under way,
/// further packets are dropped and counted.
pub const FRAMES_PER_WORKER: usize = 4 * FRAME_PACKETS_MAX;

/// Packets that wait for a slow path before they go to devices, at most; then the first vector of
/// them goes.
const HELD_PACKETS_MAX: usize = 4 * FRAME_PACKETS_MAX;
/// Vectors in which they wait, at most.
const HELD_FRAMES_MAX: usize = 128;

/// Where a node stands among those that a packet visits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Others stand behind it.
    Between,
    /// So they do, and packets of a flow overtake those that come here.
    SlowPath,
    /// Devices take what comes here.
    Device,
}

/// No vector for this node is waiting to be filled.
const CLOSED: u64 = u64::MAX;

/// First in, first out; per node, the last vector in the queue stays open for more.
pub(crate) struct Outbox {
    queue: VecDeque<(NodeId, Box<Frame>)>,
    /// The number in the queue, counted from the beginning of time, of a node's open vector.
    open: Box<[u64]>,
    taken: u64,
    unused: Vec<Box<Frame>>,
    /// The age of the vector that is being run: of what its node sends beside it, too.
    age: Age,
    places: Box<[Place]>,
    detours: Box<[NodeId]>,
    /// Places of packets, while a slow path has some.
    order: Order,
    /// A slow path has packets of a vector.
    divided: bool,
    /// Vectors for devices that wait for it.
    held: VecDeque<(NodeId, Box<Frame>)>,
    held_packets: usize,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            queue: VecDeque::with_capacity(FRAMES_PER_WORKER),
            open: vec![CLOSED; NODES_MAX].into_boxed_slice(),
            taken: 0,
            unused: (0..FRAMES_PER_WORKER).map(|_| Frame::new()).collect(),
            age: Age::NEW,
            places: vec![Place::Between; NODES_MAX].into_boxed_slice(),
            detours: vec![DROP; NODES_MAX].into_boxed_slice(),
            order: Order::new(),
            divided: false,
            held: VecDeque::with_capacity(FRAMES_PER_WORKER),
            held_packets: 0,
        }
    }

    /// Where a node stands, and which one behind it is a slow path for what comes from it.
    pub(crate) fn set_place(&mut self, node: NodeId, place: Place, detour: Option<NodeId>) {
        self.places[node.index()] = place;
        self.detours[node.index()] = detour.unwrap_or(DROP);
    }

    /// Do packets that go from one node to the other take a slow path?
    #[inline]
    fn is_slow(&self, from: NodeId, next: NodeId) -> bool {
        let detour = next != DROP && self.detours.get(from.index()) == Some(&next);
        detour || self.places.get(next.index()) == Some(&Place::SlowPath)
    }

    /// What is put in from now on comes out of a vector of this age.
    #[inline(always)]
    pub(crate) fn begin(&mut self, age: Age) {
        self.age = age;
    }

    /// The age of the vector that is being run.
    pub(crate) fn age(&self) -> Age {
        self.age
    }

    /// An empty vector.
    pub(crate) fn frame(&mut self) -> Option<Box<Frame>> {
        self.unused.pop()
    }

    /// Give a vector back. It must be empty.
    pub(crate) fn recycle(&mut self, mut frame: Box<Frame>) {
        debug_assert!(frame.is_empty());
        (frame.traced, frame.has_offload) = (false, false);
        frame.age = Age::NEW;
        frame.set_same_rx(false);
        self.unused.push(frame);
    }

    /// The next vector to run.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(NodeId, Box<Frame>)> {
        if self.divided { self.pop_in_order() } else { self.pop_first() }
    }

    /// As [`pop`](Self::pop), while packets of a vector have taken a slow path: vectors for devices
    /// come last, sorted.
    #[cold]
    #[inline(never)]
    fn pop_in_order(&mut self) -> Option<(NodeId, Box<Frame>)> {
        while self.held_packets < HELD_PACKETS_MAX && self.held.len() < HELD_FRAMES_MAX {
            let Some((node, frame)) = self.pop_first() else { break };
            if self.places[node.index()] != Place::Device {
                return Some((node, frame));
            }
            self.hold(node, frame);
        }
        let Some((node, mut frame)) = self.held.pop_front() else {
            self.divided = false;
            self.order.clear();
            return None;
        };
        self.held_packets -= frame.len();
        self.order.restore(&mut frame);
        Some((node, frame))
    }

    /// Packets for a device wait.
    fn hold(&mut self, node: NodeId, mut frame: Box<Frame>) {
        self.held_packets += frame.len();
        let last = self.held.iter_mut().rev().find(|(held, _)| *held == node);
        match last.filter(|(_, last)| last.room() >= frame.len()) {
            Some((_, last)) => {
                last.append(&mut frame);
                self.recycle(frame);
            }
            None => self.held.push_back((node, frame)),
        }
    }

    /// A packet that was made of another one goes where that one would have gone.
    #[inline]
    pub(crate) fn follow(&mut self, made: &Packet, original: &Packet) {
        if self.divided {
            self.order.follow(made, original);
        }
    }

    /// The vector that has waited longest.
    #[inline(always)]
    fn pop_first(&mut self) -> Option<(NodeId, Box<Frame>)> {
        let (node, frame) = self.queue.pop_front()?;
        if self.open[node.index()] == self.taken {
            self.open[node.index()] = CLOSED;
        }
        self.taken += 1;
        Some((node, frame))
    }

    fn open_frame(&mut self, node: NodeId) -> Option<&mut Frame> {
        let number = self.open[node.index()];
        if number == CLOSED {
            return None;
        }
        self.queue.get_mut((number - self.taken) as usize).map(|(_, f)| &mut **f)
    }

    fn enqueue(&mut self, node: NodeId, frame: Box<Frame>) {
        let number = self.taken + self.queue.len() as u64;
        self.open[node.index()] = if frame.room() > 0 { number } else { CLOSED };
        self.queue.push_back((node, frame));
    }

    /// Carry out what `from` decided about each packet of `frame`.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        from: NodeId,
        mut frame: Box<Frame>,
        buffers: &mut BufferCache,
        counters: &WorkerCounters,
    ) {
        let Some(next) = frame.common_next() else {
            return self.scatter(Some(from), frame, buffers, counters);
        };
        if next == DROP {
            frame.packets_mut().iter_mut().for_each(|p| name_the_dead(from, p));
        }
        self.forward_all(next, next == from, frame, buffers);
    }

    /// As [`forward`](Self::forward), of packets of which each has its own node that let it go.
    pub(crate) fn forward_each(
        &mut self,
        from: &[NodeId; FRAME_PACKETS_MAX],
        mut frame: Box<Frame>,
        buffers: &mut BufferCache,
        counters: &WorkerCounters,
    ) {
        let (packets, next) = frame.split_mut();
        let mut is_slow = false;
        for ((packet, next), from) in packets.iter_mut().zip(next).zip(from) {
            if *next == DROP {
                name_the_dead(*from, packet);
            }
            is_slow |= self.is_slow(*from, *next);
        }
        let Some(next) = frame.common_next() else {
            if is_slow {
                self.order.note(frame.packets());
                self.divided = true;
            }
            return self.scatter(None, frame, buffers, counters);
        };
        self.forward_all(next, false, frame, buffers);
    }

    /// All packets go to one node, which has sent them there itself if they go there `again`.
    #[inline]
    fn forward_all(
        &mut self,
        next: NodeId,
        again: bool,
        mut frame: Box<Frame>,
        buffers: &mut BufferCache,
    ) {
        frame.again = again;
        if next.index() >= NODES_MAX {
            frame.drain().for_each(|p| buffers.free(p));
            return self.recycle(frame);
        }
        match self.open_frame(next) {
            Some(open) if open.room() >= frame.len() => {
                open.append(&mut frame);
                if open.room() == 0 {
                    self.open[next.index()] = CLOSED;
                }
                self.recycle(frame);
            }
            _ => self.enqueue(next, frame),
        }
    }

    /// Packets go to several nodes; `from` is the node that let them go, unless that has been seen
    /// to for each.
    #[inline(never)]
    fn scatter(
        &mut self,
        from: Option<NodeId>,
        mut frame: Box<Frame>,
        buffers: &mut BufferCache,
        counters: &WorkerCounters,
    ) {
        let (traced, same_rx, age) = (frame.traced, frame.is_same_rx(), frame.age);
        let has_offload = frame.has_offload;
        let rx = frame.packets().first().map(|packet| packet.rx);
        let mut sorting = Sorting::new(&mut frame);
        while let Some(mut group) = sorting.next_group() {
            let next = if group.next.index() < NODES_MAX { group.next } else { DROP };
            let dies = from.filter(|_| group.next == DROP);
            if from.is_some_and(|from| self.is_slow(from, next)) {
                group.note_order(&mut self.order);
                self.divided = true;
            }
            while !group.is_empty() {
                let Some(open) = self.open_or_new(next, same_rx, age, from == Some(next)) else {
                    group.drain(|packet| {
                        counters.no_frame.add(1);
                        buffers.free(packet);
                    });
                    break;
                };
                let open_rx = open.packets().first().map(|packet| packet.rx);
                let mut differs = same_rx && open_rx.is_some() && open_rx != rx;
                let mut has_traced = false;
                group.move_to(open, |packet| {
                    differs |= !same_rx && open_rx.is_some_and(|open_rx| open_rx != packet.rx);
                    has_traced |= traced && packet.has(PacketFlags::TRACED);
                    if let Some(from) = dies {
                        name_the_dead(from, packet);
                    }
                });
                open.traced |= has_traced;
                open.has_offload |= has_offload;
                if differs {
                    open.set_same_rx(false);
                }
                if open.room() == 0 {
                    self.open[next.index()] = CLOSED;
                }
            }
        }
        self.recycle(frame);
    }

    /// The node's open vector, or a new one, for packets of this age.
    #[inline]
    fn open_or_new(
        &mut self,
        node: NodeId,
        same_rx: bool,
        age: Age,
        again: bool,
    ) -> Option<&mut Frame> {
        if self.open_frame(node).is_none() {
            let mut frame = self.unused.pop()?;
            frame.set_same_rx(same_rx);
            frame.again = again;
            self.enqueue(node, frame);
        }
        let open = self.open_frame(node)?;
        open.age = open.age.max(age);
        open.again &= again;
        Some(open)
    }

    /// One packet to one node.
    #[inline]
    pub(crate) fn put(
        &mut self,
        next: NodeId,
        mut packet: Packet,
        look_for_trace: bool,
        same_rx: bool,
        buffers: &mut BufferCache,
        counters: &WorkerCounters,
    ) {
        let next = if next.index() < NODES_MAX { next } else { DROP };
        if self.age.is_old() && !packet.is_counted() {
            packet.note_age(self.age); // made by the running node: no younger than what it was made of
        }
        let age = self.age.max(packet.noted_age());
        let Some(frame) = self.open_or_new(next, same_rx, age, false) else {
            counters.no_frame.add(1);
            return buffers.free(packet);
        };
        if look_for_trace && packet.has(PacketFlags::TRACED) {
            frame.traced = true;
        }
        frame.has_offload |= packet.has(PacketFlags::OFFLOAD);
        if frame.packets().first().is_some_and(|p| p.rx != packet.rx) {
            frame.set_same_rx(false);
        }
        let refused = frame.push(packet).err();
        if frame.room() == 0 {
            self.open[next.index()] = CLOSED;
        }
        if let Some(packet) = refused {
            buffers.free(packet); // cannot be: a full vector is never open
        }
    }
}

/// The number of the node goes in front of the number of the reason.
#[inline(always)]
fn name_the_dead(from: NodeId, packet: &mut Packet) {
    packet.hand_over(packet.handed_over::<DropReason>().with_node(from));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::BufferPool;
    use crate::memory::mapping::PageSize;

    /// As behind a port whose frames go to as many tunnels: no two packets share a vector.
    #[test]
    fn a_full_vector_goes_to_as_many_nodes_and_from_each_to_another() {
        let pool = BufferPool::new(2048, 2048, PageSize::Small).expect("memory");
        let (mut cache, counters, mut outbox) =
            (pool.cache(), WorkerCounters::default(), Outbox::new());
        let mut frame = outbox.frame().expect("a vector");
        for _ in 0..FRAME_PACKETS_MAX {
            frame.push(cache.packet().expect("a buffer")).expect("room");
        }
        let (_, next) = frame.split_mut();
        next.iter_mut().zip(1000..).for_each(|(next, node)| *next = NodeId(node));
        outbox.forward(NodeId(7), frame, &mut cache, &counters);
        let mut arrived = 0;
        while let Some((node, mut frame)) = outbox.pop() {
            if node.0 >= 3000 {
                arrived += frame.len();
                frame.drain().for_each(|packet| cache.free(packet));
                outbox.recycle(frame);
                continue;
            }
            frame.set_all_next(NodeId(node.0 + 1000));
            outbox.forward(node, frame, &mut cache, &counters);
        }
        assert_eq!((arrived, counters.no_frame.get()), (FRAME_PACKETS_MAX, 0));
    }
}
