//! `lisp4-control-input`, `lisp6-control-input`: control messages (RFC 9301) go to the control
//! thread.

use quiver_core::graph::arrivals::{self, NotCopied};
use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::throttle::Shares;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::Family;

/// Bytes of a packet with a message, from its IP header on.
pub const PACKET_BYTES_MAX: usize = 2048;
/// Messages of one worker that wait for the control thread at most.
pub const PACKETS_WAITING_MAX: usize = 256;
const PACKETS_PER_SECOND: u64 = 4_000;
const PACKETS_OF_INTERFACE_PER_SECOND: u64 = 2_000;
const PACKETS_BURST: u64 = 128;

/// Messages that workers have received.
pub type Arrivals = arrivals::Arrivals<PACKET_BYTES_MAX>;
type Senders = arrivals::ArrivalSenders<PACKET_BYTES_MAX>;

quiver_core::reasons! {
    /// What becomes of control messages.
    pub enum ControlInput {
        /// Given.
        Received = info "received", "control messages for the control thread";
        /// A limit.
        TooLong = "too-long", "a control message of more than 2,048 bytes";
        /// A limit.
        Busy = "busy", "more control messages than the control thread reads";
    }
}

/// The node of a family.
pub(crate) fn node(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "lisp4-control-input",
        Family::Ip6 => "lisp6-control-input",
    }
}

struct Control {
    sender: arrivals::ArrivalSender<PACKET_BYTES_MAX>,
    shares: Shares,
    done: NodeId,
}

impl Control {
    fn decide(&mut self, cx: &Context<'_>, packet: &Packet) -> Result<NodeId, ControlInput> {
        if !self.shares.take(packet.rx, cx.now_ns) {
            return Err(ControlInput::Busy);
        }
        self.sender.send(packet, 0).map_err(|why| match why {
            NotCopied::TooLong => ControlInput::TooLong,
            NotCopied::Full => ControlInput::Busy,
        })?;
        cx.count(ControlInput::Received, 1);
        Ok(self.done)
    }
}

impl Node for Control {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let cx = &*cx;
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(family: Family, senders: Senders) -> NodeSpec {
    let help = "Gives control messages of LISP to the control thread";
    // Each family has a ring of its own.
    let offset = family as usize;
    NodeSpec::new(node(family), help, move |wiring: &Wiring<'_>| {
        Box::new(Control {
            sender: senders.take(2 * wiring.worker.index() + offset),
            shares: Shares::new(PACKETS_PER_SECOND, PACKETS_OF_INTERFACE_PER_SECOND, PACKETS_BURST),
            done: wiring.node("ip-done"),
        })
    })
    .reasons::<ControlInput>()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
