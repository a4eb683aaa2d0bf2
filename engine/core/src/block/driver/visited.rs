//! The nodes that the packets of a vector come to, and what is counted for them.

use crate::block::costs::Shares;
use crate::block::slot::{KernelSlot, Nodes};
use crate::graph::counters::WorkerCounters;
use crate::graph::node::DROP;
use crate::ids::NodeId;

/// Nodes that a vector comes to in one pass at most.
const NODES_MAX: usize = 64;
/// Nodes that a step adds to them: two, when it runs a pair.
const NODES_PER_STEP: usize = 2;

/// A node, and what came to it.
#[derive(Clone, Copy)]
struct Visit {
    node: NodeId,
    packets: u64,
    /// Clocks and packets that were measured.
    clocks: u64,
    measured: u64,
}

/// The nodes of a pass, each once.
pub(super) struct Visited {
    list: [Visit; NODES_MAX],
    count: usize,
}

impl Visited {
    pub fn new() -> Visited {
        let nothing = Visit { node: DROP, packets: 0, clocks: 0, measured: 0 };
        Visited { list: [nothing; NODES_MAX], count: 0 }
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Is there room for the nodes of one more step?
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Is there room for the nodes of so many steps?
    #[inline(always)]
    pub fn has_room_for(&self, steps: usize) -> bool {
        self.count + NODES_PER_STEP * steps <= NODES_MAX
    }

    /// So many packets come to a node.
    #[inline(always)]
    pub fn arrive(&mut self, slot: &mut KernelSlot, pass: u64, node: NodeId, packets: u64) {
        if slot.pass != pass {
            (slot.pass, slot.place) = (pass, self.count % NODES_MAX);
            self.list[slot.place] = Visit { node, packets, clocks: 0, measured: 0 };
            self.count += 1;
        } else {
            self.add(slot.place, packets);
        }
    }

    /// So many more come to the node at a place of the list.
    #[inline(always)]
    pub fn add(&mut self, place: usize, packets: u64) {
        self.list[place % NODES_MAX].packets += packets;
    }

    /// So many clocks were measured for packets of the node at a place of the list.
    pub fn note(&mut self, place: usize, clocks: u64, packets: u64) {
        let visit = &mut self.list[place % NODES_MAX];
        visit.clocks += clocks;
        visit.measured += packets;
    }

    /// The vector is through. Did packets come to a kernel that reads their second line?
    #[inline(always)]
    pub fn end(&self, nodes: &mut Nodes<'_>) -> bool {
        let mut looks_behind = false;
        for visit in &self.list[..self.count] {
            if let Some(slot) = nodes.slot(visit.node) {
                slot.kernel.end();
                looks_behind |= slot.facts.looks_behind;
            }
        }
        looks_behind
    }

    /// The pass that began at `head` took so many clocks: count for each node what it would have
    /// counted alone.
    #[inline(always)]
    pub fn account(
        &mut self,
        nodes: &mut Nodes<'_>,
        counters: &WorkerCounters,
        (head, is_measured): (NodeId, bool),
        clocks: u64,
    ) {
        let visits = &mut self.list[..self.count];
        let mut is_known = true;
        let mut sum = 0;
        for visit in &mut *visits {
            let Some(slot) = nodes.slot(visit.node) else { continue };
            if is_measured {
                slot.cost.note(visit.clocks, visit.measured);
            }
            is_known &= slot.cost.is_known();
            visit.clocks = slot.cost.of(visit.packets); // its weight from here on
            sum += visit.clocks;
        }
        if !is_known {
            visits.iter_mut().for_each(|visit| visit.clocks = visit.packets);
            sum = visits.iter().map(|visit| visit.packets).sum();
            if let Some(slot) = nodes.slot(head) {
                slot.turns.be_due();
            }
        }
        let (shares, is_fused) = (Shares::new(clocks, sum), visits.len() > 1);
        for visit in visits {
            let taken = shares.of(visit.clocks);
            let row = counters.node(visit.node);
            row.calls.add(1);
            row.fused.add(u64::from(is_fused));
            row.vectors.add(visit.packets);
            row.clocks.add(taken);
            row.note_longest(taken, visit.packets);
        }
    }
}
