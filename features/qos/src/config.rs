//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};

use crate::class::Source;
use crate::map::EgressMap;
use crate::tables::{PerSource, RECORD, STORE, Tables};
use crate::{mark, record};

/// What is recorded and written on an interface, by the number of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OnInterface {
    /// Are the classes of headers recorded?
    pub recorded: [bool; Source::ALL.len()],
    /// A class that is recorded in place of the header's.
    pub stored: [Option<u8>; Source::ALL.len()],
    /// The map by which classes are written.
    pub maps: [Option<u16>; Source::ALL.len()],
}

impl OnInterface {
    fn input(&self) -> PerSource {
        Source::HEADERS.into_iter().fold(PerSource::default(), |all, source| {
            let at = source as usize;
            let number = match (self.stored[at], self.recorded[at]) {
                (Some(value), _) => STORE | u16::from(value),
                (None, true) => RECORD,
                (None, false) => 0,
            };
            all.with(source, number)
        })
    }

    fn output(&self) -> PerSource {
        Source::HEADERS.into_iter().fold(PerSource::default(), |all, source| {
            all.with(source, self.maps[source as usize].map_or(0, |map| map + 1))
        })
    }
}

/// All of it.
pub(crate) struct Config {
    pub maps: BTreeMap<u16, EgressMap>,
    pub interfaces: BTreeMap<InterfaceId, OnInterface>,
    published: Arc<Tables>,
}

impl Config {
    pub fn new(epochs: &Arc<Epochs>) -> Config {
        let published = Arc::new(Tables::new(epochs));
        Config { maps: BTreeMap::new(), interfaces: BTreeMap::new(), published }
    }

    pub fn published(&self) -> &Arc<Tables> {
        &self.published
    }

    /// The interfaces and headers that a map writes.
    fn uses(&self, map: u16) -> impl Iterator<Item = (InterfaceId, Source)> {
        self.interfaces.iter().flat_map(move |(id, on)| {
            let by = move |source: &Source| on.maps[*source as usize] == Some(map);
            Source::HEADERS.into_iter().filter(by).map(move |source| (*id, source))
        })
    }
}

/// May a map write into this header?
fn check_width(number: u16, map: &EgressMap, source: Source) -> Result<(), Refusal> {
    let (greatest, max) = (map.out_max(), source.value_max());
    if greatest > max {
        let word = source.word();
        let what = format!("map {number} writes {greatest}, and the class of {word} is 0 to {max}");
        return Err(Refusal::new(what).remedy(format!("use a map for {word} alone")));
    }
    Ok(())
}

/// Make a map, or replace it.
pub(crate) fn put_map(engine: &mut Engine, number: u16, map: EgressMap) -> Result<(), Refusal> {
    engine.with(|_, config: &mut Config| {
        config.uses(number).try_for_each(|(_, source)| check_width(number, &map, source))?;
        config.published.set_map(number, Some(map.clone()));
        config.maps.insert(number, map);
        Ok(())
    })
}

fn unknown(number: u16) -> Refusal {
    Refusal::new(format!("there is no egress map {number}"))
        .remedy("`show qos egress map` lists them; `qos egress map id …` makes one")
}

/// Delete a map that nobody uses.
pub(crate) fn delete_map(engine: &mut Engine, number: u16) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        if !config.maps.contains_key(&number) {
            return Err(unknown(number));
        }
        if let Some((id, source)) = config.uses(number).next() {
            let (word, on) = (source.word(), engine.interface_name(id));
            let what = format!("egress map {number} marks {word} on {on}");
            return Err(Refusal::new(what).remedy(format!("`qos mark {word} {on} disable` first")));
        }
        config.published.set_map(number, None);
        config.maps.remove(&number);
        Ok(())
    })
}

/// Let an interface's headers be written by a map, which must exist.
pub(crate) fn mark(
    engine: &mut Engine,
    on: InterfaceId,
    source: Source,
    number: u16,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let map = config.maps.get(&number).ok_or_else(|| unknown(number))?;
        check_width(number, map, source)?;
        change(engine, config, on, |on| on.maps[source as usize] = Some(number))
    })
}

/// Change what is recorded and written on an interface.
pub(crate) fn set(
    engine: &mut Engine,
    on: InterfaceId,
    set: impl FnOnce(&mut OnInterface),
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| change(engine, config, on, set))
}

fn change(
    engine: &mut Engine,
    config: &mut Config,
    on: InterfaceId,
    set: impl FnOnce(&mut OnInterface),
) -> Result<(), Refusal> {
    let before = config.interfaces.get(&on).copied().unwrap_or_default();
    let mut wanted = before;
    set(&mut wanted);
    apply(engine, &config.published, on, (before, wanted)).inspect_err(|_| {
        // What was before was possible before.
        let _ = apply(engine, &config.published, on, (wanted, before));
    })?;
    if wanted == OnInterface::default() {
        config.interfaces.remove(&on);
    } else {
        config.interfaces.insert(on, wanted);
    }
    Ok(())
}

fn apply(
    engine: &mut Engine,
    tables: &Tables,
    on: InterfaceId,
    (before, wanted): (OnInterface, OnInterface),
) -> Result<(), Refusal> {
    tables.set_input(on, wanted.input());
    tables.set_output(on, wanted.output());
    for (arc, node, was, is) in [
        ("device-input", record::NODE, before.input(), wanted.input()),
        ("interface-output", mark::NODE, before.output(), wanted.output()),
    ] {
        if was.is_empty() != is.is_empty() {
            engine.set_feature(on, arc, node, !is.is_empty())?;
        }
    }
    Ok(())
}

/// An interface that goes takes what was said of it along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|_, config: &mut Config| {
        config.published.set_input(id, PerSource::default());
        config.published.set_output(id, PerSource::default());
        config.interfaces.remove(&id);
    });
}
