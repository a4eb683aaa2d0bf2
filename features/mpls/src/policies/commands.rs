//! The commands of SR-MPLS policies.

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal,
    Registry, Table, Work, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_tables::prefix::IpPrefix;

use super::config::{self, List, Place, Policies};
use crate::commands::GROUP;
use crate::state::fib;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "sr mpls policy add bsid <bsid:16-1048575> (next <label:label>)... [weight <:1-65535>]",
        )
        .entry(
            order::FEATURES,
            "sr-mpls.policies.<bsid>: {segment-lists[0]: some{segments: [next: <label>], weight}}",
        )
        .undo("sr mpls policy del bsid <bsid>")
        .makes("SR-MPLS policy <bsid>")
        .group(GROUP)
        .help("Add an SR-MPLS policy with a list of segments behind a binding label")
        .details(
            "The first segment is a label of MPLS table 0: packets go as its route says, with \
                 the label of that route in its place, and with the others behind. Packets that \
                 come with the binding label get the segments in its place (RFC 9256 §6).",
        )
        .word("next", "a segment, in the order of the path")
        .word("weight", "share of the traffic, where the policy has several lists")
        .example("sr mpls policy add bsid 40001 next 16001 next 16002 next 16003")
        .run(|engine: &mut Engine, args| {
            config::add(engine, args.get("bsid")?, list(args)?)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "sr mpls policy mod bsid <bsid:16-1048575> (add sl (next <label:label>)... [weight \
             <:1-65535>] | del sl index <index:u32> | mod sl index <at:u32> weight \
             <share:1-65535>)",
        )
        .entry(
            order::FEATURES,
            "sr-mpls.policies.<bsid>.segment-lists[]: {segments: [next: <label>], weight}",
        )
        .goes_with("SR-MPLS policy <bsid>")
        .stands_on("SR-MPLS policy <bsid>")
        .group(GROUP)
        .help("Add a list of segments to an SR-MPLS policy, take one away, or change its share")
        .word("index", "of a list, as `show sr mpls policies` counts them")
        .example("sr mpls policy mod bsid 40001 add sl next 16001 next 16004 weight 3")
        .example("sr mpls policy mod bsid 40001 del sl index 1")
        .run(modify),
    );
    registry.command(
        Command::new("sr mpls policy del bsid <bsid:16-1048575>")
            .group(GROUP)
            .help("Delete an SR-MPLS policy that nothing is steered into")
            .example("sr mpls policy del bsid 40001")
            .run(|engine: &mut Engine, args| {
                config::delete(engine, args.get("bsid")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "sr mpls steer l3 <prefix> via sr policy bsid <bsid:16-1048575> \
             [fib-table <fib-table:u32>]",
        )
        .entry(order::FEATURES, "sr-mpls.steering.<prefix>: <bsid>")
        .entry(order::FEATURES, "tables.<fib-table>.sr-mpls-steering.<prefix>: <bsid>")
        .undo("sr mpls steer del l3 <prefix> [fib-table <fib-table>]")
        .stands_on("SR-MPLS policy <bsid>")
        .group(GROUP)
        .help("Send packets to a prefix along an SR-MPLS policy")
        .details(
            "A route among others: more specific prefixes go their own way, and it goes before \
             routes that were added for the same prefix.",
        )
        .example("sr mpls steer l3 198.51.100.0/24 via sr policy bsid 40001")
        .run(|engine: &mut Engine, args| {
            let (place, bsid) = (place(engine, args)?, args.get("bsid")?);
            config::steer(engine, place, bsid)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("sr mpls steer del l3 <prefix> [fib-table <fib-table:u32>]")
            .group(GROUP)
            .help("Send packets to a prefix along an SR-MPLS policy no more")
            .example("sr mpls steer del l3 198.51.100.0/24")
            .run(|engine: &mut Engine, args| {
                let place = place(engine, args)?;
                config::release(engine, place)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show sr mpls policies")
            .group(GROUP)
            .help("Show SR-MPLS policies and their lists of segments")
            .run_or_begin(show),
    );
    registry.command(
        Command::new("show sr mpls steering policies")
            .group(GROUP)
            .help("Show what is steered into SR-MPLS policies")
            .run_or_begin(show_steering),
    );
}

fn list(args: &Args<'_>) -> Result<List, Refusal> {
    let segments = args.groups("next").map(|next| next.get::<u32>("label"));
    Ok(List { segments: segments.collect::<Result<_, _>>()?, weight: args.or("weight", 1u32)? })
}

fn modify(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let bsid = args.get("bsid")?;
    let at = |lists: &[List], name: &str| {
        let index: u32 = args.get(name)?;
        let count = lists.len();
        match (index as usize) < count {
            true => Ok(index as usize),
            false => Err(args.refuse(name, format!("the policy has {count} lists, from 0 on"))),
        }
    };
    config::change(engine, bsid, |lists| {
        if args.has("at") {
            let place = at(lists, "at")?;
            lists[place].weight = args.get("share")?;
        } else if args.has("index") {
            let place = at(lists, "index")?;
            lists.remove(place);
        } else {
            lists.push(list(args)?);
        }
        Ok(())
    })?;
    Ok(Output::none())
}

fn place(engine: &Engine, args: &Args<'_>) -> Result<Place, Refusal> {
    let written: Written = args.get("prefix")?;
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse("prefix", what)
            .remedy(format!("{} would be right", written.network())));
    }
    let (family, id) = (Family::of(written.address), args.or("fib-table", 0u32)?);
    let table = fib(engine)?.table_index(family, id);
    let table = table
        .ok_or_else(|| args.refuse("fib-table", FibError::NoTable { family, id }.to_string()))?;
    Ok((table, IpPrefix::new(written.address, written.length)))
}

fn list_words(list: &List) -> String {
    let segments: Vec<String> = list.segments.iter().map(|label| format!("next {label}")).collect();
    let weight = if list.weight == 1 { String::new() } else { format!(" weight {}", list.weight) };
    format!("{}{weight}", segments.join(" "))
}

fn show(engine: &mut Engine, _: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys: Vec<u32> =
        engine.get::<Policies>().into_iter().flat_map(Policies::iter).map(|(b, _)| b).collect();
    let columns = [Column::right("BSID").key("bsid"), Column::left("Lists").key("paths")];
    let add = |engine: &Engine, table: &mut Table, bsid| {
        let Some(lists) = engine.get::<Policies>().and_then(|all| all.get(bsid)) else { return };
        let words: Vec<String> = lists.iter().map(list_words).collect();
        table.row().cell(bsid).cell(Cell::new(words.join(", "), words.clone()));
    };
    Listing::over("policies", columns, keys, add)
        .when_empty("no SR-MPLS policies; `sr mpls policy add` makes one")
        .begin(engine)
}

fn family_of(prefix: IpPrefix) -> Family {
    if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 }
}

fn show_steering(engine: &mut Engine, _: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys: Vec<(Place, u32)> =
        engine.get::<Policies>().into_iter().flat_map(Policies::steered).collect();
    let columns =
        [Column::right("Table"), Column::left("Prefix"), Column::right("BSID").key("bsid")];
    let add = |engine: &Engine, table: &mut Table, ((index, prefix), bsid): (Place, u32)| {
        let Some(fib) = engine.get::<Fib>() else { return };
        let id = fib.table_id(family_of(prefix), index);
        table.row().cell(id).cell(Cell::display(prefix)).cell(bsid);
    };
    Listing::over("steering", columns, keys, add)
        .when_empty("nothing is steered into SR-MPLS policies")
        .begin(engine)
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let (Some(policies), Some(fib)) = (engine.get::<Policies>(), engine.get::<Fib>()) else {
        return;
    };
    for (bsid, lists) in policies.iter() {
        for (place, list) in lists.iter().enumerate() {
            let words = list_words(list);
            match place {
                0 => config.command(format_args!("sr mpls policy add bsid {bsid} {words}")),
                _ => config.command(format_args!("sr mpls policy mod bsid {bsid} add sl {words}")),
            }
        }
    }
    for ((index, prefix), bsid) in policies.steered() {
        let id = fib.table_id(family_of(prefix), index).unwrap_or(0);
        let table = if id == 0 { String::new() } else { format!(" fib-table {id}") };
        config.command(format_args!("sr mpls steer l3 {prefix} via sr policy bsid {bsid}{table}"));
    }
}
