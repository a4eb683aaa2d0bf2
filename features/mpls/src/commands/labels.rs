//! The routes of labels.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, along, order};
use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, LabelKey, Source};

use super::GROUP;
use super::paths::{ENTRY, VIA, paths, words};
use crate::state::{fib_mut, table_index};

/// What stands at the place of a label's route in a document.
fn entry(place: &str, flag: &str) -> &'static str {
    format!("{place}.{flag}: {{via: (via: {ENTRY})}} with add {flag}").leak()
}

pub(super) fn register(registry: &mut Registry) {
    let syntax = format!(
        "mpls local-label [add|del] {{<label:label> [eos|non-eos] [table <table:u32>] [{VIA}]}}"
    );
    registry.command(
        Command::new(syntax.leak())
            .entry(order::ROUTES, entry("labels.<label>", "eos"))
            .entry(order::ROUTES, entry("labels.<label>", "non-eos"))
            .entry(order::ROUTES, entry("tables.<table>.labels.<label>", "eos"))
            .entry(order::ROUTES, entry("tables.<table>.labels.<label>", "non-eos"))
            .undo("mpls local-label del <label> [eos] [non-eos] [table <table>]")
            .stands_on("mpls table <table=0>")
            .usual(&[("add", "add"), ("eos", "eos"), ("table", "0")])
            .group(GROUP)
            .help("Add or delete the route of a label")
            .details(
                "A label has two routes: eos as the last one of a stack, which is meant when \
                 neither is said, and non-eos in front of others. To a next hop, packets go with \
                 out-labels in place of the label; without out-labels the label goes (the \
                 penultimate hop), and an IP packet or the labels behind it are sent on. A next \
                 hop without an interface is looked up in table 0. Several `via` share the traffic \
                 by their weights, flow by flow: by an entropy label, or by the packet behind the \
                 labels. Labels 0 to 15 have a meaning of their own. `del` without `via` takes the \
                 whole route away.",
            )
            .word("eos", "the label as the last one of a stack")
            .word("non-eos", "the label in front of others")
            .word("out-labels", "labels in place of this one, the one that is sent first in front")
            .word("uniform", "TTL and class go on into what is behind the label (RFC 3443 §2.2)")
            .word("pipe", "labels have a TTL and a class of their own (the default)")
            .word("ttl", "the TTL of further labels; 255 when left out")
            .word("exp", "the traffic class of further labels; 0 when left out")
            .word("drop", "packets die silently")
            .word("ip4-lookup-in-table", "the IPv4 packet behind the label is looked up there")
            .word("ip6-lookup-in-table", "the IPv6 packet behind the label is looked up there")
            .word("mpls-lookup-in-table", "the next label is looked up there")
            .word("l2-input-on", "the frame behind the label is received on this interface")
            .word("rx-ip4", "the packet behind the label is received on this interface")
            .word("rx-ip6", "the packet behind the label is received on this interface")
            .word("weight", "share of the traffic, relative to the other paths")
            .word("preference", "paths with the lowest that can be used share the traffic")
            .example("mpls local-label add 16 eos via 192.0.2.2 e1")
            .example("mpls local-label add 100 eos via 192.0.2.2 e1 out-labels 200")
            .example("mpls local-label add 100 non-eos via 192.0.2.2 e1 out-labels 200 300")
            .example("mpls local-label add 500 eos via ip4-lookup-in-table 10")
            .example("mpls local-label add 16 non-eos via mpls-lookup-in-table 0")
            .example("mpls local-label del 100 eos")
            .run(change),
    );
    registry.running_config_in_slices(order::ROUTES, along(write_some));
}

fn change(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (label, table) = (args.get("label")?, table_index(engine, args.or("table", 0u32)?)?);
    let key = LabelKey { label, is_bottom: !args.has("non-eos") };
    let paths = paths(engine, args)?;
    let fib = fib_mut(engine)?;
    let done = match (args.has("del"), paths.is_empty()) {
        (false, _) => fib.add_label_route(table, key, Source::Static, &paths),
        (true, true) => fib.remove_label_route(table, key, Source::Static),
        (true, false) => fib.remove_label_paths(table, key, Source::Static, &paths),
    };
    done.map_err(|error| Refusal::of_table(engine, error.about(&format!("label {label}"))))?;
    Ok(Output::none())
}

/// Where the writing of labels is: table and label.
type At = (u32, LabelKey);

fn write_some(
    engine: &Engine,
    config: &mut ConfigWriter,
    last: Option<At>,
    most: usize,
) -> Option<At> {
    let fib = engine.get::<Fib>()?;
    let (mut left, mut at) = (most, last);
    for (id, index) in fib.label_table_numbers() {
        if last.is_some_and(|(table, _)| id < table) {
            continue;
        }
        let after = last.filter(|(table, _)| *table == id).map(|(_, key)| key);
        for route in fib.label_routes(index, after) {
            if left == 0 {
                return at;
            }
            (left, at) = (left - 1, Some((id, route.key)));
            if route.source != Source::Static {
                continue;
            }
            let bottom = if route.key.is_bottom { "eos" } else { "non-eos" };
            let table = if id == 0 { String::new() } else { format!(" table {id}") };
            let paths: Vec<String> =
                route.paths.iter().map(|path| words(engine, fib, path)).collect();
            config.command(format_args!(
                "mpls local-label add {} {bottom}{table} {}",
                route.key.label,
                paths.join(" ")
            ));
        }
    }
    None
}
