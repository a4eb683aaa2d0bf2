//! Gateways with H.M.GTP4.D, on the control thread: policies that IPv4 prefixes are steered into.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_control::{Args, ConfigWriter, IpPrefix as Written, Output, Refusal};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_forwarding::next_hop_group::Hop;

use super::args::{IP4_PREFIX_MAX, IP4_SESSION_PREFIX_MAX};
use super::encap_template::{EncapTemplate, Payload, Source};
use super::gateway_entries::{self, GatewayEntries, GatewayTable};
use super::{gtp4_d, gtp6_d, prefix_of};
use crate::endpoint::table_references::TableReferences;
use crate::headend;

/// A gateway.
struct Gateway {
    recipe: EncapTemplate,
    /// The operator's number.
    table: u32,
    tables: TableReferences,
    rows: GatewayEntries,
}

/// All of them, by the binding SID that steering names.
#[derive(Default)]
pub(super) struct Gateways(BTreeMap<Ipv6Addr, Gateway>);

impl Gateway {
    fn words(&self) -> String {
        let EncapTemplate { sid, source, payload, drop_in, path, .. } = &self.recipe;
        let mut words = format!("h.m.gtp4.d {}/{}", Ipv6Addr::from_bits(sid.first()), sid.len());
        if let Source::Embeds(prefix) = source {
            words +=
                &format!(" v6src_prefix {}/{}", Ipv6Addr::from_bits(prefix.first()), prefix.len());
        }
        words += &payload.words();
        if self.table != 0 {
            words += &format!(" fib-table {}", self.table);
        }
        words += if *drop_in { " drop-in" } else { "" };
        path.iter().fold(words, |words, segment| words + &format!(" next {segment}"))
    }
}

/// What stands behind the binding SID in the command that adds one.
pub(crate) const POLICY_SYNTAX: &str = "behavior (t.m.gtp4.d|h.m.gtp4.d) <sr-prefix:prefix6> \
                                        v6src_prefix <v6src:prefix6> {[nhtype \
                                        <nhtype:ipv4|ipv6|non-ip>] [fib-table <lookup-table:u32>] \
                                        [drop-in]} [(next <segment:ip6>)...]";

/// Is that what the command says?
pub(crate) fn is_gateway(args: &Args<'_>) -> Result<bool, Refusal> {
    Ok(args.optional::<Written>("v6src")?.is_some())
}

/// Add one.
pub(crate) fn add(engine: &mut Engine, args: &Args<'_>, bsid: Ipv6Addr) -> Result<Output, Refusal> {
    let sid = args.get::<Written>("sr-prefix")?;
    let what = "an IPv4 address and Args.Mob.Session";
    let sid = prefix_of(args, "sr-prefix", sid, IP4_SESSION_PREFIX_MAX, what)?;
    let source =
        prefix_of(args, "v6src", args.get::<Written>("v6src")?, IP4_PREFIX_MAX, "an IPv4 address")?;
    let recipe = EncapTemplate {
        sid,
        path: gtp6_d::path_of(args)?,
        source: Source::Embeds(source),
        payload: Payload::of(args)?,
        drop_in: args.has("drop-in"),
        has_ip4: true,
    };
    let table: u32 = args.or("lookup-table", 0)?;
    let next = engine.node_id(gtp4_d::NODE);
    let next = next.ok_or_else(|| Refusal::new("the node of H.M.GTP4.D is not built in"))?;
    let mut tables = TableReferences::default();
    let small = tables.hold(engine, Family::Ip6, table)?;
    let made = gateway_entries::add(engine, &recipe, small).and_then(|rows| {
        let lent = headend::lend(engine, bsid, Hop { next, index: rows.packets });
        lent.map(|()| rows).inspect_err(|_| gateway_entries::retire(engine, rows))
    });
    match made {
        Ok(rows) => {
            let gateway = Gateway { recipe, table, tables, rows };
            engine.with(|_, gateways: &mut Gateways| gateways.0.insert(bsid, gateway));
            Ok(Output::none())
        }
        Err(refused) => {
            tables.release(engine);
            Err(refused)
        }
    }
}

/// Delete the gateway with this binding SID, if there is one.
pub(crate) fn delete(engine: &mut Engine, bsid: Ipv6Addr) -> Option<Result<(), Refusal>> {
    engine.get::<Gateways>()?.0.get(&bsid)?;
    if let Err(refused) = headend::withdraw(engine, bsid) {
        return Some(Err(refused));
    }
    let gateway = engine.with(|_, gateways: &mut Gateways| gateways.0.remove(&bsid))?;
    gateway_entries::retire(engine, gateway.rows);
    let mut tables = gateway.tables;
    tables.release(engine);
    Some(Ok(()))
}

/// Rows of `show sr policies`: binding SID, table, behaviour, packets and bytes.
pub(crate) fn policy_rows(engine: &Engine) -> Vec<(Ipv6Addr, u32, String, [u64; 2])> {
    let (Some(gateways), Some(rows)) = (engine.get::<Gateways>(), engine.get::<GatewayTable>())
    else {
        return Vec::new();
    };
    let one = |(bsid, gateway): (&Ipv6Addr, &Gateway)| {
        (*bsid, gateway.table, gateway.words(), rows.counted(gateway.rows))
    };
    gateways.0.iter().map(one).collect()
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (bsid, gateway) in engine.get::<Gateways>().into_iter().flat_map(|gateways| &gateways.0) {
        config.command(format_args!("sr policy add bsid {bsid} behavior {}", gateway.words()));
    }
}
