//! A session with its server: the control loop of `run` and `serve`.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use quiver_control::{Commands, Dispatcher, Limits, MoreDoors, Server, ServerConfig, Token, paths};
use quiver_core::control::reactor::Interest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::commands::commands;
use super::session::Session;
use super::stdio;
use crate::make;
use quiver_tg_measuring::drivers::Drivers;
use quiver_tg_traffic::profile::Profile;

/// The endpoints at which clients reach a generator.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// A Unix socket.
    pub socket: Option<PathBuf>,
    /// An address of the loopback.
    pub tcp: Option<SocketAddr>,
    /// The file of the token that clients over TCP say.
    pub token_file: Option<PathBuf>,
    /// Standard input and output; their end is the program's.
    pub stdio: bool,
}

/// The default socket of a generator.
pub fn default_socket() -> PathBuf {
    paths::runtime_dir().join("tg.sock")
}

/// A generator's control thread.
pub struct Host {
    /// The controlled session.
    pub session: Session<Drivers>,
    commands: Commands<Session<Drivers>>,
    server: Option<(Server, Dispatcher<Session<Drivers>>)>,
    signals: UnixStream,
    interrupted: Rc<Cell<bool>>,
    /// The load whose engine wakes up for requests and signals.
    watched: u64,
}

impl Host {
    /// A host without a profile and without clients. SIGINT and SIGTERM interrupt it.
    ///
    /// # Errors
    /// When the system gives no socket pair, or refuses the signal handlers.
    pub fn new() -> anyhow::Result<Host> {
        let (signals, send) = UnixStream::pair().context("a pipe for signals")?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
        }
        signals.set_nonblocking(true)?;
        let interrupted = Rc::new(Cell::new(false));
        let quit = interrupted.clone();
        let session =
            Session::new(move |profile: &Profile| make::make_generator(profile, quit.clone()));
        Ok(Host { session, commands: commands(), server: None, signals, interrupted, watched: 0 })
    }

    /// Start the server at these endpoints.
    ///
    /// # Errors
    /// When a socket or an address cannot be bound, or the token file can be neither read nor
    /// written.
    pub fn listen(&mut self, endpoints: &Endpoints) -> anyhow::Result<()> {
        if let Some(socket) = &endpoints.socket
            && UnixStream::connect(socket).is_ok()
        {
            bail!(
                "another process answers at {}: stop it, or name another socket with --socket",
                socket.display()
            );
        }
        let config = ServerConfig {
            cli_socket: None,
            api_socket: endpoints.socket.clone(),
            group: None,
            read_only_group: None,
            limits: Limits::default(),
        };
        let clients = if endpoints.stdio { vec![stdio::client()?] } else { Vec::new() };
        let token_file = || endpoints.token_file.clone().unwrap_or_else(paths::token_file);
        let token = endpoints.tcp.map(|_| Token::in_file(&token_file())).transpose();
        let token = token.map_err(|refusal| anyhow!("{refusal}"))?;
        let more = MoreDoors { tcp: endpoints.tcp, token, tls: None, clients };
        let server = Server::start_with(&config, more).map_err(|refusal| anyhow!("{refusal}"))?;
        if let Some(generator) = self.session.generator() {
            generator.engine().watch(server.1.fd().as_raw_fd(), Interest::READ, |_| {});
        }
        self.server = Some(server);
        Ok(())
    }

    /// The TCP address at which it listens.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.server.as_ref()?.0.tcp()
    }

    /// A signal came since the last call.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted.replace(false)
    }

    /// Load a profile and wait for its links.
    ///
    /// # Errors
    /// When the ports cannot be made, or have no links in time.
    pub fn load(&mut self, profile: Profile) -> anyhow::Result<()> {
        let refused = |refusal| anyhow!("{refusal}");
        self.session.load(profile).map_err(refused)?;
        while !self.session.links().map_err(refused)? {
            self.turn(Duration::from_millis(20));
        }
        Ok(())
    }

    /// One turn of the control loop: do what is due, then wait for at most `at_most`.
    pub fn turn(&mut self, at_most: Duration) {
        self.session.turn();
        let mut pause = at_most;
        if let Some((_, dispatcher)) = &mut self.server
            && let Some(due) = dispatcher.turn(&self.commands, &mut self.session)
        {
            pause = pause.min(due.saturating_duration_since(Instant::now()));
        }
        self.watch();
        let pause = self.pause(pause);
        match self.session.generator() {
            Some(generator) => generator.wait(pause.as_nanos() as u64),
            None => self.sleep(pause),
        }
        let mut bytes = [0; 16];
        if matches!(io::Read::read(&mut &self.signals, &mut bytes), Ok(1..)) {
            self.interrupted.set(true);
        }
    }

    /// How long to wait at the end of a turn: not at all once a client sent `shutdown`.
    fn pause(&mut self, at_most: Duration) -> Duration {
        if self.session.quits() { Duration::ZERO } else { at_most.min(self.session.pause()) }
    }

    /// A new engine wakes up for requests and signals.
    fn watch(&mut self) {
        if self.watched == self.session.loads {
            return;
        }
        self.watched = self.session.loads;
        let dispatcher = self.server.as_ref().map(|(_, dispatcher)| dispatcher.fd().as_raw_fd());
        let signals = self.signals.as_raw_fd();
        if let Some(generator) = self.session.generator() {
            for fd in dispatcher.into_iter().chain([signals]) {
                generator.engine().watch(fd, Interest::READ, |_| {});
            }
        }
    }

    fn sleep(&self, pause: Duration) {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some((_, dispatcher)) = &self.server {
            fds.push(PollFd::new(dispatcher, PollFlags::IN));
        }
        let pause = Timespec::try_from(pause).ok();
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, pause.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_turn_does_not_wait_after_shutdown() {
        let mut host = Host::new().expect("a host");
        let most = Duration::from_millis(900);
        assert_eq!(host.pause(most), most);
        host.session.quits = true;
        assert_eq!(host.pause(most), Duration::ZERO);
    }

    #[test]
    fn a_socket_that_answers_is_refused_with_the_option_for_another() {
        let name = format!("quiver-tg-host-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _listener = UnixListener::bind(&path).expect("a socket");
        let endpoints = Endpoints { socket: Some(path.clone()), ..Endpoints::default() };
        let refused = Host::new().expect("a host").listen(&endpoints).expect_err("it answers");
        std::fs::remove_file(&path).expect("removed");
        assert!(refused.to_string().contains("--socket"), "{refused}");
    }
}
