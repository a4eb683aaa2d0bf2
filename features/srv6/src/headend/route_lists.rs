//! Policies of segment lists that other features give their routes. Nobody configures them: each
//! has a number in the place of its binding SID, an address of the discard prefix (RFC 6666), which
//! no route leads to.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, FibError, Path};
use quiver_forwarding::segment_routing::{HeadendMode, SegmentList};
use quiver_tables::prefix::{IpPrefix, Prefix};
use quiver_wire::srh::Form;

use super::Kind;
use super::policies::{Policies, fib};
use super::policy::{Behavior, New, Wanted, no_policy};
use super::steering::{self, Place};

/// 100::/64.
const DISCARD_PREFIX: u128 = 0x0100 << 112;

/// The lists, and what stands for them.
#[derive(Default)]
pub(super) struct RouteLists {
    by_list: BTreeMap<SegmentList, Held>,
    last: u64,
}

/// A policy that stands for a list.
struct Held {
    bsid: Ipv6Addr,
    users: usize,
    /// From where packets are steered into it, for ICMPv6 errors about them.
    from: Place,
}

impl RouteLists {
    /// Does this stand for a list of a route?
    pub fn has(&self, bsid: Ipv6Addr) -> bool {
        let is_discard = bsid.to_bits() >> 64 == DISCARD_PREFIX >> 64;
        is_discard && self.by_list.values().any(|held| held.bsid == bsid)
    }
}

fn table(engine: &mut Engine, family: Family, id: u32) -> Result<u32, Refusal> {
    let table = fib(engine)?.table_index(family, id);
    table.ok_or_else(|| Refusal::new(FibError::NoTable { family, id }.to_string()))
}

/// The path of a route that puts a list on packets, for one more user.
pub(crate) fn hold_list(engine: &mut Engine, list: &SegmentList) -> Result<Path, Refusal> {
    let kind = if list.family == Family::Ip4 { Kind::Ip4 } else { Kind::Ip6 };
    engine.with(|engine, policies: &mut Policies| {
        if let Some(held) = policies.route_lists.by_list.get_mut(list) {
            held.users += 1;
            let bsid = held.bsid;
            return steering::path(policies, bsid, kind);
        }
        let behavior = match list.mode {
            HeadendMode::Encaps => Behavior::Encaps(Form::Full),
            HeadendMode::EncapsRed => Behavior::Encaps(Form::Reduced),
            HeadendMode::Insert => Behavior::Insert(Form::Full),
        };
        if !behavior.kinds().contains(&kind) {
            let what = format!("segments cannot be inserted into {}", kind.words());
            return Err(Refusal::new(what));
        }
        let table6 = table(engine, Family::Ip6, list.table)?;
        let from = match list.family {
            Family::Ip4 => Place {
                table: table(engine, Family::Ip4, list.table)?,
                prefix: IpPrefix::V4(Prefix::new(0, 0)),
            },
            Family::Ip6 => Place { table: table6, prefix: IpPrefix::V6(Prefix::new(0, 0)) },
        };
        let bsid = loop {
            policies.route_lists.last += 1;
            let number = u128::from(policies.route_lists.last);
            let bsid = Ipv6Addr::from_bits(DISCARD_PREFIX | number);
            if policies.get(bsid).is_none() {
                break bsid;
            }
        };
        let wanted = Wanted { path: list.segments.clone(), weight: 1 };
        let new =
            New { behavior, spray: false, table: table6, hmac: None, source: None, list: wanted };
        policies.route_lists.by_list.insert(list.clone(), Held { bsid, users: 1, from });
        if let Err(refused) = policies.add(engine, bsid, new) {
            policies.route_lists.by_list.remove(list);
            return Err(refused);
        }
        policies.steerings.count(from, true);
        steering::path(policies, bsid, kind)
    })
}

/// One user less.
pub(crate) fn release_list(engine: &mut Engine, list: &SegmentList) {
    engine.with(|engine, policies: &mut Policies| {
        let Some(held) = policies.route_lists.by_list.get_mut(list) else { return };
        held.users -= 1;
        if held.users > 0 {
            return;
        }
        let (bsid, from) = (held.bsid, held.from);
        policies.drop_policy(engine, bsid);
        policies.route_lists.by_list.remove(list);
        policies.steerings.count(from, false);
    });
}

/// A policy whose binding SID is one of a feature's, not of the operator's.
pub(crate) fn add_bound(
    engine: &mut Engine,
    bsid: Ipv6Addr,
    table: u32,
    path: Vec<Ipv6Addr>,
) -> Result<(), Refusal> {
    let list = Wanted { path, weight: 1 };
    let behavior = Behavior::Encaps(Form::Full);
    let new = New { behavior, spray: false, table, hmac: None, source: None, list };
    engine.with(|engine, policies: &mut Policies| {
        policies.add(engine, bsid, new)?;
        policies.of_features.insert(bsid);
        Ok(())
    })
}

/// Delete such a policy; none when there is none with this binding SID.
pub(crate) fn delete_bound(engine: &mut Engine, bsid: Ipv6Addr) -> Option<Result<(), Refusal>> {
    engine.with(|engine, policies: &mut Policies| {
        if !policies.of_features.contains(&bsid) {
            return None;
        }
        if policies.get(bsid).is_none() {
            policies.of_features.remove(&bsid);
            return Some(Err(no_policy(bsid)));
        }
        let done = policies.delete(engine, bsid);
        if done.is_ok() {
            policies.of_features.remove(&bsid);
        }
        Some(done)
    })
}
