//! `sflow …`, `show sflow`, in the words of VPP.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::agent::{Agent, Settings};
use crate::config;
use crate::sources::Direction;

const GROUP: &str = "Export";
/// The port of sFlow, as IANA has it.
const PORT_DEFAULT: u16 = 6_343;

pub(crate) fn register(registry: &mut Registry) {
    numbers(registry);
    drops(registry);
    ends(registry);
    registry.command(
        Command::new("sflow enable-disable <interface> [<direction:rx|tx|both>] [disable]")
            .entry(order::FEATURES, "interfaces.<interface>.sflow: <direction>")
            .undo("sflow enable-disable <interface> disable")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Sample the packets of an interface, and send its counters")
            .details(
                "Packets are sampled as they are received (rx, unless another direction is \
                 named), as they are sent (tx), or both. A sub-interface can be sampled as a port \
                 can.",
            )
            .word("disable", "sample the interface no more")
            .example("sflow enable-disable e0")
            .example("sflow enable-disable e0 both")
            .run(enable),
    );
    registry.command(
        Command::new("show sflow")
            .group(GROUP)
            .help("Show the settings of sFlow, its interfaces, and what became of samples")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

/// A setting that is a number: syntax, its line for the default, entry, help, further text.
type Number = (&'static str, &'static str, &'static str, &'static str, fn(&mut Settings, u32));

fn numbers(registry: &mut Registry) {
    const ALL: [Number; 4] = [
        (
            "sflow sampling-rate <packets:1-16777216>",
            "sflow sampling-rate 10000",
            "sflow.sampling-rate: <packets>",
            "Sample one of so many packets, drawn at random; 10000 unless set",
            |settings, packets| settings.rate = packets,
        ),
        (
            "sflow polling-interval <seconds:0-3600>",
            "sflow polling-interval 20",
            "sflow.polling-interval: <seconds>",
            "Send counters of sampled interfaces after so many seconds; 20 unless set, 0 never",
            |settings, seconds| settings.polling_s = seconds,
        ),
        (
            "sflow header-bytes <bytes:14-256>",
            "sflow header-bytes 128",
            "sflow.header-bytes: <bytes>",
            "Send so many bytes of a sampled packet at most; 128 unless set",
            |settings, bytes| settings.header_bytes = bytes,
        ),
        (
            "sflow drop-monitor-limit <notifications:1-100000>",
            "sflow drop-monitor-limit 1000",
            "sflow.drop-monitor-limit: <notifications>",
            "Notify collectors of so many dropped packets a second at most; 1000 unless set",
            |settings, notifications| settings.drops_per_s = notifications,
        ),
    ];
    for ((syntax, undo, entry, help, set), name) in
        ALL.into_iter().zip(["packets", "seconds", "bytes", "notifications"])
    {
        registry.command(
            Command::new(syntax)
                .entry(order::RESOURCES, entry)
                .undo(undo)
                .replaces(&[])
                .group(GROUP)
                .help(help)
                .example(undo)
                .run(move |engine: &mut Engine, args| {
                    let value = args.get(name)?;
                    config::set(engine, |settings| set(settings, value))?;
                    Ok(Output::none())
                }),
        );
    }
}

/// Notifications of packets that are dropped.
fn drops(registry: &mut Registry) {
    registry.command(
        Command::new("sflow drop-monitoring enable|disable")
            .entry(order::RESOURCES, "sflow.drop-monitoring: <enable?disable>")
            .undo("sflow drop-monitoring disable")
            .replaces(&[])
            .group(GROUP)
            .help("Notify collectors of packets that are dropped, with the reason, or no more")
            .details(
                "Meant are all packets that the router drops, on any interface, and those whose \
                 senders get an ICMP error. A notification has the first bytes of the packet, \
                 its interfaces, a code of sFlow, and the node and reason of `show errors`. \
                 `sflow drop-monitor-limit` says how many are sent a second; `show sflow` counts \
                 the others.",
            )
            .example("sflow drop-monitoring enable")
            .run(|engine: &mut Engine, args| {
                config::monitor_drops(engine, args.has("enable"))?;
                Ok(Output::none())
            }),
    );
}

/// The agent and the collectors.
fn ends(registry: &mut Registry) {
    registry.command(
        Command::new("sflow agent (default | {address <:ip> [sub-agent <:u32>]})")
            .entry(order::RESOURCES, "sflow.agent: {address, sub-agent}")
            .undo("sflow agent default")
            .replaces(&[])
            .group(GROUP)
            .help("Set the address by which collectors know this router")
            .details("Without it, or with default, it is the source of the first collector.")
            .word("address", "the address, which need not be one of Linux")
            .word("sub-agent", "a number for each exporter of one agent; 0")
            .example("sflow agent address 192.0.2.1")
            .run(|engine: &mut Engine, args| {
                let (agent, sub_agent) = match args.has("default") {
                    true => (None, 0),
                    false => (Some(args.get::<IpAddr>("address")?), args.or("sub-agent", 0)?),
                };
                config::set(engine, |settings| {
                    (settings.agent, settings.sub_agent) = (agent, sub_agent);
                })?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("sflow collector <collector:ip> src <source:ip> [port <port:1-65535>] [del]")
            .entry(order::RESOURCES, "sflow.collectors.<collector>.<port=6343>: <source>")
            .undo("sflow collector <collector> src <source> port <port=6343> del")
            .replaces(&["collector", "port"])
            .group(GROUP)
            .help("Send samples to a collector, over UDP")
            .details(
                "Datagrams leave by a socket of Linux, so that src is an address that Linux has: \
                 of a management port, of a twin. Each of up to 8 collectors gets all datagrams.",
            )
            .word("src", "the address of Linux that datagrams come from")
            .word("port", "UDP port of the collector; 6343")
            .word("del", "send to it no more")
            .example("sflow collector 192.0.2.9 src 192.0.2.1")
            .run(collector),
    );
}

fn collector(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (collector, source): (IpAddr, IpAddr) = (args.get("collector")?, args.get("source")?);
    let to = SocketAddr::new(collector, args.or("port", PORT_DEFAULT)?);
    if args.has("del") {
        config::delete_collector(engine, to)?;
        return Ok(Output::none());
    }
    quiver_export::check_ends(args, ("collector", collector), ("source", source))?;
    config::add_collector(engine, to, source)?;
    Ok(Output::none())
}

fn enable(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let directions = match (args.has("disable"), args.or("direction", "rx")?) {
        (true, _) => [false, false],
        (_, "tx") => [false, true],
        (_, "both") => [true, true],
        _ => [true, false],
    };
    config::enable(engine, id, directions)?;
    Ok(Output::none())
}

fn word(directions: [bool; 2]) -> &'static str {
    match directions {
        [true, true] => "both",
        [false, true] => "tx",
        _ => "rx",
    }
}

fn show(engine: &Engine) -> Output {
    let Some(agent) = engine.get::<Agent>() else { return Output::none() };
    let Settings { rate, polling_s, header_bytes, sub_agent, drops_per_s, .. } = agent.settings;
    let monitors = agent.settings.monitors_drops;
    let address = agent.address().map(|address| address.to_string());
    Output::none()
        .field("Packets per sample", rate)
        .field("Polling interval s", polling_s)
        .field("Header bytes", header_bytes)
        .field("Agent", Cell::optional(address, "none"))
        .field("Sub-agent", sub_agent)
        .field("Flow samples", agent.counts.flow_samples)
        .field("Counter samples", agent.counts.counter_samples)
        .field("Drop monitoring", if monitors { "enabled" } else { "disabled" })
        .field("Drop notifications per second", drops_per_s)
        .field("Drop notifications", agent.notifications.sent)
        .field("Drops not notified", agent.notifications.missed())
        .field("Datagrams", agent.counts.datagrams)
        .table("interfaces", interfaces(engine, agent))
        .table("collectors", collectors(agent))
}

fn interfaces(engine: &Engine, agent: &Agent) -> Table {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Direction"),
        Column::right("Packets"),
        Column::right("Samples lost").key("samples_lost"),
    ])
    .when_empty("no interface is sampled");
    for interface in engine.interfaces_by_name() {
        let Some(own) = agent.interfaces.get(&interface.id) else { continue };
        let counts = Direction::ALL.map(|one| agent.shared.counts(interface.id, one));
        let row = table.row().cell(&interface.name).cell(word(own.directions));
        row.cell(counts[0].0 + counts[1].0).cell(counts[0].1 + counts[1].1);
    }
    table
}

fn collectors(agent: &Agent) -> Table {
    let mut table = Table::new([
        Column::left("Collector"),
        Column::left("Source"),
        Column::right("Datagrams"),
        Column::right("Refused"),
        Column::right("Not sent").key("not_sent"),
        Column::left("Error"),
    ])
    .when_empty("no collectors (`sflow collector`)");
    for (address, own) in &agent.collectors {
        let row = table.row().cell(address.to_string()).cell(own.source.to_string());
        let row = row.cell(own.counts.sent).cell(own.counts.refused);
        let not_sent = own.counts.full + own.counts.errors;
        row.cell(not_sent).cell(quiver_export::error_cell(&own.datagrams));
    }
    table
}

/// Settings and collectors in `show running-config`.
pub(crate) fn write_settings(engine: &Engine, config: &mut ConfigWriter) {
    let Some(agent) = engine.get::<Agent>() else { return };
    let (own, default) = (&agent.settings, Settings::DEFAULT);
    if own.rate != default.rate {
        config.command(format_args!("sflow sampling-rate {}", own.rate));
    }
    if own.polling_s != default.polling_s {
        config.command(format_args!("sflow polling-interval {}", own.polling_s));
    }
    if own.header_bytes != default.header_bytes {
        config.command(format_args!("sflow header-bytes {}", own.header_bytes));
    }
    if own.drops_per_s != default.drops_per_s {
        config.command(format_args!("sflow drop-monitor-limit {}", own.drops_per_s));
    }
    if own.monitors_drops {
        config.command(format_args!("sflow drop-monitoring enable"));
    }
    if let Some(address) = own.agent {
        let sub_agent = match own.sub_agent {
            0 => String::new(),
            number => format!(" sub-agent {number}"),
        };
        config.command(format_args!("sflow agent address {address}{sub_agent}"));
    }
    for (address, collector) in &agent.collectors {
        let port = match address.port() {
            PORT_DEFAULT => String::new(),
            port => format!(" port {port}"),
        };
        let (ip, source) = (address.ip(), collector.source);
        config.command(format_args!("sflow collector {ip} src {source}{port}"));
    }
}

/// An interface in `show running-config`.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let agent = engine.get::<Agent>();
    let Some(own) = agent.and_then(|agent| agent.interfaces.get(&interface.id)) else { return };
    let direction = word(own.directions);
    config.command(format_args!("sflow enable-disable {} {direction}", interface.name));
}
