//! Binding SIDs of policies that stand elsewhere (gateways of the mobile user plane): IPv4 packets
//! are steered into them by the same command, as routes that are resolved by one of ours.

use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;

use super::Kind;
use super::policies::{Policies, fib, host};
use super::policy::refusal;

/// The table in which such a binding SID must be free.
const TABLE: u32 = 0;

/// Let IPv4 packets be steered into `bsid`: they come to `hop`.
pub(crate) fn lend(engine: &mut Engine, bsid: Ipv6Addr, hop: Hop) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        policies.check(fib(engine)?, bsid, TABLE)?;
        let tables = policies.tables(fib(engine)?).map_err(|no| refusal(engine, bsid, no))?;
        let table = tables.get(Kind::Ip4 as usize).copied().unwrap_or(TABLE);
        let path = Path::new(Target::Feature(hop));
        fib(engine)?
            .replace_route(table, host(bsid), Source::Feature, &[path])
            .map_err(|no| refusal(engine, bsid, no))?;
        policies.lent.insert(bsid);
        Ok(())
    })
}

/// Nothing can be steered into it any more. Refused while something is.
pub(crate) fn withdraw(engine: &mut Engine, bsid: Ipv6Addr) -> Result<(), Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        policies.check_unused(engine, bsid)?;
        policies.lent.remove(&bsid);
        if let Some(table) = policies.own_table(Kind::Ip4) {
            let removed = fib(engine)?.remove_route(table, host(bsid), Source::Feature);
            removed.map_err(|no| refusal(engine, bsid, no))?;
        }
        Ok(())
    })
}
