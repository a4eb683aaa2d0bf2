//! The tree of rates: which packets pass at once, which wait, and which leave when.
//!
//! Every node has a virtual clock. A packet whose clocks, up to the root, let it pass and in front
//! of which none waits passes at once. Otherwise it waits in its node's fair queue. A node that may
//! not send yet stands in the wheel; one that may is among the ready children of its parent, which
//! share by deficit round robin in the measure of their rates. So a parent is never exceeded, what
//! a child does not use goes to its siblings, and each step costs the depth of the tree.

use crate::classes::Classes;
use crate::fair::{Arrival, FairQueues, Queue, Sent};
use crate::node::{Chunk, Node, Nodes, Place, SettingsChunk, SettingsTable};
use crate::settings::{Diffserv, Settings};
use crate::wheel::Wheel;
use crate::{Death, Item, NONE, Sink};

/// Nodes from a leaf to its root at most: the leaf, and five parents.
pub const DEPTH_MAX: usize = 6;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is within all rates, and passes.
    Passes,
    /// It is to be enqueued.
    Waits,
    /// There is no such node: nothing limits it.
    Unknown,
}

/// A tree of rates with what waits in it.
#[derive(Debug)]
pub struct Scheduler<T> {
    nodes: Nodes,
    settings: SettingsTable,
    queues: FairQueues<T>,
    wheel: Wheel,
    classes: Classes,
    /// The first of the roots that may send.
    roots: u32,
    buffers_max: usize,
}

impl<T: Item> Scheduler<T> {
    /// One without nodes, in which packets of as many buffers may wait.
    pub fn new(buffers_max: usize) -> Scheduler<T> {
        Scheduler {
            nodes: Nodes::new(),
            settings: SettingsTable::new(),
            // One more, so that there is a place for a packet before another one is dropped.
            queues: FairQueues::new(buffers_max + 1),
            wheel: Wheel::new(),
            classes: Classes::new(),
            roots: NONE,
            buffers_max,
        }
    }

    /// Take memory for more nodes.
    ///
    /// # Errors
    /// There is as much as may be; it comes back.
    pub fn grow(&mut self, chunk: Chunk) -> Result<(), Chunk> {
        self.nodes.grow(chunk)
    }

    /// Take memory for more settings.
    ///
    /// # Errors
    /// There is as much as may be; it comes back.
    pub fn grow_settings(&mut self, chunk: SettingsChunk) -> Result<(), SettingsChunk> {
        self.settings.grow(chunk)
    }

    /// Buffers that packets occupy which wait, and how many may.
    pub fn buffers(&self) -> (usize, usize) {
        (self.queues.buffers, self.buffers_max)
    }

    /// Set the settings of a number, for all nodes that have it. False without memory for it.
    pub fn set_settings(&mut self, number: u32, settings: Settings) -> bool {
        self.settings.set(number, settings)
    }

    /// The classes of traffic of a node.
    #[inline(always)]
    pub fn diffserv_of(&self, node: u32) -> Option<Diffserv> {
        self.nodes.find(node).map(|node| self.settings.of(node).diffserv)
    }

    /// What waits in a node itself.
    pub fn queue(&self, node: u32) -> Option<Queue> {
        self.nodes.lives(node).then(|| self.nodes.get(node).queue)
    }

    /// Make a node. False when there is one of this number, no memory for it, no such parent or
    /// settings, or too many levels.
    pub fn add(&mut self, node: u32, parent: Option<u32>, settings: u32) -> bool {
        let is_free = self.nodes.has_memory(node) && !self.nodes.lives(node);
        if !is_free || !self.settings.has(settings) || !self.has_depth_below(parent, node) {
            return false;
        }
        self.nodes.stats(node).reset();
        *self.nodes.at(node) = Node::new(parent.unwrap_or(NONE), settings);
        true
    }

    /// Is there a level below `parent`, which is not below `node`?
    fn has_depth_below(&self, parent: Option<u32>, node: u32) -> bool {
        let mut above = parent.unwrap_or(NONE);
        for _ in 0..DEPTH_MAX {
            if above == NONE {
                return true;
            }
            if above == node || !self.nodes.lives(above) {
                return false;
            }
            above = self.nodes.get(above).parent;
        }
        false
    }

    /// Give a node another parent, or other settings. What waits goes with it. False as for
    /// [`add`](Self::add); then nothing changes. The caller has seen to it that no node below it
    /// has more than [`DEPTH_MAX`] levels then: a node does not know its children.
    pub fn change(&mut self, node: u32, parent: Option<u32>, settings: u32, now_ns: u64) -> bool {
        if !self.nodes.lives(node)
            || !self.settings.has(settings)
            || !self.has_depth_below(parent, node)
        {
            return false;
        }
        self.leave(node);
        let at = self.nodes.at(node);
        (at.settings, at.deficit) = (settings, 0);
        at.parent = parent.unwrap_or(NONE);
        self.reconsider(node, now_ns);
        true
    }

    /// The settings of a node have changed: a clock that is far ahead by the rate before begins
    /// anew.
    pub fn reconsider(&mut self, node: u32, now_ns: u64) {
        if !self.nodes.lives(node) {
            return;
        }
        self.leave(node);
        let of = self.settings.of(self.nodes.get(node));
        let latest =
            crate::settings::clock(now_ns) + of.time_of(crate::settings::FRAME_BYTES.into());
        let at = self.nodes.at(node);
        at.clock = at.clock.min(latest);
        self.classes.update(&mut self.nodes, of, node);
        if self.nodes.get(node).has_work() {
            self.activate(node, now_ns);
        }
    }

    /// Delete a node that has no children. What waits goes on as fast as it can, and the number is
    /// free behind it: true when it is free at once.
    pub fn remove(&mut self, node: u32, now_ns: u64) -> bool {
        if !self.nodes.lives(node) {
            return true;
        }
        self.leave(node);
        let at = self.nodes.at(node);
        (at.parent, at.is_leaving) = (NONE, true);
        if at.queue.packets == 0 {
            at.lives = false;
            return true;
        }
        at.clock = 0;
        self.activate(node, now_ns);
        false
    }

    /// Has the number no node?
    pub fn is_free(&self, node: u32) -> bool {
        !self.nodes.lives(node)
    }

    /// A packet will come to a node soon: ask for what [`offer`](Self::offer) reads of it.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        self.nodes.prefetch(node);
    }

    /// A packet will wait in a node soon: ask for what [`enqueue`](Self::enqueue) reads of it.
    #[inline(always)]
    pub fn prefetch_queue(&self, node: u32) {
        self.nodes.prefetch_queue(node);
    }

    /// A packet of so many bytes comes to a node. When it passes, the clocks have been set.
    #[inline]
    pub fn offer(&mut self, node: u32, bytes: u32, now_ns: u64) -> Offer {
        let Some(leaf) = self.nodes.find(node).filter(|leaf| !leaf.is_leaving) else {
            return Offer::Unknown;
        };
        let mut here = leaf;
        while here.place == Place::Idle && here.conforms(now_ns) {
            if here.parent == NONE {
                let bytes = self.settings.of(leaf).counted(bytes);
                self.charge(node, bytes, now_ns);
                return Offer::Passes;
            }
            here = self.nodes.get(here.parent);
        }
        Offer::Waits
    }

    /// A packet that a node and those above it let pass.
    #[inline(always)]
    fn charge(&mut self, node: u32, bytes: u32, now_ns: u64) {
        let mut at = node;
        while at != NONE {
            at = self.nodes.charge(&self.settings, at, bytes, now_ns).parent;
        }
    }

    /// Let a packet wait that [`offer`](Self::offer) does not let pass. When too much waits then,
    /// packets are dropped where most waits; the packet itself when there is no place for it.
    pub fn enqueue(&mut self, arrival: &Arrival, item: T, now_ns: u64, sink: &mut impl Sink<T>) {
        let node = arrival.node;
        if !self.nodes.lives(node) {
            return sink.send(item);
        }
        let at = self.nodes.at(node);
        let of = self.settings.of(at);
        if let Err(item) = self.queues.enqueue(&mut at.queue, of, arrival, item, now_ns) {
            self.nodes.stats(node).lost(1, 0);
            return sink.drop(item, Death::Overlimit);
        }
        let (is_over, is_idle) = (at.queue.packets > of.packets_max, at.place == Place::Idle);
        self.note(node);
        if is_idle {
            self.activate(node, now_ns);
        }
        if is_over {
            self.drop_of(node, sink);
        }
        while self.queues.buffers > self.buffers_max {
            let Some(furthest) = self.classes.furthest() else { break };
            if !self.drop_of(furthest, sink) {
                break;
            }
        }
    }

    /// What waits in a node has changed.
    #[inline(always)]
    fn note(&mut self, node: u32) {
        let of = self.settings.of(self.nodes.get(node));
        self.classes.update(&mut self.nodes, of, node);
        self.nodes.note_waiting(node);
    }

    /// Drop of the longest flow of a node.
    fn drop_of(&mut self, node: u32, sink: &mut impl Sink<T>) -> bool {
        let dropped = self.queues.drop_longest(&mut self.nodes.at(node).queue, sink);
        self.nodes.stats(node).lost(dropped, 0);
        self.note(node);
        self.rest(node);
        dropped > 0
    }

    /// Nodes from here up that have nothing to send any more leave their places.
    fn rest(&mut self, node: u32) {
        let mut at = node;
        while at != NONE && !self.nodes.get(at).has_work() {
            let parent = self.nodes.get(at).parent;
            self.leave(at);
            if self.nodes.get(at).is_leaving {
                self.nodes.at(at).lives = false;
            }
            at = parent;
        }
    }

    /// Take a node out of the wheel, or from among the ready ones.
    fn leave(&mut self, node: u32) {
        match self.nodes.get(node).place {
            Place::Idle => {}
            Place::Wheel => self.wheel.remove(&mut self.nodes, node),
            Place::Ready => {
                let parent = self.nodes.get(node).parent;
                let mut first = self.first_ready(parent);
                self.nodes.unlink_from_ring(&mut first, node);
                self.set_first_ready(parent, first);
                self.nodes.at(node).place = Place::Idle;
                if parent != NONE && first == NONE {
                    self.rest(parent);
                }
            }
        }
    }

    fn first_ready(&self, parent: u32) -> u32 {
        if parent == NONE { self.roots } else { self.nodes.get(parent).ready }
    }

    fn set_first_ready(&mut self, parent: u32, first: u32) {
        if parent == NONE {
            self.roots = first;
        } else {
            self.nodes.at(parent).ready = first;
        }
    }

    /// A node has something to send: it comes into the wheel, or among the ready ones with those
    /// above it.
    fn activate(&mut self, node: u32, now_ns: u64) {
        let mut at = node;
        while at != NONE && self.nodes.get(at).place == Place::Idle {
            if !self.nodes.get(at).conforms(now_ns) {
                return self.wheel.insert(&mut self.nodes, at, now_ns);
            }
            let parent = self.nodes.get(at).parent;
            let mut first = self.first_ready(parent);
            self.nodes.append_to_ring(&mut first, at);
            self.set_first_ready(parent, first);
            self.nodes.at(at).place = Place::Ready;
            at = parent;
        }
    }

    /// Send up to `budget` packets whose time is come. When to call again, if anything waits.
    pub fn serve(&mut self, now_ns: u64, budget: usize, sink: &mut impl Sink<T>) -> Option<u64> {
        while let Some(node) = self.wheel.pop(&mut self.nodes, now_ns) {
            self.activate(node, now_ns);
        }
        let mut left = budget;
        while self.roots != NONE && left > 0 {
            let root = self.roots;
            self.roots = self.nodes.get(root).next;
            left -= usize::from(self.serve_root(root, now_ns, sink));
        }
        if self.roots != NONE { Some(now_ns) } else { self.wheel.next_due_ns() }
    }

    /// Send the next packet of a tree. False when all that were looked at have been dropped.
    fn serve_root(&mut self, root: u32, now_ns: u64, sink: &mut impl Sink<T>) -> bool {
        let leaf = self.pick(root);
        self.prefetch_behind(leaf);
        let at = self.nodes.at(leaf);
        let (is_leaving, of) = (at.is_leaving, self.settings.of(at));
        let patient;
        let of = match is_leaving {
            true => {
                patient = Settings { target_ns: u64::MAX, ..*of };
                &patient
            }
            false => of,
        };
        let popped = self.queues.pop(&mut at.queue, of, now_ns, sink);
        self.nodes.stats(leaf).lost(popped.dropped, popped.marked);
        self.note(leaf);
        let has_sent = popped.sent.is_some();
        if let Some(Sent { bytes, waited_ns }) = popped.sent {
            self.nodes.stats(leaf).delayed(waited_ns);
            let mut at = leaf;
            while at != NONE {
                let node = self.nodes.charge(&self.settings, at, bytes, now_ns);
                if is_leaving {
                    node.clock = 0;
                }
                if node.parent != NONE {
                    node.deficit = node.deficit.saturating_sub(bytes as i32);
                }
                at = node.parent;
            }
        }
        self.resettle(leaf, now_ns);
        has_sent
    }

    /// Ask for the sibling that has its turn behind a node, and for the one behind that.
    #[inline(always)]
    fn prefetch_behind(&self, node: u32) {
        let second = self.nodes.find(node).and_then(|node| self.nodes.find(node.next));
        if let Some(second) = second {
            self.queues.prefetch(&second.queue);
            self.nodes.prefetch(second.next);
            self.nodes.prefetch_queue(second.next);
        }
    }

    /// The node whose packet is the next one below `root`.
    fn pick(&mut self, root: u32) -> u32 {
        let mut at = root;
        for _ in 0..DEPTH_MAX {
            // What waits in a node that has got children since is older than what waits in them.
            if self.nodes.get(at).queue.packets > 0 || self.nodes.get(at).ready == NONE {
                break;
            }
            let mut child = self.nodes.get(at).ready;
            while self.nodes.get(child).deficit <= 0 {
                let below = self.nodes.at(child);
                let share = self.settings.of(below).share_bytes;
                below.deficit = below.deficit.saturating_add(share);
                child = below.next;
            }
            self.nodes.at(at).ready = child;
            at = child;
        }
        at
    }

    /// Nodes from a leaf up that have sent: those that may not send on wait for their clocks, and
    /// those that have nothing left are idle.
    fn resettle(&mut self, leaf: u32, now_ns: u64) {
        let mut at = leaf;
        while at != NONE {
            let here = self.nodes.get(at);
            let parent = here.parent;
            if here.place == Place::Ready && !(here.has_work() && here.conforms(now_ns)) {
                self.leave(at);
                if self.nodes.get(at).has_work() {
                    self.wheel.insert(&mut self.nodes, at, now_ns);
                } else if self.nodes.get(at).is_leaving {
                    self.nodes.at(at).lives = false;
                }
            }
            at = parent;
        }
    }

    /// All packets that wait go to `sink`, to die: the tree is given up.
    pub fn clear(&mut self, sink: &mut impl Sink<T>) {
        while let Some(node) = self.classes.furthest() {
            self.drop_of(node, sink);
        }
    }
}
