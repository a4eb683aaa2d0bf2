//! The driver: runs the kernels that the packets of a vector come to, block by block.

mod visited;
mod work;

use crate::cpu::clocks;
use crate::graph::context::Context;
use crate::graph::counters::WorkerCounters;
use crate::graph::frame::{FRAME_PACKETS_MAX, Frame, block_places_of};
use crate::graph::node::DROP;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;
use crate::worker::Installed;

use super::kernel::{Ahead, Block, WholeVector, first_places, places};
use super::slot::{KernelSlot, Nodes};
use super::{BLOCK_PACKETS, Mask};
use visited::Visited;
use work::{Step, WorkList};

/// Kernels that are run for one block at most; then its packets go on by the graph.
const KERNELS_PER_BLOCK_MAX: usize = 16;

/// Which packets have left the driver so far, and how.
#[derive(Clone, Copy)]
enum Exits {
    Nobody,
    /// All of them from one node to another.
    Alike {
        from: NodeId,
        next: NodeId,
    },
    /// As is written down for each.
    Each,
}

/// The driver of one worker, and its notes about the vector that runs.
pub(crate) struct Driver {
    pass: u64,
    /// Do packets go on to the next kernel?
    follows: bool,
    /// Do packets of the vector wait in the graph for a node that has a kernel?
    is_awaited: bool,
    is_measured: bool,
    /// The interface by which the packets that have left came in; `None` where it is not one.
    rx: Option<InterfaceId>,
    exits: Exits,
    /// The node that let each packet leave; meaningful with [`Exits::Each`].
    from: Box<[NodeId; FRAME_PACKETS_MAX]>,
    visited: Visited,
}

/// Where the packets of a vector go, and the place of a block in it.
struct Leaving<'f> {
    next: &'f mut [NodeId; FRAME_PACKETS_MAX],
    begin: usize,
}

impl Driver {
    pub fn new() -> Driver {
        Driver {
            pass: 0,
            follows: false,
            is_awaited: false,
            is_measured: false,
            rx: None,
            exits: Exits::Nobody,
            from: Box::new([DROP; FRAME_PACKETS_MAX]),
            visited: Visited::new(),
        }
    }

    /// Run a vector through the kernel of `head`, and through those behind it if the driver
    /// `follows`.
    pub fn run(
        &mut self,
        nodes: &mut [Option<Box<Installed>>],
        cx: &mut Context<'_>,
        head: NodeId,
        frame: &mut Frame,
        follows: bool,
    ) {
        let nodes = &mut Nodes(nodes);
        (self.pass, self.follows, self.is_awaited) = (self.pass + 1, follows, false);
        self.exits = Exits::Nobody;
        self.visited.clear();
        let (Some(slot), Some(first)) = (nodes.slot(head), frame.packets().first()) else { return };
        let side = first.rx;
        self.is_measured = slot.turns.take();
        let rx = frame.is_same_rx().then_some(side);
        let length = frame.len();
        let (packets, next) = frame.parts_mut();
        let mut node = head;
        if let Some(rx) = rx.filter(|_| follows && !self.is_measured) {
            let bytes = None;
            let vector = WholeVector { packets: &mut *packets, rx, bytes, pass: self.pass };
            node = self.run_vector(nodes, cx, head, vector);
        }
        let ahead = nodes.slot(node).map_or(Ahead::Nothing, |slot| slot.ahead(side));
        ahead.ask(packets);
        let length = if matches!(self.exits, Exits::Nobody) { length } else { 0 };
        let mut window = [DROP; BLOCK_PACKETS];
        for begin in (0..length).step_by(BLOCK_PACKETS) {
            let count = (length - begin).min(BLOCK_PACKETS);
            let mut block = Block {
                packets: &mut packets[begin..],
                next: &mut window,
                count,
                live: first_places(count),
                rx: rx.unwrap_or(side),
                is_rx_known: rx.is_some(),
                is_same_index: false,
                bytes: None,
                left: 0,
                pass: self.pass,
                ahead,
                is_alone: !follows,
            };
            self.run_block(nodes, cx, node, &mut block, &mut Leaving { next: &mut *next, begin });
        }
        if let Exits::Alike { next, .. } = self.exits {
            frame.set_all_next(next);
        }
        frame.set_same_rx(self.rx.is_some());
        let looks_behind = self.visited.end(nodes);
        if follows && let Some(slot) = nodes.slot(node) {
            slot.learn_behind(side, looks_behind);
        }
    }

    /// Run the kernels that decide about the whole vector. Returns the node that all packets have
    /// come to. They have left for it, unless its kernel must run block by block.
    #[inline(always)]
    fn run_vector(
        &mut self,
        nodes: &mut Nodes<'_>,
        cx: &mut Context<'_>,
        head: NodeId,
        mut vector: WholeVector<'_>,
    ) -> NodeId {
        let (mut node, mut from, count) = (head, head, vector.packets.len() as u64);
        let mut budget = KERNELS_PER_BLOCK_MAX;
        while let Some(slot) = nodes.slot(node).filter(|_| budget > 0) {
            cx.node = node;
            let Some(next) = slot.kernel.run_vector(cx, &mut vector) else { return node };
            self.visited.arrive(slot, self.pass, node, count);
            (from, node, budget) = (node, next, budget - 1);
        }
        self.exits = Exits::Alike { from, next: node };
        self.rx = Some(vector.rx);
        node
    }

    /// The node that let all packets go, or for each the one that did.
    pub fn left_from(&self) -> Result<NodeId, &[NodeId; FRAME_PACKETS_MAX]> {
        match self.exits {
            Exits::Alike { from, .. } => Ok(from),
            Exits::Nobody | Exits::Each => Err(&self.from),
        }
    }

    /// Run the kernels that the packets of a block come to.
    #[inline(always)]
    fn run_block(
        &mut self,
        nodes: &mut Nodes<'_>,
        cx: &mut Context<'_>,
        mut node: NodeId,
        block: &mut Block<'_>,
        leaving: &mut Leaving<'_>,
    ) {
        let mut work = WorkList::new();
        let mut budget = KERNELS_PER_BLOCK_MAX - 1;
        loop {
            let Some(slot) = nodes.slot(node) else { return };
            self.visited.arrive(slot, self.pass, node, block.live_count());
            cx.node = node;
            let (rx, looks_at_none) = (block.rx, slot.facts.looks_at_none);
            let (all, last) = if block.is_rx_known || block.find_rx() {
                self.run_kernel(nodes, cx, node, block)
            } else {
                self.run_mixed(nodes, cx, node, block);
                (None, node)
            };
            if !looks_at_none {
                block.ahead = Ahead::Nothing;
            }
            let first = block.next[block.live.trailing_zeros() as usize % BLOCK_PACKETS];
            let next = all.unwrap_or(first);
            if all.is_some() || block_places_of(first, block.next) & block.live == block.live {
                let may_follow = self.may_follow(nodes, next);
                if may_follow && work.len() < budget && self.visited.has_room() {
                    if work.len() == 0 && block.left == 0 {
                        (node, budget) = (next, budget - 1);
                        continue;
                    }
                    let step = Step {
                        node: next,
                        live: block.live,
                        rx: block.is_rx_known.then_some(block.rx),
                    };
                    if !work.add(step) {
                        self.wait_for(nodes, next);
                        self.leave(block, leaving, block.live, (last, next));
                    }
                } else {
                    if may_follow {
                        self.wait_for(nodes, next);
                    }
                    self.leave(block, leaving, block.live & block.left, (node, next));
                    self.leave(block, leaving, block.live & !block.left, (last, next));
                }
            } else {
                self.divide(nodes, block, leaving, (node, last), (&mut work, budget));
            }
            let Some(step) = work.take() else { return };
            (node, budget, block.live) = (step.node, budget - 1, step.live);
            (block.rx, block.is_rx_known) = (step.rx.unwrap_or(rx), step.rx.is_some());
            (block.bytes, block.is_same_index, block.left) = (None, false, 0);
        }
    }

    /// May packets go on to a node: has it a kernel, and do none wait for it in the graph?
    #[inline(always)]
    fn may_follow(&self, nodes: &mut Nodes<'_>, next: NodeId) -> bool {
        let awaits = |slot: &KernelSlot| self.is_awaited && slot.awaited == self.pass;
        self.follows && nodes.slot(next).is_some_and(|slot| !awaits(slot))
    }

    /// Packets leave for a node to which they could have gone on, had there been room: those of
    /// later blocks must not overtake them.
    #[cold]
    fn wait_for(&mut self, nodes: &mut Nodes<'_>, next: NodeId) {
        if let Some(slot) = nodes.slot(next) {
            (slot.awaited, self.is_awaited) = (self.pass, true);
        }
    }

    /// The live packets go to several nodes: those whose nodes have kernels wait for them, others
    /// leave.
    #[inline(never)]
    fn divide(
        &mut self,
        nodes: &mut Nodes<'_>,
        block: &Block<'_>,
        leaving: &mut Leaving<'_>,
        (node, last): (NodeId, NodeId),
        (work, budget): (&mut WorkList, usize),
    ) {
        let mut rest = block.live;
        while rest != 0 {
            let next = block.next[rest.trailing_zeros() as usize % BLOCK_PACKETS];
            let live = block_places_of(next, block.next) & rest;
            rest &= !live;
            let may_follow = self.may_follow(nodes, next);
            let has_room = work.len() < budget && self.visited.has_room_for(work.len() + 1);
            let rx = block.is_rx_known.then_some(block.rx);
            if !(may_follow && has_room && work.add(Step { node: next, live, rx })) {
                if may_follow {
                    self.wait_for(nodes, next);
                }
                self.leave(block, leaving, live & block.left, (node, next));
                self.leave(block, leaving, live & !block.left, (last, next));
            }
        }
    }

    /// Run the kernel of one node, or that of a pair. Returns where all packets go, if it is said,
    /// and the last node that ran.
    #[inline(always)]
    fn run_kernel(
        &mut self,
        nodes: &mut Nodes<'_>,
        cx: &mut Context<'_>,
        node: NodeId,
        block: &mut Block<'_>,
    ) -> (Option<NodeId>, NodeId) {
        let Some(slot) = nodes.slot(node) else { return (None, node) };
        if self.is_measured {
            return (self.measure(slot, cx, block), node);
        }
        if !slot.has_pairs() || !self.follows || self.is_awaited {
            return (slot.kernel.run(cx, block), node);
        }
        let (rx, arrived) = (block.rx, block.live_count());
        let Some(pair) = slot.likely_pair(rx) else {
            let all = slot.kernel.run(cx, block);
            let first = block.next[block.live.trailing_zeros() as usize % BLOCK_PACKETS];
            slot.learn_pair(rx, all.unwrap_or(first));
            return (all, node);
        };
        let (second, all) = (pair.second, pair.kernel.run(cx, block));
        let went_on = arrived - u64::from(block.left.count_ones());
        if went_on > 0 && pair.pass == self.pass {
            self.visited.add(pair.place, went_on);
        } else if went_on > 0 {
            self.arrive_second(nodes, node, second, rx, went_on);
        }
        if went_on * 2 < arrived
            && let Some(slot) = nodes.slot(node)
        {
            slot.learn_pair(rx, block.next[block.left.trailing_zeros() as usize % BLOCK_PACKETS]);
        }
        (all, second)
    }

    /// The first packets of this pass have come to the second node of a pair.
    #[inline(never)]
    fn arrive_second(
        &mut self,
        nodes: &mut Nodes<'_>,
        node: NodeId,
        second: NodeId,
        rx: InterfaceId,
        packets: u64,
    ) {
        let Some(slot) = nodes.slot(second) else { return };
        self.visited.arrive(slot, self.pass, second, packets);
        let place = slot.place;
        if let Some(pair) = nodes.slot(node).and_then(|slot| slot.likely_pair(rx)) {
            (pair.place, pair.pass) = (place, self.pass);
        }
    }

    /// Run a kernel and see how many clocks it takes.
    #[inline(never)]
    fn measure(
        &mut self,
        slot: &mut KernelSlot,
        cx: &mut Context<'_>,
        block: &mut Block<'_>,
    ) -> Option<NodeId> {
        let (start, packets) = (clocks(), block.live_count());
        let all = slot.kernel.run(cx, block);
        self.visited.note(slot.place, clocks() - start, packets);
        all
    }

    /// Run a kernel for packets that came in by several interfaces: for those of each in turn.
    #[inline(never)]
    fn run_mixed(
        &mut self,
        nodes: &mut Nodes<'_>,
        cx: &mut Context<'_>,
        node: NodeId,
        block: &mut Block<'_>,
    ) {
        let Some(slot) = nodes.slot(node) else { return };
        let start = clocks();
        let live = block.live;
        let mut rest = live;
        while rest != 0 {
            let rx = block.packets[rest.trailing_zeros() as usize].rx;
            let here = |place: &usize| block.packets[*place].rx == rx;
            block.live = places(rest).filter(here).fold(0, |all, place| all | 1 << place);
            rest &= !block.live;
            block.came_in_by(rx, true);
            let group = block.live;
            if let Some(next) = slot.kernel.run(cx, block) {
                places(group).for_each(|place| block.next[place % BLOCK_PACKETS] = next);
            }
        }
        block.live = live;
        block.came_in_by(block.rx, false);
        if self.is_measured {
            self.visited.note(slot.place, clocks() - start, u64::from(live.count_ones()));
        }
    }

    /// Packets of the block leave from one node to another.
    #[inline(always)]
    fn leave(
        &mut self,
        block: &Block<'_>,
        leaving: &mut Leaving<'_>,
        live: Mask,
        (from, next): (NodeId, NodeId),
    ) {
        if live == 0 {
            return;
        }
        let is_block = live == first_places(block.count);
        let rx = block.is_rx_known.then_some(block.rx);
        self.rx = if matches!(self.exits, Exits::Nobody) {
            rx
        } else {
            self.rx.filter(|_| self.rx == rx)
        };
        match self.exits {
            Exits::Nobody if is_block && leaving.begin == 0 => {
                self.exits = Exits::Alike { from, next }
            }
            Exits::Alike { from: before, next: there }
                if is_block && (before, there) == (from, next) => {}
            _ => self.leave_one_by_one(leaving, live, (from, next)),
        }
    }

    #[inline(never)]
    fn leave_one_by_one(
        &mut self,
        leaving: &mut Leaving<'_>,
        live: Mask,
        (from, next): (NodeId, NodeId),
    ) {
        let begin = leaving.begin;
        if let Exits::Alike { from, next } = self.exits {
            self.from[..begin].fill(from);
            leaving.next[..begin].fill(next);
        }
        self.exits = Exits::Each;
        for place in places(live).map(|place| (begin + place) % FRAME_PACKETS_MAX) {
            self.from[place] = from;
            leaving.next[place] = next;
        }
    }

    /// The vector took so many clocks: count for each node what it would have counted alone.
    pub fn account(
        &mut self,
        nodes: &mut [Option<Box<Installed>>],
        counters: &WorkerCounters,
        head: NodeId,
        clocks: u64,
    ) {
        self.visited.account(&mut Nodes(nodes), counters, (head, self.is_measured), clocks);
    }
}

impl Block<'_> {
    /// Find out whether all live packets came in by one interface.
    fn find_rx(&mut self) -> bool {
        let Some(first) = self.first().map(|packet| packet.rx) else { return false };
        let differs = |place: usize| {
            self.packets.get(place).is_some_and(|packet: &Packet| packet.rx != first)
        };
        self.is_rx_known = !places(self.live).any(differs);
        self.rx = first;
        self.is_rx_known
    }
}
