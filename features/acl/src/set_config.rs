//! Named sets on the control thread: which there are, their elements, who uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::{Address, IpPrefix, Prefix};

use crate::config::{Lists, On};
use crate::element::{Element, range};
use crate::named_set::{Addresses, Content, Kind, NamedSet};
use crate::session_config;

/// Sets at most.
pub(crate) const SETS_MAX: usize = 4_096;
/// Characters of a name at most.
pub(crate) const NAME_CHARS_MAX: usize = 63;
/// Ranges of a port set at most: every second port.
const RANGES_MAX: usize = 1 << 15;
/// Prefixes of an address set and family at most.
pub(crate) const PREFIXES_MAX: usize = 1 << 22;
/// What a prefix of a set leads to.
const IN_SET: Route = Route { group: GroupId(1), note: 0 };

/// The prefix matches of all address sets: each set has a table.
struct Spaces {
    ip4: LpmWriter<u32>,
    ip6: LpmWriter<u128>,
}

/// A set, and what workers do not need of it.
struct Kept {
    set: Arc<NamedSet>,
    /// The ranges of a port set: first to last port.
    ranges: BTreeMap<u16, u16>,
    interfaces: BTreeSet<InterfaceId>,
    /// It goes when no list uses it any more.
    leaves: bool,
}

/// All sets.
#[derive(Default)]
pub(crate) struct Sets {
    by_name: BTreeMap<String, Kept>,
    /// From the first address set on.
    spaces: Option<Spaces>,
    /// Tables of sets that are gone.
    free_tables: Vec<u32>,
    /// Tables that were ever given.
    tables: u32,
}

pub(crate) fn no_set(kind: Option<Kind>, name: &str) -> Refusal {
    let word = kind.map_or("set", Kind::word);
    Refusal::new(format!("there is no {word} '{name}'")).remedy("`show acl-plugin sets`")
}

impl Sets {
    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The name behind this one.
    pub fn name_after(&self, name: &str) -> Option<&str> {
        let behind = (Bound::Excluded(name), Bound::Unbounded);
        self.by_name.range::<str, _>(behind).next().map(|(name, _)| name.as_str())
    }

    pub fn get(&self, name: &str) -> Option<&Arc<NamedSet>> {
        self.by_name.get(name).map(|kept| &kept.set)
    }

    /// All, by name, for work on another thread.
    pub fn snapshot(&self) -> BTreeMap<String, Arc<NamedSet>> {
        self.by_name.iter().map(|(name, kept)| (name.clone(), kept.set.clone())).collect()
    }

    /// Elements of a set: of an address set, those of IPv4, then those of IPv6.
    pub fn counts(&self, name: &str) -> [usize; 2] {
        let Some(kept) = self.by_name.get(name) else { return [0; 2] };
        match &kept.set.content {
            Content::Addresses(set) => match &self.spaces {
                Some(spaces) => {
                    let ip4 = spaces.ip4.prefixes_if_any(set.table).map_or(0, |all| all.len());
                    [ip4, spaces.ip6.prefixes_if_any(set.table).map_or(0, |all| all.len())]
                }
                None => [0; 2],
            },
            Content::Ports(_) => [kept.ranges.len(), 0],
            Content::Interfaces(_) => [kept.interfaces.len(), 0],
        }
    }

    /// The elements of a set behind one of them, at most `most`, in order: IPv4 before IPv6.
    pub fn elements(&self, name: &str, after: Option<Element>, most: usize) -> Vec<Element> {
        let Some(kept) = self.by_name.get(name) else { return Vec::new() };
        match &kept.set.content {
            Content::Addresses(set) => self.prefixes(set.table, after, most),
            Content::Ports(_) => {
                let from = match after {
                    Some(Element::Ports(_, u16::MAX)) => return Vec::new(),
                    Some(Element::Ports(_, last)) => last + 1,
                    _ => 0,
                };
                let ranges = kept.ranges.range(from..).take(most);
                ranges.map(|(first, last)| Element::Ports(*first, *last)).collect()
            }
            Content::Interfaces(_) => {
                let is_behind = |id: &InterfaceId| match after {
                    Some(Element::Interface(after)) => *id > after,
                    _ => true,
                };
                let ids = kept.interfaces.iter().copied().filter(is_behind);
                ids.take(most).map(Element::Interface).collect()
            }
        }
    }

    fn prefixes(&self, table: u32, after: Option<Element>, most: usize) -> Vec<Element> {
        let Some(spaces) = &self.spaces else { return Vec::new() };
        let mut found = Vec::new();
        let is_ip6 = matches!(after, Some(Element::Prefix(IpPrefix::V6(_))));
        if let Some(all) = spaces.ip4.prefixes_if_any(table).filter(|_| !is_ip6) {
            let of = |(prefix, _)| Element::Prefix(IpPrefix::V4(prefix));
            match after {
                Some(Element::Prefix(IpPrefix::V4(after))) => {
                    found.extend(all.iter_after(after).take(most).map(of));
                }
                _ => found.extend(all.iter().take(most).map(of)),
            }
        }
        if let Some(all) = spaces.ip6.prefixes_if_any(table) {
            let most = most - found.len();
            let of = |(prefix, _)| Element::Prefix(IpPrefix::V6(prefix));
            match after {
                Some(Element::Prefix(IpPrefix::V6(after))) => {
                    found.extend(all.iter_after(after).take(most).map(of));
                }
                _ => found.extend(all.iter().take(most).map(of)),
            }
        }
        found
    }

    /// Is an interface in a set?
    pub fn has_interface(&self, name: &str, id: InterfaceId) -> bool {
        self.by_name.get(name).is_some_and(|kept| kept.interfaces.contains(&id))
    }

    /// Make a set, unless there is this one already.
    fn make(&mut self, epochs: &Arc<Epochs>, kind: Kind, name: &str) -> Result<(), Refusal> {
        if name.chars().count() > NAME_CHARS_MAX {
            let what = format!("a set's name has at most {NAME_CHARS_MAX} characters");
            return Err(Refusal::new(what));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if !name.chars().all(is_plain) {
            let what = format!("'{name}' is no name of a set");
            return Err(Refusal::new(what).remedy("use letters, digits, '-', '_', '.' and ':'"));
        }
        if let Some(kept) = self.by_name.get_mut(name) {
            let is = kept.set.kind();
            if is != kind {
                let what = format!("'{name}' is a set of {} already", is.elements());
                return Err(Refusal::new(what).remedy("give it another name"));
            }
            kept.leaves = false;
            return Ok(());
        }
        if self.by_name.len() >= SETS_MAX {
            let what = format!("there are {SETS_MAX} sets already");
            return Err(Refusal::new(what).remedy("delete one"));
        }
        let set = match kind {
            Kind::Ports => NamedSet::ports(name.to_owned()),
            Kind::Interfaces => NamedSet::interfaces(name.to_owned()),
            Kind::Addresses => NamedSet::addresses(name.to_owned(), self.table(epochs)?),
        };
        let kept = Kept {
            set: Arc::new(set),
            ranges: BTreeMap::new(),
            interfaces: BTreeSet::new(),
            leaves: false,
        };
        self.by_name.insert(name.to_owned(), kept);
        Ok(())
    }

    /// An empty table for an address set.
    fn table(&mut self, epochs: &Arc<Epochs>) -> Result<Addresses, Refusal> {
        let no_memory = |error| Refusal::new(format!("no memory for sets of addresses: {error}"));
        if self.spaces.is_none() {
            let miss = GroupId(0);
            self.spaces = Some(Spaces {
                ip4: LpmWriter::new(epochs, miss).map_err(no_memory)?,
                ip6: LpmWriter::new(epochs, miss).map_err(no_memory)?,
            });
        }
        let Some(spaces) = &self.spaces else { return Err(Refusal::new("no prefix match")) };
        let (ip4, ip6) = (spaces.ip4.space().clone(), spaces.ip6.space().clone());
        let table = self.free_tables.pop().unwrap_or_else(|| {
            // Table 0 would have a big root at once.
            self.tables += 1;
            self.tables
        });
        Ok(Addresses { table, ip4, ip6 })
    }

    fn remove(&mut self, name: &str) {
        let Some(kept) = self.by_name.remove(name) else { return };
        if let (Content::Addresses(set), Some(spaces)) = (&kept.set.content, &mut self.spaces) {
            spaces.ip4.clear(set.table);
            spaces.ip6.clear(set.table);
            self.free_tables.push(set.table);
        }
    }

    /// Add an element to a set of its kind. Was it not in it?
    pub fn add(&mut self, name: &str, element: Element) -> Result<bool, Refusal> {
        let kind = element.kind();
        let kept = self.by_name.get_mut(name).filter(|kept| kept.set.kind() == kind);
        let kept = kept.ok_or_else(|| no_set(Some(kind), name))?;
        match (element, &kept.set.content) {
            (Element::Prefix(prefix), Content::Addresses(set)) => match &mut self.spaces {
                Some(spaces) => spaces.add(set.table, prefix),
                None => Ok(false),
            },
            (Element::Ports(first, last), Content::Ports(bits)) => {
                if kept.ranges.get(&first) == Some(&last) {
                    return Ok(false);
                }
                let before = kept.ranges.range(..=last).next_back();
                if let Some((from, to)) = before.filter(|(_, to)| **to >= first) {
                    let what =
                        format!("{} overlaps {} of port-set {name}", element, range(*from, *to));
                    return Err(Refusal::new(what).remedy("remove that one, or add the rest alone"));
                }
                if kept.ranges.len() >= RANGES_MAX {
                    let what = format!("port-set {name} has {RANGES_MAX} elements already");
                    return Err(Refusal::new(what));
                }
                kept.ranges.insert(first, last);
                bits.set(first.into(), last.into(), true);
                Ok(true)
            }
            (Element::Interface(id), _) => {
                kept.set.mark_interface(id, true);
                Ok(kept.interfaces.insert(id))
            }
            _ => Ok(false),
        }
    }

    /// Remove an element from a set of its kind. Was it in it?
    pub fn del(&mut self, name: &str, element: Element) -> Result<bool, Refusal> {
        let kind = element.kind();
        let kept = self.by_name.get_mut(name).filter(|kept| kept.set.kind() == kind);
        let kept = kept.ok_or_else(|| no_set(Some(kind), name))?;
        match (element, &kept.set.content) {
            (Element::Prefix(prefix), Content::Addresses(set)) => match &mut self.spaces {
                Some(spaces) => spaces.del(set.table, prefix),
                None => Ok(false),
            },
            (Element::Ports(first, last), Content::Ports(bits)) => {
                if kept.ranges.get(&first) != Some(&last) {
                    return Ok(false);
                }
                kept.ranges.remove(&first);
                bits.set(first.into(), last.into(), false);
                Ok(true)
            }
            (Element::Interface(id), _) => {
                kept.set.mark_interface(id, false);
                Ok(kept.interfaces.remove(&id))
            }
            _ => Ok(false),
        }
    }

    /// An interface is gone, from all sets.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        for kept in self.by_name.values_mut() {
            if kept.interfaces.remove(&id) {
                kept.set.mark_interface(id, false);
            }
        }
    }

    /// Give memory back that no worker reads any more.
    pub fn collect(&mut self) {
        if let Some(spaces) = &mut self.spaces {
            spaces.ip4.collect();
            spaces.ip6.collect();
        }
    }
}

impl Spaces {
    fn add(&mut self, table: u32, prefix: IpPrefix) -> Result<bool, Refusal> {
        fn into<A: Address>(
            writer: &mut LpmWriter<A>,
            table: u32,
            prefix: Prefix<A>,
        ) -> Result<bool, Refusal> {
            let all = writer.prefixes(table);
            if all.get(prefix).is_some() {
                return Ok(false);
            }
            if all.len() >= PREFIXES_MAX {
                let what = format!("the set has {PREFIXES_MAX} prefixes of the family already");
                return Err(Refusal::new(what).remedy("remove some"));
            }
            let added = writer.insert(table, prefix, IN_SET);
            added.map(|_| true).map_err(|error| Refusal::new(error.to_string()))
        }
        match prefix {
            IpPrefix::V4(prefix) => into(&mut self.ip4, table, prefix),
            IpPrefix::V6(prefix) => into(&mut self.ip6, table, prefix),
        }
    }

    fn del(&mut self, table: u32, prefix: IpPrefix) -> Result<bool, Refusal> {
        let removed = match prefix {
            IpPrefix::V4(prefix) => self.ip4.remove(table, prefix),
            IpPrefix::V6(prefix) => self.ip6.remove(table, prefix),
        };
        removed.map(|old| old.is_some()).map_err(|error| Refusal::new(error.to_string()))
    }
}

/// Make a set, unless there is this one already.
pub(crate) fn make(engine: &mut Engine, kind: Kind, name: &str) -> Result<(), Refusal> {
    let epochs = engine.epochs().clone();
    engine.with(|_, lists: &mut Lists| lists.sets.make(&epochs, kind, name))
}

/// Add an element to a set, or remove it.
pub(crate) fn change(
    engine: &mut Engine,
    name: &str,
    element: Element,
    is_added: bool,
) -> Result<(), Refusal> {
    let changed = engine.with(|_, lists: &mut Lists| match is_added {
        true => lists.sets.add(name, element),
        false => lists.sets.del(name, element),
    })?;
    if !changed && !is_added {
        let (word, element) = (element.kind().word(), element.words(engine));
        return Err(Refusal::new(format!("{element} is not in {word} {name}"))
            .remedy(format!("show acl-plugin sets {name}")));
    }
    if changed {
        match_sessions_again(engine, name);
    }
    Ok(())
}

/// The next packet of each session that a set may have permitted has the lists asked again.
pub(crate) fn match_sessions_again(engine: &mut Engine, name: &str) {
    engine.with(|_, lists: &mut Lists| {
        let places: BTreeSet<InterfaceId> = lists.places_with_set(name).map(|on| on.0).collect();
        for id in places {
            let wants = lists.wants(id);
            if wants.is_stateful {
                session_config::end_epoch(lists, id, wants);
            }
        }
    });
}

impl Lists {
    /// The lists that use a set.
    pub fn lists_with_set(&self, name: &str) -> impl Iterator<Item = u32> {
        let uses = move |set: &Arc<NamedSet>| set.name == name;
        self.after(None).filter(move |(_, acl)| acl.sets().any(uses)).map(|(index, _)| index)
    }

    /// Where lists filter that use a set.
    fn places_with_set(&self, name: &str) -> impl Iterator<Item = On> {
        let lists: BTreeSet<u32> = self.lists_with_set(name).collect();
        self.places().filter(move |on| self.of(*on).any(|(_, list)| lists.contains(&list)))
    }
}

/// Delete a set that no list uses; with `later` one that is used goes with its last user.
pub(crate) fn delete(engine: &mut Engine, name: &str, later: bool) -> Result<(), Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    lists.sets.get(name).ok_or_else(|| no_set(None, name))?;
    let users: Vec<String> = lists.lists_with_set(name).map(|list| list.to_string()).collect();
    if users.is_empty() {
        wait_for_workers(engine)?;
        engine.with(|_, lists: &mut Lists| lists.sets.remove(name));
        return Ok(());
    }
    if !later {
        let what = format!("set {name} is used by access list {}", users.join(", "));
        return Err(Refusal::new(what).remedy("replace the rules that name it, or delete the list"));
    }
    engine.with(|_, lists: &mut Lists| {
        if let Some(kept) = lists.sets.by_name.get_mut(name) {
            kept.leaves = true;
        }
    });
    Ok(())
}

/// Delete the sets that were to go with their last user, where there is none any more.
pub(crate) fn delete_unused(engine: &mut Engine) {
    let Some(lists) = engine.get::<Lists>() else { return };
    let leaving = lists.sets.by_name.iter().filter(|(_, kept)| kept.leaves);
    let unused = leaving.filter(|(name, _)| lists.lists_with_set(name).next().is_none());
    let names: Vec<String> = unused.map(|(name, _)| name.clone()).collect();
    // A worker that does not answer now is asked again with the next change.
    if names.is_empty() || wait_for_workers(engine).is_err() {
        return;
    }
    engine.with(|_, lists: &mut Lists| names.iter().for_each(|name| lists.sets.remove(name)));
}

/// Until every worker has ended the pass in which it may have asked a set that goes.
fn wait_for_workers(engine: &mut Engine) -> Result<(), Refusal> {
    for worker in 0..engine.worker_count() {
        let waited = engine.wait_for_worker(WorkerId(worker as u16));
        waited.map_err(|error| Refusal::new(error.to_string()))?;
    }
    Ok(())
}
