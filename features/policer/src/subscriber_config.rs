//! Which prefixes have subscribers with rates of their own, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_policing::NO_POLICER;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::memory::Limbo;
use quiver_tables::prefix::IpPrefix;

use crate::config::Config;
use crate::subscriber_meters::{Counted, Meters};
use crate::subscriber_node::NO_SUBSCRIBER;
use crate::subscriber_numbers::Numbers;
use crate::subscribers::{NUMBER_BITS, Place, SUBSCRIBERS_MAX, SubscriberTables};
use crate::tables::Direction;

/// What is said of a prefix's subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The policer whose rates hold for what they receive.
    pub policer: String,
    /// And for what they send.
    pub upload: Option<String>,
    /// Each prefix of this length is a subscriber; without it the whole one is.
    pub each: Option<u8>,
}

impl Wanted {
    /// The policer of a direction.
    pub fn policer(&self, direction: Direction) -> Option<&str> {
        match direction {
            Direction::Input => self.upload.as_deref(),
            Direction::Output => Some(&self.policer),
        }
    }
}

/// A prefix with subscribers.
pub(crate) struct Known {
    pub wanted: Wanted,
    /// The prefix's number.
    number: u32,
    place: Place,
}

impl Known {
    /// How many subscribers it has.
    pub fn count(&self) -> u32 {
        1 << self.place.width
    }
}

/// What workers may still read: the number of a prefix, if it is given back, and its place.
struct Gone {
    prefix: Option<u32>,
    place: Place,
}

/// All subscribers.
pub(crate) struct Subscribers {
    pub known: BTreeMap<IpPrefix, Known>,
    /// Where they are metered.
    pub on: BTreeSet<(InterfaceId, Direction)>,
    ip4: Option<LpmWriter<u32>>,
    ip6: Option<LpmWriter<u128>>,
    numbers: Numbers,
    /// Numbers of prefixes that were given back, and the first that none has had.
    free: Vec<u32>,
    fresh: u32,
    gone: Limbo<Gone>,
    tables: Arc<SubscriberTables>,
    epochs: Arc<Epochs>,
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

impl Subscribers {
    pub fn new(tables: Arc<SubscriberTables>, epochs: &Arc<Epochs>) -> Subscribers {
        Subscribers {
            known: BTreeMap::new(),
            on: BTreeSet::new(),
            ip4: None,
            ip6: None,
            numbers: Numbers::new(NUMBER_BITS),
            free: Vec::new(),
            fresh: 0,
            gone: Limbo::default(),
            tables,
            epochs: epochs.clone(),
        }
    }

    /// A prefix whose subscribers have a policer.
    pub fn prefix_with(&self, policer: &str) -> Option<IpPrefix> {
        let has = |wanted: &Wanted| {
            Direction::ALL.iter().any(|direction| wanted.policer(*direction) == Some(policer))
        };
        self.known.iter().find(|(_, known)| has(&known.wanted)).map(|(prefix, _)| *prefix)
    }

    /// The longest known prefix with an address.
    pub fn prefix_of(&self, address: IpAddr) -> Option<IpPrefix> {
        let lengths = (0..=bits_of(address.is_ipv6())).rev();
        lengths.map(|length| IpPrefix::new(address, length)).find(|of| self.known.contains_key(of))
    }

    /// The place of an address among the subscribers of a known prefix.
    pub fn place_in(&self, prefix: IpPrefix, address: IpAddr) -> Option<u32> {
        let place = self.known.get(&prefix)?.place;
        let number = match address {
            IpAddr::V4(address) => place.number(address.to_bits()),
            IpAddr::V6(address) => place.number(address.to_bits()),
        };
        Some(number - place.first)
    }

    /// The prefix of the subscriber at a place of a known prefix, and what its packets came to in
    /// a direction.
    pub fn counted(
        &self,
        prefix: IpPrefix,
        at: u32,
        direction: Direction,
    ) -> Option<(IpPrefix, Counted)> {
        let place = self.known.get(&prefix)?.place;
        let length = prefix.len() + place.width;
        let subscriber = match prefix {
            IpPrefix::V4(prefix) => {
                let first = prefix.first() | at << place.shift;
                IpPrefix::new(IpAddr::V4(first.into()), length)
            }
            IpPrefix::V6(prefix) => {
                let first = prefix.first() | u128::from(at) << place.shift;
                IpPrefix::new(IpAddr::V6(first.into()), length)
            }
        };
        let meters = &self.tables.meters[direction as usize];
        Some((subscriber, meters.counted(place.first + at)))
    }

    /// Bytes of all meters that are really in memory.
    pub fn meter_bytes(&self) -> usize {
        self.tables.meters.iter().map(Meters::resident_bytes).sum()
    }

    /// Use again what no worker reads any more.
    pub fn collect(&mut self) {
        let Subscribers { gone, numbers, free, tables, epochs, .. } = self;
        gone.collect(epochs, |gone| {
            let (first, count) = (gone.place.first as usize, 1 << gone.place.width);
            tables.meters.iter().for_each(|meters| meters.clear(first..first + count));
            numbers.give(gone.place.first, gone.place.width);
            free.extend(gone.prefix);
        });
        self.ip4.iter_mut().for_each(LpmWriter::collect);
        self.ip6.iter_mut().for_each(LpmWriter::collect);
    }

    /// Let the addresses of a prefix be those of its subscribers.
    fn insert(&mut self, prefix: IpPrefix, number: u32) -> Result<(), Refusal> {
        let route = Route { group: GroupId(number + 1), note: 0 };
        match prefix {
            IpPrefix::V4(prefix) => {
                if self.ip4.is_none() {
                    let made = LpmWriter::new(&self.epochs, NO_SUBSCRIBER).map_err(refusal)?;
                    let _ = self.tables.ip4.set(made.space().clone());
                    self.ip4 = Some(made);
                }
                let table = self.ip4.as_mut().map(|table| table.insert(0, prefix, route));
                table.transpose().map_err(refusal)?;
            }
            IpPrefix::V6(prefix) => {
                if self.ip6.is_none() {
                    let made = LpmWriter::new(&self.epochs, NO_SUBSCRIBER).map_err(refusal)?;
                    let _ = self.tables.ip6.set(made.space().clone());
                    self.ip6 = Some(made);
                }
                let table = self.ip6.as_mut().map(|table| table.insert(0, prefix, route));
                table.transpose().map_err(refusal)?;
            }
        }
        Ok(())
    }

    /// Let them be nobody's.
    fn remove(&mut self, prefix: IpPrefix) -> Result<(), Refusal> {
        match prefix {
            IpPrefix::V4(prefix) => {
                let table = self.ip4.as_mut().map(|table| table.remove(0, prefix));
                table.transpose().map_err(refusal)?;
            }
            IpPrefix::V6(prefix) => {
                let table = self.ip6.as_mut().map(|table| table.remove(0, prefix));
                table.transpose().map_err(refusal)?;
            }
        }
        Ok(())
    }

    /// A number for a prefix.
    fn take_number(&mut self) -> Result<u32, Refusal> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if self.fresh as usize >= SUBSCRIBERS_MAX {
            return Err(too_many());
        }
        self.fresh += 1;
        Ok(self.fresh - 1)
    }

    /// A place for the subscribers of a prefix that is not known yet, or has others.
    fn new_place(&mut self, width: u8, shift: u8, policers: [u16; 2]) -> Result<Place, Refusal> {
        let first = self.numbers.take(width).ok_or_else(too_many)?;
        Ok(Place { first, width, shift, policers })
    }

    /// Let workers meter the subscribers of a prefix; the memory that they need is there.
    fn publish(&self, number: u32, place: Place) {
        let (first, count) = (place.first as usize, 1 << place.width);
        for (meters, policer) in self.tables.meters.iter().zip(place.policers) {
            if policer != NO_POLICER {
                meters.commit(first..first + count);
            }
        }
        self.tables.set_place(number, Some(place));
    }

    fn put(&mut self, prefix: IpPrefix, wanted: Wanted, policers: [u16; 2]) -> Result<(), Refusal> {
        let (width, shift) = size(prefix, wanted.each)?;
        if let Some(Known { number, place: before, .. }) = self.known.get(&prefix) {
            let (number, before) = (*number, *before);
            let is_same = (before.width, before.shift) == (width, shift);
            let place = match is_same {
                true => Place { policers, ..before },
                false => self.new_place(width, shift, policers)?,
            };
            self.publish(number, place);
            if !is_same {
                self.gone.push(Gone { prefix: None, place: before });
            }
            self.known.insert(prefix, Known { wanted, number, place });
            return Ok(());
        }
        let place = self.new_place(width, shift, policers)?;
        let number = self.take_number().inspect_err(|_| self.numbers.give(place.first, width));
        let number = number?;
        self.publish(number, place);
        if let Err(refusal) = self.insert(prefix, number) {
            self.tables.set_place(number, None);
            self.gone.push(Gone { prefix: Some(number), place });
            return Err(refusal);
        }
        self.known.insert(prefix, Known { wanted, number, place });
        Ok(())
    }
}

fn too_many() -> Refusal {
    Refusal::new(format!("policers meter {SUBSCRIBERS_MAX} subscribers at most"))
        .remedy("`show policer subscriber` lists them; delete some, or say a smaller each")
}

const fn bits_of(is_ip6: bool) -> u8 {
    if is_ip6 { 128 } else { 32 }
}

/// How many subscribers there are, as a power of two, and how many bits of an address are behind
/// those that tell them apart.
fn size(prefix: IpPrefix, each: Option<u8>) -> Result<(u8, u8), Refusal> {
    let (length, bits) = (prefix.len(), bits_of(prefix.is_ip6()));
    let each = each.unwrap_or(length);
    if !(length..=bits).contains(&each) {
        let what = format!("a subscriber of {prefix} has a prefix of {length} to {bits} bits");
        return Err(Refusal::new(what).remedy(format!("each {bits} is one address")));
    }
    let width = each - length;
    if width > NUMBER_BITS {
        let what = format!(
            "each /{each} of {prefix} are 2^{width} subscribers, and policers meter \
             {SUBSCRIBERS_MAX} at most"
        );
        return Err(Refusal::new(what).remedy("say a longer prefix, or a smaller each"));
    }
    // Of /0 no bit counts, whatever the shift.
    Ok((width, (bits - each).min(bits - 1)))
}

/// Give each subscriber of a prefix the rates of policers, or other ones: counts stay.
pub(crate) fn put(engine: &mut Engine, prefix: IpPrefix, wanted: Wanted) -> Result<(), Refusal> {
    engine.with(|_, config: &mut Config| {
        let number = |direction| match wanted.policer(direction) {
            Some(name) => config.known(name).map(|known| known.number),
            None => Ok(NO_POLICER),
        };
        let policers = [number(Direction::Input)?, number(Direction::Output)?];
        config.subscribers.put(prefix, wanted, policers)
    })
}

/// Nobody meters the subscribers of a prefix any more.
pub(crate) fn delete(engine: &mut Engine, prefix: IpPrefix) -> Result<(), Refusal> {
    engine.with(|_, config: &mut Config| {
        let subscribers = &mut config.subscribers;
        if !subscribers.known.contains_key(&prefix) {
            let what = format!("{prefix} is no prefix of subscribers that policers meter");
            return Err(Refusal::new(what).remedy("`show policer subscriber` lists them"));
        }
        subscribers.remove(prefix)?;
        if let Some(Known { number, place, .. }) = subscribers.known.remove(&prefix) {
            subscribers.tables.set_place(number, None);
            subscribers.gone.push(Gone { prefix: Some(number), place });
        }
        Ok(())
    })
}

/// Let an interface's packets be metered by their subscribers.
pub(crate) fn attach(
    engine: &mut Engine,
    on: InterfaceId,
    direction: Direction,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let is_bare = engine.interface(on).is_some_and(|of| of.row().mac == [0; 6]);
        let subscribers = &mut config.subscribers;
        if !subscribers.on.contains(&(on, direction)) {
            engine.set_feature(on, direction.arc(), direction.subscriber_node(), true)?;
        }
        subscribers.tables.attach(on, direction, Some(is_bare));
        subscribers.on.insert((on, direction));
        Ok(())
    })
}

/// Let them be metered so no more.
pub(crate) fn detach(
    engine: &mut Engine,
    on: InterfaceId,
    direction: Direction,
) -> Result<(), Refusal> {
    engine.with(|engine, config: &mut Config| {
        let subscribers = &mut config.subscribers;
        if !subscribers.on.contains(&(on, direction)) {
            let (on, word) = (engine.interface_name(on), direction.word());
            let what = format!("no subscriber is metered at the {word} of {on}");
            return Err(Refusal::new(what).remedy("`show policer interface` lists where"));
        }
        engine.set_feature(on, direction.arc(), direction.subscriber_node(), false)?;
        subscribers.tables.attach(on, direction, None);
        subscribers.on.remove(&(on, direction));
        Ok(())
    })
}

/// An interface that goes meters nobody.
pub(crate) fn forget_interface(subscribers: &mut Subscribers, id: InterfaceId) {
    for direction in Direction::ALL {
        subscribers.tables.attach(id, direction, None);
        subscribers.on.remove(&(id, direction));
    }
}
