//! Virtual reassembly: fragments wait for the first of their packet; then all go on as they are,
//! with what its header says noted beside them ([`Upper`]).

use quiver_core::{Context, Packet};
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_wire::upper::Upper;

use crate::contexts::{Arrived, Contexts};
use crate::fragment::Fragment;
use crate::node::Form;
use crate::reasons::FragmentEnd;
use crate::store::Place;

/// Fragments go on as they are.
pub(crate) struct Virtual;

impl Form for Virtual {
    fn help(&self) -> &'static str {
        "Lets fragments go on once the first says what layer 4 they are of"
    }

    /// Its bytes say everything.
    fn pass_atomic(
        &self,
        contexts: &Contexts,
        cx: &mut Context<'_>,
        _: &Fragment,
        packet: Packet,
        request: ReassemblyRequest,
    ) {
        contexts.send_on(cx, packet, request);
    }

    fn take(
        &self,
        contexts: &mut Contexts,
        cx: &mut Context<'_>,
        arrived: Arrived,
        request: ReassemblyRequest,
    ) {
        let place = arrived.place;
        let first = arrived.piece.start == 0;
        let good = if first { look_at_first(contexts, cx, arrived) } else { Some(arrived) };
        if let Some(arrived) = good {
            pass(contexts, cx, arrived, request);
        }
        let context = contexts.store.at(place);
        if context.is_complete() && context.upper.is_some() {
            contexts.close_empty(place);
        }
    }

    fn expire(&self, contexts: &mut Contexts, cx: &mut Context<'_>, place: Place) {
        contexts.close(cx, place, FragmentEnd::TimedOut);
    }
}

/// The first fragment: what it says holds for all. One that says something else than the first
/// of these is an overlap.
fn look_at_first(
    contexts: &mut Contexts,
    cx: &mut Context<'_>,
    arrived: Arrived,
) -> Option<Arrived> {
    let bytes = arrived.packet.bytes();
    let upper = if contexts.kind.is_six() { Upper::of_ip6(bytes) } else { Upper::of_ip4(bytes) };
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
fn pass(
    contexts: &mut Contexts,
    cx: &mut Context<'_>,
    arrived: Arrived,
    request: ReassemblyRequest,
) {
    let place = arrived.place;
    let Some(upper) = contexts.store.at(place).upper else {
        if let Err(packet) = contexts.keep(cx, arrived, true) {
            contexts.drop_packet(cx, packet, FragmentEnd::Duplicate);
        }
        return;
    };
    // One that has gone on before may do so again; with the first go those that waited for it.
    if let Ok(Some(packet)) | Err(packet) = contexts.keep(cx, arrived, false) {
        send_noted(contexts, cx, packet, &upper, request);
        while let Some(waited) = contexts.store.take_first_packet(place) {
            contexts.give(waited.buffer_count());
            send_noted(contexts, cx, waited, &upper, request);
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
