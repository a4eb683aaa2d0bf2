//! Without `nodaemon` the router starts in the background, and the start returns when it serves.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::instance;
use crate::settings::Settings;

/// How long a start may take, its `exec` file included.
const START_MAX: Duration = Duration::from_secs(120);

/// So much of the log of a start is looked through for errors.
const SAID_BYTES_MAX: u64 = 1 << 20;

/// Start the same program in the background; what it says goes to the log.
pub fn start(config: Option<&Path>, settings: &Settings) -> Result<()> {
    instance::check(&settings.runtime_dir, &settings.pidfile())?;
    let log = settings.unix.log.clone().unwrap_or_else(|| settings.runtime_dir.join("quiverd.log"));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
    let file = file.with_context(|| format!("log {}", log.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(path) = config {
        command.arg("--config").arg(path);
    }
    let before = file.metadata().map_or(0, |metadata| metadata.len());
    command.arg("--log").arg(&log);
    command.arg("--foreground").stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    command.process_group(0);
    let mut child = command.spawn().context("the router in the background")?;
    let deadline = Instant::now() + START_MAX;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            bail!("the router ended at its start ({status}); {} says why", log.display());
        }
        if UnixStream::connect(settings.api_socket()).is_ok() {
            println!("quiverd runs as process {}; its log is {}", child.id(), log.display());
            say_errors(&log, before);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the router has not been ready for {} s; {} says why", START_MAX.as_secs(), log.display())
}

/// Errors of the start that did not end it, such as refused commands, said again where the operator
/// looks.
fn say_errors(log: &Path, before: u64) {
    let Ok(mut file) = std::fs::File::open(log) else { return };
    let mut text = Vec::new();
    let read = file
        .seek(SeekFrom::Start(before))
        .and_then(|_| file.take(SAID_BYTES_MAX).read_to_end(&mut text));
    if read.is_ok() {
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains(" ERROR ")).for_each(|line| eprintln!("{line}"));
    }
}
