//! `flowprobe …`, in the words of VPP.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::config::{self, FLOWS_DEFAULT, Flowprobe, OfInterface, Settings};
use crate::key::{Kinds, Shape};
use crate::probe::MILLISECOND_NS;

pub(crate) const GROUP: &str = "Export";
/// What can be recorded of an interface, and the words for it.
pub(crate) const WORDS: [(Kinds, &str); 3] =
    [(Kinds::L2, "l2"), (Kinds::IP4, "ip4"), (Kinds::IP6, "ip6")];
/// Layers whose fields are recorded.
pub(crate) const LAYERS: [(Shape, &str); 3] =
    [(Shape::L2, "l2"), (Shape::L3, "l3"), (Shape::L4, "l4")];

pub(crate) fn register(registry: &mut Registry) {
    params(registry);
    registry.command(
        Command::new("flowprobe table max-entries <flows:64-16777216>")
            .entry(order::RESOURCES, "flowprobe.table.max-entries: <flows>")
            .undo("flowprobe table max-entries 65536")
            .replaces(&[])
            .group(GROUP)
            .help("Size the table of flows that each worker has; 65536 unless set")
            .details(
                "The memory, about 140 bytes a flow, is taken as a whole when the first interface \
                 is recorded. While one is, the size stays.",
            )
            .example("flowprobe table max-entries 1000000")
            .run(|engine: &mut Engine, args| {
                let flows = args.get("flows")?;
                config::set_flows_max(engine, flows)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "flowprobe feature add-del <interface> <packets:l2|ip4|ip6> \
             [<direction:rx|tx|both>] [disable]",
        )
        .entry(order::FEATURES, "interfaces.<interface>.flowprobe.<packets>: <direction>")
        .undo("flowprobe feature add-del <interface> <packets> disable")
        .replaces(&["interface", "packets"])
        .group(GROUP)
        .help("Record the flows of an interface or sub-interface")
        .details(
            "l2 is all frames, ip4 and ip6 are packets of that family; an interface may have \
             several. rx, what it receives, is meant unless another direction is named. Records go \
             to the collector of `set ipfix exporter`.",
        )
        .word("disable", "record them no more; flows that live are exported")
        .example("flowprobe feature add-del e0 ip4")
        .example("flowprobe feature add-del e0 l2 both")
        .run(feature),
    );
    registry.command(
        Command::new("flowprobe flush")
            .group(GROUP)
            .help("Export all flows that live now; the clock hand does it within 10 seconds")
            .run(|engine: &mut Engine, _| {
                let now_ms = engine.now_ns() / MILLISECOND_NS;
                if let Some(own) = engine.get::<Flowprobe>() {
                    own.shared.flush(now_ms + 1);
                }
                Ok(Output::none())
            }),
    );
}

fn params(registry: &mut Registry) {
    registry.command(
        Command::new(
            "flowprobe params (default | record {[l2] [l3] [l4] [active <:1-604800>] \
             [passive <:1-604800>] [domain <:u32>]})",
        )
        .entry(order::RESOURCES, "flowprobe.params: some{l2, l3, l4, active, passive, domain}")
        .undo("flowprobe params default")
        .replaces(&[])
        .group(GROUP)
        .help("Set which fields flow records have, and when they are exported")
        .details(
            "Recorded fields make the flow, too: with l3 alone all connections of two hosts are \
             one flow of each protocol. Unless set it is `record l3 l4 active 15 passive 120`.",
        )
        .word("record", "which fields: of these layers")
        .word("l2", "MAC addresses, VLAN tag, EtherType, octets of frames")
        .word("l3", "IP addresses, protocol, class of service, next hop, lengths of the routes")
        .word("l4", "ports, TCP flags, ICMP type and code; with l3 only")
        .word("active", "seconds after which a flow that goes on is exported; 15")
        .word("passive", "seconds without a packet after which a flow is exported; 120")
        .word("domain", "the observation domain, which no other stream has; 0")
        .example("flowprobe params record l2 l3 l4 active 60 passive 30")
        .run(set_params),
    );
}

fn set_params(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let default = Settings::DEFAULT;
    if args.has("default") {
        config::set(engine, default);
        return Ok(Output::none());
    }
    let shape = LAYERS
        .iter()
        .fold(Shape::default(), |shape, (layer, word)| shape.with(*layer, args.has(word)));
    if shape == Shape::default() {
        return Err(Refusal::new("no fields would be recorded").remedy("name l2, l3 or l4"));
    }
    if shape.has(Shape::L4) && !shape.has(Shape::L3) {
        return Err(Refusal::new("ports without addresses and protocol make no flow")
            .remedy("record l3 l4"));
    }
    let settings = Settings {
        shape,
        active_s: args.or("active", default.active_s)?,
        passive_s: args.or("passive", default.passive_s)?,
        domain: args.or("domain", default.domain)?,
    };
    config::set(engine, settings);
    Ok(Output::none())
}

fn feature(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let word: &str = args.get("packets")?;
    let kinds = WORDS.iter().find(|(_, own)| *own == word).map_or(Kinds::L2, |(kinds, _)| *kinds);
    let directions = match (args.has("disable"), args.or("direction", "rx")?) {
        (true, _) => [false, false],
        (_, "tx") => [false, true],
        (_, "both") => [true, true],
        _ => [true, false],
    };
    let own = engine.get::<Flowprobe>();
    let mut wanted: OfInterface =
        own.and_then(|own| own.interfaces.get(&id)).copied().unwrap_or_default();
    for (own, on) in wanted.iter_mut().zip(directions) {
        *own = Kinds(own.0 & !kinds.0 | if on { kinds.0 } else { 0 });
    }
    config::enable(engine, id, wanted)?;
    Ok(Output::none())
}

/// The word for the directions in which such packets are recorded, if there are any.
pub(crate) fn direction(own: &OfInterface, kinds: Kinds) -> Option<&'static str> {
    match own.map(|own| own.any(kinds.0)) {
        [true, true] => Some("both"),
        [true, false] => Some("rx"),
        [false, true] => Some("tx"),
        [false, false] => None,
    }
}

/// Settings in `show running-config`.
pub(crate) fn write_settings(engine: &Engine, config: &mut ConfigWriter) {
    let Some(own) = engine.get::<Flowprobe>() else { return };
    let (settings, default) = (&own.settings, Settings::DEFAULT);
    if *settings != default {
        let layers = LAYERS.iter().filter(|(layer, _)| settings.shape.has(*layer));
        let layers: String = layers.map(|(_, word)| format!(" {word}")).collect();
        let option = |word: &str, value: u32, default: u32| match value == default {
            true => String::new(),
            false => format!(" {word} {value}"),
        };
        config.command(format_args!(
            "flowprobe params record{layers}{}{}{}",
            option("active", settings.active_s, default.active_s),
            option("passive", settings.passive_s, default.passive_s),
            option("domain", settings.domain, default.domain),
        ));
    }
    if own.flows_max != FLOWS_DEFAULT {
        config.command(format_args!("flowprobe table max-entries {}", own.flows_max));
    }
}

/// An interface in `show running-config`.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let flowprobe = engine.get::<Flowprobe>();
    let Some(own) = flowprobe.and_then(|all| all.interfaces.get(&interface.id)) else { return };
    for (kinds, word) in WORDS {
        if let Some(direction) = direction(own, kinds) {
            let name = &interface.name;
            config.command(format_args!("flowprobe feature add-del {name} {word} {direction}"));
        }
    }
}
