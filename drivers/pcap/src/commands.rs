//! The driver's commands, and its part of the running configuration.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use quiver_control::{
    Column, Command, ConfigWriter, Output, Refusal, Registry, Table, in_background, order, quoted,
};
use quiver_core::{Engine, InterfaceId};

use crate::config::{PcapConfig, PcapDriverError};
use crate::driver::{self, Files, Pcaps};

const GROUP: &str = "Pcap interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("create pcap {id <:u32> [rx <:path>] [tx <:path>] [loop]}")
            .entry(order::INTERFACES, "interfaces.pcap<id>.pcap: {rx, tx, loop}")
            .undo("delete pcap pcap<id>")
            .makes("interface pcap<id>")
            .group(GROUP)
            .help(
                "Create an interface that receives from a pcap file, sends to one, or both: pcapN",
            )
            .details(
                "Packets come in as fast as they are taken, from when the interface is set up. A \
                 file to send to is continued when it exists. A name without a folder stands in \
                 files-dir; other users than root and the router's own name files there alone. \
                 Links are not followed to write.",
            )
            .word("id", "the interface's number")
            .word("rx", "the file whose packets come in, read whole now")
            .word("tx", "the file that gets what is sent")
            .word("loop", "begin again at the end of the rx file")
            .example("create pcap id 0 rx /tmp/in.pcap tx /tmp/out.pcap")
            .run_or_begin(|engine: &mut Engine, args| {
                let path = |name| args.optional::<&str>(name).map(|path| path.map(PathBuf::from));
                let (rx, tx, access) = (path("rx")?, path("tx")?, args.access());
                let config = PcapConfig {
                    rx: rx.map(|path| access.path_to_read(&path)),
                    tx: tx.map(|path| access.absolute(&path)),
                    repeat: args.has("loop"),
                    ..PcapConfig::new(args.get("id")?)
                };
                let refused = |error: PcapDriverError| Refusal::new(error.to_string());
                driver::check(engine, &config).map_err(refused)?;
                let wanted = config.clone();
                in_background(
                    move || Files::open(&wanted, &access).map_err(refused),
                    move |engine, files| {
                        let name = config.name();
                        driver::create_with(engine, config, files).map_err(refused)?;
                        Ok(Output::text(name))
                    },
                )
            }),
    );
    registry.command(
        Command::new("delete pcap <interface>")
            .group(GROUP)
            .help("Delete a pcap interface; its files stay")
            .word("interface", "the interface")
            .example("delete pcap pcap0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                driver::delete(engine, id)
                    .map_err(|error| args.refuse("interface", error.to_string()))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show pcap")
            .group(GROUP)
            .help("Show pcap interfaces and how far their files are")
            .example("show pcap")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn show(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Rx file").key("rx_file"),
        Column::right("In file").key("rx_packets_in_file"),
        Column::right("Received").key("rx_packets"),
        Column::left("Loop"),
        Column::left("State"),
        Column::left("Tx file").key("tx_file"),
        Column::right("Written").key("tx_packets_written"),
    ])
    .when_empty("there is no pcap interface; `create pcap` makes one");
    let text =
        |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("")).display().to_string();
    for (id, pcap) in engine.get::<Pcaps>().into_iter().flat_map(|pcaps| &pcaps.0) {
        let failed = pcap.tx.failed.load(Ordering::Relaxed);
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(text(&pcap.config.rx))
            .cell(pcap.packets)
            .cell(pcap.rx.received.load(Ordering::Relaxed))
            .cell(pcap.config.repeat)
            .cell(if failed { "the tx file cannot be written" } else { pcap.progress() })
            .cell(text(&pcap.config.tx))
            .cell(pcap.tx.written.load(Ordering::Relaxed));
    }
    table.into()
}

/// `show running-config`: the interfaces.
pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Pcaps>().into_iter().flat_map(|pcaps| pcaps.0.keys()).copied().collect()
}

/// `show running-config`: one of them.
pub(crate) fn write_interface(engine: &Engine, writer: &mut ConfigWriter, id: InterfaceId) {
    if let Some(pcap) = engine.get::<Pcaps>().and_then(|pcaps| pcaps.0.get(&id)) {
        writer.command(format_args!("{}", command_of(&pcap.config)));
    }
}

fn command_of(config: &PcapConfig) -> String {
    let mut line = format!("create pcap id {}", config.id);
    for (word, path) in [("rx", &config.rx), ("tx", &config.tx)] {
        if let Some(path) = path {
            line += &format!(" {word} {}", quoted(&path.to_string_lossy()));
        }
    }
    if config.repeat {
        line += " loop";
    }
    line
}
