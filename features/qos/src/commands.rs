//! Commands that say what is recorded and written on interfaces.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::class::Source;
use crate::config::{self, Config};

/// The group of the commands.
pub(crate) const GROUP: &str = "Quality of service";

pub(crate) fn register(registry: &mut Registry) {
    record(registry);
    store(registry);
    registry.command(
        Command::new("qos mark ip|vlan|mpls <interface> [id <map:0-4095>] [disable]")
            .entry(order::FEATURES, "interfaces.<interface>.qos.<ip|vlan|mpls>.mark: <map>")
        .undo("qos mark [ip] [vlan] [mpls] <interface> disable")
        .replaces(&["interface", "ip", "vlan", "mpls"])
        .stands_on("QoS map <map>")
        .group(GROUP)
        .help("Write recorded classes into what an interface sends, by an egress map, or no more")
        .details(
            "ip: the traffic class of IPv4 and IPv6 packets, but for ECN, which stays. vlan: the \
             priority of the outermost tag. mpls: the traffic class of the outermost label. A \
             packet without a recorded class, or with one that the map does not name, stays as it \
             is. An interface has one map for each of the three.",
        )
        .word("id", "the egress map")
        .word("disable", "write it no more")
        .example("qos mark vlan e1 id 1")
        .example("qos mark vlan e1 disable")
        .run(mark),
    );
}

fn record(registry: &mut Registry) {
    registry.command(
        Command::new("qos record ip|vlan|mpls <interface> [disable]")
            .entry(order::FEATURES, "interfaces.<interface>.qos.<ip|vlan|mpls>.record: true")
            .undo("qos record [ip] [vlan] [mpls] <interface> disable")
            .replaces(&["interface", "ip", "vlan", "mpls"])
            .group(GROUP)
            .help("Record the class of what an interface receives, or no more")
            .details(
                "The class goes with the packet through the router, whatever becomes of its \
                 headers, and `qos mark` writes it where the packet leaves. Where several headers \
                 of a packet are recorded, the innermost counts: ip, then mpls, then vlan.",
            )
            .word("ip", "the traffic class of the IP header, without ECN")
            .word("vlan", "the priority of the outermost tag")
            .word("mpls", "the traffic class of the outermost label")
            .word("disable", "record it no more")
            .example("qos record ip e0")
            .example("qos record vlan e0 disable")
            .run(|engine: &mut Engine, args| {
                let (on, at) = (args.interface(engine, "interface")?, source(args) as usize);
                let is_on = !args.has("disable");
                config::set(engine, on, |on| on.recorded[at] = is_on)?;
                Ok(Output::none())
            }),
    );
}

fn store(registry: &mut Registry) {
    registry.command(
        Command::new("qos store ip|vlan|mpls <interface> [value <class:0-255>] [disable]")
            .entry(order::FEATURES, "interfaces.<interface>.qos.<ip|vlan|mpls>.store: <class>")
            .undo("qos store [ip] [vlan] [mpls] <interface> disable")
            .replaces(&["interface", "ip", "vlan", "mpls"])
            .group(GROUP)
            .help("Record one class for what an interface receives, whatever its header says")
            .details(
                "It is recorded for packets that have such a header, in place of what `qos record` \
             would record.",
            )
            .word("value", "the class: 0 to 7 for vlan and mpls")
            .word("disable", "record it no more")
            .example("qos store ip e0 value 184")
            .example("qos store ip e0 disable")
            .run(|engine: &mut Engine, args| {
                let (on, source) = (args.interface(engine, "interface")?, source(args));
                let value: Option<u8> = match args.has("disable") {
                    true => None,
                    false => Some(args.optional("class")?.ok_or_else(|| {
                        Refusal::new("qos store: which class?").remedy("say value and a number")
                    })?),
                };
                if value.is_some_and(|value| value > source.value_max()) {
                    let (word, max) = (source.word(), source.value_max());
                    let what = format!("the class of {word} is 0 to {max}");
                    return Err(args.refuse("class", what));
                }
                config::set(engine, on, |on| on.stored[source as usize] = value)?;
                Ok(Output::none())
            }),
    );
}

fn mark(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (on, source) = (args.interface(engine, "interface")?, source(args));
    if args.has("disable") {
        config::set(engine, on, |on| on.maps[source as usize] = None)?;
    } else {
        let map = args.optional("map")?.ok_or_else(|| {
            Refusal::new("qos mark: by which map?").remedy("`qos egress map id …` makes one")
        })?;
        config::mark(engine, on, source, map)?;
    }
    Ok(Output::none())
}

/// The header that a command names.
fn source(args: &Args<'_>) -> Source {
    let named = |source: &Source| args.has(source.word());
    Source::HEADERS.into_iter().find(named).unwrap_or(Source::Ip)
}

/// `show running-config`: what is recorded and written on an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let known = engine.get::<Config>();
    let Some(on) = known.and_then(|known| known.interfaces.get(&interface.id)) else { return };
    let name = &interface.name;
    for source in Source::HEADERS {
        let (at, word) = (source as usize, source.word());
        if on.recorded[at] {
            config.command(format_args!("qos record {word} {name}"));
        }
        if let Some(value) = on.stored[at] {
            config.command(format_args!("qos store {word} {name} value {value}"));
        }
        if let Some(map) = on.maps[at] {
            config.command(format_args!("qos mark {word} {name} id {map}"));
        }
    }
}
