//! A [`LookUp`] as a kernel: the keys of a block are looked up together.

use crate::cpu::{Body, Variant, clocks};
use crate::graph::context::Context;
use crate::graph::frame::next_or_drop;
use crate::graph::stage::{LookUp, StageContext};
use crate::ids::NodeId;

use super::kernel::{Block, Facts, Kernel, PerInterface, places};
use super::{BLOCK_PACKETS, ENTRIES_AHEAD, SOON_AHEAD};

/// The highest value of [`Worth`].
const WORTH_MAX: u8 = 8;
/// A success counts for so many failures.
const WORTH_GAIN: u8 = 4;
/// Blocks after which the uniform look-up is tried again.
const BLOCKS_PER_TRIAL: u8 = 32;

/// Is it worth trying to resolve a block at once? Learned from the last blocks.
struct Worth {
    value: u8,
    blocks: u8,
}

impl Worth {
    fn new() -> Worth {
        Worth { value: WORTH_MAX, blocks: 0 }
    }

    /// Shall the next block be tried?
    #[inline(always)]
    fn is_likely(&mut self) -> bool {
        if self.value > 0 {
            return true;
        }
        self.blocks += 1;
        if self.blocks < BLOCKS_PER_TRIAL {
            return false;
        }
        self.blocks = 0;
        true
    }

    /// A block was tried.
    #[inline(always)]
    fn note(&mut self, was_uniform: bool) {
        self.value = match was_uniform {
            true => (self.value + WORTH_GAIN).min(WORTH_MAX),
            false => self.value.saturating_sub(1),
        };
    }
}

/// Blocks after which both ways to look keys up are measured once. No multiple of the blocks of a
/// vector, so that neither way is measured on its first block alone, which finds nothing in the
/// cache.
const BLOCKS_PER_MEASUREMENT: u8 = 61;

/// Which way to look keys up is faster: each for itself, or those that are alike once? The faster
/// one is used, and the other one is measured now and then.
struct Choice {
    /// Clocks of a block, smoothed: each key for itself, and alike ones once.
    clocks: [u64; 2],
    blocks: u8,
}

impl Choice {
    fn new() -> Choice {
        Choice { clocks: [0; 2], blocks: 0 }
    }

    /// A block begins.
    #[inline(always)]
    fn begin(&mut self) {
        self.blocks = (self.blocks + 1) % BLOCKS_PER_MEASUREMENT;
    }

    /// Is this block measured?
    #[inline(always)]
    fn is_due(&self) -> bool {
        self.blocks < 2
    }

    /// Shall alike keys of this block be looked up once?
    #[inline(always)]
    fn is_alike_better(&self) -> bool {
        if self.is_due() { self.blocks == 1 } else { self.clocks[1] <= self.clocks[0] }
    }

    /// The block that is measured took so many clocks.
    fn note(&mut self, clocks: u64) {
        let smoothed = &mut self.clocks[usize::from(self.blocks == 1)];
        // A block during which the core was taken away must not count for much.
        *smoothed =
            if *smoothed == 0 { clocks } else { (*smoothed * 3 + clocks.min(*smoothed * 4)) / 4 };
    }
}

/// A look-up, its state, and room for a block.
pub(crate) struct LookUpKernel<L: LookUp> {
    look_up: L,
    state: PerInterface<L::InterfaceState>,
    worth: Worth,
    choice: Choice,
    keys: [L::Key; BLOCK_PACKETS],
    found: [L::Found; BLOCK_PACKETS],
}

impl<L: LookUp> LookUpKernel<L> {
    pub fn new(look_up: L) -> Self {
        LookUpKernel {
            look_up,
            state: PerInterface::new(),
            worth: Worth::new(),
            choice: Choice::new(),
            keys: [L::Key::default(); BLOCK_PACKETS],
            found: [L::Found::default(); BLOCK_PACKETS],
        }
    }
}

/// All packets of a block.
struct WholeBlock<'a, 'f, L: LookUp> {
    look_up: &'a L,
    state: L::InterfaceState,
    keys: &'a mut [L::Key; BLOCK_PACKETS],
    found: &'a mut [L::Found; BLOCK_PACKETS],
    is_likely_uniform: bool,
    choice: &'a mut Choice,
    context: StageContext<'a>,
    variant: Variant,
    block: &'a mut Block<'f>,
}

impl<L: LookUp> Body for WholeBlock<'_, '_, L> {
    /// Where all packets go, if one decision was made for all.
    type Answer = Option<NodeId>;

    #[inline(always)]
    fn run(self) -> Self::Answer {
        let WholeBlock { look_up, state, block, .. } = self;
        let is_same_index = block.is_same_index;
        let count = block.count.min(block.packets.len()).min(BLOCK_PACKETS);
        let (packets, next) = (&mut block.packets[..count], &mut block.next[..count]);
        let (keys, found) = (&mut self.keys[..count], &mut self.found[..count]);
        if self.is_likely_uniform {
            let all = look_up.decide_all(self.context, state, packets);
            if all.is_some() {
                return all;
            }
        }
        if is_same_index {
            packets.iter().take(1).for_each(|packet| look_up.ahead(packet));
            look_up.keys(state, packets, keys);
        } else {
            packets.iter().take(ENTRIES_AHEAD).for_each(|packet| look_up.ahead(packet));
            let mut rest = &mut *packets;
            for keys in keys.chunks_mut(SOON_AHEAD) {
                let (now, later) = rest.split_at_mut(keys.len().min(rest.len()));
                let ahead = later.iter().skip(ENTRIES_AHEAD - SOON_AHEAD).take(SOON_AHEAD);
                ahead.for_each(|packet| look_up.ahead(packet));
                for (packet, key) in now.iter_mut().zip(keys) {
                    *key = look_up.key(state, packet);
                }
                rest = later;
            }
        }
        let start = if self.choice.is_due() { clocks() } else { 0 };
        if self.choice.is_alike_better() {
            look_up.find_uniform_in(self.context, self.variant, state, keys, found);
        } else {
            look_up.find_in(self.context, self.variant, state, keys, found);
        }
        if self.choice.is_due() {
            self.choice.note(clocks() - start);
        }
        if self.is_likely_uniform {
            let all = look_up.resolve_all(self.context, state, found, packets);
            if all.is_some() {
                return all;
            }
        }
        let answers = keys.iter().zip(found.iter());
        for ((packet, next), (key, found)) in packets.iter_mut().zip(next).zip(answers) {
            *next =
                next_or_drop(look_up.resolve(self.context, state, *key, *found, packet), packet);
        }
        None
    }
}

/// Some packets of a block. Their keys stand together.
#[inline(never)]
fn run_some<L: LookUp>(whole: WholeBlock<'_, '_, L>) {
    let WholeBlock { look_up, state, keys, found, context, variant, block, .. } = whole;
    let (live, packets, next) = (block.live, &mut *block.packets, &mut *block.next);
    places(live).for_each(|place| look_up.ahead(&packets[place]));
    let mut count = 0;
    for (place, key) in places(live).zip(keys.iter_mut()) {
        *key = look_up.key(state, &mut packets[place]);
        count += 1;
    }
    look_up.find_in(context, variant, state, &keys[..count], &mut found[..count]);
    for (place, (key, found)) in places(live).zip(keys.iter().zip(found.iter())) {
        let packet = &mut packets[place];
        next[place % BLOCK_PACKETS] =
            next_or_drop(look_up.resolve(context, state, *key, *found, packet), packet);
    }
}

impl<L: LookUp> Kernel for LookUpKernel<L> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let rx = block.rx;
        let LookUpKernel { look_up, state, worth, choice, keys, found } = self;
        let state = state.get(block.pass, rx, || look_up.interface_state(cx, rx));
        let (context, variant, is_full) = (StageContext::new(cx), cx.variant, block.is_full());
        let is_likely_uniform = is_full && worth.is_likely();
        if is_full {
            choice.begin();
        }
        let whole = WholeBlock {
            look_up: &*look_up,
            state,
            keys,
            found,
            is_likely_uniform,
            choice,
            context,
            variant,
            block: &mut *block,
        };
        let all = if is_full {
            variant.run(whole)
        } else {
            run_some(whole);
            None
        };
        if is_likely_uniform {
            worth.note(all.is_some());
        }
        block.came_in_by(rx, !L::SORTS);
        if all.is_some()
            && let Some(first) = block.first()
        {
            (block.rx, block.is_rx_known, block.is_same_index) = (first.rx, true, true);
        }
        all
    }

    fn end(&mut self) {
        self.look_up.end();
    }

    fn facts(&self) -> Facts {
        Facts { looks_behind: L::LOOKS_BEHIND, ..Facts::default() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_chosen_and_the_other_one_measured_again() {
        let mut choice = Choice::new();
        for (alike, each) in [(100, 300), (500, 200)] {
            let mut chosen = 0;
            for _ in 0..40 * u32::from(BLOCKS_PER_MEASUREMENT) {
                choice.begin();
                if choice.is_due() {
                    choice.note(if choice.is_alike_better() { alike } else { each });
                } else if choice.is_alike_better() {
                    chosen += 1;
                }
            }
            assert_eq!(chosen > 20 * u32::from(BLOCKS_PER_MEASUREMENT), alike < each);
        }
    }

    #[test]
    fn blocks_that_differ_are_tried_now_and_then() {
        let mut worth = Worth::new();
        let mut tried = 0;
        for _ in 0..u32::from(WORTH_MAX) + 3 * u32::from(BLOCKS_PER_TRIAL) {
            if worth.is_likely() {
                tried += 1;
                worth.note(false);
            }
        }
        assert_eq!(tried, u32::from(WORTH_MAX) + 3);
        while !worth.is_likely() {}
        worth.note(true);
        assert!((0..WORTH_GAIN).all(|_| worth.is_likely()), "one success leads to the next trials");
    }
}
