//! A block of packets behind a look-up: judged by what was found, and finished with. Where no packet leaves, as a
//! rule, each is one loop without a branch for packets that left.

use crate::frame::settle;
use crate::ids::NodeId;
use crate::packet::Packet;
use crate::stage::{LookUp, Tally};

use super::{BLOCK, Exit, Ids, TAIL_AHEAD, Tail, TailWay};

/// Packets, where each goes next, and the place of the stage that it left behind, if it left. Those that left are
/// marked in a mask.
pub(super) struct Block<'a> {
    pub packets: &'a mut [Packet],
    pub next: &'a mut [NodeId],
    pub places: &'a mut [u8],
}

impl Block<'_> {
    /// As [`judge`](Self::judge), where all packets are likely to go the same way; returns whether they did, too.
    #[inline(always)]
    pub fn judge_all<L: LookUp>(
        &mut self,
        (look_up, common): (&L, L::Common),
        tally: Tally<'_>,
        (ids, place): (&Ids, usize),
        answers: (&[L::Key], &[L::Found]),
        left: u64,
        ahead: impl Fn(&Packet),
    ) -> (u64, bool) {
        if left == 0
            && let Some(next) = look_up.settle_all(common, answers.1, self.packets)
        {
            self.packets.iter().take(1).for_each(ahead);
            if next == ids[place + 1] {
                return (0, true);
            }
            let count = self.packets.len();
            self.next[..count].fill(next);
            self.places[..count].fill(place as u8);
            return (u64::MAX >> (BLOCK - count.clamp(1, BLOCK)), true);
        }
        (self.judge((look_up, common), tally, (ids, place), answers, left, ahead), false)
    }

    /// What was found says where the packets go from the look-up at `place`. Returns the marks with those that
    /// do not go to the stage behind it.
    #[inline(always)]
    pub fn judge<L: LookUp>(
        &mut self,
        (look_up, common): (&L, L::Common),
        tally: Tally<'_>,
        (ids, place): (&Ids, usize),
        (keys, found): (&[L::Key], &[L::Found]),
        mut left: u64,
        ahead: impl Fn(&Packet),
    ) -> u64 {
        let (tally, onward) = (tally.of(ids[place]), ids[place + 1]);
        let all = self.packets.iter_mut().zip(&mut *self.next).zip(keys.iter().zip(found));
        let mut elsewhere = 0;
        if left == 0 {
            for ((packet, next), (key, found)) in all {
                *next = settle(look_up.settle(tally, common, *key, *found, packet), packet);
                ahead(packet);
                elsewhere |= next.0 ^ onward.0;
            }
        } else {
            let here = all.enumerate().filter(|(index, _)| left >> index & 1 == 0);
            for (_, ((packet, next), (key, found))) in here {
                *next = settle(look_up.settle(tally, common, *key, *found, packet), packet);
                ahead(packet);
                elsewhere |= next.0 ^ onward.0;
            }
        }
        if elsewhere != 0 {
            for (index, next) in self.next.iter().enumerate().take(self.packets.len()) {
                if left >> index & 1 == 0 && *next != onward {
                    self.places[index] = place as u8;
                    left |= 1 << index;
                }
            }
        }
        left
    }

    /// What comes last decides about the packets that have not left, of which all went the same way if they are
    /// `alike`. Returns the marks, and the bytes in the first segments of those that went all the way.
    #[inline(always)]
    pub fn finish<T: Tail>(
        &mut self,
        (tail, common): (&T, T::Common),
        tally: Tally<'_>,
        (ids, first): (&Ids, usize),
        (mut left, alike): (u64, bool),
    ) -> (u64, u64) {
        let way = TailWay { ids, first };
        let told = if alike { 1 } else { BLOCK };
        let mut bytes = 0;
        let mut note =
            |decision: Result<NodeId, Exit>, packet: &Packet, next: &mut NodeId, place: &mut u8| {
                match decision {
                    Ok(to) => {
                        *next = to;
                        bytes += packet.segment_length() as u64;
                        0
                    }
                    Err(exit) => {
                        *next = exit.next;
                        *place = exit.place as u8;
                        1
                    }
                }
            };
        if left == 0 {
            let soon = |packets: &[Packet]| packets.iter().take(told).for_each(|packet| tail.soon(packet));
            soon(&self.packets[..self.packets.len().min(TAIL_AHEAD)]);
            let (mut rest, mut index) = (&mut *self.packets, 0);
            for (next, places) in self.next.chunks_mut(TAIL_AHEAD).zip(self.places.chunks_mut(TAIL_AHEAD)) {
                let (now, later) = rest.split_at_mut(rest.len().min(TAIL_AHEAD));
                soon(&later[..later.len().min(TAIL_AHEAD)]);
                for ((packet, next), place) in now.iter_mut().zip(next).zip(places) {
                    let decision = tail.decide(tally, common, way, packet);
                    left |= note(decision, packet, next, place) << index;
                    index += 1;
                }
                rest = later;
            }
        } else {
            let before = left;
            let all = self.packets.iter_mut().zip(&mut *self.next).zip(&mut *self.places).enumerate();
            for (index, ((packet, next), place)) in all.filter(|(index, _)| before >> index & 1 == 0) {
                let decision = tail.decide(tally, common, way, packet);
                left |= note(decision, packet, next, place) << index;
            }
        }
        (left, bytes)
    }
}
