//! `cargo xtask flame`: where a router's workers spend their time, as a flame graph.
//!
//! perf takes samples of the worker threads only; inferno folds and draws them.

mod load;

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FoldOptions};
use inferno::flamegraph::{self, Options as DrawOptions};

use crate::metadata::root;

/// Samples a second and thread; no divisor of common timers' rates.
const SAMPLES_HZ: u32 = 997;
/// Bytes of stack that a sample keeps; a worker's stack is shallow.
const STACK_BYTES: u32 = 8192;
/// Worker threads are called so, and by their number.
const WORKER: &str = "quiver_wk_";

/// Where a worker's stack begins to be of interest.
const LOOP: &str = "quiver_core::worker::Worker::run";

/// What is drawn, and where to.
#[derive(clap::Args)]
pub struct Arguments {
    /// A running quiverd; without one, a router and a generator are started for it (IPv4 over
    /// memif)
    #[arg(long)]
    pid: Option<u32>,
    /// How long samples are taken
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Where the picture goes
    #[arg(long, default_value = "out/flame.svg")]
    output: PathBuf,
}

/// Take samples and draw them.
pub fn run(arguments: &Arguments) -> Result<()> {
    let event = event()?;
    let load = match arguments.pid {
        Some(_) => None,
        None => Some(load::Load::start(arguments.seconds)?),
    };
    let pid = arguments.pid.or_else(|| load.as_ref().map(load::Load::pid)).unwrap_or_default();
    let threads = workers(pid)?;
    let output = root().join(&arguments.output);
    let folder = output.parent().context("a folder for the picture")?;
    fs::create_dir_all(folder)?;
    let data = folder.join("flame.data");
    println!(
        "{} s of {event} samples of process {pid}, {} worker thread(s)",
        arguments.seconds,
        threads.len()
    );
    record(event, &threads, arguments.seconds, &data)?;
    if let Some(load) = load {
        println!("{}", load.finish()?);
    }
    let script = folder.join("flame.script");
    read_samples(&data, &script)?;
    let samples = draw(&script, event, pid, &output)?;
    fs::remove_file(&data)?;
    fs::remove_file(&script)?;
    println!("{samples} stacks drawn: {}", output.canonicalize()?.display());
    Ok(())
}

/// The best event that this machine has: cycles where there are hardware counters, a timer where
/// not.
fn event() -> Result<&'static str> {
    let tried = Command::new("perf").args(["stat", "-x,", "-e", "cycles", "--", "true"]).output();
    let tried = tried.context(
        "perf is not installed: `apt-get install linux-perf` (Debian), `linux-tools-generic` \
         (Ubuntu), `dnf install perf` (Fedora)",
    )?;
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    let counts =
        tried.status.success() && !said.contains("not supported") && !said.contains("not counted");
    Ok(if counts { "cycles" } else { "cpu-clock" })
}

/// The numbers of the worker threads of a process.
fn workers(pid: u32) -> Result<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .with_context(|| format!("there is no process {pid}"))?;
    let mut threads = Vec::new();
    for task in tasks.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.starts_with(WORKER) {
            threads.extend(task.file_name().to_str().and_then(|number| number.parse::<u32>().ok()));
        }
    }
    if threads.is_empty() {
        bail!(
            "process {pid} has no thread called {WORKER}0: is it quiverd? `pidof quiverd` tells \
             its number"
        );
    }
    threads.sort_unstable();
    Ok(threads)
}

fn record(event: &str, threads: &[u32], seconds: u64, data: &Path) -> Result<()> {
    let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
    let done = Command::new("perf")
        .args(["record", "--quiet", "-e", event, "-F", &SAMPLES_HZ.to_string()])
        .args(["--call-graph", &format!("dwarf,{STACK_BYTES}"), "-t", &threads.join(",")])
        .arg("-o")
        .arg(data)
        .args(["--", "sleep", &seconds.to_string()])
        .output()
        .context("perf record")?;
    if !done.status.success() {
        let paranoid =
            fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
        bail!(
            "perf record: {}(kernel.perf_event_paranoid is {}; be root, or `sysctl \
             kernel.perf_event_paranoid=1`)",
            String::from_utf8_lossy(&done.stderr),
            paranoid.trim()
        );
    }
    Ok(())
}

/// The samples as text, with the names of inlined functions.
fn read_samples(data: &Path, script: &Path) -> Result<()> {
    let mut child = Command::new("perf")
        .args(["script", "-F", "comm,tid,time,event,ip,sym,dso", "-i"])
        .arg(data)
        .stdout(File::create(script)?)
        .stderr(Stdio::piped())
        .spawn()
        .context("perf script")?;
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        stderr.read_to_string(&mut said)?;
    }
    if !child.wait()?.success() {
        bail!("perf script: {said}");
    }
    Ok(())
}

/// Fold the stacks and draw them. Returns how many different ones there were.
fn draw(script: &Path, event: &str, pid: u32, output: &Path) -> Result<usize> {
    let mut folded = Vec::new();
    Folder::from(FoldOptions::default())
        .collapse(BufReader::new(File::open(script)?), &mut folded)?;
    let folded = String::from_utf8_lossy(&folded).into_owned();
    let lines: Vec<String> = folded.lines().map(from_the_loop).collect();
    if lines.is_empty() {
        bail!("perf saw nothing of these threads: do they sleep?");
    }
    let mut options = DrawOptions::default();
    options.title = "Quiver: where the workers are".to_owned();
    options.subtitle = Some(format!("process {pid}, {event}, {SAMPLES_HZ} samples a second"));
    options.count_name = "samples".to_owned();
    options.min_width = 0.1;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), File::create(output)?)?;
    Ok(lines.len())
}

/// A stack from the worker's loop upwards; what starts a thread is of no interest.
fn from_the_loop(line: &str) -> String {
    match (line.split_once(';'), line.find(LOOP)) {
        (Some((thread, _)), Some(at)) => format!("{thread};{}", &line[at..]),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_perf_become_a_picture_with_the_names_in_it() {
        let folder = std::env::temp_dir().join(format!("quiver-flame-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (script, output) = (folder.join("script"), folder.join("flame.svg"));
        let sample = "quiver_wk_0  4242   100.000001: cpu-clock: \n\
                      \t    55d0 quiver_tables::lpm::lookup (/usr/bin/quiverd)\n\
                      \t    55c0 quiver_core::worker::Worker::pass (/usr/bin/quiverd)\n\n";
        fs::write(&script, sample.repeat(5)).expect("a script");
        assert_eq!(draw(&script, "cpu-clock", 4242, &output).expect("a picture"), 1);
        let picture = fs::read_to_string(&output).expect("a file");
        assert!(picture.contains("<svg") && picture.contains("quiver_tables::lpm::lookup"));
        fs::write(&script, "").expect("a script");
        assert!(draw(&script, "cpu-clock", 4242, &output).is_err());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_stack_begins_at_the_workers_loop() {
        let line = "quiver_wk_0;clone3;start_thread;quiver_core::worker::Worker::run;pass;now_ns 7";
        assert_eq!(
            from_the_loop(line),
            "quiver_wk_0;quiver_core::worker::Worker::run;pass;now_ns 7"
        );
        assert_eq!(from_the_loop("quiver_wk_0;[unknown] 1"), "quiver_wk_0;[unknown] 1");
    }

    #[test]
    fn a_process_without_workers_is_refused_by_name() {
        let said = workers(std::process::id()).expect_err("no router").to_string();
        assert!(said.contains("is it quiverd?"), "{said}");
    }
}
