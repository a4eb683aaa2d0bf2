//! A generator that runs: made from a profile, its worker started, its ports connected.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Context as _;
use quiver_core::clock::Clock;
use quiver_core::graph::EngineConfig;

use crate::control::Machine;
use crate::drivers::{Drivers, engine_config};
use crate::generator::Generator;
use crate::profile::Profile;
use crate::self_test::{OwnShare, own_share};
use crate::stateful::generator::StatefulGenerator;

/// Servers answer whole requests, and each of their packets takes a buffer before the first leaves.
const STATEFUL_BUFFERS_FACTOR: usize = 4;

/// A generator with the drivers around it.
pub type Session = Generator<Drivers>;

/// Make a profile's generator with everything around it, start it and wait for its links.
pub fn open_profile(profile: &Profile) -> anyhow::Result<Session> {
    let mut session = make(profile, Rc::new(Cell::new(false)))?;
    session.wait_for_links()?;
    Ok(session)
}

/// As [`make`], after the generator has measured itself with the profile's streams, unless the profile says
/// `self_test: false`.
pub fn make_tested(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<Session> {
    let own = tested(profile);
    let mut session = make(profile, quit)?;
    session.set_own_share(own);
    Ok(session)
}

/// What the generator can do by itself with a profile's streams, unless the profile says `self_test: false`.
pub fn tested(profile: &Profile) -> Option<OwnShare> {
    let own = profile.self_test.then(|| own_share(profile)).transpose();
    own.unwrap_or_else(|error| {
        tracing::warn!("self-test: {error:#}; results will not be compared with it");
        None
    })
}

/// The same as [`open_profile`], without waiting for links. `quit` ends whatever it waits for.
pub fn make(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<Session> {
    let config = engine_config(profile);
    stay_on(&config)?;
    let drivers = Drivers::new(quit);
    let mut session = Generator::new(profile, config, Clock::tsc(), drivers)?;
    session.start()?;
    Ok(session)
}

/// What a profile is measured with: as [`make_tested`], or a generator of transactions.
pub fn make_machine(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<Machine<Drivers>> {
    if profile.stateful.is_none() {
        return Ok(make_tested(profile, quit)?.into());
    }
    let config = engine_config(profile);
    let config = EngineConfig { buffers: config.buffers * STATEFUL_BUFFERS_FACTOR, ..config };
    stay_on(&config)?;
    let mut generator = StatefulGenerator::new(profile, config, Clock::tsc(), Drivers::new(quit))?;
    generator.start()?;
    Ok(generator.into())
}

/// The control thread sleeps while the worker measures; were it on another core, it would disturb the
/// forwarder there.
fn stay_on(config: &EngineConfig) -> anyhow::Result<()> {
    let core = config.worker_cores[0];
    quiver_core::cpu::pin_to_core(core).with_context(|| format!("cores: core {core} cannot be used"))
}
