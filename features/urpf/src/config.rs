//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_tables::prefix::IpPrefix;

use crate::tables::{Check, Checks, Direction, Place};

/// Prefixes whose sources are exempt, at most: they are looked through one by one for packets that
/// fail.
pub const EXEMPT_PREFIXES_MAX: usize = 256;

/// Who holds a table, in refusals to delete it.
const HOLDER: &str = "uRPF (`show urpf`)";

/// The state of uRPF.
pub(crate) struct Urpf {
    checks: BTreeMap<Place, Check>,
    /// By family and small number of the table.
    exempt: BTreeSet<(Family, u32, IpPrefix)>,
    published: Arc<Checks>,
}

/// The node that makes a check.
pub(crate) fn node(family: Family, direction: Direction) -> (&'static str, &'static str) {
    match (family, direction) {
        (Family::Ip4, Direction::Rx) => ("ip4-unicast", "ip4-rx-urpf"),
        (Family::Ip6, Direction::Rx) => ("ip6-unicast", "ip6-rx-urpf"),
        (Family::Ip4, Direction::Tx) => ("interface-output", "ip4-tx-urpf"),
        (Family::Ip6, Direction::Tx) => ("interface-output", "ip6-tx-urpf"),
    }
}

impl Urpf {
    pub fn new(published: Arc<Checks>) -> Urpf {
        Urpf { checks: BTreeMap::new(), exempt: BTreeSet::new(), published }
    }

    /// All checks, by interface.
    pub fn checks(&self) -> impl Iterator<Item = (&Place, &Check)> {
        self.checks.iter()
    }

    /// All exempt prefixes, with the small numbers of their tables.
    pub fn exempt(&self) -> impl Iterator<Item = &(Family, u32, IpPrefix)> {
        self.exempt.iter()
    }

    /// What an interface's packets are checked for from now on.
    fn put(&mut self, place: Place, check: Option<Check>) {
        match check {
            Some(check) => self.checks.insert(place, check),
            None => self.checks.remove(&place),
        };
        self.published.set(place, check);
    }

    fn publish_exempt(&self) {
        self.published
            .set_exempt(self.exempt.iter().map(|(_, table, prefix)| (*table, *prefix)).collect());
    }
}

/// Let an interface's packets be checked, or no more. The check is there before its node is asked,
/// and goes after it.
pub(crate) fn set(engine: &mut Engine, place: Place, check: Option<Check>) -> Result<(), Refusal> {
    let (interface, family, direction) = place;
    let (arc, node) = node(family, direction);
    engine.with(|engine, urpf: &mut Urpf| {
        let before = urpf.checks.get(&place).copied();
        match check {
            Some(_) => {
                urpf.put(place, check);
                if let Err(error) = engine.set_feature(interface, arc, node, true) {
                    urpf.put(place, before);
                    return Err(error.into());
                }
            }
            None => {
                engine.set_feature(interface, arc, node, false)?;
                urpf.put(place, None);
            }
        }
        hold(engine, family, before, check);
        Ok(())
    })
}

/// A table that a check names must not be deleted.
fn hold(engine: &mut Engine, family: Family, before: Option<Check>, now: Option<Check>) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    if let Some(table) = now.and_then(|check| check.table) {
        fib.hold_table(family, table, HOLDER);
    }
    if let Some(table) = before.and_then(|check| check.table) {
        fib.release_table(family, table, HOLDER);
    }
}

/// Let sources of a prefix pass, or no more.
pub(crate) fn set_exempt(
    engine: &mut Engine,
    exempt: (Family, u32, IpPrefix),
    on: bool,
) -> Result<(), Refusal> {
    engine.with(|engine, urpf: &mut Urpf| {
        let (family, table, prefix) = exempt;
        if on && urpf.exempt.len() >= EXEMPT_PREFIXES_MAX && !urpf.exempt.contains(&exempt) {
            let what = format!("{EXEMPT_PREFIXES_MAX} prefixes are exempt already");
            return Err(Refusal::new(what).remedy("delete one, or join some into a shorter prefix"));
        }
        let changed = if on { urpf.exempt.insert(exempt) } else { urpf.exempt.remove(&exempt) };
        if !changed && !on {
            return Err(Refusal::new(format!("{prefix} is not exempt in that table"))
                .remedy("`show urpf` lists what is"));
        }
        urpf.publish_exempt();
        if let (true, Some(fib)) = (changed, engine.get_mut::<Fib>()) {
            if on {
                fib.hold_table(family, table, HOLDER)
            } else {
                fib.release_table(family, table, HOLDER)
            }
        }
        Ok(())
    })
}

/// An interface that goes takes its checks along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, urpf: &mut Urpf| {
        for family in [Family::Ip4, Family::Ip6] {
            for direction in [Direction::Rx, Direction::Tx] {
                let place = (id, family, direction);
                if let Some(before) = urpf.checks.get(&place).copied() {
                    urpf.put(place, None);
                    hold(engine, family, Some(before), None);
                }
            }
        }
    });
}
