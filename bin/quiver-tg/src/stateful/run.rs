//! `quiver-tg run` of a profile with `stateful`: measure once, show how it goes, print what came out.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use quiver_core::Engine;
use quiver_core::clock::Clock;
use quiver_core::graph::EngineConfig;
use quiver_core::{InterfaceId, cpu};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::generator::StatefulGenerator;
use crate::drivers::{Drivers, engine_config};
use crate::generator::{Onlooker, Surroundings};
use crate::profile::{Port, Profile};
use crate::request::Measure;
use crate::table::{grouped, scaled};

/// Servers answer whole requests, and each of their packets takes a buffer before the first leaves.
const BUFFERS_FACTOR: usize = 4;
/// The live line is drawn again after so long, seconds.
const DRAW_EVERY_S: f64 = 1.0;

/// A line on standard error, once a second.
struct LiveLine {
    is_terminal: bool,
    last: (f64, u64, u64),
}

impl Onlooker for LiveLine {
    fn see(&mut self, at_s: f64, of_s: f64, begun: u64, done: u64) {
        let seconds = at_s - self.last.0;
        if seconds < DRAW_EVERY_S {
            return;
        }
        let rate = |now: u64, before: u64| scaled(now.saturating_sub(before) as f64 / seconds, "cps");
        let line = format!(
            "{at_s:6.1} of {of_s:.1} s  begun {} ({})  successful {} ({})  open {}",
            grouped(begun),
            rate(begun, self.last.1),
            grouped(done),
            rate(done, self.last.2),
            grouped(begun.saturating_sub(done))
        );
        // Nobody may be looking any more; the measurement goes on.
        let _ =
            if self.is_terminal { write!(stderr(), "\r{line}\x1b[K") } else { writeln!(stderr(), "{line}") };
        self.last = (at_s, begun, done);
    }
}

/// The drivers, until a signal comes.
struct Signalled {
    drivers: Drivers,
    quit: Arc<AtomicBool>,
}

impl Surroundings for Signalled {
    fn register(&mut self, registry: &mut quiver_control::Registry) {
        self.drivers.register(registry);
    }

    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        port: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId> {
        self.drivers.make_port(engine, number, port, input)
    }

    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64) {
        self.drivers.wait(engine, at_most_ns);
    }

    fn frame_bytes_max(&self, engine: &Engine, id: InterfaceId, port: &Port) -> Option<usize> {
        self.drivers.frame_bytes_max(engine, id, port)
    }

    fn link_trouble(&self, engine: &Engine, id: InterfaceId) -> String {
        self.drivers.link_trouble(engine, id)
    }

    fn is_interrupted(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }
}

/// Measure once. The first SIGINT or SIGTERM ends it, and what it has come to is its result.
pub fn run(profile: &Profile, request: &Measure, json: bool) -> anyhow::Result<()> {
    let quit: Arc<AtomicBool> = Arc::default();
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the program as if nobody had asked for it.
        signal_hook::flag::register_conditional_default(signal, quit.clone())?;
        signal_hook::flag::register(signal, quit.clone())?;
    }
    let config = engine_config(profile);
    let config = EngineConfig { buffers: config.buffers * BUFFERS_FACTOR, ..config };
    let core = config.worker_cores[0];
    cpu::pin_to_core(core).with_context(|| format!("cores: core {core} cannot be used"))?;
    let drivers = Drivers::new(Rc::new(Cell::new(false)));
    let surroundings = Signalled { drivers, quit };
    let mut generator = StatefulGenerator::new(profile, config, Clock::tsc(), surroundings)?;
    generator.start()?;
    generator.wait_for_links()?;
    let is_terminal = stderr().is_terminal();
    let report = generator.measure(request, &mut LiveLine { is_terminal, last: (0.0, 0, 0) });
    if is_terminal {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    let report = report?;
    let text = if json { serde_json::to_string_pretty(&report)? + "\n" } else { report.render() };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
