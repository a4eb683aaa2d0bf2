//! Which interfaces take labelled packets, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{Refusal, Registry};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError, LabelNodes};
use quiver_forwarding::nodes;

use crate::interfaces::MplsInterfaces;

/// Interfaces that take labelled packets, with the operator's numbers of their label tables.
pub(crate) struct Mpls {
    workers: Arc<MplsInterfaces>,
    enabled: BTreeMap<InterfaceId, u32>,
}

/// Let the FIB use the nodes of labels, and keep the state.
pub(crate) fn register(registry: &mut Registry, workers: Arc<MplsInterfaces>) {
    registry.on_start(move |engine| {
        engine.insert(Mpls { workers, enabled: BTreeMap::new() });
        if let Some(nodes) = label_nodes(engine)
            && let Some(fib) = engine.get_mut::<Fib>()
        {
            fib.set_label_nodes(nodes);
        }
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted
                && let Some(mpls) = engine.get_mut::<Mpls>()
            {
                mpls.set(id, None);
            }
        });
    });
}

fn label_nodes(engine: &Engine) -> Option<LabelNodes> {
    let node = |name| engine.node_id(name);
    Some(LabelNodes {
        impose: [node(nodes::mpls::IMPOSE_IP4)?, node(nodes::mpls::IMPOSE_IP6)?],
        impose_ethernet: node(nodes::mpls::IMPOSE_ETHERNET)?,
        output: node(nodes::mpls::OUTPUT)?,
        swap: node(nodes::mpls::SWAP)?,
        pop: node(nodes::mpls::POP)?,
        pop_lookup: [node(nodes::mpls::POP_IP4)?, node(nodes::mpls::POP_IP6)?],
        lookup: node(nodes::mpls::LOOKUP_IN_TABLE)?,
        interface_rx: node(nodes::mpls::INTERFACE_RX)?,
        frame_rx: node(nodes::mpls::FRAME_RX)?,
        drop: node(nodes::mpls::DROP)?,
    })
}

impl Mpls {
    fn set(&mut self, id: InterfaceId, table: Option<(u32, u32)>) {
        self.workers.set(id, table.map(|(_, index)| index));
        match table {
            Some((number, _)) => self.enabled.insert(id, number),
            None => self.enabled.remove(&id),
        };
    }

    /// The operator's number of an interface's label table.
    pub fn table_of(&self, id: InterfaceId) -> Option<u32> {
        self.enabled.get(&id).copied()
    }

    /// Interfaces that take labelled packets.
    pub fn enabled(&self) -> impl Iterator<Item = InterfaceId> {
        self.enabled.keys().copied()
    }
}

/// The FIB, to look at.
pub(crate) fn fib(engine: &Engine) -> Result<&Fib, Refusal> {
    engine.get::<Fib>().ok_or_else(busy)
}

/// The FIB, to change.
pub(crate) fn fib_mut(engine: &mut Engine) -> Result<&mut Fib, Refusal> {
    engine.get_mut::<Fib>().ok_or_else(busy)
}

fn busy() -> Refusal {
    Refusal::new("the forwarding table is being changed")
}

/// The small number of the operator's label table.
pub(crate) fn table_index(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    let index = fib(engine)?.label_table_index(id);
    index.ok_or_else(|| Refusal::new(FibError::NoLabelTable(id).to_string()))
}

/// Let an interface take labelled packets and look them up in a table, or take none.
pub(crate) fn enable(
    engine: &mut Engine,
    id: InterfaceId,
    table: Option<u32>,
) -> Result<(), Refusal> {
    if engine.interface(id).is_some_and(|interface| interface.passes_on_only) {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("{name} only passes frames on")));
    }
    let table = match table {
        Some(number) => Some((number, table_index(engine, number)?)),
        None => None,
    };
    engine.with(|_, mpls: &mut Mpls| mpls.set(id, table));
    Ok(())
}

/// Delete a label table in which no interface is.
pub(crate) fn delete_table(engine: &mut Engine, id: u32) -> Result<(), Refusal> {
    let used = engine
        .get::<Mpls>()
        .and_then(|mpls| mpls.enabled.iter().find(|(_, table)| **table == id).map(|(on, _)| *on));
    if let Some(on) = used {
        let name = engine.interface_name(on);
        let user = format!("interface {name}");
        return Err(Refusal::new(FibError::LabelTableInUse { id, user }.to_string())
            .remedy(format!("set interface mpls {name} disable")));
    }
    let done = fib_mut(engine)?.delete_label_table(id);
    done.map_err(|error| Refusal::of_table(engine, error))
}
