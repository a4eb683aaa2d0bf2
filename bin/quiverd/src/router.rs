//! The router's life: made, configured, served, ended.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use quiver_control::commands::{Built, RefusedAtStart, RouterNumber};
use quiver_control::server::group_id;
use quiver_control::startup_api::Api;
use quiver_control::{
    Commands, Dispatcher, Entry, MoreDoors, OnRefusal, Output, Places, Progress, Refusal, Registry,
    Restored, Server, ServerConfig, Sink, Store, Token, VERSIONS_KEPT,
};
use quiver_core::Engine;
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::reactor::Interest;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use quiverd::features;
use quiverd::logging::{self, Journal, Log};

use crate::instance;
use crate::notification::{SOCKET_VARIABLE, ServiceManager};
use crate::settings::{Settings, schema};
use crate::user;

/// The control loop looks after its workers at least so often.
const TURN_MS_MAX: u64 = 10;

type SharedCommands = Rc<RefCell<Commands<Engine>>>;

/// A page of the reference.
pub fn reference(page: &str) -> Result<String> {
    let config = EngineConfig {
        buffers: 256,
        pages: quiver_core::memory::mapping::PageSize::Small,
        ..Default::default()
    };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
    features::register(&mut registry);
    match page {
        "cli" => Ok(registry.commands.reference()),
        "openrpc" => Ok(one_method_a_line(&registry.commands.openrpc())),
        "schema" => Ok(format!("{:#}\n", registry.commands.document_schema())),
        "startup" => Ok(schema().0.reference()),
        "counters" => {
            let (engine, _) = registry.build()?;
            Ok(quiver_control::commands::counters_reference(&engine))
        }
        _ => bail!("there is no page {page}: cli, startup, counters, openrpc, schema"),
    }
}

/// The document of the API, so that a change of one method is a change of one line.
fn one_method_a_line(document: &serde_json::Value) -> String {
    let methods = document["methods"].as_array().map(Vec::as_slice).unwrap_or_default();
    let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
    let (version, info) = (&document["openrpc"], &document["info"]);
    let methods = methods.join(",\n");
    format!("{{\"openrpc\":{version},\n\"info\":{info},\n\"methods\":[\n{methods}\n]}}\n")
}

/// Run until a signal.
pub fn run(settings: Settings) -> Result<()> {
    let log = log_to(&settings)?;
    let manager = Rc::new(ServiceManager::from_environment());
    let _instance = instance::take(&settings.runtime_dir, &settings.pidfile())?;
    give_up_root(&settings)?;
    settings.idle.iter().for_each(|said| tracing::warn!("{said}"));
    allow_cores(&settings);
    let stop = Rc::new(Cell::new(false));
    let (mut engine, commands) = make(&settings)?;
    confine_clients(&settings, &commands)?;
    engine.insert(log.clone());
    engine.insert(Built { commit: env!("QUIVER_COMMIT"), date: env!("QUIVER_DATE") });
    engine.insert(router_number(&settings));
    watch_signals(&mut engine, &stop, log, &manager)?;
    crate::memory::keep_reserve(&mut engine, &commands)?;
    log_links(&mut engine);
    commands.borrow_mut().keep_journal(keep);
    // Made here, not in a turn of the control loop.
    commands.borrow().schema();
    commands.borrow().openrpc();
    if let Some(core) = settings.engine.main_core
        && let Err(error) = quiver_core::cpu::pin_to_core(core)
    {
        tracing::warn!("the control thread cannot be pinned to core {core}: {error}");
    }
    for complaint in engine.start_threads()? {
        tracing::warn!("{complaint}");
    }
    keep_versions(&settings, &commands);
    configure(&mut engine, &commands, &settings, &manager)?;
    let config = ServerConfig {
        cli_socket: Some(settings.cli_socket()),
        api_socket: Some(settings.api_socket()),
        group: settings.unix.gid.clone(),
        read_only_group: settings.unix.read_only_gid.clone(),
        limits: quiver_control::Limits::default(),
    };
    let doors = doors(&settings).map_err(|refusal| anyhow!("{refusal}"))?;
    let (server, dispatcher) =
        Server::start_with(&config, doors).map_err(|refusal| anyhow!("{refusal}"))?;
    engine.insert(dispatcher.load());
    let ready = format!("ready; commands at {}", settings.cli_socket().display());
    tracing::info!("{ready}");
    manager.ready(&ready);
    manager.watch(&mut engine);
    if settings.unix.interactive {
        open_terminal(&settings)?;
    }
    serve(&mut engine, &commands, dispatcher, &stop);
    manager.stopping();
    drop(server);
    engine.take_leave_of_all();
    tracing::info!("ended");
    Ok(())
}

/// Go on as the user of the start-up file, if it names one.
fn give_up_root(settings: &Settings) -> Result<()> {
    let Some(user) = &settings.unix.user else { return Ok(()) };
    let (group, namespaces) = (settings.unix.gid.as_deref(), settings.unix.user_namespaces);
    let own: Vec<&Path> =
        settings.unix.log.iter().chain([&settings.runtime_dir]).map(PathBuf::as_path).collect();
    user::become_user(&user::Wanted { user, group, namespaces }, &own)
}

/// The doors of the API beside its socket.
fn doors(settings: &Settings) -> Result<MoreDoors, Refusal> {
    let Api { tcp, token_file, tls } = settings.api.clone();
    let token_file = token_file.unwrap_or_else(|| settings.runtime_dir.join("token"));
    let token = tcp.map(|_| Token::in_file(&token_file)).transpose()?;
    Ok(MoreDoors { tcp, token, tls, clients: Vec::new() })
}

/// Refusals of the start that are kept for `show version verbose`; all are in the log.
const REFUSALS_KEPT: usize = 20;

/// Do what the start-up file says, and then what the saved version says; where there is none, what
/// the `exec` file says. What is refused is said loudly, and the rest is done; with `exec-strict` a
/// refusal of the start-up file or of the `exec` file ends the start.
fn configure(
    engine: &mut Engine,
    commands: &SharedCommands,
    settings: &Settings,
    manager: &Rc<ServiceManager>,
) -> Result<()> {
    let is_strict = settings.unix.exec_strict;
    let mut sink = ToLog { refused: RefusedAtStart::default(), manager: manager.clone() };
    let commands = commands.borrow();
    for line in &settings.commands {
        match commands.execute(engine, line) {
            Err(refusal) if is_strict => bail!("start-up file: {refusal}"),
            Err(refusal) => sink.refused(Refusal::new(format!("start-up file: {refusal}"))),
            Ok(_) => {}
        }
    }
    manager.starting("restores its configuration");
    let restored = commands.restore_version(engine, &mut sink);
    if let Some(Restored { version, about, applied }) = &restored {
        tracing::info!("version {version} {about} is restored: {applied} commands applied");
        if let Some(file) = &settings.unix.exec {
            tracing::info!("{} is not executed: there is a saved version", file.display());
        }
    }
    if let Some(file) = settings.unix.exec.as_ref().filter(|_| restored.is_none()) {
        manager.starting(&format!("executes {}", file.display()));
        let on_refusal = if is_strict { OnRefusal::Stop } else { OnRefusal::Continue };
        match commands.execute_file_with(engine, file, on_refusal, &mut sink) {
            Ok(applied) => tracing::info!("{}: {applied} commands applied", file.display()),
            Err(refusal) if is_strict => bail!("exec: {refusal}"),
            Err(refusal) => sink.refused(Refusal::new(format!("exec: {refusal}"))),
        }
    }
    let refused = sink.refused;
    if refused.count > 0 {
        let (count, commands) =
            (refused.count, if refused.count == 1 { "command was" } else { "commands were" });
        let said = format!(
            "{count} {commands} refused at the start and the rest is applied: `show version \
             verbose`"
        );
        tracing::error!("{said}");
        if settings.unix.log.is_some() {
            eprintln!("{} quiverd: {said}", logging::now());
            refused.first.iter().for_each(|refusal| eprintln!("  {refusal}"));
        }
    }
    engine.insert(refused);
    Ok(())
}

/// Keep versions of the configuration in the state directory. A router that cannot starts without.
fn keep_versions(settings: &Settings, commands: &SharedCommands) {
    let kept = settings.unix.versions_kept.unwrap_or(VERSIONS_KEPT);
    let commands = commands.borrow();
    let opened = Store::open(&settings.state_dir(), kept);
    match opened.and_then(|store| commands.keep_versions(store)) {
        Ok(faults) => faults.iter().for_each(|fault| tracing::error!("configurations: {fault}")),
        Err(why) => {
            tracing::error!("no versions of the configuration are kept: {why}");
            commands.keep_no_versions(why);
        }
    }
}

/// Core files, as the section `unix` wants them.
fn allow_cores(settings: &Settings) {
    let unix = &settings.unix;
    let wanted = unix.core_bytes_max.or(unix.full_coredump.then_some(u64::MAX));
    if let Some(bytes) = wanted {
        let current = Some(bytes).filter(|bytes| *bytes != u64::MAX);
        let maximum = getrlimit(Resource::Core)
            .maximum
            .filter(|most| current.is_some_and(|own| own <= *most));
        if let Err(error) = setrlimit(Resource::Core, Rlimit { current, maximum }) {
            tracing::warn!("unix coredump-size: {error}");
        }
    }
    // core(5): all kinds of mappings, huge pages and shared ones too.
    if unix.full_coredump
        && let Err(error) = std::fs::write("/proc/self/coredump_filter", "0x7f")
    {
        tracing::warn!("unix full-coredump: {error}");
    }
}

/// Three bytes from what tells this router from others: the machine, its name, and the folder.
fn router_number(settings: &Settings) -> RouterNumber {
    let read = |path: &str| std::fs::read(path).unwrap_or_default();
    let folder = settings.runtime_dir.as_os_str().as_encoded_bytes().to_owned();
    let parts = [read("/etc/machine-id"), read("/proc/sys/kernel/hostname"), folder];
    // FNV-1a: the same on every machine and in every version.
    let hash = parts.iter().flatten().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [.., first, second, third] = (hash ^ hash >> 32).to_be_bytes();
    RouterNumber([first, second, third])
}

/// Who changed what, and what was refused, goes to the log as class `cli`.
fn keep(entry: &Entry<'_>) {
    let Entry { who, line, more, refusal } = entry;
    match (refusal, more) {
        (Some(refusal), _) => {
            tracing::warn!(target: "cli", "{who}: refused: {line}: {}", refusal.what())
        }
        (None, 0) => tracing::info!(target: "cli", "{who}: {line}"),
        (None, more) => tracing::info!(target: "cli", "{who}: {line} and {more} more like it"),
    }
}

/// An interface that goes up or down says so.
fn log_links(engine: &mut Engine) {
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::State
            && let Some(interface) = engine.interface(id)
        {
            let word = |up| if up { "up" } else { "down" };
            let (name, admin, link) =
                (&interface.name, word(interface.admin_up), word(interface.link_up));
            tracing::info!(
                target: "link", "{name}: {}, set {admin}, link {link}", word(interface.row().up)
            );
        }
    });
}

fn make(settings: &Settings) -> Result<(Engine, SharedCommands)> {
    let mut registry = Registry::new(GraphBuilder::new(settings.engine.clone(), Clock::tsc())?);
    features::register(&mut registry);
    crate::memory::register(&mut registry);
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
        tracing::warn!(
            "files-dir {}: {error}; clients cannot name files",
            places.files_dir.display()
        );
    }
    commands.borrow_mut().set_places(places);
    Ok(())
}

/// The control loop.
fn serve(
    engine: &mut Engine,
    commands: &SharedCommands,
    mut dispatcher: Dispatcher<Engine>,
    stop: &Cell<bool>,
) {
    // The reactor only has to wake up; the requests are taken below.
    engine.watch(dispatcher.as_fd().as_raw_fd(), Interest::READ, |_| {});
    while !stop.get() {
        let due = dispatcher.turn(&commands.borrow(), engine);
        let wait = due.map_or(TURN_MS_MAX, |due| {
            let left = due.saturating_duration_since(Instant::now());
            // Rounded up: a wait of less than a millisecond would be none.
            TURN_MS_MAX.min(left.as_micros().div_ceil(1000) as u64)
        });
        engine.turn(wait);
    }
}

/// SIGINT and SIGTERM end the loop, SIGHUP opens the log file again.
fn watch_signals(
    engine: &mut Engine,
    stop: &Rc<Cell<bool>>,
    log: Arc<Log>,
    manager: &Rc<ServiceManager>,
) -> io::Result<()> {
    let (mut hangups, send) = UnixStream::pair()?;
    hangups.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGHUP, send)?;
    let manager = manager.clone();
    engine.watch(hangups.as_raw_fd(), Interest::READ, move |_| {
        let _ = io::Read::read(&mut hangups, &mut [0; 64]);
        manager.reload(|| match log.reopen() {
            Ok(()) => tracing::info!("the log is opened again"),
            Err(error) => tracing::error!("the log cannot be opened again: {error}"),
        });
    });
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
    client.arg("--socket").arg(settings.api_socket()).env_remove(SOCKET_VARIABLE);
    let mut child =
        client.spawn().context("quiverctl, which `interactive` runs on the terminal")?;
    std::thread::Builder::new().name("quiver-terminal".into()).spawn(move || {
        let _ = child.wait();
        let _ = signal_hook::low_level::raise(SIGTERM);
    })?;
    Ok(())
}

fn log_to(settings: &Settings) -> Result<Arc<Log>> {
    let path = settings.unix.log.as_deref();
    let log = Log::open(path)
        .with_context(|| format!("log {}", path.unwrap_or("".as_ref()).display()))?;
    let log = Arc::new(log.with_journal(Journal::of_this_process()));
    logging::install(log.clone());
    Ok(log)
}

#[cfg(test)]
mod tests;

/// Where the start's own `exec` file tells how far it is.
struct ToLog {
    refused: RefusedAtStart,
    manager: Rc<ServiceManager>,
}

impl Sink for ToLog {
    fn output(&mut self, output: Output) {
        for line in output.to_text().lines() {
            tracing::info!("{line}");
        }
    }

    fn progress(&mut self, progress: Progress) {
        let said = format!("{}: {} of {}", progress.what, progress.done, progress.total);
        tracing::info!("{said}");
        self.manager.starting(&said);
    }

    fn refused(&mut self, refusal: Refusal) {
        tracing::error!("refused: {refusal}");
        self.refused.count += 1;
        if self.refused.first.len() < REFUSALS_KEPT {
            self.refused.first.push(refusal.to_string());
        }
    }
}
