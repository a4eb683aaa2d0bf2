//! Policies that something else than steering sends frames by: they are held as long as it does.

use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_tables::GroupId;

use super::Kind;
use super::policies::{Policies, fib};
use super::policy::refusal;
use super::steering;

/// A policy that frames are sent by, for workers: the group that follows its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyReference {
    /// Its binding SID.
    pub bsid: Ipv6Addr,
    /// Its lists as they are.
    pub group: GroupId,
}

/// Hold the policy `bsid`, which must take frames: it cannot be deleted meanwhile.
pub(crate) fn hold(engine: &mut Engine, bsid: Ipv6Addr) -> Result<PolicyReference, Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let path = steering::path(policies, bsid, Kind::L2)?;
        let held = fib(engine)?.hold_paths(Family::Ip6, 0, &[path]);
        let group = held.map_err(|no| refusal(engine, bsid, no))?;
        *policies.held.entry(bsid).or_default() += 1;
        Ok(PolicyReference { bsid, group })
    })
}

/// Let go of it; workers must find it no more.
pub(crate) fn release(engine: &mut Engine, PolicyReference { bsid, group }: PolicyReference) {
    engine.with(|engine, policies: &mut Policies| {
        if let Some(count) = policies.held.get_mut(&bsid) {
            *count -= 1;
            if *count == 0 {
                policies.held.remove(&bsid);
            }
        }
        if let Ok(fib) = fib(engine) {
            fib.release_paths(group);
        }
    });
}
