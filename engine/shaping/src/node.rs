//! Nodes of a tree: each has a virtual clock, a queue, and children that are ready to send.

use std::sync::Arc;

use quiver_core::cpu::prefetch;

use crate::NONE;
use crate::fair::Queue;
use crate::settings::{Settings, clock};
use crate::stats::Stats;

/// Nodes and settings come in chunks of so many.
pub const CHUNK: usize = 256;
/// Chunks at most.
pub const CHUNKS_MAX: usize = 1024;
/// Nodes at most: subscribers in two directions, and shapers with a name.
pub const NODES_MAX: usize = CHUNK * CHUNKS_MAX;
/// A class of a queue where nothing waits.
pub(crate) const NO_CLASS: u8 = u8::MAX;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing waits in it or below it.
    Idle,
    /// It waits for its clock, in the wheel.
    Wheel,
    /// It may send, and is among the ready children of its parent or among the ready roots.
    Ready,
}

/// A node: what a packet that passes reads is in the first line, what waits in the second.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Node {
    /// Virtual clock: when it has sent what it may, in 2⁻⁸ ns.
    pub(crate) clock: u64,
    /// The number of its settings.
    pub(crate) settings: u32,
    pub(crate) parent: u32,
    pub(crate) lives: bool,
    /// It has been deleted; what waits goes on.
    pub(crate) is_leaving: bool,
    pub(crate) place: Place,
    pub(crate) class: u8,
    /// Its place in the wheel.
    pub(crate) slot: u16,
    /// Its neighbours in the wheel or among ready nodes.
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// The first of its children that may send.
    pub(crate) ready: u32,
    /// Bytes that it may send before its siblings have their turn.
    pub(crate) deficit: i32,
    /// Its neighbours among nodes in which about as much waits.
    pub(crate) class_previous: u32,
    pub(crate) class_next: u32,
    pub(crate) queue: Queue,
}

const _: () = assert!(std::mem::offset_of!(Node, queue) == 64);

/// A subscriber that is idle has a node and a line of counters.
const _: () = assert!(size_of::<Node>() + size_of::<Stats>() <= 192);

impl Node {
    const UNUSED: Node = Node {
        clock: 0,
        settings: 0,
        parent: NONE,
        previous: NONE,
        next: NONE,
        ready: NONE,
        deficit: 0,
        class_previous: NONE,
        class_next: NONE,
        class: NO_CLASS,
        place: Place::Idle,
        slot: 0,
        lives: false,
        is_leaving: false,
        queue: Queue::EMPTY,
    };

    pub(crate) fn new(parent: u32, settings: u32) -> Node {
        Node { parent, settings, lives: true, ..Node::UNUSED }
    }

    /// May it send?
    #[inline(always)]
    pub(crate) fn conforms(&self, now_ns: u64) -> bool {
        self.clock <= clock(now_ns)
    }

    /// Does anything wait in it, or may a child send?
    pub(crate) fn has_work(&self) -> bool {
        self.queue.packets > 0 || self.ready != NONE
    }

    /// It sends bytes.
    #[inline(always)]
    pub(crate) fn charge(&mut self, of: &Settings, bytes: u32, now_ns: u64) {
        let earliest = clock(now_ns).saturating_sub(of.burst);
        self.clock = self.clock.max(earliest).saturating_add(of.time_of(bytes.into()));
    }
}

/// The memory of [`CHUNK`] nodes.
#[derive(Debug)]
pub struct Chunk {
    nodes: Box<[Node; CHUNK]>,
    stats: Arc<[Stats; CHUNK]>,
}

impl Chunk {
    /// Memory for more nodes, and the counters that they will have.
    pub fn new() -> (Chunk, Arc<[Stats; CHUNK]>) {
        let stats = Arc::new(std::array::from_fn(|_| Stats::default()));
        (Chunk { nodes: Box::new([Node::UNUSED; CHUNK]), stats: stats.clone() }, stats)
    }
}

/// The memory of [`CHUNK`] settings.
#[derive(Debug)]
pub struct SettingsChunk(Box<[Settings; CHUNK]>);

impl Default for SettingsChunk {
    fn default() -> SettingsChunk {
        SettingsChunk(Box::new([Settings::default(); CHUNK]))
    }
}

/// All settings, by number.
#[derive(Debug)]
pub(crate) struct SettingsTable(Vec<SettingsChunk>);

impl SettingsTable {
    pub fn new() -> SettingsTable {
        SettingsTable(Vec::with_capacity(CHUNKS_MAX))
    }

    /// More memory; it comes back when there is as much as may be.
    pub fn grow(&mut self, chunk: SettingsChunk) -> Result<(), SettingsChunk> {
        if self.0.len() == CHUNKS_MAX {
            return Err(chunk);
        }
        self.0.push(chunk);
        Ok(())
    }

    /// Set those of a number; false without memory for it.
    pub fn set(&mut self, number: u32, settings: Settings) -> bool {
        let place = self.0.get_mut(number as usize / CHUNK);
        place.is_some_and(|chunk| {
            chunk.0[number as usize % CHUNK] = settings;
            true
        })
    }

    /// Is there memory for those of this number?
    pub fn has(&self, number: u32) -> bool {
        (number as usize) < self.0.len() * CHUNK
    }

    /// Those of a node.
    #[inline(always)]
    pub fn of(&self, node: &Node) -> &Settings {
        let number = node.settings as usize;
        &self.0[number / CHUNK].0[number % CHUNK]
    }
}

/// A list of nodes: its two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub first: u32,
    pub last: u32,
}

impl List {
    pub const EMPTY: List = List { first: NONE, last: NONE };
}

/// All nodes and their counters, by number.
#[derive(Debug)]
pub(crate) struct Nodes {
    chunks: Vec<Chunk>,
}

impl Nodes {
    pub fn new() -> Nodes {
        Nodes { chunks: Vec::with_capacity(CHUNKS_MAX) }
    }

    /// More memory; it comes back when there is as much as may be.
    pub fn grow(&mut self, chunk: Chunk) -> Result<(), Chunk> {
        if self.chunks.len() == CHUNKS_MAX {
            return Err(chunk);
        }
        self.chunks.push(chunk);
        Ok(())
    }

    /// Is there memory for a node of this number?
    pub fn has_memory(&self, node: u32) -> bool {
        (node as usize) < self.chunks.len() * CHUNK
    }

    /// Is there a node of this number?
    #[inline(always)]
    pub fn lives(&self, node: u32) -> bool {
        self.find(node).is_some()
    }

    /// The node of this number, if there is one.
    #[inline(always)]
    pub fn find(&self, node: u32) -> Option<&Node> {
        let chunk = self.chunks.get(node as usize / CHUNK)?;
        Some(&chunk.nodes[node as usize % CHUNK]).filter(|node| node.lives)
    }

    #[inline(always)]
    pub fn at(&mut self, node: u32) -> &mut Node {
        &mut self.chunks[node as usize / CHUNK].nodes[node as usize % CHUNK]
    }

    #[inline(always)]
    pub fn get(&self, node: u32) -> &Node {
        &self.chunks[node as usize / CHUNK].nodes[node as usize % CHUNK]
    }

    #[inline(always)]
    pub fn stats(&self, node: u32) -> &Stats {
        &self.chunks[node as usize / CHUNK].stats[node as usize % CHUNK]
    }

    /// Show how much waits in a node.
    #[inline(always)]
    pub fn note_waiting(&self, node: u32) {
        let chunk = &self.chunks[node as usize / CHUNK];
        let Queue { bytes, packets, flows, .. } = &chunk.nodes[node as usize % CHUNK].queue;
        chunk.stats[node as usize % CHUNK].waits(*bytes, *packets, *flows);
    }

    /// Ask for the lines that [`charge`](Self::charge) will want.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        if let Some(chunk) = self.chunks.get(node as usize / CHUNK) {
            prefetch(&raw const chunk.nodes[node as usize % CHUNK]);
            prefetch(&raw const chunk.stats[node as usize % CHUNK]);
        }
    }

    /// Ask for the line of what waits in a node.
    #[inline(always)]
    pub fn prefetch_queue(&self, node: u32) {
        if let Some(chunk) = self.chunks.get(node as usize / CHUNK) {
            prefetch(&raw const chunk.nodes[node as usize % CHUNK].queue);
        }
    }

    /// A node sends bytes, which are counted.
    #[inline(always)]
    pub fn charge(
        &mut self,
        settings: &SettingsTable,
        node: u32,
        bytes: u32,
        now_ns: u64,
    ) -> &mut Node {
        let chunk = &mut self.chunks[node as usize / CHUNK];
        let at = &mut chunk.nodes[node as usize % CHUNK];
        at.charge(settings.of(at), bytes, now_ns);
        chunk.stats[node as usize % CHUNK].sent(bytes.into());
        at
    }

    /// Append a node to a ring, of which `first` is known.
    #[inline]
    pub fn append_to_ring(&mut self, first: &mut u32, node: u32) {
        let (mut previous, mut next) = (node, node);
        if *first == NONE {
            *first = node;
        } else {
            next = *first;
            previous = std::mem::replace(&mut self.at(next).previous, node);
            self.at(previous).next = node;
        }
        let at = self.at(node);
        (at.previous, at.next) = (previous, next);
    }

    /// Take a node out of the ring that it is in.
    #[inline]
    pub fn unlink_from_ring(&mut self, first: &mut u32, node: u32) {
        let at = self.at(node);
        let previous = std::mem::replace(&mut at.previous, NONE);
        let next = std::mem::replace(&mut at.next, NONE);
        if next == node {
            *first = NONE;
            return;
        }
        self.at(previous).next = next;
        self.at(next).previous = previous;
        if *first == node {
            *first = next;
        }
    }

    /// Append a node to a list of the wheel.
    #[inline]
    pub fn append_to_list(&mut self, list: &mut List, node: u32) {
        let last = std::mem::replace(&mut list.last, node);
        match last {
            NONE => list.first = node,
            last => self.at(last).next = node,
        }
        let at = self.at(node);
        (at.previous, at.next) = (last, NONE);
    }

    /// Take a node out of the list of the wheel that it is in.
    #[inline]
    pub fn unlink_from_list(&mut self, list: &mut List, node: u32) {
        let at = self.at(node);
        let previous = std::mem::replace(&mut at.previous, NONE);
        let next = std::mem::replace(&mut at.next, NONE);
        match previous {
            NONE => list.first = next,
            previous => self.at(previous).next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.at(next).previous = previous,
        }
    }
}
