//! `--check`: what a start would trip over, as far as it can be known without starting.

use std::path::Path;

use anyhow::{Result, bail};
use quiver_control::Registry;
use quiver_control::types::core_list;
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;
use quiverd::features;
use rustix::fs::{Access, access};

use crate::settings::Settings;

/// Check everything; the error has a line for each fault.
pub fn check(settings: &Settings) -> Result<()> {
    let mut faults = Vec::new();
    commands(settings, &mut faults)?;
    group(settings, &mut faults);
    files(settings, &mut faults);
    cores(settings, &mut faults);
    match faults.len() {
        0 => Ok(()),
        1 => bail!("{}", faults[0]),
        count => bail!("{count} faults:\n{}", faults.join("\n")),
    }
}

/// Every line of the `exec` file, and what the sections of features mean, must parse.
fn commands(settings: &Settings, faults: &mut Vec<String>) -> Result<()> {
    let config = EngineConfig { buffers: 256, pages: PageSize::Small, ..Default::default() };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
    features::register(&mut registry);
    for line in &settings.commands {
        if let Err(refusal) = registry.commands.parse(&(), line, |_| ()) {
            faults.push(format!("`{line}`: {refusal}"));
        }
    }
    if let Some(file) = &settings.unix.exec {
        faults.extend(
            registry.commands.check_file(file).iter().map(|refusal| format!("exec: {refusal}")),
        );
    }
    Ok(())
}

fn group(settings: &Settings, faults: &mut Vec<String>) {
    let Some(group) = &settings.unix.gid else { return };
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let is_known = groups.lines().any(|line| line.split(':').next() == Some(group));
    if group.parse::<u32>().is_err() && !is_known {
        faults.push(format!(
            "unix gid: no group '{group}': `getent group` lists the groups of this machine"
        ));
    }
}

/// Files that are written must be writable, or their folder must take them.
fn files(settings: &Settings, faults: &mut Vec<String>) {
    let unix = &settings.unix;
    let written = [("log", unix.log.as_deref()), ("pidfile", unix.pidfile.as_deref())];
    let sockets = [("cli-listen", unix.cli_listen.as_deref())];
    for (word, path) in written.into_iter().chain(sockets) {
        let Some(path) = path else { continue };
        let folder =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A socket's folder is made at the start.
        if !folder.is_dir() {
            if word != "cli-listen" {
                faults
                    .push(format!("unix {word}: there is no folder {}: make it", folder.display()));
            }
            continue;
        }
        let place = if path.exists() { path } else { folder };
        if path.is_dir() {
            faults.push(format!("unix {word}: {} is a folder: name a file", path.display()));
        } else if let Err(error) = access(place, Access::WRITE_OK) {
            faults.push(format!("unix {word}: {} cannot be written: {error}", place.display()));
        }
    }
}

/// Threads run on cores that this process may use.
fn cores(settings: &Settings, faults: &mut Vec<String>) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let Some(allowed) = line.and_then(|list| core_list(list.trim())) else { return };
    let engine = &settings.engine;
    let wanted = engine.worker_cores.iter().map(|core| ("a worker", *core));
    let main = engine.main_core.map(|core| ("main-core", core));
    for (who, core) in
        wanted.chain(main).filter(|(_, core)| !allowed.iter().any(|a| usize::from(*a) == *core))
    {
        let list = line.unwrap_or_default().trim();
        faults
            .push(format!("cpu: core {core} for {who} is not there: this process may use {list}"));
    }
    let mut sorted = engine.worker_cores.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        faults.push("cpu: a core has two workers: give each one of its own".to_owned());
    }
}
