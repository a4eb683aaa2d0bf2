//! `pcap trace`: packets written down whole, at rx, tx and drop.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use quiver_core::Engine;
use quiver_core::graph::capture::{CAPTURED_PACKETS_DEFAULT, CaptureSpec, Captured};
use quiver_core::graph::filter::PacketFilters;
use quiver_core::memory::reserve::is_available;
use serde_json::json;

use super::packets_text;
use crate::args::Args;
use crate::background::in_background;
use crate::error::Refusal;
use crate::files::NewFile;
use crate::grammar::{Command, Work};
use crate::output::Output;
use crate::registry::Registry;

const GROUP: &str = "Seeing inside";
/// The file's name unless `file NAME` says otherwise.
const FILE_DEFAULT: &str = "trace.pcap";
/// Bytes that a captured packet takes in memory, on average at most.
const BYTES_PER_PACKET: usize = 1600;

/// The capture under way.
#[derive(Default)]
struct UnderWay(Option<NewFile>);

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "pcap trace {[rx] [tx] [drop] [max <:1-1000000>] [intfc any|<interface>] [file \
             <:path>] [filter]}",
        )
        .group(GROUP)
        .help("Write packets down as they are received, sent or dropped, until pcap trace off")
        .details(
            "A file name without a folder stands in files-dir; other users than root and the \
             router's own name files there alone. A file that exists is replaced when the capture \
             ends. Symbolic links are not followed.",
        )
        .word("max", "packets of each worker, 1000 unless given")
        .word(
            "intfc",
            "only this interface: where packets came in, for rx and drop, or go out, \
            for tx",
        )
        .word("file", "trace.pcap unless given")
        .word("filter", "only packets that `classify filter pcap` chooses")
        .example("pcap trace rx tx drop max 100 intfc any file all.pcap")
        .run(start),
    );
    registry.command(
        Command::new("pcap trace off")
            .group(GROUP)
            .help("End the capture, write the file, and say how many packets are in it")
            .run_or_begin(stop),
    );
    registry.on_start(|engine| engine.insert(UnderWay::default()));
}

fn start(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    if let Some(UnderWay(Some(file))) = engine.get::<UnderWay>() {
        let refusal = Refusal::new(format!("a capture to {} is under way", file.path().display()));
        return Err(refusal.remedy("`pcap trace off` ends it"));
    }
    let spec = CaptureSpec {
        rx: args.has("rx"),
        tx: args.has("tx"),
        drop: args.has("drop"),
        interface: args.optional_interface(engine, "interface")?,
        packets_max: args.or("max", CAPTURED_PACKETS_DEFAULT)?,
    };
    if !(spec.rx || spec.tx || spec.drop) {
        return Err(
            Refusal::new("pcap trace: nothing to capture").remedy("say rx, tx or drop, or several")
        );
    }
    let filters = engine.get::<PacketFilters>().cloned().unwrap_or_default();
    let filter = args.has("filter").then_some(filters.capture);
    if let Some(None) = filter {
        return Err(args
            .refuse("filter", "no filter of captures is set")
            .remedy("`classify filter pcap mask … match …` sets one"));
    }
    // A worker could not survive a refusal of memory; ask before it is too late.
    let bytes =
        spec.packets_max.saturating_mul(BYTES_PER_PACKET).saturating_mul(engine.worker_count());
    if !is_available(bytes) {
        let what = format!("{} packets of each worker need {} MiB", spec.packets_max, bytes >> 20);
        return Err(args.refuse("max", what).remedy("ask for fewer"));
    }
    let file = match args.file_to_write("file")? {
        Some(file) => file,
        None => args.access().create(Path::new(FILE_DEFAULT)).map_err(Refusal::new)?,
    };
    engine.capture_start(spec, filter.flatten().as_ref())?;
    engine.insert(UnderWay(Some(file)));
    Ok(Output::none())
}

fn stop(engine: &mut Engine, _: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let under_way = engine.get_mut::<UnderWay>().and_then(|u| u.0.take());
    let Some(file) = under_way else {
        return Err(Refusal::new("no capture is under way").remedy("`pcap trace rx tx` begins one"));
    };
    let captured = engine.capture_stop()?; // it ends, whatever becomes of the file
    in_background(move || write(&captured, file), |_, answer| Ok(answer))
}

/// Write the file; the answer to the client.
fn write(captured: &Captured, mut file: NewFile) -> Result<Output, Refusal> {
    let path = file.path().to_owned();
    let shown = path.display();
    let mut out = BufWriter::new(file.file());
    let packets = captured.write(&mut out).and_then(|packets| out.flush().map(|()| packets));
    drop(out);
    let packets = packets.map_err(|error| Refusal::new(format!("{shown}: {error}")))?;
    file.finish().map_err(Refusal::new)?;
    let text = format!("{} written to {shown}", packets_text(packets));
    Ok(Output::both(text, json!({ "packets": packets, "file": path })))
}
