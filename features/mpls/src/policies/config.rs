//! Policies on the control thread: each is the route of its binding label, and of the prefixes that
//! are steered into it.

use std::collections::BTreeMap;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, LabelKey, Path, Source, Target};
use quiver_forwarding::out_labels::{OUT_LABELS_MAX, OutLabel, OutLabels};
use quiver_tables::prefix::IpPrefix;

use crate::state::fib_mut;

/// Policies at most.
const POLICIES_MAX: usize = 65_536;
/// Lists of one policy at most.
const LISTS_MAX: usize = quiver_forwarding::next_hop_group::PATHS_MAX;
/// The label table of segments and of binding labels: its number.
const TABLE: u32 = 0;

/// A list of segments, and its share of the traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub segments: Vec<u32>,
    pub weight: u32,
}

/// A prefix in a table, the family's small number.
pub(super) type Place = (u32, IpPrefix);

/// All policies by binding label, and what is steered.
#[derive(Debug, Default)]
pub(super) struct Policies {
    policies: BTreeMap<u32, Vec<List>>,
    steered: BTreeMap<Place, u32>,
}

impl List {
    /// The path of packets that go by it.
    fn path(&self, table: u32) -> Result<Path, Refusal> {
        let Some((first, rest)) = self.segments.split_first() else {
            return Err(Refusal::new("a list has at least one segment"));
        };
        let labels = OutLabels::new(Default::default(), rest.iter().copied().map(OutLabel::new));
        let labels = labels.ok_or_else(|| {
            Refusal::new(format!("a list has at most {} segments", OUT_LABELS_MAX + 1))
        })?;
        let target = Target::ThroughLabel { label: *first, table };
        Ok(Path::new(target).labels(labels).weight(self.weight))
    }
}

impl Policies {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[List])> {
        self.policies.iter().map(|(bsid, lists)| (*bsid, lists.as_slice()))
    }

    /// The lists of a policy.
    pub fn get(&self, bsid: u32) -> Option<&[List]> {
        self.policies.get(&bsid).map(Vec::as_slice)
    }

    /// What is steered, and into which policy.
    pub fn steered(&self) -> impl Iterator<Item = (Place, u32)> {
        self.steered.iter().map(|(place, bsid)| (*place, *bsid))
    }
}

fn no_policy(bsid: u32) -> Refusal {
    Refusal::new(format!("there is no SR policy with binding label {bsid}"))
        .remedy("`show sr mpls policies`")
}

/// Make a policy with one list.
pub(super) fn add(engine: &mut Engine, bsid: u32, list: List) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if policies.policies.contains_key(&bsid) {
            return Err(Refusal::new(format!("SR policy {bsid} exists already"))
                .remedy(format!("sr mpls policy mod bsid {bsid} add sl next …")));
        }
        if policies.policies.len() >= POLICIES_MAX {
            return Err(Refusal::new(format!("there are {POLICIES_MAX} policies already")));
        }
        put(engine, policies, bsid, vec![list])
    })
}

/// Change the lists of a policy.
pub(super) fn change(
    engine: &mut Engine,
    bsid: u32,
    change: impl FnOnce(&mut Vec<List>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let mut lists = policies.policies.get(&bsid).ok_or_else(|| no_policy(bsid))?.clone();
        change(&mut lists)?;
        if lists.is_empty() {
            return Err(Refusal::new("a policy keeps its last list")
                .remedy(format!("sr mpls policy del bsid {bsid}")));
        }
        put(engine, policies, bsid, lists)
    })
}

/// Let these be the lists of a policy: of its binding label, then of what is steered into it.
fn put(
    engine: &mut Engine,
    policies: &mut Policies,
    bsid: u32,
    lists: Vec<List>,
) -> Result<(), Refusal> {
    if lists.len() > LISTS_MAX {
        return Err(Refusal::new(format!("a policy has at most {LISTS_MAX} lists")));
    }
    let table = crate::state::table_index(engine, TABLE)?;
    let paths: Vec<Path> =
        lists.iter().map(|list| list.path(table)).collect::<Result<_, Refusal>>()?;
    let fib = fib_mut(engine)?;
    let said = |fib: &Fib, key| {
        fib.label_route(table, key).iter().any(|route| route.source != Source::Feature)
    };
    for is_bottom in [false, true] {
        let key = LabelKey { label: bsid, is_bottom };
        if !policies.policies.contains_key(&bsid) && said(fib, key) {
            return Err(Refusal::new(format!("label {bsid} has a route already"))
                .remedy(format!("`show mpls fib {bsid}`; choose another label")));
        }
        if let Err(error) = fib.replace_label_route(table, key, Source::Feature, &paths) {
            let text = error.about(&format!("SR policy {bsid}"));
            if !policies.policies.contains_key(&bsid) {
                remove_labels(fib, table, bsid);
            }
            return Err(Refusal::of_table(engine, text));
        }
    }
    let places: Vec<Place> =
        policies.steered.iter().filter(|(_, by)| **by == bsid).map(|(place, _)| *place).collect();
    for (of, prefix) in places {
        let done = fib.replace_route(of, prefix, Source::Feature, &paths);
        done.map_err(|error| Refusal::new(error.to_string()))?;
    }
    policies.policies.insert(bsid, lists);
    Ok(())
}

fn remove_labels(fib: &mut Fib, table: u32, bsid: u32) {
    for is_bottom in [false, true] {
        let key = LabelKey { label: bsid, is_bottom };
        let _ = fib.remove_label_route(table, key, Source::Feature); // it may not be there
    }
}

/// Delete a policy that nothing is steered into.
pub(super) fn delete(engine: &mut Engine, bsid: u32) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if !policies.policies.contains_key(&bsid) {
            return Err(no_policy(bsid));
        }
        if let Some(((_, prefix), _)) = policies.steered.iter().find(|(_, by)| **by == bsid) {
            return Err(Refusal::new(format!("{prefix} is steered into SR policy {bsid}"))
                .remedy(format!("sr mpls steer del l3 {prefix}")));
        }
        let table = crate::state::table_index(engine, TABLE)?;
        remove_labels(fib_mut(engine)?, table, bsid);
        policies.policies.remove(&bsid);
        Ok(())
    })
}

/// Steer packets to a prefix into a policy.
pub(super) fn steer(engine: &mut Engine, place: Place, bsid: u32) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let lists = policies.policies.get(&bsid).ok_or_else(|| no_policy(bsid))?;
        let table = crate::state::table_index(engine, TABLE)?;
        let paths: Vec<Path> =
            lists.iter().map(|list| list.path(table)).collect::<Result<_, Refusal>>()?;
        let fib = fib_mut(engine)?;
        let is_others = !policies.steered.contains_key(&place)
            && fib.route(place.0, place.1).iter().any(|route| route.source == Source::Feature);
        if is_others {
            return Err(Refusal::new(format!("another feature has a route for {}", place.1))
                .remedy(format!("`show ip fib {}`", place.1)));
        }
        fib.replace_route(place.0, place.1, Source::Feature, &paths)
            .map_err(|error| Refusal::of_table(engine, error))?;
        policies.steered.insert(place, bsid);
        Ok(())
    })
}

/// Steer packets to a prefix into no policy.
pub(super) fn release(engine: &mut Engine, place: Place) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if policies.steered.remove(&place).is_none() {
            return Err(Refusal::new(format!("{} is steered into no SR-MPLS policy", place.1))
                .remedy("`show sr mpls steering policies`"));
        }
        let _ = fib_mut(engine)?.remove_route(place.0, place.1, Source::Feature);
        Ok(())
    })
}
