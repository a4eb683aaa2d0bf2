//! Superblocks that end with one or two look-ups ([`LookUp`]): their keys are looked up together.

use crate::context::Context;
use crate::cpu::{Body, Variant};
use crate::frame::{Frame, PREFETCH_AHEAD, settle};
use crate::ids::{InterfaceId, NodeId};
use crate::packet::Packet;
use crate::shares::Shares;
use crate::stage::{LookUp, Sorted, Tally};

use super::behind::go_on;
use super::{
    BLOCK, Declined, Exit, Exits, Ids, Makers, Passed, STAGES_MAX, Stages, Sums, Superblock, SuperblockSpec,
    Ways, decide_and_sort,
};

/// Look-ups in one chain at most.
const LOOK_UPS_MAX: usize = 2;

/// One look-up, or two that ask the same table, the first leading to the second: a tuple.
pub trait LookUps: Sized + Send + 'static {
    /// The look-ups' own, in a tuple.
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
    /// Each look-up's keys stand `stride` apart.
    #[doc(hidden)]
    fn keys(
        &self,
        common: Self::Common,
        packet: &mut Packet,
        keys: &mut [Self::Key],
        at: usize,
        stride: usize,
    );
    #[doc(hidden)]
    fn find(&self, variant: Variant, common: Self::Common, keys: &[Self::Key], found: &mut [Self::Found]);
    /// Where the packet goes behind the last one. `ids` are theirs, and those before them are `before`.
    #[doc(hidden)]
    fn settle(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        places: Places<'_>,
        answers: Answers<'_, Self::Key, Self::Found>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit>;
    #[doc(hidden)]
    fn end(&self);
}

/// Where the look-ups stand in the chain.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Places<'a> {
    ids: &'a Ids,
    first: usize,
}

/// What was asked and found for one packet: at `at` for the first look-up, `stride` farther on for the second.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Answers<'a, K, F> {
    keys: &'a [K],
    found: &'a [F],
    at: usize,
    stride: usize,
}

impl<K: Copy + Default, F: Copy + Default> Answers<'_, K, F> {
    #[inline(always)]
    fn of(self, look_up: usize) -> (K, F) {
        let at = self.at + look_up * self.stride;
        let key = self.keys.get(at).copied().unwrap_or_default();
        (key, self.found.get(at).copied().unwrap_or_default())
    }
}

macro_rules! look_ups {
    ($first:ident $($look_up:ident $place:tt),*) => {
        impl<$first: LookUp, $($look_up: LookUp<Key = $first::Key, Found = $first::Found>),*> LookUps
            for ($first, $($look_up,)*)
        {
            type Common = ($first::Common, $($look_up::Common,)*);
            type Key = $first::Key;
            type Found = $first::Found;
            const NAMES: &'static [&'static str] = &[$first::NAME, $($look_up::NAME),*];

            fn make(makers: &Makers<'_>) -> Self {
                (makers.make::<$first>($first::NAME), $(makers.make::<$look_up>($look_up::NAME),)*)
            }

            fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common {
                (self.0.common(cx, rx), $(self.$place.common(cx, rx),)*)
            }

            #[inline(always)]
            fn keys(
                &self,
                common: Self::Common,
                packet: &mut Packet,
                keys: &mut [Self::Key],
                at: usize,
                stride: usize,
            ) {
                let _ = stride;
                keys[at] = self.0.key(common.0, packet);
                $(keys[at + $place * stride] = self.$place.key(common.$place, packet);)*
            }

            #[inline(always)]
            fn find(
                &self,
                variant: Variant,
                common: Self::Common,
                keys: &[Self::Key],
                found: &mut [Self::Found],
            ) {
                self.0.find(variant, common.0, keys, found);
            }

            #[inline(always)]
            fn settle(
                &self,
                tally: Tally<'_>,
                common: Self::Common,
                Places { ids, first }: Places<'_>,
                answers: Answers<'_, Self::Key, Self::Found>,
                packet: &mut Packet,
            ) -> Result<NodeId, Exit> {
                let (key, found) = answers.of(0);
                let next = self.0.settle(tally.of(ids[first]), common.0, key, found, packet);
                let next = settle(next, packet);
                $(
                    if next != ids[first + $place] {
                        return Err(Exit { place: first + $place - 1, next });
                    }
                    let (key, found) = answers.of($place);
                    let next = self.$place.settle(tally.of(ids[first + $place]), common.$place, key, found, packet);
                    let next = settle(next, packet);
                )*
                Ok(next)
            }

            #[inline(always)]
            fn end(&self) {
                self.0.end();
                $(self.$place.end();)*
            }
        }
    };
}

look_ups!(A);
look_ups!(A B 1);

/// Stages, and look-ups behind them.
struct WithLookUps<H, L: LookUps> {
    head: H,
    look_ups: L,
    ids: Ids,
    /// A block's keys, and what was found for them.
    keys: Box<[L::Key; LOOK_UPS_MAX * BLOCK]>,
    found: Box<[L::Found; LOOK_UPS_MAX * BLOCK]>,
    exits: Exits,
}

impl<H: Stages, L: LookUps> WithLookUps<H, L> {
    const FIRST: usize = H::NAMES.len();
    const LAST: usize = Self::FIRST + L::NAMES.len() - 1;
}

/// One pass over a vector.
struct Pass<'a, H: Stages, L: LookUps> {
    block: &'a mut WithLookUps<H, L>,
    tally: Tally<'a>,
    variant: Variant,
    head: H::Common,
    ways: &'a Ways,
    common: L::Common,
    frame: &'a mut Frame,
}

impl<H: Stages, L: LookUps> Body for Pass<'_, H, L> {
    type Answer = Sums;

    #[inline(always)]
    fn run(mut self) -> Sums {
        let mut sums = Sums::default();
        let packets = self.frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(Packet::prefetch);
        for block in 0..packets.len().div_ceil(BLOCK) {
            self.check(block, &mut sums.sorted);
            sums.bytes += self.finish(block);
        }
        sums
    }
}

impl<H: Stages, L: LookUps> Pass<'_, H, L> {
    /// Check a block's packets, and collect their keys.
    #[inline(always)]
    fn check(&mut self, block: usize, sorted: &mut Sorted) {
        let WithLookUps { head, look_ups, ids, keys, exits, .. } = &mut *self.block;
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
            let common = (self.tally, self.head);
            match decide_and_sort(head, common, &ids, self.ways, packet, sorted) {
                Ok(()) => look_ups.keys(self.common, packet, &mut keys[..], index, count),
                Err(exit) => {
                    next[begin + index] = exit.next;
                    exits.places[begin + index] = exit.place as u8;
                    left |= 1 << index;
                    for look_up in 0..L::NAMES.len() {
                        keys[index + look_up * count] = L::Key::default();
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
        let WithLookUps { look_ups, ids, keys, found, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let asked = L::NAMES.len() * count;
        look_ups.find(self.variant, self.common, &keys[..asked], &mut found[..asked]);
        let places = Places { ids, first: WithLookUps::<H, L>::FIRST };
        let mut bytes = 0;
        let mut left = exits.marks.word(block);
        for (index, (packet, next)) in
            packets[begin..begin + count].iter_mut().zip(&mut next[begin..begin + count]).enumerate()
        {
            if left >> index & 1 != 0 {
                continue;
            }
            let answers = Answers { keys: &keys[..], found: &found[..], at: index, stride: count };
            match look_ups.settle(self.tally, self.common, places, answers, packet) {
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

impl<H: Stages, L: LookUps> Superblock for WithLookUps<H, L> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        shares.take_turn(frame)?;
        let ways = &ways;
        let common = self.look_ups.common(cx, ways[Self::FIRST]);
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let sums = variant.run(Pass { block: self, tally, variant, head, ways, common, frame: &mut *frame });
        self.look_ups.end();
        sums.sorted.count(tally, ways[0], ways[Self::FIRST]);
        let Self { head, exits, ids, .. } = self;
        Ok(go_on(cx, exits, (ids, Self::LAST + 1, false), (frame, sums.bytes), |cx, arrived| {
            head.arrived(cx, ways, arrived);
        }))
    }
}

impl SuperblockSpec {
    /// Stages, then one look-up or two; and the output of the interface that the packets leave by. The
    /// types are those with which the nodes were declared. Two ask the same table: the first is
    /// asked for the keys of both.
    pub fn with_look_ups<H: Stages, L: LookUps>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().chain(L::NAMES).copied().collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(WithLookUps::<H, L> {
                head: H::make(makers),
                look_ups: L::make(makers),
                ids,
                keys: Box::new([L::Key::default(); LOOK_UPS_MAX * BLOCK]),
                found: Box::new([L::Found::default(); LOOK_UPS_MAX * BLOCK]),
                exits: Exits::new(),
            })
        };
        SuperblockSpec { names, make: std::sync::Arc::new(make) }
    }
}
