//! `dhcpv6-client`: messages of DHCPv6 servers to the router's clients go to the control thread.

use std::any::Any;
use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::sessions::{SessionInput, Taken, run_sessions};
use quiver_core::memory::epoch::Published;
use quiver_core::throttle::Shares;
use quiver_core::{Context, Frame, InterfaceId, Node, Packet};

use crate::input::{Sender, Senders, describe, shares};
use crate::reasons::ClientReason;

/// The node's name.
pub const CLIENT6: &str = "dhcpv6-client";

/// The interfaces that have a client, in order. Replaced whole.
pub type Interfaces = Published<Vec<InterfaceId>>;

/// A worker's instance of the node.
pub struct Client6Input {
    enabled: Arc<Interfaces>,
    sender: Sender,
    shares: Shares,
}

impl SessionInput for Client6Input {
    type Reason = ClientReason;
    // Not returned: each worker takes the packets that it receives.
    const HANDOFF_FULL: ClientReason = ClientReason::Busy;

    fn take(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, ClientReason> {
        if self.enabled.read(cx.pass).binary_search(&packet.rx).is_err() {
            return Err(ClientReason::NotEnabled);
        }
        if !self.shares.take(packet.rx, cx.now_ns) {
            return Err(ClientReason::TooMany);
        }
        self.sender.send(packet, 0)?;
        cx.count(ClientReason::Taken, 1);
        Ok(Taken::Here)
    }

    fn is_unknown(reason: ClientReason) -> bool {
        reason == ClientReason::NotEnabled
    }
}

impl Node for Client6Input {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_sessions(self, cx, frame);
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// The declaration of the node.
pub fn spec(enabled: &Arc<Interfaces>, senders: Senders) -> NodeSpec {
    let enabled = enabled.clone();
    let help = "Takes messages of servers to the router's DHCPv6 clients";
    NodeSpec::new(CLIENT6, help, move |wiring| {
        Box::new(Client6Input {
            enabled: enabled.clone(),
            sender: senders.take(wiring.worker.index()),
            shares: shares(),
        })
    })
    .reasons::<ClientReason>()
    .describe(|record, names| describe(record.bytes(), &names.node(record.next)))
}
