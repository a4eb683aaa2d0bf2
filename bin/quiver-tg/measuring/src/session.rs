//! A generator that runs: made from a profile, its worker started, its ports connected.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Context as _;
use quiver_core::clock::Clock;
use quiver_core::graph::builder::EngineConfig;

use crate::drivers::{Drivers, engine_config};
use crate::generator::Generator;
use quiver_tg_traffic::profile::Profile;

/// A generator with the drivers around it.
pub type Session = Generator<Drivers>;

/// Make a profile's generator with everything around it, start it and wait for its links.
///
/// # Errors
/// When the generator cannot be made, or a port has no link in time.
pub fn open_profile(profile: &Profile) -> anyhow::Result<Session> {
    let mut session = make(profile, Rc::new(Cell::new(false)))?;
    session.wait_for_links()?;
    Ok(session)
}

/// The same as [`open_profile`], without waiting for links. `quit` ends whatever it waits for.
///
/// # Errors
/// When the ports, the frames or the worker cannot be made.
pub fn make(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<Session> {
    make_with(profile, Drivers::new(quit))
}

/// As [`make`], with these drivers.
///
/// # Errors
/// As [`make`].
pub fn make_with(profile: &Profile, drivers: Drivers) -> anyhow::Result<Session> {
    let config = engine_config(profile);
    stay_on(&config)?;
    let mut session = Generator::new(profile, config, Clock::tsc(), drivers)?;
    session.start()?;
    Ok(session)
}

/// Pin the control thread to the worker's core. It sleeps while the worker measures; on another
/// core it would disturb the forwarder there.
///
/// # Errors
/// When the system refuses the core.
pub fn stay_on(config: &EngineConfig) -> anyhow::Result<()> {
    let core = config.worker_cores[0];
    quiver_core::cpu::pin_to_core(core)
        .with_context(|| format!("cores: core {core} cannot be used"))
}
