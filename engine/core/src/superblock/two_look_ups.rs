//! Superblocks with two look-ups one behind the other, where what the first one finds leads to what the second
//! one asks: segments, inner packets. Each asks its own table for a block of packets at a time.

use crate::context::Context;
use crate::cpu::{Body, Variant};
use crate::frame::{Frame, PREFETCH_AHEAD};
use crate::packet::Packet;
use crate::shares::Shares;
use crate::stage::{LookUp, Sorted, Tally};

use super::behind::go_on;
use super::{
    BLOCK, Block, Declined, Exits, Ids, Makers, Passed, STAGES_MAX, Stages, Sums, Superblock, SuperblockSpec,
    Tail, Ways, decide_and_sort,
};

/// The keys of a block, and what was found for them.
struct Answers<L: LookUp> {
    keys: Box<[L::Key; BLOCK]>,
    found: Box<[L::Found; BLOCK]>,
}

impl<L: LookUp> Answers<L> {
    fn new() -> Self {
        let (keys, found) = ([L::Key::default(); BLOCK], [L::Found::default(); BLOCK]);
        Answers { keys: Box::new(keys), found: Box::new(found) }
    }
}

/// Stages, a look-up, another one, and what comes last.
struct TwoLookUps<H, A: LookUp, B: LookUp, T> {
    head: H,
    first: A,
    second: B,
    tail: T,
    ids: Ids,
    asked_first: Answers<A>,
    asked_second: Answers<B>,
    exits: Exits,
}

impl<H: Stages, A: LookUp, B: LookUp, T: Tail> TwoLookUps<H, A, B, T> {
    const FIRST: usize = H::NAMES.len();
    const SECOND: usize = Self::FIRST + 1;
    const TAIL: usize = Self::FIRST + 2;
    const COUNT: usize = Self::TAIL + T::NAMES.len();
}

/// What holds for the packets of a vector.
struct Commons<H: Stages, A: LookUp, B: LookUp, T: Tail> {
    head: H::Common,
    first: A::Common,
    second: B::Common,
    tail: T::Common,
}

/// The first lines of a packet, for the second look-up is asked about what stands behind the first header.
#[inline(always)]
fn ask_for(packet: &Packet) {
    packet.prefetch();
    packet.prefetch_second();
}

/// One pass over a vector.
struct Pass<'a, H: Stages, A: LookUp, B: LookUp, T: Tail> {
    block: &'a mut TwoLookUps<H, A, B, T>,
    tally: Tally<'a>,
    variant: Variant,
    ways: &'a Ways,
    commons: Commons<H, A, B, T>,
    frame: &'a mut Frame,
}

impl<H: Stages, A: LookUp, B: LookUp, T: Tail> Body for Pass<'_, H, A, B, T> {
    type Answer = Sums;

    #[inline(always)]
    fn run(mut self) -> Sums {
        let mut sums = Sums::default();
        let packets = self.frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(ask_for);
        for block in 0..packets.len().div_ceil(BLOCK) {
            let left = self.check(block, &mut sums.sorted);
            let left = self.first(block, left);
            let (left, bytes) = self.second(block, left);
            self.block.exits.marks.set_word(block, left);
            sums.bytes += bytes;
        }
        sums
    }
}

impl<H: Stages, A: LookUp, B: LookUp, T: Tail> Pass<'_, H, A, B, T> {
    /// Check a block's packets, and collect what the first look-up is asked. Returns the marks of those that
    /// left.
    #[inline(always)]
    fn check(&mut self, block: usize, sorted: &mut Sorted) -> u64 {
        let TwoLookUps { head, first, ids, asked_first, exits, .. } = &mut *self.block;
        let ids = *ids;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let (mut rest, mut index, mut left) = (&mut packets[begin..], 0, 0);
        for keys in asked_first.keys.chunks_exact_mut(PREFETCH_AHEAD) {
            let (now, later) = rest.split_at_mut(rest.len().min(PREFETCH_AHEAD));
            later.iter().take(PREFETCH_AHEAD).for_each(ask_for);
            for (packet, key) in now.iter_mut().zip(keys) {
                let common = (self.tally, self.commons.head);
                *key = match decide_and_sort(head, common, &ids, self.ways, packet, sorted) {
                    Ok(()) => first.key(self.commons.first, packet),
                    Err(exit) => {
                        next[begin + index] = exit.next;
                        exits.places[begin + index] = exit.place as u8;
                        left |= 1 << index;
                        A::Key::default()
                    }
                };
                index += 1;
            }
            rest = later;
        }
        left
    }

    /// Ask the first look-up, and collect what the second one is asked.
    #[inline(always)]
    fn first(&mut self, block: usize, mut left: u64) -> u64 {
        let TwoLookUps { first, second, ids, asked_first, asked_second, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let Answers { keys, found } = asked_first;
        first.find_alike(self.variant, self.commons.first, &keys[..count], &mut found[..count]);
        let place = TwoLookUps::<H, A, B, T>::FIRST;
        let places = &mut exits.places[begin..begin + count];
        let mut packets =
            Block { packets: &mut packets[begin..begin + count], next: &mut next[begin..], places };
        let answers = (&keys[..count], &found[..count]);
        let asks = |packet: &Packet| second.ahead(packet);
        let alike;
        (left, alike) =
            packets.judge_all((first, self.commons.first), self.tally, (ids, place), answers, left, asks);
        if alike & (left == 0) {
            second.keys(self.commons.second, packets.packets, &mut asked_second.keys[..]);
            return left;
        }
        let all = packets.packets.iter_mut().zip(&mut *asked_second.keys);
        if left == 0 {
            // As a loop: a closure would not be compiled for the variant.
            for (packet, key) in all {
                *key = second.key(self.commons.second, packet);
            }
        } else {
            for (index, (packet, key)) in all.enumerate() {
                *key = match left >> index & 1 {
                    0 => second.key(self.commons.second, packet),
                    _ => B::Key::default(),
                };
            }
        }
        left
    }

    /// Ask the second look-up, and finish with the packets. Returns the bytes in the first segments of those
    /// that went all the way, too.
    #[inline(always)]
    fn second(&mut self, block: usize, left: u64) -> (u64, u64) {
        let TwoLookUps { second, tail, ids, asked_second, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let Answers { keys, found } = asked_second;
        second.find_alike(self.variant, self.commons.second, &keys[..count], &mut found[..count]);
        let place = TwoLookUps::<H, A, B, T>::SECOND;
        let places = &mut exits.places[begin..begin + count];
        let mut packets =
            Block { packets: &mut packets[begin..begin + count], next: &mut next[begin..], places };
        let answers = (&keys[..count], &found[..count]);
        let asks = |packet: &Packet| tail.ahead(packet);
        let left =
            packets.judge_all((second, self.commons.second), self.tally, (ids, place), answers, left, asks);
        packets.finish((tail, self.commons.tail), self.tally, (ids, place + 1), left)
    }
}

impl<H: Stages, A: LookUp, B: LookUp, T: Tail> Superblock for TwoLookUps<H, A, B, T> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        shares.take_turn(frame)?;
        let rx = ways[Self::FIRST];
        let (first, second) = (self.first.common(cx, rx), self.second.common(cx, rx));
        let commons = Commons { head, first, second, tail: self.tail.common(cx, rx) };
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let pass = Pass { block: self, tally, variant, ways: &ways, commons, frame: &mut *frame };
        let sums = variant.run(pass);
        self.first.end();
        self.second.end();
        sums.sorted.count(tally, ways[0], rx);
        let Self { head, tail, exits, ids, .. } = self;
        Ok(go_on(cx, exits, (ids, Self::COUNT, T::SORTS), (frame, sums.bytes), |cx, arrived| {
            head.arrived(cx, &ways, arrived);
            tail.arrived(cx, rx, &arrived[Self::TAIL..]);
        }))
    }
}

impl SuperblockSpec {
    /// Stages, then a look-up, then another one that asks what follows from the first, then a last stage or
    /// two; and the output of the interface that the packets leave by. The types are those with which the nodes
    /// were declared.
    pub fn with_two_look_ups<H: Stages, A: LookUp, B: LookUp, T: Tail>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().chain([&A::NAME, &B::NAME]).chain(T::NAMES).copied().collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(TwoLookUps::<H, A, B, T> {
                head: H::make(makers),
                first: makers.make(A::NAME),
                second: makers.make(B::NAME),
                tail: T::make(makers),
                ids,
                asked_first: Answers::new(),
                asked_second: Answers::new(),
                exits: Exits::new(),
            })
        };
        SuperblockSpec { names, make: std::sync::Arc::new(make) }
    }
}
