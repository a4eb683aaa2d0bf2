//! The router's life: made, configured, served, ended.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use quiver_control::server::group_id;
use quiver_control::{
    Commands, Desk, Output, Places, Progress, Refusal, Registry, Server, ServerConfig, Sink,
};
use quiver_core::Engine;
use quiver_core::clock::Clock;
use quiver_core::graph::{EngineConfig, GraphBuilder};
use quiver_core::reactor::Interest;
use signal_hook::consts::{SIGINT, SIGTERM};

use quiverd::features;

use crate::settings::{Settings, schema};

/// The control loop looks after its workers at least so often.
const TURN_MS_MAX: u64 = 10;

type SharedCommands = Rc<RefCell<Commands<Engine>>>;

/// A page of the reference.
pub fn reference(page: &str) -> Result<String> {
    let config =
        EngineConfig { buffers: 256, pages: quiver_core::memory::PageSize::Small, ..Default::default() };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
    features::register(&mut registry);
    match page {
        "cli" => Ok(registry.commands.reference()),
        "startup" => Ok(schema().0.reference()),
        "counters" => {
            let (engine, _) = registry.build()?;
            Ok(quiver_control::commands::counters_reference(&engine))
        }
        _ => bail!("there is no page {page}: cli, startup, counters"),
    }
}

/// Run until a signal.
pub fn run(settings: Settings) -> Result<()> {
    log_to(settings.unix.log.as_deref())?;
    std::fs::create_dir_all(&settings.runtime_dir)
        .with_context(|| format!("runtime-dir {}", settings.runtime_dir.display()))?;
    let stop = Rc::new(Cell::new(false));
    let (mut engine, commands) = make(&settings)?;
    confine_clients(&settings, &commands)?;
    watch_signals(&mut engine, &stop)?;
    if let Some(core) = settings.engine.main_core
        && let Err(error) = quiver_core::cpu::pin_to_core(core)
    {
        tracing::warn!("the control thread cannot be pinned to core {core}: {error}");
    }
    for complaint in engine.start_threads()? {
        tracing::warn!("{complaint}");
    }
    for line in &settings.commands {
        let done = commands.borrow().execute(&mut engine, line);
        done.map_err(|refusal| anyhow!("start-up file: {refusal}"))?;
    }
    if let Some(file) = &settings.unix.exec {
        let applied = commands.borrow().execute_file(&mut engine, file, &mut ToLog);
        let applied = applied.map_err(|refusal| anyhow!("exec: {refusal}"))?;
        tracing::info!("{}: {applied} commands applied", file.display());
    }
    let config = ServerConfig {
        cli_socket: Some(settings.cli_socket()),
        api_socket: Some(settings.api_socket()),
        group: settings.unix.gid.clone(),
        limits: quiver_control::Limits::default(),
    };
    let (server, desk) = Server::start(&config).map_err(|refusal| anyhow!("{refusal}"))?;
    engine.insert(desk.load());
    tracing::info!("ready; commands at {}", settings.cli_socket().display());
    if settings.unix.interactive {
        open_terminal(&settings)?;
    }
    serve(&mut engine, &commands, desk, &stop);
    drop(server);
    engine.take_leave_of_all();
    tracing::info!("ended");
    Ok(())
}

fn make(settings: &Settings) -> Result<(Engine, SharedCommands)> {
    let mut registry = Registry::new(GraphBuilder::new(settings.engine.clone(), Clock::tsc())?);
    features::register(&mut registry);
    Ok(registry.build()?)
}

/// Say where clients may name files, and make the folder.
fn confine_clients(settings: &Settings, commands: &SharedCommands) -> Result<()> {
    let mut places = Places::in_runtime_dir(&settings.runtime_dir);
    if let Some(folder) = &settings.unix.files_dir {
        places.files_dir.clone_from(folder);
    }
    if let Some(group) = &settings.unix.gid {
        places.group = Some(group_id(group).map_err(|refusal| anyhow!("{refusal}"))?);
    }
    if let Err(error) = places.make() {
        tracing::warn!("files-dir {}: {error}; clients cannot name files", places.files_dir.display());
    }
    commands.borrow_mut().set_places(places);
    Ok(())
}

/// The control loop.
fn serve(engine: &mut Engine, commands: &SharedCommands, mut desk: Desk<Engine>, stop: &Cell<bool>) {
    // The reactor only has to wake up; the requests are taken below.
    engine.watch(desk.as_fd().as_raw_fd(), Interest::READ, |_| {});
    while !stop.get() {
        let due = desk.turn(&commands.borrow(), engine);
        let wait = due.map_or(TURN_MS_MAX, |due| {
            let left = due.saturating_duration_since(Instant::now());
            TURN_MS_MAX.min(left.as_millis() as u64)
        });
        engine.turn(wait);
    }
}

/// SIGINT and SIGTERM end the loop.
fn watch_signals(engine: &mut Engine, stop: &Rc<Cell<bool>>) -> io::Result<()> {
    let (receive, send) = UnixStream::pair()?;
    receive.set_nonblocking(true)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
    }
    let stop = stop.clone();
    let fd = receive.as_raw_fd();
    engine.watch(fd, Interest::READ, move |_| {
        let _ = &receive; // stays open as long as it is watched
        stop.set(true);
    });
    Ok(())
}

/// `unix { interactive }`: the client on this terminal; when it ends, so does the router.
fn open_terminal(settings: &Settings) -> Result<()> {
    let beside = std::env::current_exe()?.with_file_name("quiverctl");
    let program = if beside.exists() { beside } else { "quiverctl".into() };
    let mut client = std::process::Command::new(program);
    client.arg("--socket").arg(settings.api_socket());
    let mut child = client.spawn().context("quiverctl, which `interactive` runs on the terminal")?;
    std::thread::Builder::new().name("quiver-terminal".into()).spawn(move || {
        let _ = child.wait();
        let _ = signal_hook::low_level::raise(SIGTERM);
    })?;
    Ok(())
}

fn log_to(file: Option<&Path>) -> Result<()> {
    let subscriber = tracing_subscriber::fmt().with_target(false);
    match file {
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let file = file.with_context(|| format!("log {}", path.display()))?;
            subscriber.with_ansi(false).with_writer(file).init();
        }
        None => subscriber.with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).init(),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

/// Where the start's own `exec` file tells how far it is.
struct ToLog;

impl Sink for ToLog {
    fn output(&mut self, output: Output) {
        for line in output.to_text().lines() {
            tracing::info!("{line}");
        }
    }

    fn progress(&mut self, progress: Progress) {
        tracing::info!("{}: {} of {}", progress.what, progress.done, progress.total);
    }

    fn refused(&mut self, refusal: Refusal) {
        tracing::error!("{refusal}");
    }
}
