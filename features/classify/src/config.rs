//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_policing::PolicerTables;
use quiver_tables::memory::MemoryError;

use crate::action::Action;
use crate::key::{KEY_BYTES, key_of};
use crate::mask::Mask;
use crate::session_config::{self, Session, let_go};
use crate::tables::{Access, CHAIN_MAX, Direction, Purpose, Sessions, TABLES_MAX, Tables};
use crate::tables::{Table, session_key};

/// A table that is configured.
pub(crate) struct Configured {
    pub mask: Mask,
    pub next: Option<u16>,
    pub miss: Action,
    pub misses: Arc<AtomicU64>,
    /// By the bytes that packets have under the mask.
    pub sessions: BTreeMap<[u8; KEY_BYTES], Session>,
}

/// What tables classify: an interface's packets in a direction, for a purpose.
pub(crate) type On = (InterfaceId, Purpose, Direction);

/// The tables of an interface and direction, by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub ip4: Option<u16>,
    pub ip6: Option<u16>,
    pub l2: Option<u16>,
}

impl Lists {
    /// Each with its word.
    pub fn named(self) -> [(&'static str, Option<u16>); 3] {
        [("ip4-table", self.ip4), ("ip6-table", self.ip6), ("l2-table", self.l2)]
    }
}

/// All of it.
pub(crate) struct Config {
    pub tables: BTreeMap<u16, Configured>,
    pub lists: BTreeMap<On, Lists>,
    pub routed: session_config::Routed,
    pub(crate) sessions: Sessions,
    published: Arc<Tables>,
}

impl Config {
    /// Nothing.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>) -> Result<Config, MemoryError> {
        let (sessions, published) = Sessions::new(epochs)?;
        let (tables, lists) = (BTreeMap::new(), BTreeMap::new());
        let routed = session_config::Routed::default();
        Ok(Config { tables, lists, routed, sessions, published })
    }

    pub fn published(&self) -> &Arc<Tables> {
        &self.published
    }

    /// A table.
    pub fn known(&self, number: u16) -> Result<&Configured, Refusal> {
        self.tables.get(&number).ok_or_else(|| unknown(number))
    }

    /// The tables that a packet which begins at this one may pass.
    pub fn chain(&self, number: u16) -> impl Iterator<Item = u16> {
        let next = |number: &u16| self.tables.get(number).and_then(|table| table.next);
        std::iter::successors(Some(number), next).take(CHAIN_MAX + 1)
    }

    /// How many they are.
    pub fn depth(&self, number: u16) -> usize {
        self.chain(number).count()
    }
}

pub(crate) fn unknown(number: u16) -> Refusal {
    Refusal::new(format!("there is no classifier table {number}"))
        .remedy("`show classify tables` lists them; `classify table … mask …` makes one")
}

/// Make a table, of this number or the smallest that is free; its number.
pub(crate) fn add_table(
    engine: &mut Engine,
    number: Option<u16>,
    mask: Mask,
    (miss, next): (Action, Option<u16>),
) -> Result<u16, Refusal> {
    engine.with(|_, config: &mut Config| {
        let free = || (0..TABLES_MAX as u16).find(|number| !config.tables.contains_key(number));
        let Some(number) = number.or_else(free) else {
            let what = format!("there are {TABLES_MAX} classifier tables already");
            return Err(Refusal::new(what).remedy("`classify table del table N` deletes one"));
        };
        if let Some(known) = config.tables.get(&number) {
            if (&known.mask, known.miss, known.next) == (&mask, miss, next) {
                return Ok(number);
            }
            let what = format!("classifier table {number} is there, and is another one");
            return Err(Refusal::new(what)
                .remedy(format!("`classify table del table {number}` deletes it")));
        }
        if let Some(next) = next {
            config.known(next)?;
            if config.depth(next) >= CHAIN_MAX {
                let what = format!("a chain has at most {CHAIN_MAX} classifier tables");
                return Err(Refusal::new(what).remedy("begin it at a later one"));
            }
        }
        let misses = Arc::new(AtomicU64::new(0));
        let (form, key) = (mask.form, mask.key);
        let table = Table { form, mask: key, next, miss, misses: misses.clone() };
        config.published.set_table(number, Some(table));
        let sessions = BTreeMap::new();
        config.tables.insert(number, Configured { mask, next, miss, misses, sessions });
        Ok(number)
    })
}

/// Delete a table that nothing uses, with its sessions.
pub(crate) fn delete_table(engine: &mut Engine, number: u16) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        config.known(number)?;
        if let Some((other, _)) = config.tables.iter().find(|(_, of)| of.next == Some(number)) {
            let what = format!("classifier table {number} is behind table {other}");
            return Err(Refusal::new(what).remedy("delete that one first"));
        }
        let uses = |lists: &Lists| lists.named().iter().any(|(_, table)| *table == Some(number));
        if let Some((on, _)) = config.lists.iter().find(|(_, lists)| uses(lists)) {
            let (id, purpose, direction) = *on;
            let (on, word) = (engine.interface_name(id), direction.word());
            let what = format!("classifier table {number} classifies the {word} of {on}");
            let remedy = match purpose {
                Purpose::Access => format!("`set interface {word} acl intfc {on} del` first"),
                Purpose::Police => {
                    format!("`set policer classify interface {on} {word} del` first")
                }
            };
            return Err(Refusal::new(what).remedy(remedy));
        }
        config.published.set_table(number, None);
        if let Some(table) = config.tables.remove(&number) {
            for (bytes, session) in table.sessions {
                config.sessions.delete(&session_key(number, &key_of(&bytes)));
                let_go(engine, &mut config.routed, number, &session.wanted);
            }
        }
        config.sessions.collect();
        Ok(())
    })
}

/// A mistake in a mask or match, as a refusal.
pub(crate) fn refusal(mistake: crate::mask::Mistake) -> Refusal {
    Refusal::new(mistake.what).remedy(mistake.remedy)
}

/// Let tables classify what an interface receives or sends; none where there are none.
pub(crate) fn set_lists(engine: &mut Engine, on: On, lists: Lists) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        for (_, table) in lists.named() {
            table.map_or(Ok(()), |table| config.known(table).map(|_| ()))?;
        }
        let before = config.lists.get(&on).copied().unwrap_or_default();
        apply(engine, &config.published, on, (before, lists)).inspect_err(|_| {
            // What was before was possible before.
            let _ = apply(engine, &config.published, on, (lists, before));
        })?;
        config.set(on, lists);
        session_config::place(engine, config).inspect_err(|_| {
            config.set(on, before);
            let _ = apply(engine, &config.published, on, (lists, before));
        })
    })
}

/// [`set_lists`] of policers, as [`TableKeeper`](quiver_policing::TableKeeper) has it.
pub(crate) fn set_policer_tables(
    engine: &mut Engine,
    (id, is_output): (InterfaceId, bool),
    tables: PolicerTables,
) -> Result<(), Refusal> {
    let PolicerTables { ip4, ip6, l2 } = tables;
    set_lists(engine, (id, Purpose::Police, Direction::of(is_output)), Lists { ip4, ip6, l2 })
}

/// The tables that say which policer meters packets of an interface.
pub(crate) fn policer_tables(
    engine: &Engine,
    (id, is_output): (InterfaceId, bool),
) -> PolicerTables {
    let on = (id, Purpose::Police, Direction::of(is_output));
    let lists = engine.get::<Config>().and_then(|config| config.lists.get(&on));
    let Lists { ip4, ip6, l2 } = lists.copied().unwrap_or_default();
    PolicerTables { ip4, ip6, l2 }
}

impl Config {
    fn set(&mut self, on: On, lists: Lists) {
        if lists == Lists::default() {
            self.lists.remove(&on);
        } else {
            self.lists.insert(on, lists);
        }
    }
}

fn apply(
    engine: &mut Engine,
    published: &Tables,
    (id, purpose, direction): On,
    (before, wanted): (Lists, Lists),
) -> Result<(), Refusal> {
    let is_bare = engine.interface(id).is_some_and(|interface| interface.row().mac == [0; 6]);
    let number = |table: Option<u16>| table.map_or(0, |table| table + 1);
    let Lists { ip4, ip6, l2 } = wanted;
    let access = Access { ip4: number(ip4), ip6: number(ip6), l2: number(l2), is_bare };
    published.set_access((purpose, direction), id, access);
    let (was, is) = (before != Lists::default(), wanted != Lists::default());
    if was != is {
        let node = match purpose {
            Purpose::Access => direction.node(),
            Purpose::Police => direction.policer_node(),
        };
        engine.set_feature(id, direction.arc(), node, is)?;
    }
    Ok(())
}

/// An interface that goes lets its tables go.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|_, config: &mut Config| {
        for purpose in Purpose::ALL {
            for direction in Direction::ALL {
                config.published.set_access((purpose, direction), id, Access::default());
                config.lists.remove(&(id, purpose, direction));
            }
        }
        config.routed.forget_interface(id);
    });
}
