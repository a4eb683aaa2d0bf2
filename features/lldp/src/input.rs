//! `lldp-input`: LLDPDUs that were received go to the control thread.

use std::sync::Arc;

use quiver_core::graph::arrivals::{ArrivalSender, ArrivalSenders, NotCopied};
use quiver_core::graph::builtin::DONE;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::lldp::LLDPDU_BYTES_MAX;

use crate::table::Published;

/// The node's name.
pub(crate) const NODE: &str = "lldp-input";
/// LLDPDUs that a worker takes in a second: neighbours say one in some seconds each.
pub const LLDPDUS_PER_SECOND_MAX: u64 = 500;
/// So many may come at once.
pub const LLDPDUS_BURST: u64 = 64;

quiver_core::reasons! {
    /// What becomes of LLDP frames.
    pub enum LldpDrop {
        /// Taken in.
        Taken = info "lldpdu", "LLDPDUs given to the control thread";
        /// Switched off.
        NotEnabled = "not-enabled", "LLDP is not enabled on the receiving interface (`set \
            interface lldp IF`)";
        /// Impossible.
        TooLong = "too-long", "an LLDPDU of more than 1,500 bytes";
        /// Flood.
        TooMany = "too-many", "more LLDPDUs than a worker takes in a second";
        /// Full.
        Busy = "busy", "the control thread has not read the last LLDPDUs yet";
    }
}

struct LldpInput {
    enabled: Arc<Published>,
    sender: ArrivalSender<LLDPDU_BYTES_MAX>,
    bucket: TokenBucket,
}

impl LldpInput {
    fn decide(&mut self, cx: &Context<'_>, packet: &Packet) -> Result<NodeId, LldpDrop> {
        if !self.enabled.read(cx.pass).get(packet.rx.index()).is_some_and(|enabled| *enabled) {
            return Err(LldpDrop::NotEnabled);
        }
        if !self.bucket.take(cx.now_ns) {
            return Err(LldpDrop::TooMany);
        }
        self.sender.send(packet, 0).map_err(|why| match why {
            NotCopied::TooLong => LldpDrop::TooLong,
            NotCopied::Full => LldpDrop::Busy,
        })?;
        cx.count(LldpDrop::Taken, 1);
        Ok(DONE)
    }
}

impl Node for LldpInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

pub(crate) fn spec(
    enabled: &Arc<Published>,
    senders: ArrivalSenders<LLDPDU_BYTES_MAX>,
) -> NodeSpec {
    let enabled = enabled.clone();
    NodeSpec::new(NODE, "Takes in what neighbours on the link say of themselves", move |wiring| {
        let bucket = TokenBucket::new(LLDPDUS_PER_SECOND_MAX, LLDPDUS_BURST);
        let sender = senders.take(wiring.worker.index());
        Box::new(LldpInput { enabled: enabled.clone(), sender, bucket })
    })
    .reasons::<LldpDrop>()
    .describe(|record, names| {
        let (rx, next) = (names.interface(record.rx), names.node(record.next));
        format!("an LLDPDU of {} bytes received on {rx}, to {next}", record.packet_bytes)
    })
}
