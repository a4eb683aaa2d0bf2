//! `set ipfix exporter …`, `ipfix flush`, `show ipfix exporter`, in the words of VPP.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;

use crate::commands::{GROUP, addresses, check_ends, error};
use crate::ipfix::exporter::{COLLECTORS_MAX, IpfixExporter, Place, Settings};
use crate::ipfix::message::Format;
use crate::moment::Moment;

/// The port of IPFIX (RFC 7011 §10.3.4).
const PORT_DEFAULT: u16 = 4739;
/// RFC 7011 §10.3.3: packets of a path whose MTU is unknown.
const PATH_MTU_DEFAULT: u16 = 512;
/// As in VPP.
const TEMPLATE_INTERVAL_DEFAULT_S: u32 = 20;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set ipfix exporter (disable | {collector <:ip> src <:ip> [port <:1-65535>] \
             [path-mtu <:256-9216>] [template-interval <:1-86400>] \
             [format <format:ipfix|netflow-v9>]})",
        )
        .entry(
            order::RESOURCES,
            "ipfix.exporter: {collector, src, port, path-mtu, template-interval, format}",
        )
        .undo("set ipfix exporter disable")
        .replaces(&[])
        .group(GROUP)
        .help("Send records to a collector by IPFIX (RFC 7011) or NetFlow v9 (RFC 3954) over UDP")
        .details(
            "Messages leave by a socket of Linux, so that src is an address that Linux has: of a \
             management port, of a twin. A collector behind the router's own interfaces is \
             reached by a twin (`lcp create`). `show ipfix exporter` says when they cannot be \
             sent; a socket that could not be opened is tried again every second.",
        )
        .word("collector", "the address of the collector")
        .word("src", "the address of Linux that messages come from")
        .word("port", "UDP port of the collector; 4739")
        .word("path-mtu", "IP packets are at most this long, bytes; 512")
        .word("format", "ipfix, or netflow-v9 for collectors that know nothing newer")
        .word("template-interval", "seconds after which templates are sent again; 20")
        .example("set ipfix exporter collector 192.0.2.9 src 192.0.2.1 path-mtu 1500")
        .run(set),
    );
    registry.command(
        Command::new(
            "ipfix collector <collector:ip> src <source:ip> [port <port:1-65535>] \
             {[path-mtu <:256-9216>] [template-interval <:1-86400>] \
             [format <format:ipfix|netflow-v9>] [del]}",
        )
        .entry(
            order::RESOURCES,
            "ipfix.collectors.<collector>.<port=4739>: {src: <source>, path-mtu: <path-mtu>, \
             template-interval: <template-interval>, format: <format>}",
        )
        .undo("ipfix collector <collector> src <source> port <port=4739> del")
        .replaces(&["collector", "port"])
        .group(GROUP)
        .help("Send all records to one more collector, beside that of `set ipfix exporter`")
        .details(
            "There are up to 7 more. Each gets all records, with sequence numbers and templates \
             of its own; what one does not take, the others get all the same.",
        )
        .word("src", "the address of Linux that messages come from")
        .word("port", "UDP port of the collector; 4739")
        .word("path-mtu", "IP packets are at most this long, bytes; 512")
        .word("format", "ipfix, or netflow-v9 for collectors that know nothing newer")
        .word("template-interval", "seconds after which templates are sent again; 20")
        .word("del", "send to it no more")
        .example("ipfix collector 192.0.2.10 src 192.0.2.1 path-mtu 1500")
        .run(further),
    );
    registry.command(
        Command::new("ipfix flush")
            .group(GROUP)
            .help("Send IPFIX messages that wait for more records")
            .details("A message waits for half a second at most.")
            .run(|engine: &mut Engine, _| {
                let at = Moment::of(engine);
                if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
                    exporter.flush(at);
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show ipfix exporter")
            .group(GROUP)
            .help("Show the IPFIX collector, and what became of records, messages and templates")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let settings = match args.has("disable") {
        true => None,
        false => {
            let ends = addresses(args)?;
            Some(settings(args, ends)?)
        }
    };
    let at = Moment::of(engine);
    if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
        exporter.set(at, settings);
    }
    Ok(Output::none())
}

/// Where messages go, of a collector and an address of Linux.
fn settings(args: &Args<'_>, (collector, source): (IpAddr, IpAddr)) -> Result<Settings, Refusal> {
    Ok(Settings {
        collector: SocketAddr::new(collector, args.or("port", PORT_DEFAULT)?),
        source,
        path_mtu: args.or("path-mtu", PATH_MTU_DEFAULT)?,
        template_interval_s: args.or("template-interval", TEMPLATE_INTERVAL_DEFAULT_S)?,
        format: match args.or("format", word(Format::Ipfix))? {
            "netflow-v9" => Format::NetFlow9,
            _ => Format::Ipfix,
        },
    })
}

fn further(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (collector, source): (IpAddr, IpAddr) = (args.get("collector")?, args.get("source")?);
    let wanted = settings(args, (collector, source))?;
    let place = Place::Further(wanted.collector);
    let at = Moment::of(engine);
    let Some(exporter) = engine.get_mut::<IpfixExporter>() else { return Ok(Output::none()) };
    let is_known = exporter.collectors().any(|(known, ..)| known == place);
    if args.has("del") {
        if !is_known {
            let what = format!("there is no further collector {}", wanted.collector);
            return Err(Refusal::new(what).remedy("`show ipfix exporter` lists them"));
        }
        exporter.set_at(at, place, None);
        return Ok(Output::none());
    }
    check_ends(args, ("collector", collector), ("source", source))?;
    let others = exporter.collectors().filter(|(place, ..)| *place != Place::First).count();
    if !is_known && others + 1 >= COLLECTORS_MAX {
        return Err(Refusal::new(format!("there are {others} further collectors already"))
            .remedy("`ipfix collector … del` removes one"));
    }
    exporter.set_at(at, place, Some(wanted));
    Ok(Output::none())
}

/// The word for a format.
fn word(format: Format) -> &'static str {
    match format {
        Format::Ipfix => "ipfix",
        Format::NetFlow9 => "netflow-v9",
    }
}

fn show(engine: &Engine) -> Output {
    let Some(exporter) = engine.get::<IpfixExporter>() else { return Output::none() };
    let (settings, counts) = (exporter.settings(), exporter.counts());
    let mut streams = Table::new([
        Column::left("Collector"),
        Column::right("Domain"),
        Column::left("Source port").key("source_port"),
        Column::right("Templates"),
        Column::right("Sequence"),
        Column::left("Error"),
    ])
    .when_empty("no streams (`nat ipfix logging` and `flowprobe feature` open one each)");
    for state in exporter.streams() {
        let port = Some(state.stream.source_port).filter(|port| *port != 0);
        streams
            .row()
            .cell(state.collector.map(|collector| collector.to_string()))
            .cell(state.stream.domain)
            .cell(Cell::optional(port, "any"))
            .cell(state.stream.templates.len() as u64)
            .cell(state.sequence)
            .cell(error(state.error, state.error_word));
    }
    let text = |value: Option<String>| Cell::optional(value, "none");
    let number = |value: Option<u64>| Cell::optional(value, "none");
    let datagrams = counts.datagrams;
    Output::none()
        .field("Collector", text(settings.map(|own| own.collector.to_string())))
        .field("Source", text(settings.map(|own| own.source.to_string())))
        .field("Path MTU bytes", number(settings.map(|own| own.path_mtu.into())))
        .field("Template interval s", number(settings.map(|own| own.template_interval_s.into())))
        .field("Format", Cell::optional(settings.map(|own| word(own.format)), "none"))
        .field("Records", counts.records)
        .field("Records lost", counts.records_lost)
        .field("Messages", datagrams.sent)
        .field("Bytes", datagrams.sent_bytes)
        .field("Templates", counts.templates)
        .field("Refused", datagrams.refused)
        .field("Buffer full", datagrams.full)
        .field("Errors", datagrams.errors)
        .table("collectors", collectors(exporter))
        .table("streams", streams)
}

fn collectors(exporter: &IpfixExporter) -> Table {
    let mut table = Table::new([
        Column::left("Collector"),
        Column::left("Source"),
        Column::right("Path MTU bytes").key("path_mtu_bytes"),
        Column::left("Format"),
        Column::right("Records"),
        Column::right("Records lost").key("records_lost"),
        Column::right("Messages"),
        Column::right("Refused"),
    ])
    .when_empty("no collectors (`set ipfix exporter`, `ipfix collector`)");
    for (_, settings, counts) in exporter.collectors() {
        table
            .row()
            .cell(settings.collector.to_string())
            .cell(settings.source.to_string())
            .cell(settings.path_mtu)
            .cell(word(settings.format))
            .cell(counts.records)
            .cell(counts.records_lost)
            .cell(counts.datagrams.sent)
            .cell(counts.datagrams.refused);
    }
    table
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(exporter) = engine.get::<IpfixExporter>() else { return };
    for (place, settings, _) in exporter.collectors() {
        let Settings { collector, source, path_mtu, template_interval_s, format } = settings;
        let option = |word: &str, value: u32, default: u32| match value == default {
            true => String::new(),
            false => format!(" {word} {value}"),
        };
        let command = match place {
            Place::First => "set ipfix exporter collector",
            Place::Further(_) => "ipfix collector",
        };
        config.command(format_args!(
            "{command} {} src {source}{}{}{}{}",
            collector.ip(),
            option("port", collector.port().into(), PORT_DEFAULT.into()),
            option("path-mtu", (*path_mtu).into(), PATH_MTU_DEFAULT.into()),
            option("template-interval", *template_interval_s, TEMPLATE_INTERVAL_DEFAULT_S),
            if *format == Format::Ipfix { "" } else { " format netflow-v9" },
        ));
    }
}
