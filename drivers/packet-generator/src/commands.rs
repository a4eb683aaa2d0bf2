//! The commands: `create packet-generator interface`, `packet-generator …`, `show
//! packet-generator`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::pcap_file::PcapReader;
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::sink::{INSTANCE_MAX, create_interface};
use crate::streams::{self, StreamConfig, StreamError, Streams};
use crate::template::STREAM_BYTES_MAX;
use crate::text::Description;

const GROUP: &str = "Packet generator";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("create packet-generator interface <name:word>")
            .entry(order::INTERFACES, "interfaces.<name>.packet-generator: {}")
            .undo("delete packet-generator interface <name>")
            .makes("interface <name>")
            .group(GROUP)
            .help(
                "Create an interface on which streams send, and which only counts what is sent to \
                 it",
            )
            .word("name", "pg0, pg1, …")
            .example("create packet-generator interface pg0")
            .run(create),
    );
    registry.command(
        Command::new("delete packet-generator interface <interface>")
            .group(GROUP)
            .help("Delete such an interface, with its streams")
            .example("delete packet-generator interface pg0")
            .run(delete_interface),
    );
    registry.command(
        Command::new(
            "packet-generator new '{' {name <:word> [limit <:u64>] [rate <:rate>] [size <:range>] \
             [interface <:interface>] [node <:node>] [worker <:u16>] [maxframe <:1-256>] [pcap \
             <:path>] [data <:block>]} '}'",
        )
        .entry(
            order::STREAMS,
            "packet-generator.streams.<name>: {limit, rate, size, interface, node, worker, \
             maxframe, pcap, data}",
        )
        .undo("packet-generator delete <name>")
        .makes("stream <name>")
        .group(GROUP)
        .help("Make a stream of packets; `enable-stream` lets it send")
        .details(
            "The packets are described by `data { … }` or read from a pcap file. Without `rate` \
             they are sent as fast as possible, without `limit` for ever, without `interface` on \
             pg0, without `node` to where the interface's received packets go.",
        )
        .word("limit", "packets to send, 0 = no limit")
        .word("rate", "packets per second, 0 = as fast as possible")
        .word("size", "bytes, or a range through which the sizes go up one by one")
        .word("maxframe", "packets in one pass at most")
        .word("data", "the packet: layers, then the payload")
        .example(
            "packet-generator new \
             { name x limit 1000 rate 1e6 size 64-64 data { IP4: 1.2.3 -> 4.5.6 UDP: 1.0.0.1 - \
             1.0.0.254 -> 2.0.0.1 UDP: 1234 -> 2345 incrementing 100 } }",
        )
        .run(new_stream),
    );
    registry.command(
        Command::new("packet-generator enable-stream [<name:word>]")
            .entry(order::STREAMS, "packet-generator.streams.<name>.enabled: true")
            .undo("packet-generator disable-stream <name>")
            .stands_on("stream <name>")
            .group(GROUP)
            .help("Let a stream send, or all")
            .example("packet-generator enable-stream x")
            .run(|engine, args| each(engine, args, streams::enable_stream)),
    );
    registry.command(
        Command::new("packet-generator disable-stream [<name:word>]")
            .group(GROUP)
            .help("Let a stream send no more, or all")
            .example("packet-generator disable-stream x")
            .run(|engine, args| each(engine, args, streams::disable_stream)),
    );
    registry.command(
        Command::new("packet-generator delete [<name:word>]")
            .group(GROUP)
            .help("Remove a stream, or all")
            .example("packet-generator delete x")
            .run(|engine, args| each(engine, args, streams::delete_stream)),
    );
    registry.command(
        Command::new("show packet-generator")
            .group(GROUP)
            .help("Show the streams")
            .example("show packet-generator")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name: &str = args.get("name")?;
    let number =
        name.strip_prefix("pg").filter(|digits| *digits == "0" || !digits.starts_with('0'));
    let instance = number.and_then(|digits| digits.parse().ok()).filter(|n| *n <= INSTANCE_MAX);
    let instance = instance
        .ok_or_else(|| args.refuse("name", format!("the name is pg0 to pg{INSTANCE_MAX}")))?;
    create_interface(engine, instance)?;
    Ok(Output::text(name))
}

fn delete_interface(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.device::<crate::sink::GeneratorDevice>(id).is_none() {
        return Err(args.refuse("interface", "this is not an interface of the packet generator"));
    }
    engine.delete_interface(id)?;
    Ok(Output::none())
}

fn new_stream(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let interface = match args.optional_interface(engine, "interface")? {
        Some(interface) => interface,
        None => engine.interface_id("pg0").ok_or_else(|| {
            Refusal::new("there is no interface pg0").remedy(
                "`create packet-generator interface pg0` makes it, or name another by `interface`",
            )
        })?,
    };
    let mut config = StreamConfig::new(args.get::<&str>("name")?, Vec::new());
    config.limit = args.or("limit", 0)?;
    config.rate_pps = args.or("rate", 0.0)?;
    config.worker = args.optional::<u16>("worker")?.map(WorkerId);
    config.per_pass_max = args.or("maxframe", config.per_pass_max)?;
    if args.has("node") {
        let node = args.node(engine, "node")?;
        config.node = Some(engine.node_name(node));
    }
    let size = args.optional::<(u64, u64)>("size")?;
    let source = match (args.optional::<&str>("pcap")?, args.optional::<&str>("data")?) {
        (Some(_), Some(_)) => {
            return Err(args.refuse("pcap", "the packets come from `data` or `pcap`, not both"));
        }
        (None, None) => {
            return Err(Refusal::new("there is nothing to send")
                .remedy("describe a packet by `data { … }` or give `pcap FILE`"));
        }
        (Some(_), None) if size.is_some() => {
            return Err(
                args.refuse("size", "packets from a pcap file have the size that they have")
            );
        }
        (Some(_), None) => {
            let (path, file) =
                args.file_to_read("pcap")?.ok_or_else(|| args.refuse("pcap", "no file"))?;
            config.packets = read_pcap(file).map_err(|what| args.refuse("pcap", what))?;
            format!("pcap \"{}\"", path.display())
        }
        (None, Some(data)) => {
            let description =
                Description::parse(data).map_err(|e| args.refuse("data", e.to_string()))?;
            let plan = description.plan(size).map_err(|e| args.refuse("data", e.to_string()))?;
            (config.packets, config.edits) = (plan.packets, plan.edits);
            format!("data {{ {} }}", description.text())
        }
    };
    let mut command = String::new();
    if let Some((low, high)) = size {
        let _ = write!(command, "size {low}-{high} ");
    }
    command += &source;
    streams::add(engine, interface, config, Some(command))?;
    Ok(Output::none())
}

/// All packets of a file.
fn read_pcap(file: File) -> Result<Vec<Vec<u8>>, String> {
    let mut packets = Vec::new();
    let mut total = 0;
    for record in PcapReader::new(BufReader::new(file)).map_err(|e| e.to_string())? {
        let record = record.map_err(|e| e.to_string())?;
        if record.bytes.is_empty() {
            continue;
        }
        total += record.bytes.len().next_multiple_of(64);
        if total > STREAM_BYTES_MAX {
            return Err(format!("the packets take more than {} MiB", STREAM_BYTES_MAX >> 20));
        }
        packets.push(record.bytes);
    }
    if packets.is_empty() { Err("the file holds no packets".into()) } else { Ok(packets) }
}

fn each(
    engine: &mut Engine,
    args: &Args<'_>,
    act: fn(&mut Engine, &str) -> Result<(), StreamError>,
) -> Result<Output, Refusal> {
    match args.optional::<&str>("name")? {
        Some(name) => act(engine, name).map_err(|e| args.refuse("name", e.to_string()))?,
        None => {
            for name in streams::stream_names(engine) {
                act(engine, &name)?;
            }
        }
    }
    Ok(Output::none())
}

fn show(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Name"),
        Column::left("State"),
        Column::right("Sent"),
        Column::right("Limit"),
        Column::right("Rate (pps)").key("rate_pps"),
        Column::right("Size"),
        Column::right("Packets"),
        Column::left("Interface"),
        Column::left("Node"),
        Column::right("No buffer"),
    ])
    .when_empty("no streams");
    for stream in engine.get::<Streams>().into_iter().flat_map(|s| &s.0) {
        let counts = stream.counts();
        let state = match (counts.enabled, counts.done) {
            (_, true) => "done",
            (true, false) => "enabled",
            (false, false) => "disabled",
        };
        let (low, high) = stream.templates.sizes();
        let rate = (stream.rate_pps != 0.0).then(|| Cell::real(stream.rate_pps, 0));
        table
            .row()
            .cell(&stream.name)
            .cell(state)
            .cell(counts.sent)
            .cell(Cell::optional((stream.limit != 0).then_some(stream.limit), "none"))
            .cell(Cell::optional(rate, "max"))
            .cell(format!("{low}-{high}"))
            .cell(stream.templates.len())
            .cell(engine.interface_name(stream.interface))
            .cell(stream.node.as_deref().unwrap_or("(interface input)"))
            .cell(counts.no_buffer);
    }
    table.into()
}

/// `show running-config`: the interfaces, by their numbers.
pub(crate) fn interface_ids(engine: &Engine) -> Vec<InterfaceId> {
    engine
        .all_interfaces()
        .filter(|i| i.device.kind() == "packet-generator")
        .map(|i| i.id)
        .collect()
}

/// `show running-config`: an interface.
pub(crate) fn write_interface(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(interface) = engine.interface(id) {
        config.command(format_args!(
            "create packet-generator interface {}",
            quiver_control::quoted(interface.made_name())
        ));
    }
}

/// `show running-config`: the streams that commands have made.
pub(crate) fn write_streams(engine: &Engine, config: &mut ConfigWriter) {
    for stream in engine.get::<Streams>().into_iter().flat_map(|s| &s.0) {
        let Some(command) = &stream.command else {
            config.comment(&format!("stream {} was made by a program", stream.name));
            continue;
        };
        let name = quiver_control::quoted(&stream.name);
        let mut line = format!("packet-generator new {{ name {name} ");
        if stream.limit > 0 {
            let _ = write!(line, "limit {} ", stream.limit);
        }
        if stream.rate_pps > 0.0 {
            let _ = write!(line, "rate {} ", stream.rate_pps);
        }
        if stream.per_pass_max != quiver_core::graph::frame::FRAME_PACKETS_MAX {
            let _ = write!(line, "maxframe {} ", stream.per_pass_max);
        }
        if let Some(worker) = stream.worker {
            let _ = write!(line, "worker {} ", worker.0);
        }
        let _ = write!(line, "interface {} ", engine.interface_name(stream.interface));
        if let Some(node) = &stream.node {
            let _ = write!(line, "node {node} ");
        }
        config.command(format_args!("{line}{command} }}"));
        if stream.queue.is_some() {
            config.command(format_args!("packet-generator enable-stream {name}"));
        }
    }
}
