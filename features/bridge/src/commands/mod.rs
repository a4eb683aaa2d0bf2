//! The commands of bridging. One file per area.

pub(crate) mod domains;
mod flags;
mod jobs;
pub(crate) mod l2fib;
pub(crate) mod ports;
mod show;
mod show_l2fib;

use quiver_control::{Refusal, Registry};
use quiver_core::Engine;

use crate::state::Bridges;

const GROUP: &str = "Layer 2";

pub(crate) fn register(registry: &mut Registry) {
    domains::register(registry);
    flags::register(registry);
    ports::register(registry);
    l2fib::register(registry);
    show::register(registry);
    show_l2fib::register(registry);
}

/// The state, to look at.
fn bridges(engine: &Engine) -> Result<&Bridges, Refusal> {
    engine.get::<Bridges>().ok_or_else(busy)
}

/// The state, to change.
fn bridges_mut(engine: &mut Engine) -> Result<&mut Bridges, Refusal> {
    engine.get_mut::<Bridges>().ok_or_else(busy)
}

fn busy() -> Refusal {
    Refusal::new("the bridge is being changed").remedy("try again")
}
