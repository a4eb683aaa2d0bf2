//! What comes to a node, seen in front of it: only while somebody wants to know.
//!
//! A node with an observer costs one branch a vector more, and what the observer does; the control
//! thread gives and takes observers while packets pass
//! ([`Engine::observe`](crate::Engine::observe)).

use crate::graph::context::Context;
use crate::memory::packet::Packet;

/// Sees packets in front of a node. It runs on a worker: it never waits, and allocates nothing.
pub trait Observer: Send {
    /// These packets have come to the node, which has not run yet. An observer leaves them as they
    /// are; [`Packet::handed_over`] says what the node will read.
    fn see(&mut self, cx: &mut Context<'_>, packets: &mut [Packet]);
}
