//! What is left to do behind a pass over a vector: packets that left the way go to their nodes, the others out.

use crate::arc::INTERFACE_OUTPUT;
use crate::context::Context;
use crate::frame::Frame;
use crate::ids::{InterfaceId, NodeId};
use crate::shares::Outputs;

use super::{Exits, Ids, OUTPUTS_MAX, Passed, STAGES_MAX};

/// Packets of a vector have gone through `stages` stages, or left; `bytes` counts the first segments of those that have
/// not, and `tell` hears how many came to each stage. If a stage `sorts`, those that are left are looked at anew.
#[inline(always)]
pub(super) fn go_on(
    cx: &mut Context<'_>,
    exits: &mut Exits,
    (ids, stages, sorts): (&Ids, usize, bool),
    (frame, bytes): (&mut Frame, u64),
    tell: impl FnOnce(&Context<'_>, &[u32; STAGES_MAX]),
) -> Passed {
    let count = frame.len();
    let (left, mostly_left) = exits.send(cx, ids, frame);
    if sorts {
        frame.look_at_rx();
    }
    let arrived = count_arrived(count, &left, stages);
    tell(cx, &arrived);
    let tx = frame.packets().first().map(|packet| packet.tx);
    let outputs = tx.map_or([None; OUTPUTS_MAX], |tx| carry_out(cx, tx, bytes, frame));
    let from = last_of(&outputs).unwrap_or(ids[stages - 1]);
    Passed { arrived, from, outputs, mostly_left }
}

/// The rest of the way, when it is the same for all packets: the node they go to, or behind the output
/// of `tx` when that has no output features, whose counting is done here; of a sub-interface, behind its parent's
/// output as well. `bytes` counts first segments. Returns the outputs whose work is done.
pub(super) fn carry_out(cx: &Context<'_>, mut tx: InterfaceId, mut bytes: u64, frame: &mut Frame) -> Outputs {
    let mut done = [None; OUTPUTS_MAX];
    let Some(mut output) = frame.common_next() else { return done };
    if frame.packets().iter().fold(false, |any, packet| any | packet.is_chained()) {
        bytes = frame.packets().iter().map(|packet| packet.length() as u64).sum();
    }
    for done in &mut done {
        let Some(row) = cx.interface(tx).filter(|row| row.up && row.output == output) else { break };
        let is_sub_interface = row.is_sub_interface();
        // Sub-interfaces share a node.
        let several = is_sub_interface && frame.packets().iter().any(|packet| packet.tx != tx);
        if several || row.first(INTERFACE_OUTPUT, row.tx) != row.tx {
            break;
        }
        let counters = cx.interface_counters(tx);
        counters.tx_packets.add(frame.len() as u64);
        counters.tx_bytes.add(bytes);
        *done = Some(output);
        output = row.tx;
        if !is_sub_interface {
            break;
        }
        tx = row.parent;
    }
    frame.set_all_next(output);
    done
}

/// The output that came last.
pub(super) fn last_of(outputs: &Outputs) -> Option<NodeId> {
    outputs.iter().flatten().next_back().copied()
}

/// Packets that came to each of the first `stages` stages, from those that left behind each.
pub(super) fn count_arrived(count: usize, left: &[u32; STAGES_MAX], stages: usize) -> [u32; STAGES_MAX] {
    let mut arrived = [0; STAGES_MAX];
    let mut here = count as u32;
    for (arrived, left) in arrived.iter_mut().zip(left).take(stages) {
        *arrived = here;
        here -= left;
    }
    arrived
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packets_that_leave_do_not_arrive_behind() {
        let left = [1, 0, 3, 0, 0, 0, 0, 0];
        assert_eq!(count_arrived(10, &left, 4), [10, 9, 9, 6, 0, 0, 0, 0]);
    }
}
