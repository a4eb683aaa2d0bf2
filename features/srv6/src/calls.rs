//! What `quiver-srv6` does for features that configure segments beside the operator
//! ([`SegmentRouting`]): the Linux mirror takes routes with segments from Linux.

use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, FibError, Path};
use quiver_forwarding::segment_routing::{
    LocalSid, SegmentList, SegmentRouting, SidBehavior, SidFlavors,
};
use quiver_tables::prefix::Ip6Prefix;

use crate::local_sids::{self, Behavior, Flavors, Place};
use crate::{csid, endpoint, headend};

/// Let other features make these calls.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(SegmentRouting { hold_list, release_list, add_sid, delete_sid });
}

/// A refusal in one sentence.
fn sentence(refusal: Refusal) -> String {
    refusal.to_string()
}

fn hold_list(engine: &mut Engine, list: &SegmentList) -> Result<Path, String> {
    headend::hold_list(engine, list).map_err(sentence)
}

fn release_list(engine: &mut Engine, list: &SegmentList) {
    headend::release_list(engine, list);
}

fn place(engine: &mut Engine, id: u32, prefix: Ip6Prefix) -> Result<Place, Refusal> {
    let family = Family::Ip6;
    let table = local_sids::fib(engine)?.table_index(family, id);
    let table = table.ok_or_else(|| Refusal::new(FibError::NoTable { family, id }.to_string()))?;
    Ok(Place { table, prefix })
}

fn add_sid(engine: &mut Engine, id: u32, prefix: Ip6Prefix, sid: &LocalSid) -> Result<(), String> {
    let place = place(engine, id, prefix).map_err(sentence)?;
    if let SidBehavior::B6Encaps(segments) = &sid.behavior {
        if prefix.len() != 128 || sid.flavors != SidFlavors::default() {
            return Err("End.B6.Encaps has an address of its own, and no flavors".into());
        }
        let bsid = Ipv6Addr::from_bits(prefix.first());
        return headend::add_bound(engine, bsid, place.table, segments.clone()).map_err(sentence);
    }
    let behavior = behavior(sid).map_err(sentence)?;
    local_sids::add_of_feature(engine, place, behavior).map_err(sentence)
}

fn delete_sid(engine: &mut Engine, id: u32, prefix: Ip6Prefix) -> Result<(), String> {
    if prefix.len() == 128
        && let Some(done) = headend::delete_bound(engine, Ipv6Addr::from_bits(prefix.first()))
    {
        return done.map_err(sentence);
    }
    let place = place(engine, id, prefix).map_err(sentence)?;
    local_sids::delete(engine, place).map_err(sentence)
}

fn flavors_of(flavors: SidFlavors) -> Flavors {
    let pairs =
        [(flavors.psp, Flavors::PSP), (flavors.usp, Flavors::USP), (flavors.usd, Flavors::USD)];
    let given = pairs.into_iter().filter(|(given, _)| *given);
    Flavors::from_bits(given.fold(0, |all, (_, flavor)| all | flavor.bits()))
}

/// The behaviour of a local SID.
fn behavior(sid: &LocalSid) -> Result<Box<dyn Behavior>, Refusal> {
    let flavors = flavors_of(sid.flavors);
    let has_flavors = sid.flavors != SidFlavors::default();
    let plain = match sid.behavior {
        SidBehavior::End => endpoint::end(None, flavors),
        SidBehavior::EndT(table) => endpoint::end(Some(table), flavors),
        SidBehavior::EndX(next_hop, on) => endpoint::end_x(next_hop, on, flavors),
        _ if has_flavors => {
            return Err(Refusal::new("only End, End.X and End.T have flavors"));
        }
        SidBehavior::Dx2(on) => endpoint::dx2(on),
        SidBehavior::Dx4(next_hop, on) => endpoint::dx(Family::Ip4, next_hop, on),
        SidBehavior::Dx6(next_hop, on) => endpoint::dx(Family::Ip6, next_hop, on),
        SidBehavior::Dt4(table) => endpoint::dt("end.dt4", &[Family::Ip4], table),
        SidBehavior::Dt6(table) => endpoint::dt("end.dt6", &[Family::Ip6], table),
        SidBehavior::B6Encaps(_) => return Err(Refusal::new("a policy, no local SID")),
        SidBehavior::Dt46(table) => endpoint::dt("end.dt46", &[Family::Ip4, Family::Ip6], table),
    };
    Ok(match sid.flavors.next_csid {
        Some((_, csid_bits)) => csid::next(csid_bits, plain),
        None => plain,
    })
}
