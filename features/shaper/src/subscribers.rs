//! Subscribers: whose addresses have which shaper's plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_core::memory::epoch::Epochs;
use quiver_shaping::NONE;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::IpPrefix;

use crate::classify::NO_SUBSCRIBER;
use crate::config::{Shapers, check_name};
use crate::orders::{Order, give};

/// Prefixes of one subscriber at most.
pub(crate) const ADDRESSES_MAX: usize = 64;

/// What is said of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub addresses: Vec<IpPrefix>,
    /// The shaper whose plan it has.
    pub profile: String,
    /// The shaper that it stands below; that of the profile without one.
    pub parent: Option<String>,
    /// The shaper whose plan and parent what it sends has.
    pub upload: Option<String>,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    number: u32,
    pub wanted: Wanted,
    /// Of what it receives.
    pub download: u32,
    /// Of what it sends.
    pub upload: Option<u32>,
}

/// All subscribers.
pub(crate) struct Subscribers {
    pub known: BTreeMap<String, Subscriber>,
    /// Whose a prefix is.
    prefixes: BTreeMap<IpPrefix, String>,
    ip4: Option<LpmWriter<u32>>,
    ip6: Option<LpmWriter<u128>>,
    epochs: Arc<Epochs>,
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

impl Subscribers {
    pub fn new(epochs: &Arc<Epochs>) -> Subscribers {
        let (known, prefixes) = (BTreeMap::new(), BTreeMap::new());
        Subscribers { known, prefixes, ip4: None, ip6: None, epochs: epochs.clone() }
    }

    /// A subscriber that needs a shaper.
    pub fn user_of(&self, shaper: &str) -> Option<&str> {
        let needs = |wanted: &Wanted| {
            [Some(&wanted.profile), wanted.parent.as_ref(), wanted.upload.as_ref()]
                .into_iter()
                .flatten()
                .any(|name| name == shaper)
        };
        self.known.iter().find(|(_, of)| needs(&of.wanted)).map(|(id, _)| id.as_str())
    }

    /// Orders by which those who stand where their profile does follow it to another parent.
    pub fn follow_profile(&self, name: &str, parent: Option<u32>, settings: u32) -> Vec<Order> {
        let mut orders = Vec::new();
        for of in self.known.values() {
            if of.wanted.profile == name && of.wanted.parent.is_none() {
                orders.push(Order::Change(of.download, parent, settings));
            }
            if of.wanted.upload.as_deref() == Some(name) {
                orders.extend(of.upload.map(|node| Order::Change(node, parent, settings)));
            }
        }
        orders
    }

    /// Memory for the addresses of both families.
    fn begin(&mut self, shapers: &crate::tables::Shared) -> Result<(), Refusal> {
        if self.ip4.is_none() {
            let made = LpmWriter::new(&self.epochs, NO_SUBSCRIBER).map_err(refusal)?;
            let _ = shapers.ip4.set(made.space().clone());
            self.ip4 = Some(made);
        }
        if self.ip6.is_none() {
            let made = LpmWriter::new(&self.epochs, NO_SUBSCRIBER).map_err(refusal)?;
            let _ = shapers.ip6.set(made.space().clone());
            self.ip6 = Some(made);
        }
        Ok(())
    }

    /// Let a prefix be a subscriber's.
    fn insert(&mut self, prefix: IpPrefix, number: u32, id: &str) -> Result<(), Refusal> {
        let route = Route { group: GroupId(number + 1), note: 0 };
        match (prefix, &mut self.ip4, &mut self.ip6) {
            (IpPrefix::V4(prefix), Some(table), _) => {
                table.insert(0, prefix, route).map_err(refusal)?;
            }
            (IpPrefix::V6(prefix), _, Some(table)) => {
                table.insert(0, prefix, route).map_err(refusal)?;
            }
            _ => {}
        }
        self.prefixes.insert(prefix, id.to_owned());
        Ok(())
    }

    /// Let it be nobody's.
    fn remove(&mut self, prefix: IpPrefix) -> Result<(), Refusal> {
        match (prefix, &mut self.ip4, &mut self.ip6) {
            (IpPrefix::V4(prefix), Some(table), _) => {
                table.remove(0, prefix).map_err(refusal)?;
            }
            (IpPrefix::V6(prefix), _, Some(table)) => {
                table.remove(0, prefix).map_err(refusal)?;
            }
            _ => {}
        }
        self.prefixes.remove(&prefix);
        Ok(())
    }

    /// Free memory of addresses that no worker reads any more.
    pub fn collect(&mut self) {
        self.ip4.iter_mut().for_each(LpmWriter::collect);
        self.ip6.iter_mut().for_each(LpmWriter::collect);
    }
}

/// Is what is wanted sound? `others`: prefixes that are taken by the same change.
pub(crate) fn check(
    shapers: &Shapers,
    id: &str,
    wanted: &Wanted,
    others: &BTreeMap<IpPrefix, String>,
) -> Result<(), Refusal> {
    check_name("subscriber", id)?;
    let names = [Some(&wanted.profile), wanted.parent.as_ref(), wanted.upload.as_ref()];
    for name in names.into_iter().flatten() {
        shapers.known(name)?;
    }
    if wanted.addresses.len() > ADDRESSES_MAX {
        let what = format!("a subscriber has {ADDRESSES_MAX} prefixes at most");
        return Err(Refusal::new(what).remedy("say shorter prefixes"));
    }
    let mut own = BTreeSet::new();
    for prefix in &wanted.addresses {
        let known = shapers.subscribers.prefixes.get(prefix).filter(|of| *of != id);
        if let Some(of) = known.or_else(|| others.get(prefix).filter(|of| *of != id)) {
            return Err(Refusal::new(format!("{prefix} is subscriber {of}'s"))
                .remedy(format!("`shaper subscriber del {of}` first, or say another prefix")));
        }
        if !own.insert(*prefix) {
            return Err(Refusal::new(format!("{prefix} stands there twice")).remedy("say it once"));
        }
    }
    Ok(())
}

/// Add subscribers, or change those that exist in place. All, or none when one is not sound.
pub(crate) fn put(engine: &mut Engine, all_wanted: Vec<(String, Wanted)>) -> Result<(), Refusal> {
    engine.with(|engine, shapers: &mut Shapers| {
        let mut taken = BTreeMap::new();
        for (id, wanted) in &all_wanted {
            check(shapers, id, wanted, &taken)?;
            taken.extend(wanted.addresses.iter().map(|prefix| (*prefix, id.clone())));
        }
        shapers.subscribers.begin(&shapers.shared)?;
        let mut orders = Vec::new();
        let planned: Vec<_> = all_wanted
            .into_iter()
            .map(|(id, wanted)| {
                plan(engine, shapers, &id, wanted, &mut orders).map(|made| (id, made))
            })
            .collect::<Result<_, _>>()?;
        give(engine, orders)?;
        let mut gone = Vec::new();
        for (id, made) in planned {
            gone.extend(commit(shapers, id, made)?);
        }
        give(engine, gone)
    })
}

/// What a subscriber will be, and the orders for it.
fn plan(
    engine: &mut Engine,
    shapers: &mut Shapers,
    id: &str,
    wanted: Wanted,
    orders: &mut Vec<Order>,
) -> Result<Subscriber, Refusal> {
    let node_of = |name: &Option<String>| {
        name.as_ref().and_then(|name| shapers.named.get(name)).map(|named| named.node)
    };
    let profile = shapers.known(&wanted.profile)?;
    let above = node_of(&wanted.parent).or_else(|| node_of(&profile.parent));
    let settings = profile.settings;
    let upload = match &wanted.upload {
        Some(name) => {
            let named = shapers.known(name)?;
            Some((node_of(&named.parent), named.settings))
        }
        None => None,
    };
    let before = shapers.subscribers.known.get(id).cloned();
    let mut place = |before: Option<u32>, above, settings| match before {
        Some(node) => {
            orders.push(Order::Change(node, above, settings));
            Ok(node)
        }
        None => {
            let node = shapers.numbers.node(engine, orders)?;
            orders.push(Order::Add(node, above, settings));
            Ok::<u32, Refusal>(node)
        }
    };
    let download = place(before.as_ref().map(|before| before.download), above, settings)?;
    let upload = match upload {
        Some((above, settings)) => {
            Some(place(before.as_ref().and_then(|before| before.upload), above, settings)?)
        }
        None => None,
    };
    let number = match &before {
        Some(before) => before.number,
        None => shapers.numbers.subscriber()?,
    };
    Ok(Subscriber { number, wanted, download, upload })
}

/// Let workers know a subscriber whose nodes are made; orders for nodes that nobody needs then.
fn commit(shapers: &mut Shapers, id: String, made: Subscriber) -> Result<Vec<Order>, Refusal> {
    let before = shapers.subscribers.known.get(&id).cloned();
    let upload = made.upload.unwrap_or(NONE);
    shapers.shared.set_subscriber(made.number, made.download, upload);
    let mut gone = Vec::new();
    if let Some(before) = &before {
        for prefix in
            before.wanted.addresses.iter().filter(|of| !made.wanted.addresses.contains(of))
        {
            shapers.subscribers.remove(*prefix)?;
        }
        count_uses(shapers, &before.wanted, false);
        if let Some(node) = before.upload.filter(|node| made.upload != Some(*node)) {
            gone.push(Order::Remove(node));
            shapers.numbers.give_node(node);
        }
    }
    for prefix in &made.wanted.addresses {
        shapers.subscribers.insert(*prefix, made.number, &id)?;
    }
    count_uses(shapers, &made.wanted, true);
    shapers.subscribers.known.insert(id, made);
    shapers.shared.set_count(shapers.subscribers.known.len());
    Ok(gone)
}

fn count_uses(shapers: &mut Shapers, wanted: &Wanted, is_more: bool) {
    let Wanted { profile, parent, upload, .. } = wanted;
    for name in [Some(profile), parent.as_ref(), upload.as_ref()] {
        shapers.count_use(name.map(String::as_str), is_more);
    }
}

/// Delete a subscriber. What waits goes on.
pub(crate) fn delete(engine: &mut Engine, id: &str) -> Result<(), Refusal> {
    engine.with(|engine, shapers: &mut Shapers| {
        let Some(known) = shapers.subscribers.known.get(id).cloned() else {
            return Err(Refusal::new(format!("there is no subscriber {id}"))
                .remedy("`show shaper subscribers` lists them"));
        };
        for prefix in &known.wanted.addresses {
            shapers.subscribers.remove(*prefix)?;
        }
        shapers.subscribers.known.remove(id);
        shapers.shared.set_count(shapers.subscribers.known.len());
        shapers.shared.set_subscriber(known.number, NONE, NONE);
        count_uses(shapers, &known.wanted, false);
        shapers.numbers.give_subscriber(known.number);
        let nodes = [Some(known.download), known.upload].into_iter().flatten();
        let orders = nodes.clone().map(Order::Remove).collect();
        nodes.for_each(|node| shapers.numbers.give_node(node));
        give(engine, orders)
    })
}
