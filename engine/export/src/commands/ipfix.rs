//! `set ipfix exporter …`, `ipfix flush`, `show ipfix exporter`, in the words of VPP.

use std::net::SocketAddr;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;

use crate::commands::{GROUP, addresses, error};
use crate::ipfix::exporter::{IpfixExporter, Settings};
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
            let (collector, source) = addresses(args)?;
            Some(Settings {
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
    };
    let at = Moment::of(engine);
    if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
        exporter.set(at, settings);
    }
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
        .table("streams", streams)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(settings) = engine.get::<IpfixExporter>().and_then(IpfixExporter::settings) else {
        return;
    };
    let Settings { collector, source, path_mtu, template_interval_s, format } = settings;
    let option = |word: &str, value: u32, default: u32| match value == default {
        true => String::new(),
        false => format!(" {word} {value}"),
    };
    config.command(format_args!(
        "set ipfix exporter collector {} src {source}{}{}{}{}",
        collector.ip(),
        option("port", collector.port().into(), PORT_DEFAULT.into()),
        option("path-mtu", (*path_mtu).into(), PATH_MTU_DEFAULT.into()),
        option("template-interval", *template_interval_s, TEMPLATE_INTERVAL_DEFAULT_S),
        if *format == Format::Ipfix { "" } else { " format netflow-v9" },
    ));
}
