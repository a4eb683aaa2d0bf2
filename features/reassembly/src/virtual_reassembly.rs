//! `ip4-sv-reassembly`, `ip6-sv-reassembly`: fragments wait for the first of their packet; then all
//! go on as they are, with what its header says noted beside them ([`Upper`]).

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::buffer::BufferPool;
use quiver_core::{Context, Frame, Packet};
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_wire::upper::Upper;

use crate::context_owner::{EXPIRED_PER_VECTOR, Keeper};
use crate::contexts::{Arrived, Contexts};
use crate::description;
use crate::reasons::FragmentEnd;
use crate::tables::{Kind, Shared};

/// A worker's instance.
pub(crate) struct VirtualReassembly(Contexts);

impl VirtualReassembly {
    fn take(&mut self, cx: &mut Context<'_>, packet: Packet) {
        let contexts = &mut self.0;
        let request = packet.handed_over();
        let Some((piece, packet)) = contexts.read(cx, packet) else { return };
        if piece.is_atomic() {
            return contexts.send_on(cx, packet, request); // its bytes say everything
        }
        let Some(arrived) = contexts.seat(cx, piece, packet) else { return };
        let place = arrived.place;
        let first = if piece.start == 0 { self.look_at_first(cx, arrived) } else { Some(arrived) };
        if let Some(arrived) = first {
            self.pass(cx, arrived, request);
        }
        let contexts = &mut self.0;
        let context = contexts.store.at(place);
        if context.is_complete() && context.upper.is_some() {
            contexts.close_empty(place);
        }
    }

    /// The first fragment: what it says holds for all. One that says something else than the first
    /// of these is an overlap.
    fn look_at_first(&mut self, cx: &mut Context<'_>, arrived: Arrived) -> Option<Arrived> {
        let contexts = &mut self.0;
        let bytes = arrived.packet.bytes();
        let upper =
            if contexts.kind.is_six() { Upper::of_ip6(bytes) } else { Upper::of_ip4(bytes) };
        let known = contexts.store.at(arrived.place).upper;
        let why = match (upper, known) {
            (Ok(upper), None) => {
                contexts.store.at_mut(arrived.place).upper = Some(upper);
                return Some(arrived);
            }
            (Ok(upper), Some(known)) if upper == known => return Some(arrived),
            (Ok(_), Some(_)) => FragmentEnd::Overlap,
            (Err(_), _) => FragmentEnd::HeaderChain,
        };
        contexts.drop_packet(cx, arrived.packet, why);
        contexts.refuse_all(cx, arrived.place, why);
        None
    }

    /// Keep the fragment while the first is missing, else let it go on.
    fn pass(&mut self, cx: &mut Context<'_>, arrived: Arrived, request: ReassemblyRequest) {
        let contexts = &mut self.0;
        let place = arrived.place;
        let Some(upper) = contexts.store.at(place).upper else {
            if let Err(packet) = contexts.keep(cx, arrived, true) {
                contexts.drop_packet(cx, packet, FragmentEnd::Duplicate);
            }
            return;
        };
        // One that has gone on before may do so again; with the first go those that waited for it.
        if let Ok(Some(packet)) | Err(packet) = contexts.keep(cx, arrived, false) {
            Self::send_noted(contexts, cx, packet, &upper, request);
            while let Some(waited) = contexts.store.take_first_packet(place) {
                contexts.give(waited.buffer_count());
                Self::send_noted(contexts, cx, waited, &upper, request);
            }
        }
    }

    fn send_noted(
        contexts: &Contexts,
        cx: &mut Context<'_>,
        mut packet: Packet,
        upper: &Upper,
        request: ReassemblyRequest,
    ) {
        packet.set_note(upper.to_note());
        cx.count(FragmentEnd::WentOn, 1);
        contexts.send_on(cx, packet, request);
    }
}

impl Node for VirtualReassembly {
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

impl Keeper for VirtualReassembly {
    fn contexts(&mut self) -> &mut Contexts {
        &mut self.0
    }

    fn expire(&mut self, cx: &mut Context<'_>) -> bool {
        let contexts = &mut self.0;
        let Some(place) = contexts.expired(cx.now_ns) else { return false };
        contexts.close(cx, place, FragmentEnd::TimedOut);
        true
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
    NodeSpec::new(
        kind.node(),
        "Lets fragments go on once the first says what layer 4 they are of",
        move |wiring| {
            let store = crate::config::first_store(kind, &shared, &pool);
            Box::new(VirtualReassembly(Contexts::new(kind, store, &shared, arc, wiring)))
        },
    )
    .slow_path()
    .reasons::<FragmentEnd>()
    .describe(move |record, names| description::keeper(kind, record, names))
}
