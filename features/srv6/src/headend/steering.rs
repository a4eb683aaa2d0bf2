//! What is steered into policies, on the control thread: prefixes, as routes, and interfaces, whose
//! frames are taken before anything looks at them.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_control::modes::{self, LayerTwo};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, PublishedSlots};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError, Only, Path, Source, by_table};
use quiver_tables::GroupId;
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::Kind;
use super::encaps_l2::{STEER, Steered};
use super::errors::SteeredFrom;
use super::policies::Policies;
use super::policy::no_policy;
use crate::local_sids::fib;

/// The mode of an interface whose frames are steered.
const MODE: &str = "sr steer";
/// Who holds a table, in the refusal to delete it.
const HOLDER: &str = "a steered prefix (`show sr steering-policies`)";

/// A prefix of a table, by its small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub table: u32,
    pub prefix: IpPrefix,
}

impl Place {
    /// The family of its packets.
    pub fn family(self) -> Family {
        if self.prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 }
    }

    /// The least place of a table of a family, and the one behind its last.
    fn ends((family, table): (Family, u32)) -> (Place, Place) {
        let least4 = |table| Place { table, prefix: IpPrefix::V4(Prefix::new(0, 0)) };
        let least6 = |table| Place { table, prefix: IpPrefix::V6(Prefix::new(0, 0)) };
        match family {
            Family::Ip4 => (least4(table), least6(table)),
            Family::Ip6 => (least6(table), least4(table.saturating_add(1))),
        }
    }

    fn kind(self) -> Kind {
        match self.family() {
            Family::Ip4 => Kind::Ip4,
            Family::Ip6 => Kind::Ip6,
        }
    }

    /// As commands have it.
    pub fn words(self, engine: &Engine) -> String {
        let id = engine.get::<Fib>().and_then(|fib| fib.table_id(self.family(), self.table));
        match id.unwrap_or(self.table) {
            0 => format!("l3 {}", self.prefix),
            id => format!("l3 {} fib-table {id}", self.prefix),
        }
    }
}

/// An interface that is steered, and the group that stands for its policy.
struct Taken {
    bsid: Ipv6Addr,
    group: GroupId,
}

/// All that is steered.
pub(super) struct Steerings {
    l3: BTreeMap<Place, Ipv6Addr>,
    l2: BTreeMap<InterfaceId, Taken>,
    steered: Steered,
    /// How many prefixes of each table of a family are steered.
    counts: [BTreeMap<u32, usize>; 2],
    steered_from: Arc<SteeredFrom>,
}

impl Steerings {
    /// Nothing yet.
    pub fn new(epochs: &Arc<Epochs>) -> Steerings {
        let steered = Arc::new(PublishedSlots::new(epochs, INTERFACES_MAX));
        let steered_from = Arc::new(SteeredFrom::new(epochs, [Vec::new(), Vec::new()]));
        let counts = [BTreeMap::new(), BTreeMap::new()];
        Steerings { l3: BTreeMap::new(), l2: BTreeMap::new(), steered, counts, steered_from }
    }

    /// The tables from which prefixes are steered, as workers read them.
    pub fn steered_from(&self) -> &Arc<SteeredFrom> {
        &self.steered_from
    }

    /// A prefix more of a table is steered, or one less.
    pub fn count(&mut self, place: Place, is_more: bool) {
        let counts = &mut self.counts[place.family() as usize];
        let count = counts.entry(place.table).or_default();
        *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
        let (now, is_new) = (*count, is_more && *count == 1);
        if now == 0 {
            counts.remove(&place.table);
        }
        if now == 0 || is_new {
            let tables = self.counts.each_ref().map(|counts| counts.keys().copied().collect());
            self.steered_from.publish(tables);
        }
    }

    /// What workers read of interfaces.
    pub fn steered(&self) -> &Steered {
        &self.steered
    }

    /// Prefixes, and their policies.
    pub fn l3(&self) -> impl Iterator<Item = (Place, Ipv6Addr)> {
        self.l3.iter().map(|(place, bsid)| (*place, *bsid))
    }

    /// Those behind one, or from the first, the tables in this order: a long list can pause.
    pub fn l3_after(
        &self,
        tables: Vec<(Family, u32)>,
        last: Option<Place>,
    ) -> impl Iterator<Item = (Place, Ipv6Addr)> {
        let found =
            by_table(&self.l3, tables, Place::ends, |place| (place.family(), place.table), last);
        found.map(|(place, bsid)| (*place, *bsid))
    }

    /// Interfaces, and their policies.
    pub fn l2(&self) -> impl Iterator<Item = (InterfaceId, Ipv6Addr)> {
        self.l2.iter().map(|(id, taken)| (*id, taken.bsid))
    }

    /// Something that is steered into a policy, as commands have it.
    pub fn first_into(&self, engine: &Engine, bsid: Ipv6Addr) -> Option<String> {
        let prefix =
            self.l3().find(|(_, into)| *into == bsid).map(|(place, _)| place.words(engine));
        let interface = || {
            let found = self.l2().find(|(_, into)| *into == bsid);
            found.map(|(id, _)| format!("l2 {}", engine.interface_name(id)))
        };
        prefix.or_else(interface)
    }
}

/// A refusal of the FIB, where a route means what is steered.
fn refusal(engine: &Engine, words: &str, error: FibError) -> Refusal {
    Refusal::of_table(engine, error.about(words))
}

/// The path that follows a policy.
pub(super) fn path(policies: &Policies, bsid: Ipv6Addr, kind: Kind) -> Result<Path, Refusal> {
    let lent = policies.own_table(kind).filter(|_| policies.lent.contains(&bsid));
    if let Some(table) = lent {
        return match kind {
            Kind::Ip4 => Ok(Path::resolved(bsid, Some(table), Some(Only::Host))),
            _ => Err(Refusal::new(format!(
                "SR policy {bsid} is for GTP-U over IPv4, not for {}",
                kind.words()
            ))),
        };
    }
    let policy = policies.get(bsid).ok_or_else(|| no_policy(bsid))?;
    if !policy.behavior.kinds().contains(&kind) {
        let (word, what) = (policy.behavior.word(), kind.words());
        return Err(Refusal::new(format!("SR policy {bsid} does {word}, which is not for {what}"))
            .remedy("steer into a policy with encap or encap.red"));
    }
    let table = policies.own_table(kind).ok_or_else(|| no_policy(bsid))?;
    Ok(Path::resolved(bsid, Some(table), Some(Only::Host)))
}

/// Steer a prefix into a policy; one that is steered into another one already changes over. Returns
/// that one.
pub(super) fn steer_l3(
    engine: &mut Engine,
    policies: &mut Policies,
    place: Place,
    bsid: Ipv6Addr,
) -> Result<Option<Ipv6Addr>, Refusal> {
    let path = path(policies, bsid, place.kind())?;
    let words = place.words(engine);
    let is_new = !policies.steerings.l3.contains_key(&place);
    if is_new {
        let views = fib(engine)?.route(place.table, place.prefix);
        // A subnet of the router itself goes before it, whichever came first.
        if views.iter().any(|view| view.source == Source::Feature) {
            let what = format!("{} leads to another feature already", place.prefix);
            return Err(Refusal::new(what).remedy("`show ip fib`, `show ip6 fib`"));
        }
    }
    fib(engine)?
        .replace_route(place.table, place.prefix, Source::Feature, &[path])
        .map_err(|error| refusal(engine, &words, error))?;
    if is_new {
        fib(engine)?.hold_table(place.family(), place.table, HOLDER);
        policies.steerings.count(place, true);
    }
    Ok(policies.steerings.l3.insert(place, bsid))
}

/// Steer a prefix no more.
pub(super) fn release_l3(
    engine: &mut Engine,
    policies: &mut Policies,
    place: Place,
    bsid: Option<Ipv6Addr>,
) -> Result<(), Refusal> {
    let words = place.words(engine);
    let into = policies.steerings.l3.get(&place).copied();
    let into = into.ok_or_else(|| not_steered(&words))?;
    check_same(&words, into, bsid)?;
    fib(engine)?
        .remove_route(place.table, place.prefix, Source::Feature)
        .map_err(|error| refusal(engine, &words, error))?;
    fib(engine)?.release_table(place.family(), place.table, HOLDER);
    policies.steerings.l3.remove(&place);
    policies.steerings.count(place, false);
    Ok(())
}

fn not_steered(words: &str) -> Refusal {
    Refusal::new(format!("{words} is not steered into an SR policy"))
        .remedy("`show sr steering-policies`")
}

fn check_same(words: &str, into: Ipv6Addr, bsid: Option<Ipv6Addr>) -> Result<(), Refusal> {
    match bsid.filter(|bsid| *bsid != into) {
        Some(other) => Err(Refusal::new(format!("{words} is not steered into SR policy {other}"))
            .remedy(format!("it is steered into {into}"))),
        None => Ok(()),
    }
}

/// Steer all frames of an interface into a policy; one that is steered into another one already
/// changes over. Returns that one.
pub(super) fn steer_l2(
    engine: &mut Engine,
    on: InterfaceId,
    bsid: Ipv6Addr,
) -> Result<Option<Ipv6Addr>, Refusal> {
    let words = format!("l2 {}", engine.interface_name(on));
    let group = engine.with(|engine, policies: &mut Policies| {
        let path = path(policies, bsid, Kind::L2)?;
        let held = fib(engine)?.hold_paths(Family::Ip6, 0, &[path]);
        held.map_err(|error| refusal(engine, &words, error))
    })?;
    let layer_two =
        LayerTwo { mode: MODE, with: format!("bsid {bsid}"), input: Some(STEER), end: release_l2 };
    // Workers find the policy before the first frame comes.
    let before = engine.with(|_, policies: &mut Policies| {
        let before = policies.steerings.l2.insert(on, Taken { bsid, group });
        policies.steerings.steered.publish(on.index(), Some(group));
        before
    });
    let entered = modes::enter(engine, on, layer_two);
    engine.with(|engine, policies: &mut Policies| {
        let into = before.as_ref().map(|taken| taken.bsid);
        let gone = match &entered {
            Ok(()) => before,
            Err(_) => {
                policies
                    .steerings
                    .steered
                    .publish(on.index(), before.as_ref().map(|taken| taken.group));
                let new = policies.steerings.l2.remove(&on);
                policies.steerings.l2.extend(before.map(|taken| (on, taken)));
                new
            }
        };
        if let (Some(gone), Some(fib)) = (gone, engine.get_mut::<Fib>()) {
            fib.release_paths(gone.group);
        }
        entered.map(|()| into)
    })
}

/// What the end of the mode leaves to be done.
fn release_l2(engine: &mut Engine, on: InterfaceId) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        if let Some(taken) = policies.steerings.l2.remove(&on) {
            policies.steerings.steered.publish(on.index(), None);
            if let Some(fib) = engine.get_mut::<Fib>() {
                fib.release_paths(taken.group);
            }
        }
        Ok(())
    })
}

/// Steer the frames of an interface no more.
pub(super) fn end_l2(
    engine: &mut Engine,
    on: InterfaceId,
    bsid: Option<Ipv6Addr>,
) -> Result<(), Refusal> {
    let words = format!("l2 {}", engine.interface_name(on));
    let taken = engine.get::<Policies>().and_then(|policies| policies.steerings.l2.get(&on));
    let into = taken.map(|taken| taken.bsid).ok_or_else(|| not_steered(&words))?;
    check_same(&words, into, bsid)?;
    modes::leave(engine, on).map(|_| ())
}

#[cfg(test)]
mod tests {
    use quiver_testkit::Router;

    use super::super::policy;
    use super::*;

    #[test]
    fn refusals_of_the_fib_name_interfaces_and_what_the_route_stands_for() {
        let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
        let on = router.interface("e0");
        let error = |route: &str| FibError::NoInterface { asked: route.into(), interface: on };
        let refused = refusal(router.engine(), "l2 e0", error("route ::/0"));
        assert_eq!(refused.to_string(), "l2 e0: there is no interface e0; create it first");
        let bsid = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 0xb1);
        let refused = policy::refusal(router.engine(), bsid, error("route fc00:0:1::b1/128"));
        assert_eq!(
            refused.to_string(),
            "SR policy fc00:0:1::b1: there is no interface e0; create it first"
        );
    }
}
