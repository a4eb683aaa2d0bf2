//! What was heard goes into the tables of neighbours; interfaces that change take theirs along.

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::graph::arrivals::{Arrival, Arrivals};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::lldp::LLDPDU_BYTES_MAX;

use crate::config::{Lldp, forget};
use crate::transmit::{chassis_mac, greet, say_last};

type Lldpdu = Arrival<LLDPDU_BYTES_MAX>;

/// Fetch what workers have heard, on every turn of the control loop.
pub(crate) fn fetch(engine: &mut Engine, received: &mut Arrivals<LLDPDU_BYTES_MAX>) {
    while let Some(lldpdu) = received.take() {
        hear(engine, &lldpdu);
    }
}

fn hear(engine: &mut Engine, lldpdu: &Lldpdu) {
    let now_ns = engine.now_ns();
    let own = chassis_mac(engine).to_string();
    // It may have been disabled while this was under way.
    let Some(lldp) = engine.get_mut::<Lldp>() else { return };
    let Some(port) = lldp.ports.get_mut(&lldpdu.rx) else { return };
    let is_new = port.neighbours.hear(lldpdu.bytes(), now_ns, &mut port.statistics);
    // Two ports of this router that are linked need not greet each other without end.
    let is_other = port.neighbours.iter().last().is_some_and(|last| last.chassis_id() != own);
    if is_new && is_other {
        greet(port);
    }
}

/// Who was heard behind a link is forgotten when it goes down, and who comes is told at once.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    match change {
        InterfaceChange::Deleted => forget(engine, id),
        InterfaceChange::GoingDown => say_last(engine, id),
        InterfaceChange::State => {
            let lldp = engine.get_mut::<Lldp>();
            let Some(port) = lldp.and_then(|lldp| lldp.ports.get_mut(&id)) else { return };
            port.due_ns = 0;
            if !up {
                port.neighbours.clear();
            }
        }
        _ => {}
    }
}
