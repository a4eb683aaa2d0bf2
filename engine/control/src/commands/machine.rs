//! The machine as the router uses it: threads, buffers, memory, processor, version.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quiver_core::Engine;
use quiver_core::cpu::{Variant, clocks_per_second};
use serde_json::json;

use super::{all_workers, thread_name, thread_number};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Cell, Column, Output, Table, key_of};
use crate::registry::{BuiltIn, Registry, Weighed};

const GROUP: &str = "Seeing inside";

/// What `show cpu` looks for: what kernels use, and what a stable clock needs.
const FLAGS: [&str; 17] = [
    "sse4_2",
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_vbmi",
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "sha_ni",
    "rdtscp",
    "constant_tsc",
    "nonstop_tsc",
    "pdpe1gb",
];

/// From which commit the program was built, kept in the engine for `show version`.
#[derive(Clone, Copy, Debug)]
pub struct Built {
    /// Its hash.
    pub commit: &'static str,
    /// Its date.
    pub date: &'static str,
}

/// What was refused of the start's own commands, kept in the engine for `show version verbose`.
#[derive(Clone, Debug, Default)]
pub struct RefusedAtStart {
    /// How many commands.
    pub count: u64,
    /// The first of them, with file and line.
    pub first: Vec<String>,
}

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show threads")
            .group(GROUP)
            .help("Show the threads, their cores and what they do now")
            .run(show_threads),
    );
    registry.command(
        Command::new("show buffers")
            .group(GROUP)
            .help("Show how many packet buffers there are, and how many are in use")
            .run(show_buffers),
    );
    registry.command(
        Command::new("show memory")
            .group(GROUP)
            .help("Show what memory the router uses")
            .run(show_memory),
    );
    registry.command(
        Command::new("show version [verbose]")
            .group(GROUP)
            .help("Show which router this is")
            .word("verbose", "also how it was built and what it runs on")
            .run(show_version),
    );
    registry.command(
        Command::new("show cpu")
            .group(GROUP)
            .help(
                "Show the processor, what of it matters, and which form of the look-up kernels is \
                 used",
            )
            .run(show_cpu),
    );
}

/// A file of the system that may not be there.
fn system_file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The system's numbers for the threads of this process, by name.
fn system_threads() -> Vec<(String, u32)> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((name.trim_end().to_owned(), number))
    });
    named.collect()
}

fn show_threads(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let columns = ["ID", "Name", "Type", "LWP", "lcore", "State"].map(Column::left);
    let mut table = Table::new(
        columns
            .into_iter()
            .chain([Column::right("Passes"), Column::right("Sleeps")])
            .collect::<Vec<_>>(),
    );
    let lwps = system_threads();
    let lwp = |name: &str| lwps.iter().find(|(other, _)| other == name).map(|(_, lwp)| *lwp);
    let core = engine.config().main_core.map(|core| core as u64);
    let row = table.row().cell(0).cell("quiver_main").cell("main").cell(std::process::id());
    row.cell(core).cell("running").cell(None::<u64>).cell(None::<u64>);
    for worker in all_workers(engine) {
        let name = thread_name(worker);
        let state = if engine.is_asleep(worker) { "asleep" } else { "running" };
        let counters = engine.worker_counters(worker);
        let row =
            table.row().cell(thread_number(worker)).cell(&name).cell("worker").cell(lwp(&name));
        let row = row.cell(engine.worker_core(worker).map(|core| core as u64)).cell(state);
        row.cell(counters.map(|c| c.passes.get())).cell(counters.map(|c| c.sleeps.get()));
    }
    let list = Output::from(table.clone()).to_json();
    let output = Output::both(Output::from(table).to_text(), json!({ "threads": list }));
    Ok(output.nullable(&[
        "threads[].lcore",
        "threads[].lwp",
        "threads[].passes",
        "threads[].sleeps",
    ]))
}

fn show_buffers(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let pool = engine.pool();
    let (total, free, cached) = (pool.total(), pool.free(), pool.cached());
    let mut table = Table::new([
        Column::left("Pool Name").key("name"),
        Column::right("Size").key("size_bytes"),
        Column::right("Data Size").key("data_bytes"),
        Column::right("Total"),
        Column::right("Avail"),
        Column::right("Cached"),
        Column::right("Used"),
        Column::right("Failures"),
    ]);
    // Caches report once per pass, so while workers run the sum can be off by what moves just now.
    let used = total.saturating_sub(free);
    let row =
        table.row().cell("default").cell(pool.stride_bytes()).cell(pool.data_bytes()).cell(total);
    row.cell(free.saturating_sub(cached)).cell(cached).cell(used).cell(pool.failures());
    let pools = Output::from(table.clone()).to_json();
    Ok(Output::both(Output::from(table).to_text(), json!({ "pools": pools })))
}

/// A line such as `VmRSS:  1234 kB` of /proc/self/status, in bytes.
fn status_bytes(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn mebibytes(bytes: u64) -> Cell {
    Cell::new(format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64), bytes)
}

/// What memory is for: `MAC table` is `mac_table` in JSON.
fn named(what: &str) -> Cell {
    Cell::new(what, key_of(what))
}

fn show_memory(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let status = system_file("/proc/self/status");
    let mut table = Table::new([
        Column::left("Memory").key("name"),
        Column::right("Size").key("bytes"),
        Column::left("Pages").key("page_bytes"),
    ]);
    let memory = engine.pool().memory();
    let page = match memory.page_bytes() >> 10 {
        kib if kib < 1024 => format!("{kib} KiB"),
        kib => format!("{} MiB", kib >> 10),
    };
    let row = table.row().cell(named("packet buffers")).cell(mebibytes(memory.size_bytes() as u64));
    row.cell(Cell::new(page, memory.page_bytes()));
    let weighed = engine.get::<Weighed>().into_iter().flat_map(|all| &all.0);
    for (name, bytes) in weighed.flat_map(|weigh| weigh(engine)) {
        table.row().cell(named(name)).cell(mebibytes(bytes)).cell(None::<u64>);
    }
    for (name, key) in [
        ("process, resident", "VmRSS"),
        ("process, resident at most so far", "VmHWM"),
        ("process, in huge pages", "HugetlbPages"),
        ("process, address space", "VmSize"),
    ] {
        if let Some(bytes) = status_bytes(&status, key) {
            table.row().cell(named(name)).cell(mebibytes(bytes)).cell(None::<u64>);
        }
    }
    let list = Output::from(table.clone()).to_json();
    let output = Output::both(Output::from(table).to_text(), json!({ "memory": list }));
    Ok(output.nullable(&["memory[].page_bytes"]))
}

fn show_version(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let version = env!("CARGO_PKG_VERSION");
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let built_in: Vec<&str> =
        engine.get::<BuiltIn>().iter().flat_map(|b| &b.0).map(|f| f.name).collect();
    let kernel = system_file("/proc/sys/kernel/osrelease").trim_end().to_owned();
    let built = engine.get::<Built>();
    let refused = engine.get::<RefusedAtStart>().cloned().unwrap_or_default();
    let mut text = format!("quiver v{version}\n");
    if args.has("verbose") {
        let details = [
            ("Built as", profile.to_owned()),
            ("Built for", target.clone()),
            ("Built in", built_in.join(", ")),
            ("Kernel", kernel.clone()),
            ("Process", std::process::id().to_string()),
            ("Commit", built.map_or("unknown", |built| built.commit).to_owned()),
            ("Date", built.map_or("unknown", |built| built.date).to_owned()),
            ("Refused at start", refused_text(&refused)),
        ];
        details.iter().for_each(|(label, value)| {
            let _ = writeln!(text, "{:<18}{value}", format!("{label}:"));
        });
        refused.first.iter().for_each(|refusal| {
            let _ = writeln!(text, "  {refusal}");
        });
    }
    let json = json!({
        "name": "quiver",
        "version": version,
        "profile": profile,
        "target": target,
        "features": built_in,
        "kernel": kernel,
        "process": std::process::id(),
        "commit": built.map(|built| built.commit),
        "date": built.map(|built| built.date),
        "refused_at_start": refused.count,
    });
    Ok(Output::both(text, json).nullable(&["commit", "date"]))
}

fn refused_text(refused: &RefusedAtStart) -> String {
    match refused.count {
        0 => "no command".to_owned(),
        1 => "1 command".to_owned(),
        count => format!("{count} commands"),
    }
}

/// The first value of a key in /proc/cpuinfo.
fn cpu_value<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.trim())
    })
}

fn show_cpu(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let info = system_file("/proc/cpuinfo");
    let model = cpu_value(&info, "model name").unwrap_or("unknown");
    let all: BTreeSet<&str> = cpu_value(&info, "flags").unwrap_or("").split_whitespace().collect();
    let (present, absent): (Vec<&str>, Vec<&str>) =
        FLAGS.iter().partition(|flag| all.contains(*flag));
    // Not those that this thread may run on: it is pinned.
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    let variant = engine.variant().name();
    let available: Vec<&str> = Variant::available().map(Variant::name).collect();
    let tsc_ghz = clocks_per_second() / 1e9;
    let workers: Vec<Option<usize>> =
        all_workers(engine).map(|worker| engine.worker_core(worker)).collect();
    let mut text = String::new();
    for (label, value) in [
        ("Model name", model.to_owned()),
        ("Cores", format!("{cores}, {} of them for workers", workers.len())),
        ("Time stamp counter", format!("{tsc_ghz:.3} GHz")),
        ("Flags", present.join(" ")),
        ("Missing", absent.join(" ")),
        ("Loops and look-ups", format!("{variant}, of {}", available.join(", "))),
    ] {
        let _ = writeln!(text, "{:<20}{value}", format!("{label}:"));
    }
    let json = json!({
        "model": model,
        "cores": cores,
        "worker_cores": workers,
        "tsc_hz": clocks_per_second(),
        "flags": present,
        "flags_missing": absent,
        "variant": variant,
        "variants": available,
    });
    Ok(Output::both(text, json).nullable(&["worker_cores[]"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_found_by_its_key() {
        let status = "VmPeak:\t  100 kB\nVmRSS:\t   20 kB\nHugetlbPages:\t       0 kB\n";
        assert_eq!(status_bytes(status, "VmRSS"), Some(20 * 1024));
        assert_eq!(status_bytes(status, "VmHWM"), None);
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nflags\t\t: fpu avx2\n";
        assert_eq!(cpu_value(info, "model name"), Some("Some CPU @ 2.50GHz"));
        assert_eq!(cpu_value(info, "flags"), Some("fpu avx2"));
        assert_eq!(cpu_value(info, "bogomips"), None);
    }
}
