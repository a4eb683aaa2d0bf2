//! Superblocks whose last stage sends all packets of an interface the same way ([`Steer`]): alone, or behind
//! others.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::context::Context;
use crate::cpu::Body;
use crate::frame::{Frame, PREFETCH_AHEAD};
use crate::ids::{InterfaceId, NodeId};
use crate::interface::InterfaceRow;
use crate::packet::Packet;
use crate::shares::{Outputs, Shares};
use crate::stage::{Steer, Tally};

use super::behind::{carry_out, count_arrived, last_of};
use super::{
    BLOCK, Declined, Exit, Exits, Ids, Makers, Passed, STAGES_MAX, Stages, Sums, Superblock, SuperblockSpec,
    Ways, decide_and_sort,
};

/// One stage, and the interface's output.
struct Straight<S> {
    stage: S,
    ids: Ids,
}

/// One pass over a vector: what the packets have in all, and whether the stage takes each.
struct StraightPass<'a, S> {
    packets: &'a [Packet],
    stage: PhantomData<S>,
}

impl<S: Steer> Body for StraightPass<'_, S> {
    /// Bytes in the first segments; none when there is a packet that the stage does not take.
    type Answer = Option<u64>;

    #[inline(always)]
    fn run(self) -> Option<u64> {
        let (mut bytes, mut takes) = (0, true);
        for packet in self.packets {
            takes &= S::takes(packet);
            bytes += packet.segment_length() as u64;
        }
        takes.then_some(bytes)
    }
}

impl<S: Steer> Superblock for Straight<S> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let rx = frame.packets().first().ok_or(Declined::NodeByNode)?.rx;
        let (output, tx) = S::way(self.stage.common(cx, rx)).ok_or(Declined::NodeByNode)?;
        shares.take_turn(frame)?;
        let pass = StraightPass { packets: frame.packets(), stage: PhantomData::<S> };
        let bytes = cx.variant.run(pass).ok_or(Declined::NodeByNode)?;
        self.stage.arrived(cx, rx, frame.len() as u64);
        let arrived = count_arrived(frame.len(), &[0; STAGES_MAX], 1);
        let outputs = steer(cx, output, tx, bytes, frame);
        let from = last_of(&outputs).unwrap_or(self.ids[0]);
        Ok(Passed { arrived, from, outputs, mostly_left: None })
    }
}

/// All packets leave by `tx`, whose output is `output`.
fn steer(cx: &Context<'_>, output: NodeId, tx: InterfaceId, bytes: u64, frame: &mut Frame) -> Outputs {
    frame.set_all_next(output);
    if cx.interface(tx).is_some_and(InterfaceRow::is_sub_interface) {
        frame.packets_mut().iter_mut().for_each(|packet| packet.tx = tx);
    }
    carry_out(cx, tx, bytes, frame)
}

/// Stages, a last one that sends all packets of an interface the same way, and that interface's output.
struct Steered<H, S> {
    head: H,
    stage: S,
    ids: Ids,
    exits: Exits,
}

/// One pass over a vector.
struct SteeredPass<'a, H: Stages, S> {
    block: &'a mut Steered<H, S>,
    tally: Tally<'a>,
    head: H::Common,
    ways: &'a Ways,
    frame: &'a mut Frame,
}

impl<H: Stages, S: Steer> Body for SteeredPass<'_, H, S> {
    type Answer = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let Steered { head, ids, exits, .. } = self.block;
        let ids = *ids;
        let place = H::NAMES.len();
        let (packets, next) = self.frame.split_mut();
        packets.iter().take(PREFETCH_AHEAD).for_each(Packet::prefetch);
        let mut sums = Sums::default();
        for block in 0..packets.len().div_ceil(BLOCK) {
            let begin = block * BLOCK;
            let mut left = 0;
            for index in begin..packets.len().min(begin + BLOCK) {
                if let Some(ahead) = packets.get(index + PREFETCH_AHEAD) {
                    ahead.prefetch();
                }
                let packet = &mut packets[index];
                let common = (self.tally, self.head);
                let decision = decide_and_sort(head, common, &ids, self.ways, packet, &mut sums.sorted);
                let exit = match decision {
                    Ok(()) if S::takes(packet) => {
                        sums.bytes += packet.segment_length() as u64;
                        continue;
                    }
                    Ok(()) => {
                        sums.refused = true; // for the node to judge
                        Exit { place: place - 1, next: ids[place] }
                    }
                    Err(exit) => exit,
                };
                next[index] = exit.next;
                exits.places[index] = exit.place as u8;
                left |= 1 << (index - begin);
            }
            exits.marks.set_word(block, left);
        }
        sums
    }
}

impl<H: Stages, S: Steer> Superblock for Steered<H, S> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let place = H::NAMES.len();
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        let (output, tx) = S::way(self.stage.common(cx, ways[place])).ok_or(Declined::NodeByNode)?;
        shares.take_turn(frame)?;
        let count = frame.len();
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let sums = variant.run(SteeredPass { block: self, tally, head, ways: &ways, frame: &mut *frame });
        sums.sorted.count(tally, ways[0], ways[place]);
        if sums.refused {
            cx.outbox.note_order(frame.packets());
        }
        let (left, mostly_left) = self.exits.send(cx, &self.ids, frame);
        let arrived = count_arrived(count, &left, place + 1);
        self.head.arrived(cx, &ways, &arrived);
        self.stage.arrived(cx, ways[place], u64::from(arrived[place]));
        let outputs = steer(cx, output, tx, sums.bytes, frame);
        let from = last_of(&outputs).unwrap_or(self.ids[place]);
        Ok(Passed { arrived, from, outputs, mostly_left })
    }
}

impl SuperblockSpec {
    /// Stages, one that sends all packets of an interface the same way, and the output of the interface that
    /// they leave by.
    pub fn steered<H: Stages, S: Steer>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().copied().chain([S::NAME]).collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            let (head, stage) = (H::make(makers), makers.make(S::NAME));
            Box::new(Steered::<H, S> { head, stage, ids, exits: Exits::new() })
        };
        SuperblockSpec { names, make: Arc::new(make) }
    }

    /// One stage, and the output of the interface that the packets leave by.
    pub fn straight<S: Steer>() -> SuperblockSpec {
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(Straight::<S> { stage: makers.make(S::NAME), ids })
        };
        SuperblockSpec { names: vec![S::NAME], make: Arc::new(make) }
    }
}
