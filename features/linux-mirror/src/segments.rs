//! Routes of Linux with SRv6: those that put segments on packets become routes by SR policies, and
//! local SIDs become local SIDs of the router.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Path, Target};
use quiver_forwarding::segment_routing::{
    HeadendMode, LocalSid, SegmentList, SegmentRouting, SidBehavior, SidFlavors,
};
use quiver_netlink::seg6;
use quiver_tables::prefix::{Ip6Prefix, IpPrefix};

use crate::labels;
use crate::reader::{Encap, Hop, RouteKey, RouteValue};
use crate::routes::{Meaning, RouteCounts, share, table_index};

/// The lists that routes of one feed have.
pub(crate) type HeldLists = HashMap<RouteKey, Vec<SegmentList>>;
/// By table ID and prefix: the local SIDs that feeds ask for, with their numbers. The first is in
/// use.
pub(crate) type Sids = BTreeMap<(u32, Ip6Prefix), Vec<(u32, LocalSid)>>;

/// What one feed holds of SRv6.
pub(crate) struct Holds<'a> {
    pub lists: &'a mut HeldLists,
    pub sids: &'a mut Sids,
}

impl Holds<'_> {
    /// Has a route of the feed something that has to be let go of?
    pub fn has(&self, key: &RouteKey, table: u32, owner: u32) -> bool {
        self.lists.contains_key(key)
            || sid_place(key, table).is_some_and(|place| {
                self.sids.get(&place).is_some_and(|all| all.iter().any(|(of, _)| *of == owner))
            })
    }
}

fn sid_place(key: &RouteKey, table: u32) -> Option<(u32, Ip6Prefix)> {
    match key.prefix {
        IpPrefix::V6(prefix) => Some((table, prefix)),
        IpPrefix::V4(_) => None,
    }
}

/// Why a route is not followed.
enum Why {
    /// It encapsulates in a way that is not understood.
    NotUnderstood,
    /// None of its links has a twin.
    Elsewhere,
    /// Another feature, or the forwarding table, refuses.
    Refused(String),
}

/// Take over a route that has segments, or had some.
pub(crate) fn take(
    engine: &mut Engine,
    (key, value): (&RouteKey, Option<&RouteValue>),
    meaning: &Meaning<'_>,
    holds: &mut Holds<'_>,
    counts: &mut RouteCounts,
) {
    let table = meaning.table(key);
    let old = holds.lists.remove(key).unwrap_or_default();
    let hops = value.filter(|_| meaning.is_followed).map(|value| meaning.hops_of(value));
    let local = hops.as_deref().and_then(|hops| match hops {
        [Hop { encap: Some(encap), link, .. }] => match encap.as_ref() {
            Encap::Local(sid) => Some((sid, *link)),
            _ => None,
        },
        _ => None,
    });
    let sid = local.map(|(sid, link)| local_sid(engine, sid, link, meaning));
    let mut new = Vec::new();
    // What is new is there before what was there goes: packets between find one of both. A local
    // SID stands before the route of the feed with its prefix (`Source::Feature`).
    let done = match (&hops, sid) {
        (None, _) => {
            remove_route(engine, key, table, meaning);
            counts.removed += 1;
            put_sid(engine, holds.sids, key, table, meaning.owner, None)
        }
        (Some(_), Some(sid)) => {
            let put = sid
                .and_then(|sid| put_sid(engine, holds.sids, key, table, meaning.owner, Some(sid)));
            remove_route(engine, key, table, meaning);
            put
        }
        (Some(hops), None) => {
            let put = put_route(engine, key, hops, table, meaning, &mut new);
            put.and(put_sid(engine, holds.sids, key, table, meaning.owner, None))
        }
    };
    // A new route has what it needs before the old one's lists go.
    if let Some(calls) = engine.get::<SegmentRouting>().copied() {
        old.iter().for_each(|list| (calls.release_list)(engine, list));
    }
    if !new.is_empty() {
        holds.lists.insert(*key, new);
    }
    match done {
        Ok(()) => counts.given += u64::from(hops.is_some()),
        Err(why) => {
            remove_route(engine, key, table, meaning);
            let _ = put_sid(engine, holds.sids, key, table, meaning.owner, None);
            match why {
                Why::NotUnderstood => counts.encapsulated += 1,
                Why::Elsewhere => counts.elsewhere += 1,
                Why::Refused(why) => {
                    counts.refused += 1;
                    counts.last_refusal = Some(format!("{}: {why}", key.prefix));
                }
            }
        }
    }
}

/// The route of the feed goes, if it is there.
fn remove_route(engine: &mut Engine, key: &RouteKey, table: u32, meaning: &Meaning<'_>) {
    let family = if key.prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
    if let Some(fib) = engine.get_mut::<Fib>()
        && let Some(index) = fib.table_index(family, table)
    {
        let _ = fib.remove_route(index, key.prefix, meaning.source); // it may not be there
    }
}

/// A route by hops, some of which put segments on packets. `held` gets their lists.
fn put_route(
    engine: &mut Engine,
    key: &RouteKey,
    hops: &[Hop],
    table: u32,
    meaning: &Meaning<'_>,
    held: &mut Vec<SegmentList>,
) -> Result<(), Why> {
    let family = if key.prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
    let mut paths: Vec<Path> = Vec::new();
    let mut why = Why::Elsewhere;
    for hop in hops {
        let weight = share(hop.weight);
        match hop.encap.as_deref() {
            None => paths.extend(meaning.path(hop.gateway, hop.link, hop.weight)),
            Some(Encap::Headend(headend)) => {
                let list = list_of(headend, family, meaning);
                match list.ok_or(Why::NotUnderstood).and_then(|list| hold(engine, list, held)) {
                    Ok(path) => paths.push(path.weight(weight)),
                    Err(no) => why = no,
                }
            }
            Some(Encap::Labels(stack)) => {
                let path = meaning.path(hop.gateway, hop.link, hop.weight);
                match labels::of_stack(stack) {
                    Some(labels) => paths.extend(path.map(|path| path.labels(labels))),
                    None => why = Why::NotUnderstood,
                }
            }
            Some(Encap::Local(_) | Encap::Unknown) => why = Why::NotUnderstood,
        }
    }
    if paths.is_empty() {
        return Err(why);
    }
    let refused = |error: quiver_forwarding::fib::FibError| Why::Refused(error.to_string());
    let Some(fib) = engine.get_mut::<Fib>() else { return Err(Why::Elsewhere) };
    let index = table_index(fib, family, table).map_err(refused)?;
    fib.replace_route(index, key.prefix, meaning.source, &paths).map_err(refused)
}

fn no_segments() -> Why {
    Why::Refused("this router is built without SRv6".into())
}

fn hold(engine: &mut Engine, list: SegmentList, held: &mut Vec<SegmentList>) -> Result<Path, Why> {
    let calls = engine.get::<SegmentRouting>().copied().ok_or_else(no_segments)?;
    let path = (calls.hold_list)(engine, &list).map_err(Why::Refused)?;
    held.push(list);
    Ok(path)
}

/// What the router makes of segments in Linux; none of frames, which routes here do not have.
fn list_of(headend: &seg6::Headend, family: Family, meaning: &Meaning<'_>) -> Option<SegmentList> {
    let mode = match headend.mode {
        seg6::Mode::Encap => HeadendMode::Encaps,
        seg6::Mode::EncapRed => HeadendMode::EncapsRed,
        seg6::Mode::Inline => HeadendMode::Insert,
        seg6::Mode::L2Encap | seg6::Mode::L2EncapRed => return None,
    };
    let segments = headend.segments.clone();
    Some(SegmentList { family, table: meaning.main_tables[1], mode, segments })
}

/// What the router makes of a local SID of Linux.
fn local_sid(
    engine: &mut Engine,
    sid: &seg6::LocalSid,
    link: u32,
    meaning: &Meaning<'_>,
) -> Result<LocalSid, Why> {
    let on = |engine: &Engine, to: IpAddr| {
        behind(engine, to, meaning).or_else(|| (meaning.interface)(link)).ok_or(Why::Elsewhere)
    };
    let mut table = |id: u32, families: &[Family]| -> Result<u32, Why> {
        let Some(fib) = engine.get_mut::<Fib>() else { return Err(Why::Elsewhere) };
        let mut found = id;
        for family in families {
            found = meaning.table_of(id, *family == Family::Ip6);
            let made = table_index(fib, *family, found);
            made.map_err(|error| Why::Refused(error.to_string()))?;
        }
        Ok(found)
    };
    let behavior = match &sid.action {
        seg6::Action::End => SidBehavior::End,
        seg6::Action::EndX(to) => SidBehavior::EndX((*to).into(), on(engine, (*to).into())?),
        seg6::Action::Dx4(to) => SidBehavior::Dx4((*to).into(), on(engine, (*to).into())?),
        seg6::Action::Dx6(to) => SidBehavior::Dx6((*to).into(), on(engine, (*to).into())?),
        seg6::Action::Dx2(link) => {
            SidBehavior::Dx2((meaning.interface)(*link).ok_or(Why::Elsewhere)?)
        }
        seg6::Action::EndT(id) => SidBehavior::EndT(table(*id, &[Family::Ip6])?),
        seg6::Action::Dt4(id) => SidBehavior::Dt4(table(*id, &[Family::Ip4])?),
        seg6::Action::Dt6(id) => SidBehavior::Dt6(table(*id, &[Family::Ip6])?),
        seg6::Action::Dt46(id) => SidBehavior::Dt46(table(*id, &[Family::Ip4, Family::Ip6])?),
        seg6::Action::B6Encaps(segments) => SidBehavior::B6Encaps(segments.clone()),
    };
    let [psp, usp, usd] = sid.flavors;
    let flavors = SidFlavors { psp, usp, usd, next_csid: sid.next_csid };
    Ok(LocalSid { behavior, flavors })
}

/// The interface behind which the main table has an address.
fn behind(engine: &Engine, to: IpAddr, meaning: &Meaning<'_>) -> Option<InterfaceId> {
    let family = Family::of(to);
    let fib = engine.get::<Fib>()?;
    let table = fib.table_index(family, meaning.main_tables[family as usize])?;
    fib.best_route(table, to)?.paths.iter().find_map(|path| match path.target {
        Target::Attached(on)
        | Target::Neighbour { interface: on, .. }
        | Target::Via { interface: Some(on), .. } => Some(on),
        _ => None,
    })
}

/// A feed says something else of a local SID, or no more.
fn put_sid(
    engine: &mut Engine,
    sids: &mut Sids,
    key: &RouteKey,
    table: u32,
    owner: u32,
    new: Option<LocalSid>,
) -> Result<(), Why> {
    let Some(place) = sid_place(key, table) else { return Ok(()) };
    if new.is_none() && !sids.contains_key(&place) {
        return Ok(());
    }
    let calls = engine.get::<SegmentRouting>().copied().ok_or_else(no_segments)?;
    let all = sids.entry(place).or_default();
    let before = all.first().map(|(_, sid)| sid.clone());
    match (all.iter().position(|(of, _)| *of == owner), new) {
        (Some(at), Some(new)) => all[at].1 = new,
        (Some(at), None) => drop(all.remove(at)),
        (None, Some(new)) => all.push((owner, new)),
        (None, None) => {}
    }
    let now = all.first().map(|(_, sid)| sid.clone());
    if all.is_empty() {
        sids.remove(&place);
    }
    if before == now {
        return Ok(());
    }
    if before.is_some() {
        let _ = (calls.delete_sid)(engine, place.0, place.1); // it may have gone with an interface
    }
    let Some(now) = now else { return Ok(()) };
    if let Some((_, csid)) = now
        .flavors
        .next_csid
        .filter(|(block, csid)| u32::from(*block) + u32::from(*csid) != u32::from(place.1.len()))
    {
        let what = format!("a C-SID of {csid} bits does not end where the prefix does");
        return Err(Why::Refused(what));
    }
    if let Some(fib) = engine.get_mut::<Fib>() {
        let made = table_index(fib, Family::Ip6, place.0);
        made.map_err(|error| Why::Refused(error.to_string()))?;
    }
    (calls.add_sid)(engine, place.0, place.1, &now).map_err(Why::Refused)
}

/// The local SIDs of these feeds leave a table.
pub(crate) fn leave_table(engine: &mut Engine, sids: &mut Sids, table: u32, owners: &[u32]) {
    let places: Vec<_> = sids.keys().filter(|place| place.0 == table).copied().collect();
    for (table, prefix) in places {
        let key = RouteKey { table, prefix: IpPrefix::V6(prefix) };
        for owner in owners {
            let _ = put_sid(engine, sids, &key, table, *owner, None); // nothing is made
        }
    }
}
