//! `mac-control-input`: PAUSE and other MAC control frames (IEEE 802.3 clause 31, annexes 31B and
//! 31D). They belong to the link: they are counted and end here. What is done about them, and why
//! no more, says the README.

use quiver_core::graph::builtin::DONE;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame};

/// The node's name.
pub(crate) const NODE: &str = "mac-control-input";
/// Stop sending for some quanta of 512 bit times, or go on.
const OPCODE_PAUSE: u16 = 0x0001;
/// The same by priority.
const OPCODE_PFC: u16 = 0x0101;

quiver_core::reasons! {
    /// What becomes of MAC control frames.
    pub enum MacControlDrop {
        /// Stop.
        Pause = info "pause", "PAUSE frames: the other side asked this router to send nothing for \
            a while";
        /// Go on.
        PauseEnd = info "pause-end", "PAUSE frames of no length: the other side takes frames again";
        /// By priority.
        PriorityPause = info "priority-pause", "priority-based flow control frames (PFC)";
        /// Something else.
        Unknown = "unknown-opcode", "a MAC control frame that is neither PAUSE nor PFC";
        /// Cut off.
        Truncated = "truncated", "a MAC control frame shorter than its opcode and operand";
    }
}

/// What a frame asks for, from the opcode on.
fn read(bytes: &[u8]) -> MacControlDrop {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word));
    match (word(0), word(2)) {
        (Some(OPCODE_PAUSE), Some(0)) => MacControlDrop::PauseEnd,
        (Some(OPCODE_PAUSE), Some(_)) => MacControlDrop::Pause,
        (Some(OPCODE_PFC), Some(_)) => MacControlDrop::PriorityPause,
        (Some(OPCODE_PAUSE | OPCODE_PFC) | None, None) | (None, Some(_)) => {
            MacControlDrop::Truncated
        }
        (Some(_), _) => MacControlDrop::Unknown,
    }
}

struct MacControl;

impl Node for MacControl {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| match read(packet.bytes()) {
            wrong @ (MacControlDrop::Unknown | MacControlDrop::Truncated) => Err(wrong),
            known => {
                cx.count(known, 1);
                Ok(DONE)
            }
        });
    }
}

pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NODE, "Counts PAUSE and other MAC control frames, which end here", |_| {
        Box::new(MacControl)
    })
    .reasons::<MacControlDrop>()
    .describe(|record, names| {
        let what = match read(record.bytes()) {
            MacControlDrop::Pause => "PAUSE",
            MacControlDrop::PauseEnd => "the end of a PAUSE",
            MacControlDrop::PriorityPause => "priority-based flow control",
            _ => "unknown MAC control",
        };
        format!("{what} received on {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}
