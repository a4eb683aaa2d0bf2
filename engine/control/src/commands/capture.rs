//! `pcap trace`: packets written down whole, at rx, tx and drop.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use quiver_core::Engine;
use quiver_core::capture::{CAPTURED_PACKETS_DEFAULT, CaptureSpec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::json;

use super::packets_text;
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::Output;
use crate::registry::Registry;

const GROUP: &str = "Seeing inside";
/// The file's name unless `file NAME` says otherwise.
const FILE_DEFAULT: &str = "trace.pcap";
/// Bytes that a captured packet takes in memory, on average at most.
const BYTES_PER_PACKET: usize = 1600;

/// The capture under way.
#[derive(Default)]
struct UnderWay(Option<(PathBuf, File)>);

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "pcap trace {[rx] [tx] [drop] [max <:1-1000000>] [intfc any|<interface>] [file <:path>]}",
        )
        .group(GROUP)
        .help("Write packets down as they are received, sent or dropped, until pcap trace off")
        .details(
            "A file name without a folder stands in the router's runtime directory. An existing file is \
             written over when the capture ends, but never through a link.",
        )
        .word("max", "packets of each worker, 1000 unless given")
        .word("intfc", "only this interface: where packets came in, for rx and drop, or go out, for tx")
        .word("file", "trace.pcap unless given")
        .example("pcap trace rx tx drop max 100 intfc any file all.pcap")
        .run(start),
    );
    registry.command(
        Command::new("pcap trace off")
            .group(GROUP)
            .help("End the capture, write the file, and say how many packets are in it")
            .run(stop),
    );
    registry.on_start(|engine| engine.insert(UnderWay::default()));
}

fn start(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    if let Some(UnderWay(Some((path, _)))) = engine.get::<UnderWay>() {
        let refusal = Refusal::new(format!("a capture to {} is under way", path.display()));
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
        return Err(Refusal::new("pcap trace: nothing to capture").remedy("say rx, tx or drop, or several"));
    }
    // A worker could not survive a refusal of memory; ask before it is too late.
    let bytes = spec.packets_max.saturating_mul(BYTES_PER_PACKET).saturating_mul(engine.worker_count());
    if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        let what = format!("{} packets of each worker need {} MiB", spec.packets_max, bytes >> 20);
        return Err(args.refuse("max", what).remedy("ask for fewer"));
    }
    let name: &str = args.or("file", FILE_DEFAULT)?;
    let path = place(engine, name);
    let file = open(&path).map_err(|what| args.refuse("file", what))?;
    engine.capture_start(spec)?;
    engine.insert(UnderWay(Some((path, file))));
    Ok(Output::none())
}

/// The path that a file name stands for.
fn place(engine: &Engine, name: &str) -> PathBuf {
    if name.contains('/') {
        return PathBuf::from(name);
    }
    engine.config().runtime_dir.join(name)
}

/// Open a file for writing without touching what is in it yet. Links are not followed, and neither
/// devices nor pipes taken, so that nobody who may write in the folder can have the router write
/// elsewhere.
fn open(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => format!("{shown} is a symbolic link, which a capture does not follow"),
            _ => format!("{shown}: {error}"),
        })?;
    let about = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
    match (about.is_file(), about.nlink()) {
        (true, 1) => Ok(file),
        (true, _) => Err(format!("{shown} has other names too (hard links), which would change with it")),
        _ => Err(format!("{shown} is not a plain file")),
    }
}

fn stop(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let under_way = engine.get_mut::<UnderWay>().and_then(|u| u.0.take());
    let Some((path, file)) = under_way else {
        return Err(Refusal::new("no capture is under way").remedy("`pcap trace rx tx` begins one"));
    };
    let emptied = file.set_len(0);
    let mut out = BufWriter::new(file);
    let written = engine.capture_stop(&mut out)?; // it ends, whatever becomes of the file
    let packets = emptied.and(written).and_then(|packets| out.flush().map(|()| packets));
    let shown = path.display();
    let packets = packets.map_err(|error| Refusal::new(format!("{shown}: {error}")))?;
    let text = format!("{} written to {shown}", packets_text(packets));
    Ok(Output::both(text, json!({ "packets": packets, "file": path })))
}
