//! `ip4-sv-reassembly`, `ip6-sv-reassembly`: fragments wait for the first of their packet; then all go on as
//! they are, with what its header says noted beside them ([`Upper`]).

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::buffer::BufferPool;
use quiver_core::{Context, Frame, Packet};
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
        let shelf = &mut self.0;
        let request = packet.index;
        let Some((piece, packet)) = shelf.read(cx, packet) else { return };
        if piece.is_atomic() {
            return shelf.send_on(cx, packet, request); // its bytes say everything
        }
        let Some(arrived) = shelf.seat(cx, piece, packet) else { return };
        let place = arrived.place;
        let first = if piece.start == 0 { self.look_at_first(cx, arrived) } else { Some(arrived) };
        if let Some(arrived) = first {
            self.pass(cx, arrived, request);
        }
        let shelf = &mut self.0;
        let context = shelf.store.at(place);
        if context.is_complete() && context.upper.is_some() {
            shelf.close_empty(place);
        }
    }

    /// The first fragment: what it says holds for all. One that says something else than the first of these
    /// is an overlap.
    fn look_at_first(&mut self, cx: &mut Context<'_>, arrived: Arrived) -> Option<Arrived> {
        let shelf = &mut self.0;
        let bytes = arrived.packet.bytes();
        let upper = if shelf.kind.is_six() { Upper::of_ip6(bytes) } else { Upper::of_ip4(bytes) };
        let known = shelf.store.at(arrived.place).upper;
        let why = match (upper, known) {
            (Ok(upper), None) => {
                shelf.store.at_mut(arrived.place).upper = Some(upper);
                return Some(arrived);
            }
            (Ok(upper), Some(known)) if upper == known => return Some(arrived),
            (Ok(_), Some(_)) => FragmentEnd::Overlap,
            (Err(_), _) => FragmentEnd::HeaderChain,
        };
        shelf.drop_packet(cx, arrived.packet, why);
        shelf.refuse_all(cx, arrived.place, why);
        None
    }

    /// Keep the fragment while the first is missing, else let it go on.
    fn pass(&mut self, cx: &mut Context<'_>, arrived: Arrived, request: u32) {
        let shelf = &mut self.0;
        let place = arrived.place;
        let Some(upper) = shelf.store.at(place).upper else {
            if let Err(packet) = shelf.keep(cx, arrived, true) {
                shelf.drop_packet(cx, packet, FragmentEnd::Duplicate);
            }
            return;
        };
        // One that has gone on before may do so again; with the first go those that waited for it.
        if let Ok(Some(packet)) | Err(packet) = shelf.keep(cx, arrived, false) {
            Self::send_noted(shelf, cx, packet, &upper, request);
            while let Some(waited) = shelf.store.take_first_packet(place) {
                shelf.give(waited.buffer_count());
                Self::send_noted(shelf, cx, waited, &upper, request);
            }
        }
    }

    fn send_noted(shelf: &Contexts, cx: &mut Context<'_>, mut packet: Packet, upper: &Upper, request: u32) {
        packet.set_note(upper.to_note());
        cx.count(FragmentEnd::WentOn, 1);
        shelf.send_on(cx, packet, request);
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
    fn shelf(&mut self) -> &mut Contexts {
        &mut self.0
    }

    fn expire(&mut self, cx: &mut Context<'_>) -> bool {
        let shelf = &mut self.0;
        let Some(place) = shelf.expired(cx.now_ns) else { return false };
        shelf.close(cx, place, FragmentEnd::TimedOut);
        true
    }
}

/// The declaration.
pub(crate) fn spec(kind: Kind, shared: &Arc<Shared>, pool: &Arc<BufferPool>, arc: ArcId) -> NodeSpec {
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
