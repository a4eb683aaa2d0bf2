//! What a kernel gets and what it answers.

use crate::graph::context::Context;
use crate::graph::frame::PREFETCH_AHEAD;
use crate::graph::node::Wiring;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;
use crate::worker::more_on_wire;

use super::{BLOCK_PACKETS, Mask};

/// A node's loop over a block. Each worker has an instance of its own.
pub(crate) trait Kernel: Send {
    /// Decide about the live packets: write the next node of each, or answer where all of them go.
    /// What the block says of its live packets must be true afterwards.
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId>;

    /// Decide about all packets of a vector at once; the answer is where they go. `None`, and
    /// nothing changes, where the vector must be run block by block.
    fn run_vector(&mut self, cx: &mut Context<'_>, vector: &mut WholeVector<'_>) -> Option<NodeId> {
        let _ = (cx, vector);
        None
    }

    /// All blocks of the vector are done.
    fn end(&mut self) {}

    /// What never changes.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

/// Makes a worker's instance of a kernel.
pub(crate) type MakeKernel = std::sync::Arc<dyn Fn(&Wiring<'_>) -> Box<dyn Kernel> + Send + Sync>;

/// Properties of a kernel.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts {
    /// It reads bytes that nobody has read before.
    pub looks_first: bool,
    /// It reads the second line of packets.
    pub looks_behind: bool,
    /// It reads no bytes: what is asked for ahead is for the kernel behind it.
    pub looks_at_none: bool,
}

/// All packets of a vector, which came in by one interface.
pub(crate) struct WholeVector<'f> {
    pub packets: &'f mut [Packet],
    pub rx: InterfaceId,
    /// Bytes of all packets, if somebody has added them up.
    pub bytes: Option<u64>,
    /// The number of the pass.
    pub pass: u64,
}

/// Up to 128 packets of a vector, and those behind them.
pub(crate) struct Block<'f> {
    /// The packets from the block's first to the vector's last.
    pub packets: &'f mut [Packet],
    /// The next node of each packet of the block.
    pub next: &'f mut [NodeId; BLOCK_PACKETS],
    /// Packets in the block.
    pub count: usize,
    /// The packets that the kernel is to decide about.
    pub live: Mask,
    /// The interface by which all live packets came in.
    pub rx: InterfaceId,
    /// Is that known? A kernel is run only if it is.
    pub is_rx_known: bool,
    /// The index of all live packets is the same.
    pub is_same_index: bool,
    /// Bytes of all live packets, if somebody has added them up.
    pub bytes: Option<u64>,
    /// Packets that left a pair of nodes behind the first one.
    pub left: Mask,
    /// The number of the pass: state that was read in the same pass still holds.
    pub pass: u64,
    /// What to ask for ahead.
    pub ahead: Ahead,
    /// The vector goes node by node.
    pub is_alone: bool,
}

/// Which lines of the packets further on a kernel asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// None: an earlier kernel has asked for them.
    Nothing,
    /// The first line.
    First,
    /// The first two.
    Both,
}

impl Ahead {
    /// Ask for the lines of the first few of these packets.
    #[inline(always)]
    pub fn ask(self, packets: &[Packet]) {
        match self {
            Ahead::Nothing => {}
            Ahead::First => packets.iter().take(PREFETCH_AHEAD).for_each(Packet::prefetch),
            Ahead::Both => {
                for packet in packets.iter().take(PREFETCH_AHEAD) {
                    packet.prefetch();
                    packet.prefetch_second();
                }
            }
        }
    }
}

impl Block<'_> {
    /// Are all packets of the block live?
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.live == first_places(self.count)
    }

    /// Packets that a wire would have carried beyond the live ones, in a vector that goes node by
    /// node: others hold no super-frames.
    #[inline(always)]
    pub fn more_packets_on_wire(&self) -> u64 {
        match self.is_alone {
            true => more_on_wire(places(self.live).filter_map(|place| self.packets.get(place))).0,
            false => 0,
        }
    }

    /// The first live packet.
    #[inline(always)]
    pub fn first(&self) -> Option<&Packet> {
        self.packets.get(self.live.trailing_zeros() as usize)
    }

    /// Live packets.
    #[inline(always)]
    pub fn live_count(&self) -> u64 {
        u64::from(self.live.count_ones())
    }

    /// The live packets have changed: nothing is known of their lengths and indices, and whether
    /// `onward` is where all of them came in is said.
    #[inline(always)]
    pub fn came_in_by(&mut self, onward: InterfaceId, is_known: bool) {
        (self.rx, self.is_rx_known) = (onward, is_known);
        (self.bytes, self.is_same_index) = (None, false);
    }
}

/// A mask of the first `count` places.
#[inline(always)]
pub(crate) fn first_places(count: usize) -> Mask {
    if count >= BLOCK_PACKETS { Mask::MAX } else { (1 << count) - 1 }
}

/// The places in a mask.
#[inline(always)]
pub(crate) fn places(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (place < BLOCK_PACKETS).then_some(place)
    })
}

/// State of one interface, read once per pass and interface.
pub(crate) struct PerInterface<C> {
    pass: u64,
    rx: InterfaceId,
    state: Option<C>,
}

impl<C: Copy> PerInterface<C> {
    pub fn new() -> Self {
        PerInterface { pass: 0, rx: InterfaceId::NONE, state: None }
    }

    /// It holds no longer.
    #[inline(always)]
    pub fn forget(&mut self) {
        self.state = None;
    }

    /// The state of the interface, read anew by `read` if this pass has not read it.
    #[inline(always)]
    pub fn get(&mut self, pass: u64, rx: InterfaceId, read: impl FnOnce() -> C) -> C {
        match self.state {
            Some(state) if self.pass == pass && self.rx == rx => state,
            _ => {
                let state = read();
                *self = PerInterface { pass, rx, state: Some(state) };
                state
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn masks_and_their_places() {
        assert_eq!([0, 1, 127, 128].map(first_places), [0, 1, Mask::MAX >> 1, Mask::MAX]);
        assert_eq!(places(0).count(), 0);
        assert_eq!(places(0b1010_0001 | 1 << 63).collect::<Vec<_>>(), [0, 5, 7, 63]);
    }

    #[test]
    fn the_state_of_an_interface_is_read_once_in_a_pass() {
        let mut state = PerInterface::new();
        let mut reads = 0;
        for (pass, rx) in [(1, 7), (1, 7), (1, 8), (2, 8), (2, 8)] {
            let read = state.get(pass, InterfaceId(rx), || {
                reads += 1;
                (pass, rx)
            });
            assert_eq!(read, (pass, rx));
        }
        assert_eq!(reads, 3);
    }
}
