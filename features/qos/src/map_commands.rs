//! Commands that make egress maps.

use std::fmt::Write as _;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::class::Source;
use crate::commands::GROUP;
use crate::config::{self, Config};
use crate::map::{EgressMap, Run};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "qos egress map id <map:0-4095> (<source:ip|vlan|mpls|ext> in <first:0-255> [to \
             <last:0-255>] out <out:0-255>)...",
        )
        .entry(
            order::RESOURCES,
            "qos.egress-maps.<map>: [source: {source, in: <first>, to: <last>, out}]",
        )
        .undo("qos egress map del id <map>")
        .replaces(&["map"])
        .makes("QoS map <map>")
        .group(GROUP)
        .help("Make an egress map, or replace all of it")
        .details(
            "A map says which class `qos mark` writes, by where a class was recorded from and what \
             it is. What it does not name leaves packets as they are. Classes of ip are whole \
             traffic classes: a DSCP, times four. Those of vlan and mpls are 0 to 7. ext is for \
             classes that no header had.",
        )
        .word("in", "the class that was recorded, or the first of several")
        .word("to", "the last of them")
        .word("out", "the class that is written")
        .example("qos egress map id 1 ip in 184 out 5 ip in 136 to 159 out 4")
        .example("qos egress map id 2 vlan in 5 out 184 vlan in 0 to 4 out 0")
        .run(put),
    );
    registry.command(
        Command::new("qos egress map del id <map:0-4095>")
            .group(GROUP)
            .help("Delete an egress map that no interface uses")
            .example("qos egress map del id 1")
            .run(|engine: &mut Engine, args| {
                config::delete_map(engine, args.get("map")?)?;
                Ok(Output::none())
            }),
    );
}

fn put(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mut map = EgressMap::default();
    for group in args.groups("source") {
        let run = run(&group)?;
        map.add(run).map_err(|twice| {
            let what = format!("{twice} of {} is mapped twice", run.source.word());
            group.refuse("first", what).remedy("a class is written as one other")
        })?;
    }
    config::put_map(engine, args.get("map")?, map)?;
    Ok(Output::none())
}

/// A repetition of the command's group.
fn run(group: &Args<'_>) -> Result<Run, Refusal> {
    let source = Source::of_word(group.get("source")?).unwrap_or(Source::External);
    let first: u8 = group.get("first")?;
    let last: u8 = group.or("last", first)?;
    if last < first {
        return Err(group.refuse("last", format!("{last} is before {first}")));
    }
    if last > source.value_max() {
        let (word, max) = (source.word(), source.value_max());
        return Err(group.refuse("first", format!("the class of {word} is 0 to {max}")));
    }
    Ok(Run { source, first, last, out: group.get("out")? })
}

/// The numbers of all maps.
pub(crate) fn numbers(engine: &Engine) -> Vec<u16> {
    engine.get::<Config>().map_or_else(Vec::new, |known| known.maps.keys().copied().collect())
}

/// `show running-config`: a map.
pub(crate) fn write(engine: &Engine, config: &mut ConfigWriter, number: u16) {
    let known = engine.get::<Config>();
    let Some(map) = known.and_then(|known| known.maps.get(&number)) else { return };
    let mut line = format!("qos egress map id {number}");
    for Run { source, first, last, out } in map.runs() {
        let _ = write!(line, " {} in {first}", source.word());
        if last > first {
            let _ = write!(line, " to {last}");
        }
        let _ = write!(line, " out {out}");
    }
    config.command(format_args!("{line}"));
}
