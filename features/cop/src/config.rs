//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::{InterfaceChange, InterfaceError};
use quiver_core::graph::stage::LookUp;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::tables::Whitelists;
use crate::whitelist::Whitelist;

/// Who holds a table, in refusals to delete it.
const HOLDER: &str = "COP (`show cop`)";

/// The state of COP.
pub(crate) struct Cop {
    /// Interfaces where it is switched on.
    enabled: BTreeSet<InterfaceId>,
    /// Small numbers of the tables that list sources.
    lists: BTreeMap<(InterfaceId, Family), u32>,
    published: Arc<Whitelists>,
}

/// The arc and the node of a family.
pub(crate) fn place(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ip4 => ("ip4-unicast", Whitelist::<Ip4>::NAME),
        Family::Ip6 => ("ip6-unicast", Whitelist::<Ip6>::NAME),
    }
}

impl Cop {
    pub fn new(published: Arc<Whitelists>) -> Cop {
        Cop { enabled: BTreeSet::new(), lists: BTreeMap::new(), published }
    }

    /// Is it switched on there?
    pub fn is_enabled(&self, interface: InterfaceId) -> bool {
        self.enabled.contains(&interface)
    }

    /// The table that lists an interface's sources.
    pub fn list(&self, interface: InterfaceId, family: Family) -> Option<u32> {
        self.lists.get(&(interface, family)).copied()
    }

    fn put(&mut self, id: InterfaceId, family: Family, table: Option<u32>) {
        match table {
            Some(table) => self.lists.insert((id, family), table),
            None => self.lists.remove(&(id, family)),
        };
        self.published.set(family, id, table);
    }
}

/// Let a family's node stand on the interface's way where COP is on and there is a list.
fn direct(
    engine: &mut Engine,
    id: InterfaceId,
    family: Family,
    on: bool,
) -> Result<(), InterfaceError> {
    let (arc, node) = place(family);
    engine.set_feature(id, arc, node, on)
}

/// Switch COP on or off on an interface. Its lists stay.
pub(crate) fn enable(engine: &mut Engine, id: InterfaceId, on: bool) -> Result<(), Refusal> {
    engine.with(|engine, cop: &mut Cop| {
        let listed =
            [Family::Ip4, Family::Ip6].into_iter().filter(|family| cop.list(id, *family).is_some());
        for (done, family) in listed.clone().enumerate() {
            if let Err(error) = direct(engine, id, family, on) {
                for family in listed.take(done) {
                    direct(engine, id, family, !on)?;
                }
                return Err(error.into());
            }
        }
        if on {
            cop.enabled.insert(id);
        } else {
            cop.enabled.remove(&id);
        }
        Ok(())
    })
}

/// Let a table list the sources that may come by an interface, or none.
pub(crate) fn set_list(
    engine: &mut Engine,
    id: InterfaceId,
    family: Family,
    table: Option<u32>,
) -> Result<(), Refusal> {
    engine.with(|engine, cop: &mut Cop| {
        let before = cop.list(id, family);
        let on = cop.is_enabled(id);
        match table {
            Some(_) => {
                cop.put(id, family, table);
                if on && let Err(error) = direct(engine, id, family, true) {
                    cop.put(id, family, before);
                    return Err(error.into());
                }
            }
            None if before.is_none() => {
                let name = engine.interface_name(id);
                return Err(Refusal::new(format!("{name} has no {family} whitelist"))
                    .remedy("`show cop` lists what is"));
            }
            None => {
                direct(engine, id, family, false)?;
                cop.put(id, family, None);
            }
        }
        hold(engine, family, before, table);
        Ok(())
    })
}

/// A table that a list names must not be deleted.
fn hold(engine: &mut Engine, family: Family, before: Option<u32>, now: Option<u32>) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    if let Some(table) = now {
        fib.hold_table(family, table, HOLDER);
    }
    if let Some(table) = before {
        fib.release_table(family, table, HOLDER);
    }
}

/// An interface that goes takes its lists along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, cop: &mut Cop| {
        cop.enabled.remove(&id);
        for family in [Family::Ip4, Family::Ip6] {
            let before = cop.list(id, family);
            cop.put(id, family, None);
            hold(engine, family, before, None);
        }
    });
}
