//! Sessions of tables, on the control thread, and what they hold: policers and tables of routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_policing::meter::Colour;
use quiver_policing::{hold, release};

use crate::action::{Action, SessionAction};
use crate::config::{Config, refusal, unknown};
use crate::key::bytes_of;
use crate::routed::names;
use crate::tables::{Direction, Purpose, session_key};

/// In whose name tables of routes are held.
const HOLDER: &str = "a classifier session";
const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];

/// What a session is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// An access list permits or denies.
    Access(Action),
    /// This policer meters; packets had the colour before.
    Police { policer: Arc<str>, before: Colour },
    /// Packets are looked up in the table of this number.
    LookUp { family: Family, id: u32 },
}

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Its place among those of all tables.
    pub index: u32,
    pub wanted: Wanted,
}

/// Which sessions name tables of routes, and where packets are asked for that.
#[derive(Default)]
pub(crate) struct Routed {
    /// How many sessions name a table of routes.
    held: BTreeMap<(Family, u32), usize>,
    /// How many sessions of a classifier table name one of a family.
    sessions: BTreeMap<(u16, Family), usize>,
    /// Where the nodes stand on the path.
    on: BTreeSet<(InterfaceId, Family)>,
}

impl Routed {
    /// An interface that goes has no nodes.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.on.retain(|(on, _)| *on != id);
    }
}

/// One more or less; is it the first one, or the last?
fn count<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K, is_more: bool) -> bool {
    if is_more {
        let count = counts.entry(key).or_default();
        *count += 1;
        return *count == 1;
    }
    let Some(count) = counts.get_mut(&key) else { return false };
    *count = count.saturating_sub(1);
    let is_last = *count == 0;
    if is_last {
        counts.remove(&key);
    }
    is_last
}

/// In whose name policers are held.
fn user(table: u16) -> String {
    format!("sessions of classifier table {table} (`show classify tables index {table} verbose`)")
}

/// Hold what a session of a table names, for workers to use it.
fn take_hold(
    engine: &mut Engine,
    routed: &mut Routed,
    table: u16,
    wanted: &Wanted,
) -> Result<SessionAction, Refusal> {
    match wanted {
        Wanted::Access(action) => Ok(SessionAction::Access(*action)),
        Wanted::Police { policer, before } => {
            let policer = hold(engine, policer, &user(table))?;
            Ok(SessionAction::Police { policer, before: *before })
        }
        Wanted::LookUp { family, id } => {
            let (family, id) = (*family, *id);
            let fib = engine.get_mut::<Fib>();
            let fib = fib.ok_or_else(|| Refusal::new("this router does not route packets"))?;
            let index = fib
                .table_index(family, id)
                .ok_or_else(|| Refusal::new(FibError::NoTable { family, id }.to_string()))?;
            if count(&mut routed.held, (family, id), true) {
                fib.hold_table(family, index, HOLDER);
            }
            count(&mut routed.sessions, (table, family), true);
            Ok(SessionAction::LookUp { family, table: index })
        }
    }
}

/// A session of a table names this no more. Workers do not see it any longer, or count or drop the
/// packets of a pass.
pub(crate) fn let_go(engine: &mut Engine, routed: &mut Routed, table: u16, wanted: &Wanted) {
    match wanted {
        Wanted::Access(_) => {}
        Wanted::Police { policer, .. } => release(engine, policer, &user(table)),
        Wanted::LookUp { family, id } => {
            count(&mut routed.sessions, (table, *family), false);
            if count(&mut routed.held, (*family, *id), false)
                && let Some(fib) = engine.get_mut::<Fib>()
                && let Some(index) = fib.table_index(*family, *id)
            {
                fib.release_table(*family, index, HOLDER);
            }
        }
    }
}

/// Let the nodes that look for tables of routes stand on the paths of those interfaces whose tables
/// have such sessions.
pub(crate) fn place(engine: &mut Engine, config: &mut Config) -> Result<(), Refusal> {
    if config.routed.sessions.is_empty() && config.routed.on.is_empty() {
        return Ok(());
    }
    let mut wanted = BTreeSet::new();
    for ((id, purpose, direction), lists) in &config.lists {
        if (*purpose, *direction) != (Purpose::Access, Direction::Input) {
            continue;
        }
        for (family, first) in FAMILIES.into_iter().zip([lists.ip4, lists.ip6]) {
            let mut chain = first.into_iter().flat_map(|first| config.chain(first));
            if chain.any(|table| config.routed.sessions.contains_key(&(table, family))) {
                wanted.insert((*id, family));
            }
        }
    }
    let on = &mut config.routed.on;
    for (id, family) in wanted.difference(&on.clone()) {
        let (arc, node, _) = names(*family);
        engine.set_feature(*id, arc, node, true)?;
        on.insert((*id, *family));
    }
    for (id, family) in on.clone().difference(&wanted) {
        let (arc, node, _) = names(*family);
        engine.set_feature(*id, arc, node, false)?;
        on.remove(&(*id, *family));
    }
    Ok(())
}

/// Add a session to a table, or let it do something else.
pub(crate) fn put(
    engine: &mut Engine,
    number: u16,
    text: &str,
    wanted: Wanted,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let table = config.tables.get(&number).ok_or_else(|| unknown(number))?;
        let key = table.mask.read_match(text).map_err(refusal)?;
        let before = table.sessions.get(&bytes_of(&key)).cloned();
        let action = take_hold(engine, &mut config.routed, number, &wanted)?;
        let index = match &before {
            Some(known) => {
                config.published().set_action(known.index, action);
                known.index
            }
            None => {
                config.sessions.collect();
                let added = config.sessions.add(&session_key(number, &key), action);
                added.inspect_err(|_| let_go(engine, &mut config.routed, number, &wanted))?
            }
        };
        let is_about_routes = |wanted: &Wanted| matches!(wanted, Wanted::LookUp { .. });
        let mut changes_routes = is_about_routes(&wanted);
        if let Some(known) = before {
            changes_routes |= is_about_routes(&known.wanted);
            let_go(engine, &mut config.routed, number, &known.wanted);
        }
        if let Some(table) = config.tables.get_mut(&number) {
            table.sessions.insert(bytes_of(&key), Session { index, wanted });
        }
        if changes_routes { place(engine, config) } else { Ok(()) }
    })
}

/// Take a session out of its table.
pub(crate) fn delete(engine: &mut Engine, number: u16, text: &str) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let table = config.tables.get_mut(&number).ok_or_else(|| unknown(number))?;
        let key = table.mask.read_match(text).map_err(refusal)?;
        let Some(session) = table.sessions.remove(&bytes_of(&key)) else {
            let what = format!("classifier table {number} has no such session");
            let remedy = format!("`show classify tables index {number} verbose` lists them");
            return Err(Refusal::new(what).remedy(remedy));
        };
        config.sessions.delete(&session_key(number, &key));
        config.sessions.collect();
        let_go(engine, &mut config.routed, number, &session.wanted);
        place(engine, config)
    })
}
