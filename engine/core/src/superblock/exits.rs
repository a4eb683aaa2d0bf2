//! Packets that leave a superblock on the way: which, where, and where to.

use crate::context::Context;
use crate::frame::{FRAME_PACKETS_MAX, Frame, Marks};

use super::{Exit, Ids, STAGES_MAX};

/// Packets on their way out of the pass.
pub(super) struct Exits {
    pub marks: Marks,
    /// For those that are marked: the place of the stage they left behind.
    pub places: Box<[u8; FRAME_PACKETS_MAX]>,
}

impl Exits {
    pub fn new() -> Exits {
        Exits { marks: Marks::default(), places: Box::new([0; FRAME_PACKETS_MAX]) }
    }

    /// Send those who left to their nodes, and forget them. Returns how many left behind each stage; and, if
    /// they were most of the packets, where most of them did.
    #[inline(always)]
    pub fn send(
        &mut self,
        cx: &mut Context<'_>,
        ids: &Ids,
        frame: &mut Frame,
    ) -> ([u32; STAGES_MAX], Option<Exit>) {
        if self.marks.any() { self.send_some(cx, ids, frame) } else { ([0; STAGES_MAX], None) }
    }

    #[cold]
    #[inline(never)]
    fn send_some(
        &mut self,
        cx: &mut Context<'_>,
        ids: &Ids,
        frame: &mut Frame,
    ) -> ([u32; STAGES_MAX], Option<Exit>) {
        let (same_rx, count) = (frame.is_same_rx(), frame.len());
        let Exits { marks, places } = self;
        cx.outbox.divide(frame, marks, |index| ids[usize::from(places[index])]);
        let (mut left, mut majority) = ([0; STAGES_MAX], Majority::default());
        frame.take_marked(marks, |index, packet, next| {
            let place = usize::from(places[index]);
            left[place] += 1;
            majority.hear(Exit { place, next });
            cx.outbox.put_from(ids[place], next, packet, same_rx, cx.buffers, cx.counters);
        });
        self.marks = Marks::default();
        let mostly = frame.len() * 2 < count;
        (left, majority.candidate.filter(|_| mostly))
    }
}

/// Who has more than half of the votes, if anybody has (Boyer and Moore).
#[derive(Default)]
struct Majority {
    candidate: Option<Exit>,
    lead: u32,
}

impl Majority {
    fn hear(&mut self, exit: Exit) {
        if self.lead == 0 {
            self.candidate = Some(exit);
        }
        if self.candidate == Some(exit) {
            self.lead += 1;
        } else {
            self.lead -= 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn most_of_those_who_left_are_found_whoever_left_first() {
        let exit = |place, next| Exit { place, next: NodeId(next) };
        let mut majority = Majority::default();
        for leaver in [exit(0, 9), exit(2, 7), exit(2, 8), exit(2, 7), exit(2, 7)] {
            majority.hear(leaver);
        }
        assert_eq!(majority.candidate, Some(exit(2, 7)));
    }
}
