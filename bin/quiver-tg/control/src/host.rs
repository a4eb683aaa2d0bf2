//! A station with its doors: the control loop of `run` and `serve`.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use quiver_control::{Commands, Dispatcher, Limits, MoreDoors, Server, ServerConfig, Token, paths};
use quiver_core::control::reactor::Interest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::commands::commands;
use super::station::Station;
use super::stdio;
use crate::session;
use quiver_tg_measuring::drivers::Drivers;
use quiver_tg_traffic::profile::Profile;

/// Where programs reach a generator.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// A Unix socket.
    pub socket: Option<PathBuf>,
    /// An address of the loopback.
    pub tcp: Option<SocketAddr>,
    /// The file of the token that clients over TCP say.
    pub token_file: Option<PathBuf>,
    /// Standard input and output; their end is the program's.
    pub stdio: bool,
}

/// The socket of a generator when nobody says otherwise.
pub fn default_socket() -> PathBuf {
    paths::runtime_dir().join("tg.sock")
}

/// A generator's control thread.
pub struct Host {
    /// What is controlled.
    pub station: Station<Drivers>,
    commands: Commands<Station<Drivers>>,
    server: Option<(Server, Dispatcher<Station<Drivers>>)>,
    signals: UnixStream,
    interrupted: Rc<Cell<bool>>,
    /// The load whose engine wakes up for requests and signals.
    watched: u64,
}

impl Host {
    /// Nothing is loaded, and nobody listens yet. SIGINT and SIGTERM interrupt it.
    pub fn new() -> anyhow::Result<Host> {
        let (signals, send) = UnixStream::pair().context("a pipe for signals")?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
        }
        signals.set_nonblocking(true)?;
        let interrupted = Rc::new(Cell::new(false));
        let quit = interrupted.clone();
        let station =
            Station::new(move |profile: &Profile| session::make_machine(profile, quit.clone()));
        Ok(Host { station, commands: commands(), server: None, signals, interrupted, watched: 0 })
    }

    /// Let programs in.
    pub fn listen(&mut self, places: &Places) -> anyhow::Result<()> {
        let config = ServerConfig {
            cli_socket: None,
            api_socket: places.socket.clone(),
            group: None,
            limits: Limits::default(),
        };
        let clients = if places.stdio { vec![stdio::client()?] } else { Vec::new() };
        let token_file = || places.token_file.clone().unwrap_or_else(paths::token_file);
        let token = places.tcp.map(|_| Token::in_file(&token_file())).transpose();
        let token = token.map_err(|refusal| anyhow!("{refusal}"))?;
        let more = MoreDoors { tcp: places.tcp, token, clients };
        let server = Server::start_with(&config, more).map_err(|refusal| anyhow!("{refusal}"))?;
        if let Some(generator) = self.station.generator() {
            generator.engine().watch(server.1.fd().as_raw_fd(), Interest::READ, |_| {});
        }
        self.server = Some(server);
        Ok(())
    }

    /// Where it listens for TCP.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.server.as_ref()?.0.tcp()
    }

    /// Did a signal come since the last time that somebody asked?
    pub fn was_interrupted(&self) -> bool {
        self.interrupted.replace(false)
    }

    /// Load a profile and wait for its links.
    pub fn load(&mut self, profile: Profile) -> anyhow::Result<()> {
        let refused = |refusal| anyhow!("{refusal}");
        self.station.load(profile).map_err(refused)?;
        while !self.station.links().map_err(refused)? {
            self.turn(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Do what is due, and wait for more, `at_most` so long.
    pub fn turn(&mut self, at_most: Duration) {
        self.station.turn();
        let mut pause = at_most;
        if let Some((_, desk)) = &mut self.server
            && let Some(due) = desk.turn(&self.commands, &mut self.station)
        {
            pause = pause.min(due.saturating_duration_since(Instant::now()));
        }
        self.watch();
        pause = pause.min(self.station.pause());
        match self.station.generator() {
            Some(generator) => generator.wait(pause.as_nanos() as u64),
            None => self.sleep(pause),
        }
        let mut bytes = [0; 16];
        if matches!(io::Read::read(&mut &self.signals, &mut bytes), Ok(1..)) {
            self.interrupted.set(true);
        }
    }

    /// A new engine wakes up for requests and signals.
    fn watch(&mut self) {
        if self.watched == self.station.loads {
            return;
        }
        self.watched = self.station.loads;
        let desk = self.server.as_ref().map(|(_, desk)| desk.fd().as_raw_fd());
        let signals = self.signals.as_raw_fd();
        if let Some(generator) = self.station.generator() {
            for fd in desk.into_iter().chain([signals]) {
                generator.engine().watch(fd, Interest::READ, |_| {});
            }
        }
    }

    fn sleep(&self, pause: Duration) {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some((_, desk)) = &self.server {
            fds.push(PollFd::new(desk, PollFlags::IN));
        }
        let pause = Timespec::try_from(pause).ok();
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, pause.as_ref());
    }
}
