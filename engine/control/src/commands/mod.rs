//! The engine's own commands: what every router has, whatever is built in. One file per area.

mod capture;
mod clear;
mod clock;
mod columns;
mod control;
mod counters;
mod errors;
mod graph;
mod hardware;
mod interfaces;
mod loopback;
mod machine;
mod modes;
mod naming;
mod receive;
mod runtime;
mod schema;
mod trace;
mod workers;

use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::args::Args;
use crate::error::Refusal;
use crate::registry::Registry;

pub use counters::counters_reference;
pub use loopback::RouterNumber;
pub use machine::{Built, RefusedAtStart};

/// Register the engine's own commands. Every router does, before its drivers and features.
pub fn register(registry: &mut Registry) {
    interfaces::register(registry);
    naming::register(registry);
    hardware::register(registry);
    receive::register(registry);
    loopback::register(registry);
    modes::register(registry);
    runtime::register(registry);
    errors::register(registry);
    graph::register(registry);
    machine::register(registry);
    workers::register(registry);
    clear::register(registry);
    clock::register(registry);
    schema::register(registry);
    trace::register(registry);
    capture::register(registry);
    crate::server::subscriptions::register(registry);
    control::register(registry);
}

/// A worker's thread, by the number and name that operators see: the control thread is 0.
fn thread_number(worker: WorkerId) -> u32 {
    u32::from(worker.0) + 1
}

/// As the system lists it too (`top -H`).
fn thread_name(worker: WorkerId) -> String {
    format!("quiver_wk_{}", worker.0)
}

fn all_workers(engine: &Engine) -> impl Iterator<Item = WorkerId> + use<> {
    (0..engine.worker_count()).map(|index| WorkerId(index as u16))
}

/// All interfaces in the order of their numbers, or only one.
fn ids(engine: &Engine, only: Option<InterfaceId>) -> Vec<InterfaceId> {
    only.map_or_else(
        || engine.all_interfaces().map(|interface| interface.id).collect(),
        |id| vec![id],
    )
}

/// The same in the order of their names.
fn ids_by_name(engine: &Engine, only: Option<InterfaceId>) -> Vec<InterfaceId> {
    only.map_or_else(
        || engine.interfaces_by_name().map(|interface| interface.id).collect(),
        |id| vec![id],
    )
}

/// An error about an interface, naming it and its place in the command.
fn refuse_interface(
    engine: &Engine,
    args: &Args<'_>,
    id: InterfaceId,
    error: impl std::error::Error,
) -> Refusal {
    args.refuse("interface", format!("{}: {error}", engine.interface_name(id)))
}

/// `1 packet`, `2 packets`.
fn packets_text(count: usize) -> String {
    format!("{count} packet{}", if count == 1 { "" } else { "s" })
}

/// A layer 2 address as it is written.
fn mac_text([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}
