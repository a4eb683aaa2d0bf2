//! Commands that say which packets are traced and captured.

use std::sync::Arc;

use quiver_control::{Args, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_core::graph::filter::{PacketFilters, SharedFilter};

use crate::commands::{GROUP, rest};
use crate::config::refusal;
use crate::filter::{RULES_MAX, Rule, Rules};

/// The rules of both filters.
#[derive(Default)]
pub(crate) struct Filters {
    trace: Rules,
    capture: Rules,
}

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("classify filter pcap|trace mask <rule:rest>")
            .group(GROUP)
            .help("Choose which packets `pcap trace … filter` and `trace add … filter` take")
            .details(
                "A rule is a mask and a match, as those of classifier tables. A packet is taken \
                 when it matches one of up to 32 rules. Traces and captures that have begun keep \
                 the rules that they began with.",
            )
            .word("pcap", "packets of captures")
            .word("trace", "packets of traces")
            .word("mask", "a mask, the word match and a match, up to the end of the line")
            .example("classify filter pcap mask l3 ip4 src match l3 ip4 src 192.0.2.1")
            .example("classify filter trace mask l3 ip6 l4 dst_port match l3 ip6 l4 dst_port 53")
            .run(add),
    );
    registry.command(
        Command::new("classify filter del pcap|trace")
            .group(GROUP)
            .help("Forget the rules that choose packets of captures or of traces")
            .example("classify filter del pcap")
            .run(|engine: &mut Engine, args| {
                set(engine, args, |rules| {
                    rules.0.clear();
                    Ok(())
                })
            }),
    );
    registry.command(
        Command::new("show classify filter")
            .group(GROUP)
            .help("Show which packets are chosen for captures and traces")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let rule = Rule::read(rest(args, "rule")?).map_err(refusal)?;
    set(engine, args, |rules| {
        if rules.0.contains(&rule) {
            return Ok(());
        }
        if rules.0.len() >= RULES_MAX {
            let what = format!("a filter has at most {RULES_MAX} rules");
            return Err(Refusal::new(what).remedy("`classify filter del pcap|trace` forgets them"));
        }
        rules.0.push(rule);
        Ok(())
    })
}

/// Change the rules of the filter that a command names.
fn set(
    engine: &mut Engine,
    args: &Args<'_>,
    change: impl FnOnce(&mut Rules) -> Result<(), Refusal>,
) -> Result<Output, Refusal> {
    let is_trace = args.has("trace");
    let filter: Option<SharedFilter> = engine.with(|_, filters: &mut Filters| {
        let rules = if is_trace { &mut filters.trace } else { &mut filters.capture };
        change(rules)?;
        let shared = (!rules.0.is_empty()).then(|| Arc::new(rules.clone()) as SharedFilter);
        Ok::<_, Refusal>(shared)
    })?;
    let mut filters = engine.get::<PacketFilters>().cloned().unwrap_or_default();
    match is_trace {
        true => filters.trace = filter,
        false => filters.capture = filter,
    }
    engine.insert(filters);
    Ok(Output::none())
}

fn show(engine: &Engine) -> Output {
    let columns = ["Filter", "Mask", "Match"].map(Column::left);
    let mut table = Table::new(columns).when_empty("no rule chooses packets");
    if let Some(filters) = engine.get::<Filters>() {
        for (word, rules) in [("pcap", &filters.capture), ("trace", &filters.trace)] {
            for rule in &rules.0 {
                let (mask, value) = rule.words();
                table.row().cell(word).cell(mask).cell(value);
            }
        }
    }
    Output::none().table("rules", table)
}
