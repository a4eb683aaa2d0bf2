//! A generator of transactions that runs: made from a profile, with drivers, its worker started.

use std::cell::Cell;
use std::rc::Rc;

use quiver_core::clock::Clock;
use quiver_core::graph::builder::EngineConfig;
use quiver_tg_measuring::drivers::{Drivers, engine_config};
use quiver_tg_measuring::session::stay_on;
use quiver_tg_traffic::profile::Profile;

use crate::generator::StatefulGenerator;

/// Servers answer whole requests, and each of their packets takes a buffer before the first leaves.
const STATEFUL_BUFFERS_FACTOR: usize = 4;

/// Make a profile's generator with the drivers around it and start it, without waiting for links.
/// `quit` ends whatever it waits for.
///
/// # Errors
/// When the ports or the worker cannot be made.
pub fn make(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<StatefulGenerator<Drivers>> {
    let config = engine_config(profile);
    let config = EngineConfig { buffers: config.buffers * STATEFUL_BUFFERS_FACTOR, ..config };
    stay_on(&config)?;
    let mut generator = StatefulGenerator::new(profile, config, Clock::tsc(), Drivers::new(quit))?;
    generator.start()?;
    Ok(generator)
}
