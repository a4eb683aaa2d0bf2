//! A generator that runs: made from a profile, its worker started, its ports connected.

use std::cell::Cell;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use quiver_core::Engine;
use quiver_core::clock::Clock;
use quiver_core::reactor::Interest;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::drivers::{Drivers, engine_config};
use crate::generator::Generator;
use crate::profile::Profile;

/// A generator with the drivers around it.
pub type Session = Generator<Drivers>;

/// Read a profile, make its generator, start it and wait for its links. `core` overrides the
/// profile's.
pub fn open(path: &Path, core: Option<usize>) -> anyhow::Result<Session> {
    let mut profile = Profile::read(path)?;
    if let Some(core) = core {
        profile.cores = vec![core];
    }
    open_profile(&profile)
}

/// As [`open`], for a profile that has been read.
pub fn open_profile(profile: &Profile) -> anyhow::Result<Session> {
    let config = engine_config(profile);
    // The control thread sleeps while the worker measures; were it on another core, it would
    // disturb the forwarder there.
    let core = config.worker_cores[0];
    quiver_core::cpu::pin_to_core(core).with_context(|| format!("cores: core {core} cannot be used"))?;
    let drivers = Drivers::default();
    let quit = drivers.quit.clone();
    let mut session = Generator::new(profile, config, Clock::tsc(), drivers)?;
    watch_signals(session.engine(), quit)?;
    session.start()?;
    session.wait_for_links()?;
    Ok(session)
}

/// SIGINT and SIGTERM end whatever is under way.
fn watch_signals(engine: &mut Engine, quit: Rc<Cell<bool>>) -> anyhow::Result<()> {
    let (receive, send) = UnixStream::pair().context("a pipe for signals")?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
    }
    receive.set_nonblocking(true)?;
    engine.watch(receive.as_raw_fd(), Interest::READ, move |_| {
        let mut bytes = [0; 16];
        let _ = std::io::Read::read(&mut &receive, &mut bytes);
        quit.set(true);
    });
    Ok(())
}
