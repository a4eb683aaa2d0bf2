//! Sub-interfaces as the control thread knows them: made, deleted, and written down.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{ConfigWriter, ETHERNET_INPUT, Refusal, modes};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::sub_interface::SubInterfaceSpec;
use quiver_core::{Engine, InterfaceId};

use super::matching::Matching;
use super::table::VlanTable;

/// A sub-interface.
#[derive(Clone, Copy, Debug)]
pub struct SubInterface {
    /// The interface that it is a part of.
    pub parent: InterfaceId,
    /// Its number there: `PARENT.NUMBER` is its name.
    pub number: u32,
    /// Which frames it takes.
    pub matching: Matching,
}

/// All sub-interfaces.
pub struct SubInterfaces {
    all: BTreeMap<InterfaceId, SubInterface>,
    /// Who has which place in the table of a port.
    places: BTreeMap<(InterfaceId, Matching), InterfaceId>,
    table: Arc<VlanTable>,
}

impl SubInterfaces {
    pub(crate) fn new() -> SubInterfaces {
        SubInterfaces {
            all: BTreeMap::new(),
            places: BTreeMap::new(),
            table: Arc::new(VlanTable::new()),
        }
    }

    pub(crate) fn table(&self) -> &Arc<VlanTable> {
        &self.table
    }

    /// All, by number of interface.
    pub fn all(&self) -> &BTreeMap<InterfaceId, SubInterface> {
        &self.all
    }

    fn add(&mut self, id: InterfaceId, sub_interface: SubInterface) {
        let SubInterface { parent, matching, .. } = sub_interface;
        self.all.insert(id, sub_interface);
        self.places.insert((parent, matching.place()), id);
        self.table.set(parent, matching, Some(id));
    }

    fn remove(&mut self, id: InterfaceId) -> Option<SubInterface> {
        let removed = self.all.remove(&id)?;
        self.places.remove(&(removed.parent, removed.matching.place()));
        self.table.set(removed.parent, removed.matching, None);
        Some(removed)
    }
}

/// Make a sub-interface, called `PARENT.NUMBER`.
pub fn create(
    engine: &mut Engine,
    parent: InterfaceId,
    number: u32,
    matching: Matching,
) -> Result<InterfaceId, Refusal> {
    modes::check_free(engine, parent)?;
    modes::check_frames(engine, parent)?;
    let parent_name = engine.interface_name(parent);
    let state = engine.get::<SubInterfaces>();
    let taken = state.and_then(|subs| subs.places.get(&(parent, matching.place()))).copied();
    if let Some(taken) = taken {
        let taken = engine.interface_name(taken);
        return Err(Refusal::new(format!("{matching} of {parent_name} is {taken} already"))
            .remedy("`show vlan` lists what sub-interfaces take"));
    }
    let name = format!("{parent_name}.{number}");
    let id = engine.create_sub_interface(SubInterfaceSpec {
        parent,
        name: name.clone(),
        encapsulation: matching.encapsulation(),
        input: ETHERNET_INPUT.to_owned(),
    })?;
    if let Some(subs) = engine.get_mut::<SubInterfaces>() {
        subs.add(id, SubInterface { parent, number, matching });
    }
    if let Err(refusal) = direct(engine, parent) {
        engine.delete_interface(id)?;
        return Err(refusal);
    }
    Ok(id)
}

/// Delete a sub-interface.
pub fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    if engine.get::<SubInterfaces>().is_none_or(|subs| !subs.all.contains_key(&id)) {
        let name = engine.interface_name(id);
        return Err(
            Refusal::new(format!("{name} is not a sub-interface")).remedy("`show vlan` lists them")
        );
    }
    Ok(engine.delete_interface(id)?)
}

/// Let all frames of a port that has sub-interfaces pass `vlan-input`, which does for the port
/// itself what its input node would do.
fn direct(engine: &mut Engine, port: InterfaceId) -> Result<(), Refusal> {
    if engine.interface(port).is_none() {
        return Ok(());
    }
    let needed = engine.sub_interfaces(port).next().is_some();
    Ok(engine.set_feature(port, "device-input", super::INPUT, needed)?)
}

/// A sub-interface that goes leaves its place in the table.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    let Some(gone) = engine.get_mut::<SubInterfaces>().and_then(|subs| subs.remove(id)) else {
        return;
    };
    // It is the last one, and still there while observers hear of its end.
    if engine.sub_interfaces(gone.parent).all(|other| other == id)
        && let Err(error) = engine.set_feature(gone.parent, "device-input", super::INPUT, false)
    {
        tracing::warn!("{}: {error}", engine.interface_name(gone.parent));
    }
}

pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<SubInterfaces>().into_iter().flat_map(|subs| subs.all.keys()).copied().collect()
}

pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(sub) = engine.get::<SubInterfaces>().and_then(|subs| subs.all.get(&id)) {
        let (parent, number) = (engine.interface_name(sub.parent), sub.number);
        config.command(format_args!("create sub-interfaces {parent} {number} {}", sub.matching));
    }
}
