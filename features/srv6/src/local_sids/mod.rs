//! The local SIDs of the router, on the control thread: which there are, and what each does.
//!
//! A local SID is a route of the FIB whose hop leads to the node of its behaviour, with the number
//! of its line ([`CountedLines`]) as index.

mod behavior;
mod flavors;
mod kind;
mod locator;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use quiver_control::{Output, Refusal};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target, by_table};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::CountedLines;
use quiver_tables::memory::{MemoryError, Slots};
use quiver_tables::prefix::IpPrefix;

pub(crate) use behavior::{Behavior, Held, Names};
pub(crate) use flavors::Flavors;
pub(crate) use kind::{DETAILS, Kind, entry, syntax};
pub(crate) use locator::{Place, refusal};

/// Local SIDs at most: 16 MB of lines for each worker, committed as used.
pub const LOCAL_SIDS_MAX: usize = 1 << 18;
/// Who holds a table, in the refusal to delete it.
const HOLDER: &str = "a local SID (`show sr localsids`)";

/// The places of the counts in a line: packets that a SID sent on and their bytes, packets that
/// died at it and their bytes, from the IPv6 header on.
pub(crate) mod count {
    /// Packets sent on.
    pub const PACKETS: usize = 0;
    /// Their bytes.
    pub const BYTES: usize = 1;
    /// Packets that died or were answered with an ICMPv6 error.
    pub const BAD_PACKETS: usize = 2;
    /// Their bytes.
    pub const BAD_BYTES: usize = 3;
}

/// A local SID.
#[derive(Debug)]
pub(crate) struct LocalSid {
    pub behavior: Box<dyn Behavior>,
    /// The number of its line.
    pub index: u32,
    /// Did the operator configure it?
    pub is_configured: bool,
    /// What was counted when the operator cleared the counts.
    cleared: [u64; 4],
}

/// All local SIDs.
pub(crate) struct LocalSids {
    sids: BTreeMap<Place, LocalSid>,
    lines: Arc<CountedLines>,
    slots: Slots,
    epochs: Arc<Epochs>,
}

impl LocalSids {
    /// None yet.
    pub fn new(graph: &GraphBuilder) -> Result<LocalSids, MemoryError> {
        let lines = CountedLines::new("local SIDs", LOCAL_SIDS_MAX, graph.workers())?;
        Ok(LocalSids {
            sids: BTreeMap::new(),
            lines: Arc::new(lines),
            slots: Slots::new(&[1], LOCAL_SIDS_MAX, 64, 64),
            epochs: graph.epochs().clone(),
        })
    }

    /// What workers read.
    pub fn lines(&self) -> &Arc<CountedLines> {
        &self.lines
    }

    /// All SIDs in order.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &LocalSid)> {
        self.sids.iter().map(|(place, sid)| (*place, sid))
    }

    /// Those behind one in order, or from the first: a long list can pause.
    pub fn after(&self, last: Option<Place>) -> impl Iterator<Item = (Place, &LocalSid)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.sids.range((from, Bound::Unbounded)).map(|(place, sid)| (*place, sid))
    }

    /// The same, with the tables in this order.
    pub fn after_by_table(
        &self,
        tables: Vec<u32>,
        last: Option<Place>,
    ) -> impl Iterator<Item = (Place, &LocalSid)> {
        let sids = by_table(&self.sids, tables, Place::ends, |place| place.table, last);
        sids.map(|(place, sid)| (*place, sid))
    }

    /// The SID at a place.
    pub fn at(&self, place: Place) -> Option<&LocalSid> {
        self.sids.get(&place)
    }

    /// What a SID has counted since it was cleared, in the order of [`count`].
    pub fn counted(&self, sid: &LocalSid) -> [u64; 4] {
        let sums = self.lines.sums(sid.index);
        std::array::from_fn(|place| sums[place].wrapping_sub(sid.cleared[place]))
    }

    /// Let all counts begin at zero again.
    pub fn clear(&mut self) {
        for sid in self.sids.values_mut() {
            sid.cleared = self.lines.sums(sid.index);
        }
    }

    fn take_slot(&mut self) -> Option<u32> {
        self.slots.reclaim(&self.epochs, |_| ());
        self.slots.take(1)
    }
}

/// Keep them, and follow interfaces.
pub(crate) fn start(engine: &mut Engine, sids: LocalSids) {
    engine.insert(sids);
    engine.on_interface_change(follow_interface);
}

/// What they weigh.
pub(crate) fn memory(engine: &Engine) -> Vec<(&'static str, u64)> {
    let bytes = engine.get::<LocalSids>().map_or(0, |sids| sids.lines.resident_bytes() as u64);
    vec![("local SIDs", bytes)]
}

/// Add a local SID.
pub(crate) fn add(
    engine: &mut Engine,
    place: Place,
    behavior: Box<dyn Behavior>,
) -> Result<(), Refusal> {
    engine.with(|engine, sids: &mut LocalSids| sids.add(engine, place, behavior))
}

/// Give a local SID another behaviour, or add it.
pub(crate) fn replace(
    engine: &mut Engine,
    place: Place,
    behavior: Box<dyn Behavior>,
) -> Result<(), Refusal> {
    engine.with(|engine, sids: &mut LocalSids| sids.replace(engine, place, behavior))
}

/// Add a local SID of another feature: it is not part of the configuration.
pub(crate) fn add_of_feature(
    engine: &mut Engine,
    place: Place,
    behavior: Box<dyn Behavior>,
) -> Result<(), Refusal> {
    add(engine, place, behavior)?;
    if let Some(sids) = engine.get_mut::<LocalSids>()
        && let Some(sid) = sids.sids.get_mut(&place)
    {
        sid.is_configured = false;
    }
    Ok(())
}

/// Warn where a prefix is also an address or a subnet of the router itself, which goes before what
/// a feature says.
pub(crate) fn warn_if_shadowed(
    engine: &mut Engine,
    table: u32,
    prefix: IpPrefix,
    output: Output,
) -> Output {
    let Ok(fib) = fib(engine) else { return output };
    match fib.route(table, prefix).iter().any(|view| view.source < Source::Feature) {
        true => output.line(format!(
            "warning: {prefix} is also an address or a subnet of the router itself, which goes \
             before it"
        )),
        false => output,
    }
}

/// Delete a local SID.
pub(crate) fn delete(engine: &mut Engine, place: Place) -> Result<(), Refusal> {
    engine.with(|engine, sids: &mut LocalSids| {
        if !sids.sids.contains_key(&place) {
            let what = format!("there is no local SID {}", place.words(engine));
            return Err(Refusal::new(what).remedy("`show sr localsids`"));
        }
        sids.remove(engine, place)
    })
}

impl LocalSids {
    fn add(
        &mut self,
        engine: &mut Engine,
        place: Place,
        mut behavior: Box<dyn Behavior>,
    ) -> Result<(), Refusal> {
        self.check(engine, place)?;
        let index = self.new_index()?;
        if let Err(refused) = self.lead_to(engine, place, &mut *behavior, index) {
            self.slots.retire(index, 1);
            return Err(refused);
        }
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.hold_table(Family::Ip6, place.table, HOLDER);
        }
        self.sids.insert(place, LocalSid { behavior, index, is_configured: true, cleared: [0; 4] });
        Ok(())
    }

    /// Packets meet the old behaviour or the new one: the route is given another line.
    fn replace(
        &mut self,
        engine: &mut Engine,
        place: Place,
        mut behavior: Box<dyn Behavior>,
    ) -> Result<(), Refusal> {
        if !self.sids.get(&place).is_some_and(|sid| sid.is_configured) {
            return self.add(engine, place, behavior);
        }
        let index = self.new_index()?;
        let Some(mut old) = self.sids.remove(&place) else { return Ok(()) };
        let mut made = self.lead_to(engine, place, &mut *behavior, index);
        old.behavior.release(engine);
        if made.is_err() {
            // Perhaps both want the same. Packets meet the line of the old one meanwhile.
            made = self.lead_to(engine, place, &mut *behavior, index);
        }
        if let Err(refused) = made {
            self.slots.retire(index, 1);
            return match self.lead_to(engine, place, &mut *old.behavior, old.index) {
                Ok(()) => {
                    self.sids.insert(place, old);
                    Err(refused)
                }
                Err(lost) => {
                    self.forget(engine, place, old.index)?;
                    Err(lost)
                }
            };
        }
        self.slots.retire(old.index, 1);
        self.slots.reclaim(&self.epochs, |_| ());
        self.sids.insert(place, LocalSid { behavior, index, is_configured: true, cleared: [0; 4] });
        Ok(())
    }

    fn new_index(&mut self) -> Result<u32, Refusal> {
        self.take_slot().ok_or_else(|| {
            Refusal::new(format!("there are {LOCAL_SIDS_MAX} local SIDs already"))
                .remedy("delete some, or give one a prefix for many addresses")
        })
    }

    /// Let a behaviour take hold of what it needs, write its line, and lead the route there. A
    /// refused one holds nothing.
    fn lead_to(
        &mut self,
        engine: &mut Engine,
        place: Place,
        behavior: &mut dyn Behavior,
        index: u32,
    ) -> Result<(), Refusal> {
        let held = behavior.hold(engine, place)?;
        self.lines.write(index, held.words);
        let path = Path::new(Target::Feature(Hop { next: held.node, index }));
        let prefix = IpPrefix::V6(place.prefix);
        let led = fib(engine)
            .map(|fib| fib.replace_route(place.table, prefix, Source::Feature, &[path]))
            .and_then(|led| led.map_err(|error| refusal(engine, place, error)));
        if led.is_err() {
            behavior.release(engine);
        }
        led
    }

    /// May a SID stand there?
    fn check(&self, engine: &mut Engine, place: Place) -> Result<(), Refusal> {
        let words = place.words(engine);
        if let Some(known) = self.sids.get(&place) {
            let does = known.behavior.words(&Names { engine });
            return Err(Refusal::new(format!("local SID {words} exists already: {does}"))
                .remedy(format!("sr localsid del address {words}")));
        }
        let views = fib(engine)?.route(place.table, IpPrefix::V6(place.prefix));
        match views.iter().find(|view| view.source <= Source::Feature).map(|view| view.source) {
            Some(Source::Feature) => {
                Err(Refusal::new(format!("{words} leads to another feature already"))
                    .remedy("`show ip6 fib`; choose another SID"))
            }
            // Beside an address of the router's own, which goes before: an address that comes later
            // is not refused either, so that a configuration does not depend on its order.
            _ => Ok(()),
        }
    }

    fn remove(&mut self, engine: &mut Engine, place: Place) -> Result<(), Refusal> {
        let Some(mut sid) = self.sids.remove(&place) else { return Ok(()) };
        let fib = fib(engine)?;
        let removed = fib.remove_route(place.table, IpPrefix::V6(place.prefix), Source::Feature);
        fib.release_table(Family::Ip6, place.table, HOLDER);
        sid.behavior.release(engine);
        self.slots.retire(sid.index, 1);
        self.slots.reclaim(&self.epochs, |_| ());
        removed.map_err(|error| refusal(engine, place, error))
    }

    /// Take the route of a SID away that holds nothing any more.
    fn forget(&mut self, engine: &mut Engine, place: Place, index: u32) -> Result<(), Refusal> {
        let fib = fib(engine)?;
        let removed = fib.remove_route(place.table, IpPrefix::V6(place.prefix), Source::Feature);
        fib.release_table(Family::Ip6, place.table, HOLDER);
        self.slots.retire(index, 1);
        self.slots.reclaim(&self.epochs, |_| ());
        removed.map_err(|error| refusal(engine, place, error))
    }
}

/// The forwarding table.
pub(crate) fn fib(engine: &mut Engine) -> Result<&mut Fib, Refusal> {
    engine.get_mut::<Fib>().ok_or_else(|| Refusal::new("the forwarding table is being changed"))
}

/// An interface that goes takes the SIDs along that name it.
fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, sids: &mut LocalSids| {
        let naming = sids.iter().filter(|(_, sid)| sid.behavior.names(id)).map(|(place, _)| place);
        for place in naming.collect::<Vec<_>>() {
            // The route is there, for the SID is: nothing is refused.
            let _ = sids.remove(engine, place);
        }
    });
}
