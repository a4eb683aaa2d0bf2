//! `ip4-full-reassembly`, `ip6-full-reassembly`, `ip4-sv-reassembly`, `ip6-sv-reassembly`: nodes
//! that keep fragments. What they do with them is the form of the reassembly.

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::buffer::BufferPool;
use quiver_core::{Context, Frame, Packet};
use quiver_forwarding::requests::ReassemblyRequest;

use crate::contexts::{Arrived, Contexts};
use crate::description;
use crate::fragment::Fragment;
use crate::full::Full;
use crate::reasons::FragmentEnd;
use crate::store::Place;
use crate::tables::{Kind, Shared};
use crate::virtual_reassembly::Virtual;

/// Packets that time out are looked for before each vector, so many at most.
const EXPIRED_PER_VECTOR: usize = 8;

/// A form of reassembly: in full, or virtual.
pub(crate) trait Form: Sync {
    /// What its nodes do.
    fn help(&self) -> &'static str;

    /// A packet came in one fragment: it has nothing to do with others of the same name (RFC 6946
    /// §4).
    fn pass_atomic(
        &self,
        contexts: &Contexts,
        cx: &mut Context<'_>,
        piece: &Fragment,
        packet: Packet,
        request: ReassemblyRequest,
    );

    /// A fragment came, and its context stands open.
    fn take(
        &self,
        contexts: &mut Contexts,
        cx: &mut Context<'_>,
        arrived: Arrived,
        request: ReassemblyRequest,
    );

    /// The time of a packet is over.
    fn expire(&self, contexts: &mut Contexts, cx: &mut Context<'_>, place: Place);
}

/// The form of the nodes of a kind.
fn form(kind: Kind) -> &'static dyn Form {
    if kind.is_virtual() { &Virtual } else { &Full }
}

/// A worker's instance.
pub(crate) struct ReassemblyNode {
    pub contexts: Contexts,
    form: &'static dyn Form,
}

impl ReassemblyNode {
    fn take(&mut self, cx: &mut Context<'_>, packet: Packet) {
        let contexts = &mut self.contexts;
        let request = packet.handed_over();
        let Some((piece, packet)) = contexts.read(cx, packet) else { return };
        if piece.is_atomic() {
            return self.form.pass_atomic(contexts, cx, &piece, packet, request);
        }
        let Some(arrived) = contexts.seat(cx, piece, packet) else { return };
        self.form.take(contexts, cx, arrived, request);
    }

    /// Forget the oldest packets whose time is over, so many at most.
    pub fn expire_up_to(&mut self, cx: &mut Context<'_>, most: usize) {
        for _ in 0..most {
            let Some(place) = self.contexts.expired(cx.now_ns) else { break };
            self.form.expire(&mut self.contexts, cx, place);
        }
    }
}

impl Node for ReassemblyNode {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        self.expire_up_to(cx, EXPIRED_PER_VECTOR);
        for packet in frame.drain() {
            self.take(cx, packet);
        }
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}

/// The declaration.
pub(crate) fn spec(
    kind: Kind,
    shared: &Arc<Shared>,
    pool: &Arc<BufferPool>,
    arc: ArcId,
) -> NodeSpec {
    let (shared, pool) = (shared.clone(), pool.clone());
    NodeSpec::new(kind.node(), form(kind).help(), move |wiring| {
        let store = crate::config::first_store(kind, &shared, &pool);
        let contexts = Contexts::new(kind, store, &shared, arc, wiring);
        Box::new(ReassemblyNode { contexts, form: form(kind) })
    })
    .slow_path()
    .reasons::<FragmentEnd>()
    .describe(move |record, names| description::keeper(kind, record, names))
}
