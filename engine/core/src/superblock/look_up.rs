//! Superblocks with one look-up: its table is asked for a block of packets at a time.

use std::sync::Arc;

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

/// Stages, a look-up for a block of packets, and what comes last.
struct WithLookUp<H, L: LookUp, T> {
    head: H,
    look_up: L,
    tail: T,
    ids: Ids,
    /// A block's keys, and what was found for them.
    keys: Box<[L::Key; BLOCK]>,
    found: Box<[L::Found; BLOCK]>,
    exits: Exits,
}

impl<H: Stages, L: LookUp, T: Tail> WithLookUp<H, L, T> {
    const LOOK_UP: usize = H::NAMES.len();
    const TAIL: usize = Self::LOOK_UP + 1;
    const COUNT: usize = Self::TAIL + T::NAMES.len();
}

/// The lines of a packet that are looked at.
#[inline(always)]
fn ask_for<T: Tail>(packet: &Packet) {
    packet.prefetch();
    if T::LOOKS_BEHIND {
        packet.prefetch_second();
    }
}

/// One pass over a vector.
struct Pass<'a, H: Stages, L: LookUp, T: Tail> {
    block: &'a mut WithLookUp<H, L, T>,
    tally: Tally<'a>,
    variant: Variant,
    head: H::Common,
    ways: &'a Ways,
    look_up: L::Common,
    tail: T::Common,
    frame: &'a mut Frame,
}

impl<H: Stages, L: LookUp, T: Tail> Body for Pass<'_, H, L, T> {
    type Answer = Sums;

    #[inline(always)]
    fn run(mut self) -> Sums {
        let mut sums = Sums::default();
        let packets = self.frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(ask_for::<T>);
        let blocks = packets.len().div_ceil(BLOCK);
        for block in 0..blocks {
            self.check(block, &mut sums.sorted);
            sums.bytes += self.finish(block);
        }
        sums
    }
}

impl<H: Stages, L: LookUp, T: Tail> Pass<'_, H, L, T> {
    /// Check a block's packets, and collect their keys.
    #[inline(always)]
    fn check(&mut self, block: usize, sorted: &mut Sorted) {
        let WithLookUp { head, look_up, ids, keys, exits, .. } = &mut *self.block;
        let ids = *ids;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let (mut rest, mut index, mut left) = (&mut packets[begin..], 0, 0);
        for keys in keys.chunks_exact_mut(PREFETCH_AHEAD) {
            let (now, later) = rest.split_at_mut(rest.len().min(PREFETCH_AHEAD));
            later.iter().take(PREFETCH_AHEAD).for_each(ask_for::<T>);
            for (packet, key) in now.iter_mut().zip(keys) {
                let common = (self.tally, self.head);
                *key = match decide_and_sort(head, common, &ids, self.ways, packet, sorted) {
                    Ok(()) => look_up.key(self.look_up, packet),
                    Err(exit) => {
                        next[begin + index] = exit.next;
                        exits.places[begin + index] = exit.place as u8;
                        left |= 1 << index;
                        L::Key::default()
                    }
                };
                index += 1;
            }
            rest = later;
        }
        exits.marks.set_word(block, left);
    }

    /// Look a block up, and finish with its packets. Returns the bytes in the first segments of those
    /// that went all the way.
    #[inline(always)]
    fn finish(&mut self, block: usize) -> u64 {
        let WithLookUp { look_up, tail, ids, keys, found, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let keys = &keys[..count];
        match T::ALIKE {
            true => look_up.find_alike(self.variant, self.look_up, keys, &mut found[..count]),
            false => look_up.find(self.variant, self.look_up, keys, &mut found[..count]),
        }
        let places = &mut exits.places[begin..begin + count];
        let mut packets =
            Block { packets: &mut packets[begin..begin + count], next: &mut next[begin..], places };
        let place = WithLookUp::<H, L, T>::LOOK_UP;
        let (look_up, answers) = ((&*look_up, self.look_up), (keys, &found[..count]));
        let left = exits.marks.word(block);
        let ahead = |packet: &Packet| tail.ahead(packet);
        let left = match T::ALIKE {
            true => packets.judge_all(look_up, self.tally, (ids, place), answers, left, ahead),
            false => (packets.judge(look_up, self.tally, (ids, place), answers, left, ahead), false),
        };
        let (left, bytes) = packets.finish((tail, self.tail), self.tally, (ids, place + 1), left);
        exits.marks.set_word(block, left);
        bytes
    }
}

impl<H: Stages, L: LookUp, T: Tail> Superblock for WithLookUp<H, L, T> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        shares.take_turn(frame)?;
        let rx = ways[Self::LOOK_UP];
        let (look_up, tail) = (self.look_up.common(cx, rx), self.tail.common(cx, rx));
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let pass = Pass { block: self, tally, variant, head, ways: &ways, look_up, tail, frame: &mut *frame };
        let sums = variant.run(pass);
        self.look_up.end();
        sums.sorted.count(tally, ways[0], rx);
        let Self { head, tail, exits, ids, .. } = self;
        Ok(go_on(cx, exits, (ids, Self::COUNT, T::SORTS), (frame, sums.bytes), |cx, arrived| {
            head.arrived(cx, &ways, arrived);
            tail.arrived(cx, rx, &arrived[Self::TAIL..]);
        }))
    }
}

impl SuperblockSpec {
    /// Stages, then a look-up, then a last stage or two; and the output of the interface that the packets
    /// leave by. The types are those with which the nodes were declared.
    pub fn with_look_up<H: Stages, L: LookUp, T: Tail>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().chain([&L::NAME]).chain(T::NAMES).copied().collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(WithLookUp::<H, L, T> {
                head: H::make(makers),
                look_up: makers.make(L::NAME),
                tail: T::make(makers),
                ids,
                keys: Box::new([L::Key::default(); BLOCK]),
                found: Box::new([L::Found::default(); BLOCK]),
                exits: Exits::new(),
            })
        };
        SuperblockSpec { names, make: Arc::new(make) }
    }
}
