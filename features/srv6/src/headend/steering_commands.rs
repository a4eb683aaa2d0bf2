//! The commands of steering.

use std::net::Ipv6Addr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal, Registry,
    Table, Work, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_tables::prefix::IpPrefix;

use super::policies::Policies;
use super::steering::{self, Place};
use crate::commands::GROUP;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("sr steer l3 <prefix> via bsid <bsid:ip6> [fib-table <fib-table:u32>]")
            .entry(order::FEATURES, "sr.steering.<prefix>: <bsid>")
            .entry(order::FEATURES, "tables.<fib-table>.sr-steering.<prefix>: <bsid>")
            .undo("sr steer del l3 <prefix> [fib-table <fib-table>]")
            .stands_on("SR policy <bsid>")
            .group(GROUP)
            .help("Send packets to a prefix along an SR policy")
            .details(
                "A route among others: more specific prefixes go their own way, and it goes before \
                 routes that were added for the same prefix. A prefix has one policy: steered into \
                 another one, it changes over without losing a packet, and the answer says from \
                 which. Flows are shared among the lists of a policy (`sr policy mod`).",
            )
            .word("via", "the policy, by its binding SID")
            .word("fib-table", "the table that the prefix stands in; 0")
            .example("sr steer l3 198.51.100.0/24 via bsid fc00:0:f::1")
            .example("sr steer l3 2001:db8:b::/48 via bsid fc00:0:f::1 fib-table 10")
            .run(|engine: &mut Engine, args| {
                let (place, bsid) = (place(engine, args)?, args.get("bsid")?);
                let before = engine.with(|engine, policies: &mut Policies| {
                    steering::steer_l3(engine, policies, place, bsid)
                })?;
                let output = changed_over(&place.words(engine), before, bsid);
                Ok(crate::local_sids::warn_if_shadowed(engine, place.table, place.prefix, output))
            }),
    );
    registry.command(
        Command::new("sr steer del l3 <prefix> [via bsid <bsid:ip6>] [fib-table <fib-table:u32>]")
            .group(GROUP)
            .help("Send packets to a prefix along an SR policy no more")
            .example("sr steer del l3 198.51.100.0/24 via bsid fc00:0:f::1")
            .run(|engine: &mut Engine, args| {
                let (place, bsid) = (place(engine, args)?, args.optional("bsid")?);
                engine.with(|engine, policies: &mut Policies| {
                    steering::release_l3(engine, policies, place, bsid)
                })?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("sr steer l2 <interface> via bsid <bsid:ip6>")
            .entry(order::FEATURES, "interfaces.<interface>.sr-steering: <bsid>")
            .undo("sr steer del l2 <interface>")
            .stands_on("SR policy <bsid>")
            .makes("layer of <interface>")
            .group(GROUP)
            .help("Send all frames that an interface receives along an SR policy")
            .details(
                "The interface, which may be a VLAN sub-interface, routes and bridges no more. \
                 Frames go as they came, tags included. Steered into another policy, it changes \
                 over, and the answer says from which.",
            )
            .example("sr steer l2 memif0/0 via bsid fc00:0:f::1")
            .run(|engine: &mut Engine, args| {
                let (on, bsid) = (args.interface(engine, "interface")?, args.get("bsid")?);
                let before = steering::steer_l2(engine, on, bsid)?;
                Ok(changed_over(&format!("l2 {}", engine.interface_name(on)), before, bsid))
            }),
    );
    registry.command(
        Command::new("sr steer del l2 <interface> [via bsid <bsid:ip6>]")
            .group(GROUP)
            .help("Let an interface route again")
            .example("sr steer del l2 memif0/0 via bsid fc00:0:f::1")
            .run(|engine: &mut Engine, args| {
                let (on, bsid) = (args.interface(engine, "interface")?, args.optional("bsid")?);
                steering::end_l2(engine, on, bsid)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show sr steering-policies")
            .group(GROUP)
            .help("Show what is steered into SR policies")
            .run_or_begin(|engine: &mut Engine, _| show_steering(engine)),
    );
}

/// What was steered elsewhere before.
fn changed_over(what: &str, before: Option<Ipv6Addr>, now: Ipv6Addr) -> Output {
    match before.filter(|before| *before != now) {
        Some(before) => Output::text(format!("{what} changed over from SR policy {before}")),
        None => Output::none(),
    }
}

fn place(engine: &mut Engine, args: &Args<'_>) -> Result<Place, Refusal> {
    let written: Written = args.get("prefix")?;
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse("prefix", what)
            .remedy(format!("{} would be right", written.network())));
    }
    let (family, id) = (Family::of(written.address), args.or("fib-table", 0u32)?);
    let table = crate::local_sids::fib(engine)?.table_index(family, id);
    let table = table
        .ok_or_else(|| args.refuse("fib-table", FibError::NoTable { family, id }.to_string()))?;
    Ok(Place { table, prefix: IpPrefix::new(written.address, written.length) })
}

/// Something that is steered.
#[derive(Clone, Copy)]
pub(super) enum Steered {
    Prefix(Place),
    /// The frames of an interface, of this place in the order of their names.
    Frames(usize),
}

/// What is steered behind something, or from the first: prefixes, then interfaces by name. Each
/// with its words and its policy.
fn after(engine: &Engine, last: Option<Steered>, most: usize) -> Vec<(Steered, String, Ipv6Addr)> {
    let (Some(policies), Some(fib)) = (engine.get::<Policies>(), engine.get::<Fib>()) else {
        return Vec::new();
    };
    let steerings = &policies.steerings;
    let mut found = Vec::new();
    let frames = match last {
        Some(Steered::Frames(at)) => at + 1,
        _ => {
            let last = if let Some(Steered::Prefix(place)) = last { Some(place) } else { None };
            let of = |family| fib.tables_in_order(family).into_iter().map(move |t| (family, t));
            let tables = of(Family::Ip4).chain(of(Family::Ip6)).collect();
            let prefixes = steerings.l3_after(tables, last).take(most);
            found.extend(
                prefixes.map(|(place, bsid)| (Steered::Prefix(place), place.words(engine), bsid)),
            );
            0
        }
    };
    if found.len() < most {
        let all = quiver_control::by_interface_name(engine, steerings.l2()).into_iter().enumerate();
        let left = all.skip(frames).take(most - found.len());
        found.extend(left.map(|(at, (id, bsid))| {
            (Steered::Frames(at), format!("l2 {}", engine.interface_name(id)), bsid)
        }));
    }
    found
}

fn show_steering(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [Column::left("Steered"), Column::left("BSID")];
    let mut last = None;
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let found = after(engine, last, most);
        last = found.last().map(|(steered, ..)| *steered);
        let is_all = found.len() < most;
        for (_, words, bsid) in found {
            table.row().cell(words).cell(bsid.to_string());
        }
        Ok(is_all.then(Output::none))
    };
    Listing::new("steering", columns, rows).when_empty("nothing is steered").begin(engine)
}

/// The part of `show running-config`.
pub(super) fn write_config(
    engine: &Engine,
    config: &mut ConfigWriter,
    last: Option<Steered>,
    most: usize,
) -> Option<Steered> {
    let found = after(engine, last, most);
    let last = found.last().map(|(steered, ..)| *steered);
    for (_, steered, bsid) in found {
        let (what, table) = steered.split_once(" fib-table ").unwrap_or((&steered, ""));
        let table = if table.is_empty() { String::new() } else { format!(" fib-table {table}") };
        config.command(format_args!("sr steer {what} via bsid {bsid}{table}"));
    }
    last
}
