//! Packets of sessions, each of which lives on one worker: that worker takes them, others hand
//! them off to it. Protocols with timers of their own (BFD, VRRP) are such.

use crate::graph::builtin::{DONE, HANDOFF};
use crate::graph::context::Context;
use crate::graph::frame::Frame;
use crate::graph::node::{DROP, Reason};
use crate::ids::{NodeId, WorkerId};
use crate::memory::packet::Packet;

/// Result for a packet that is not dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its session has processed it.
    Here,
    /// Its session lives on this other worker.
    HandOff(WorkerId),
    /// It goes on to a node, perhaps changed.
    SendOn(NodeId),
}

/// A node's instance on one worker, which has the sessions that live there.
pub trait SessionInput {
    /// The node's reasons.
    type Reason: Reason;
    /// The ring to the worker of a packet's session is full.
    const HANDOFF_FULL: Self::Reason;

    /// Process a packet, if its session lives here.
    ///
    /// # Errors
    /// It must be dropped, for the reason that is returned.
    fn take(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, Self::Reason>;

    /// Does this reason say that the router has no such session? A daemon of the host may have it:
    /// such packets go there from interfaces that have a pair in the host.
    fn is_unknown(reason: Self::Reason) -> bool;

    /// All packets of a vector are processed.
    fn finish(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }
}

/// Take a vector's packets to their sessions: the body of such a node's
/// [`run`](crate::graph::node::Node::run).
pub fn run_sessions<S: SessionInput>(input: &mut S, cx: &mut Context<'_>, frame: &mut Frame) {
    for mut packet in frame.drain() {
        match input.take(cx, &mut packet) {
            Ok(Taken::Here) => {
                cx.trace(&packet, DONE);
                cx.emit(packet, DONE);
            }
            Ok(Taken::SendOn(next)) => {
                cx.trace(&packet, next);
                cx.emit(packet, next);
            }
            Ok(Taken::HandOff(worker)) => {
                cx.trace(&packet, HANDOFF);
                if let Err(packet) = cx.hand_off(packet, worker, cx.node) {
                    cx.kill(packet, S::HANDOFF_FULL);
                }
            }
            Err(why) => refuse::<S>(cx, packet, why),
        }
    }
    input.finish(cx);
}

#[cold]
fn refuse<S: SessionInput>(cx: &mut Context<'_>, packet: Packet, why: S::Reason) {
    let host = cx.interface(packet.rx).and_then(|row| row.host).filter(|_| S::is_unknown(why));
    cx.trace(&packet, host.unwrap_or(DROP));
    match host {
        Some(host) => cx.emit(packet, host),
        None => cx.kill(packet, why),
    }
}
