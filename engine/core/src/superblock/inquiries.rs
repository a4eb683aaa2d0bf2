//! Superblocks that end with one or two inquiries ([`Inquiry`]): their keys are looked up together.

use crate::context::Context;
use crate::cpu::{Body, Variant};
use crate::frame::{Frame, PREFETCH_AHEAD, settle};
use crate::ids::{InterfaceId, NodeId};
use crate::packet::Packet;
use crate::shares::Shares;
use crate::stage::{Inquiry, Tally};

use super::{
    BLOCK, Declined, Exit, Exits, Ids, Makers, OUTPUTS_MAX, Passed, STAGES_MAX, Stages, Superblock,
    SuperblockSpec, Ways, carry_out, count_arrived, last_of,
};

/// Inquiries in one chain at most.
const INQUIRIES_MAX: usize = 2;

/// One inquiry, or two that ask the same table, the first leading to the second: a tuple.
pub trait Inquiries: Sized + Send + 'static {
    /// The inquiries' own, in a tuple.
    type Common: Copy;
    #[doc(hidden)]
    type Key: Copy + Default + Send;
    #[doc(hidden)]
    type Found: Copy + Default + Send;
    /// The nodes' names.
    const NAMES: &'static [&'static str];
    #[doc(hidden)]
    fn make(makers: &Makers<'_>) -> Self;
    #[doc(hidden)]
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common;
    /// Each inquiry's keys stand `stride` apart.
    #[doc(hidden)]
    fn keys(&self, common: Self::Common, packet: &Packet, keys: &mut [Self::Key], at: usize, stride: usize);
    #[doc(hidden)]
    fn find(&self, variant: Variant, keys: &[Self::Key], found: &mut [Self::Found]);
    /// Where the packet goes behind the last one. `ids` are theirs, and those before them are `before`.
    #[doc(hidden)]
    fn settle(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        places: Places<'_>,
        found: Found<'_, Self::Found>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit>;
    #[doc(hidden)]
    fn end(&self);
}

/// Where the inquiries stand in the chain.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Places<'a> {
    ids: &'a Ids,
    first: usize,
}

/// What was found for one packet: at `at` for the first inquiry, `stride` farther on for the second.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Found<'a, F> {
    all: &'a [F],
    at: usize,
    stride: usize,
}

impl<F: Copy + Default> Found<'_, F> {
    #[inline(always)]
    fn of(self, inquiry: usize) -> F {
        self.all.get(self.at + inquiry * self.stride).copied().unwrap_or_default()
    }
}

impl<A: Inquiry> Inquiries for (A,) {
    type Common = A::Common;
    type Key = A::Key;
    type Found = A::Found;
    const NAMES: &'static [&'static str] = &[A::NAME];

    fn make(makers: &Makers<'_>) -> Self {
        (makers.make::<A>(A::NAME),)
    }

    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> A::Common {
        self.0.common(cx, rx)
    }

    #[inline(always)]
    fn keys(&self, common: A::Common, packet: &Packet, keys: &mut [A::Key], at: usize, _: usize) {
        keys[at] = self.0.key(common, packet);
    }

    #[inline(always)]
    fn find(&self, variant: Variant, keys: &[A::Key], found: &mut [A::Found]) {
        self.0.find(variant, keys, found);
    }

    #[inline(always)]
    fn settle(
        &self,
        tally: Tally<'_>,
        common: A::Common,
        places: Places<'_>,
        found: Found<'_, A::Found>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit> {
        let tally = tally.of(places.ids[places.first]);
        Ok(settle(self.0.settle(tally, common, found.of(0), packet), packet))
    }

    #[inline(always)]
    fn end(&self) {
        self.0.end();
    }
}

impl<A: Inquiry, B: Inquiry<Key = A::Key, Found = A::Found>> Inquiries for (A, B) {
    type Common = (A::Common, B::Common);
    type Key = A::Key;
    type Found = A::Found;
    const NAMES: &'static [&'static str] = &[A::NAME, B::NAME];

    fn make(makers: &Makers<'_>) -> Self {
        (makers.make::<A>(A::NAME), makers.make::<B>(B::NAME))
    }

    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common {
        (self.0.common(cx, rx), self.1.common(cx, rx))
    }

    #[inline(always)]
    fn keys(&self, common: Self::Common, packet: &Packet, keys: &mut [A::Key], at: usize, stride: usize) {
        keys[at] = self.0.key(common.0, packet);
        keys[at + stride] = self.1.key(common.1, packet);
    }

    #[inline(always)]
    fn find(&self, variant: Variant, keys: &[A::Key], found: &mut [A::Found]) {
        self.0.find(variant, keys, found);
    }

    #[inline(always)]
    fn settle(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        places: Places<'_>,
        found: Found<'_, A::Found>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit> {
        let Places { ids, first } = places;
        let next = self.0.settle(tally.of(ids[first]), common.0, found.of(0), packet);
        let next = settle(next, packet);
        if next != ids[first + 1] {
            return Err(Exit { place: first, next });
        }
        let next = self.1.settle(tally.of(ids[first + 1]), common.1, found.of(1), packet);
        Ok(settle(next, packet))
    }

    #[inline(always)]
    fn end(&self) {
        self.0.end();
        self.1.end();
    }
}

/// Stages, and inquiries behind them.
struct WithInquiries<H, I: Inquiries> {
    head: H,
    inquiries: I,
    ids: Ids,
    /// A block's keys, and what was found for them.
    keys: Box<[I::Key; INQUIRIES_MAX * BLOCK]>,
    found: Box<[I::Found; INQUIRIES_MAX * BLOCK]>,
    exits: Exits,
}

impl<H: Stages, I: Inquiries> WithInquiries<H, I> {
    const FIRST: usize = H::NAMES.len();
    const LAST: usize = Self::FIRST + I::NAMES.len() - 1;
}

/// One pass over a vector.
struct Pass<'a, H: Stages, I: Inquiries> {
    block: &'a mut WithInquiries<H, I>,
    tally: Tally<'a>,
    variant: Variant,
    head: H::Common,
    ways: &'a Ways,
    common: I::Common,
    frame: &'a mut Frame,
}

impl<H: Stages, I: Inquiries> Body for Pass<'_, H, I> {
    /// Bytes in the first segments of the packets that went all the way.
    type Answer = u64;

    #[inline(always)]
    fn run(mut self) -> u64 {
        let mut bytes = 0;
        let packets = self.frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(Packet::prefetch);
        for block in 0..packets.len().div_ceil(BLOCK) {
            self.check(block);
            bytes += self.finish(block);
        }
        bytes
    }
}

impl<H: Stages, I: Inquiries> Pass<'_, H, I> {
    /// Check a block's packets, and collect their keys.
    #[inline(always)]
    fn check(&mut self, block: usize) {
        let WithInquiries { head, inquiries, ids, keys, exits, .. } = &mut *self.block;
        let ids = *ids;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let mut left = 0;
        for index in 0..count {
            if let Some(ahead) = packets.get(begin + index + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let packet = &mut packets[begin + index];
            match head.decide(self.tally, self.head, &ids, self.ways, packet) {
                Ok(()) => inquiries.keys(self.common, packet, &mut keys[..], index, count),
                Err(exit) => {
                    next[begin + index] = exit.next;
                    exits.places[begin + index] = exit.place as u8;
                    left |= 1 << index;
                    for inquiry in 0..I::NAMES.len() {
                        keys[index + inquiry * count] = I::Key::default();
                    }
                }
            }
        }
        exits.marks.set_word(block, left);
    }

    /// Look a block up, and judge its packets. Returns the bytes in the first segments of those that went
    /// all the way.
    #[inline(always)]
    fn finish(&mut self, block: usize) -> u64 {
        let WithInquiries { inquiries, ids, keys, found, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let asked = I::NAMES.len() * count;
        inquiries.find(self.variant, &keys[..asked], &mut found[..asked]);
        let places = Places { ids, first: WithInquiries::<H, I>::FIRST };
        let mut bytes = 0;
        let mut left = exits.marks.word(block);
        for (index, (packet, next)) in
            packets[begin..begin + count].iter_mut().zip(&mut next[begin..begin + count]).enumerate()
        {
            if left >> index & 1 != 0 {
                continue;
            }
            let found = Found { all: &found[..], at: index, stride: count };
            match inquiries.settle(self.tally, self.common, places, found, packet) {
                Ok(to) => {
                    *next = to;
                    bytes += packet.segment_length() as u64;
                }
                Err(exit) => {
                    *next = exit.next;
                    exits.places[begin + index] = exit.place as u8;
                    left |= 1 << index;
                }
            }
        }
        exits.marks.set_word(block, left);
        bytes
    }
}

impl<H: Stages, I: Inquiries> Superblock for WithInquiries<H, I> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        shares.take_turn(frame)?;
        let ways = &ways;
        let common = self.inquiries.common(cx, ways[Self::FIRST]);
        let count = frame.len();
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let bytes = variant.run(Pass { block: self, tally, variant, head, ways, common, frame: &mut *frame });
        self.inquiries.end();
        let left = if self.exits.marks.any() { self.exits.count() } else { [0; STAGES_MAX] };
        let arrived = count_arrived(count, &left, Self::LAST + 1);
        self.head.arrived(cx, ways, &arrived);
        if self.exits.marks.any() {
            self.exits.send(cx, &self.ids, frame);
        }
        let mostly_left = frame.len() * 2 < count;
        let tx = frame.packets().first().map(|packet| packet.tx);
        let outputs = tx.map_or([None; OUTPUTS_MAX], |tx| carry_out(cx, tx, bytes, frame));
        let from = last_of(&outputs).unwrap_or(self.ids[Self::LAST]);
        Ok(Passed { arrived, from, outputs, mostly_left })
    }
}

impl SuperblockSpec {
    /// Stages, then one inquiry or two; and the output of the interface that the packets leave by. The
    /// types are those with which the nodes were declared. Two inquiries ask the same table: the first is
    /// asked for the keys of both.
    pub fn with_inquiries<H: Stages, I: Inquiries>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().chain(I::NAMES).copied().collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(WithInquiries::<H, I> {
                head: H::make(makers),
                inquiries: I::make(makers),
                ids,
                keys: Box::new([I::Key::default(); INQUIRIES_MAX * BLOCK]),
                found: Box::new([I::Found::default(); INQUIRIES_MAX * BLOCK]),
                exits: Exits::new(),
            })
        };
        SuperblockSpec { names, make: std::sync::Arc::new(make) }
    }
}
