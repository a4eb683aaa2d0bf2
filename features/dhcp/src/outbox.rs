//! What the control thread sends and counts in a turn: one worker call for all of it.

use quiver_core::graph::node::Reason;
use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::nodes;

use crate::input::{DETECT, Detect, RELAY4, RELAY6, RelayInput};
use crate::input6::{CLIENT6, Client6Input};
use crate::reasons::{ClientReason, RelayReason};

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    /// A frame by an interface, its headers and all, to its output node.
    Frame(Vec<u8>, NodeId, InterfaceId),
    /// A packet by the routes of a table (a small number).
    Routed(Vec<u8>, u32),
    /// An IPv6 packet by the routes for what an interface receives, link-local ones, too.
    Behind(Vec<u8>, InterfaceId),
}

/// What is to be sent and counted.
#[derive(Debug, Default)]
pub struct Outbox {
    sends: Vec<Send>,
    relayed: Vec<(Family, RelayReason)>,
    clients: Vec<(Family, ClientReason)>,
    /// Turns whose packets were lost: too much waited for the worker.
    pub lost: u64,
}

impl Outbox {
    /// Send a packet.
    pub fn send(&mut self, send: Send) {
        self.sends.push(send);
    }

    /// Count what became of a packet for the relay agent.
    pub fn count(&mut self, family: Family, reason: RelayReason) {
        self.relayed.push((family, reason));
    }

    /// Count what became of a packet for a client.
    pub fn count_client(&mut self, family: Family, reason: ClientReason) {
        self.clients.push((family, reason));
    }

    /// Have a worker do it.
    pub fn flush(&mut self, engine: &mut Engine) {
        if self.sends.is_empty() && self.relayed.is_empty() && self.clients.is_empty() {
            return;
        }
        let names = [RELAY4, RELAY6, DETECT, CLIENT6, nodes::ip6::LOOKUP];
        let [Some(relay4), Some(relay6), Some(detect), Some(client6), Some(lookup6)] =
            names.map(|name| engine.node_id(name))
        else {
            return;
        };
        let sends = std::mem::take(&mut self.sends);
        let relayed = std::mem::take(&mut self.relayed);
        let clients = std::mem::take(&mut self.clients);
        let is_posted = engine.post(WorkerId(0), move |worker: &mut Worker| {
            for send in &sends {
                // Without a buffer, which `show buffers` counts, the client asks again.
                match send {
                    Send::Frame(bytes, output, tx) => {
                        worker.inject(bytes, *output, InterfaceId::NONE, *tx);
                    }
                    Send::Behind(bytes, rx) => {
                        worker.inject(bytes, lookup6, *rx, *rx);
                    }
                    Send::Routed(bytes, table) => {
                        let is_ip4 = bytes.first().is_some_and(|byte| byte >> 4 == 4);
                        let node = if is_ip4 { relay4 } else { relay6 };
                        worker.visit(node, |input: &mut RelayInput, cx| {
                            input.send(cx, bytes, *table);
                        });
                    }
                }
            }
            for (family, reason) in &relayed {
                let node = if *family == Family::Ip4 { relay4 } else { relay6 };
                worker.visit(node, |_: &mut RelayInput, cx| cx.count(*reason, 1));
            }
            for (family, reason) in &clients {
                match family {
                    Family::Ip4 => {
                        worker.visit(detect, |_: &mut Detect, cx| cx.count(*reason, 1));
                    }
                    Family::Ip6 => {
                        worker.visit(client6, |_: &mut Client6Input, cx| cx.count(*reason, 1));
                    }
                }
            }
        });
        self.lost += u64::from(!is_posted);
    }
}

/// The name of a reason, for tests.
pub fn name<R: Reason>(reason: R) -> &'static str {
    R::ALL[usize::from(reason.number())].name
}
