//! The commands of IP, by area.

pub(crate) mod addresses;
mod fib;
mod flow_hash;
mod groups;
pub(crate) mod hop_by_hop;

mod duplicate_detection;
mod icmp;
mod ip6_interface;
pub(crate) mod limits;
pub(crate) mod memory;
mod neighbour_config;
mod neighbour_counters;
pub(crate) mod neighbours;
mod ping;
pub(crate) mod proxies;
mod punt;
pub(crate) mod replace;
mod route_batch;
mod route_range;
pub(crate) mod routes;
pub(crate) mod tables;

pub(crate) use fib::source_word;
pub(crate) use routes::path_words;

use quiver_control::{Args, Refusal, Registry};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};

/// The chapter of the reference page.
const GROUP: &str = "Layer 3";

pub(crate) fn register(registry: &mut Registry) {
    addresses::register(registry);
    tables::register(registry);
    replace::register(registry);
    routes::register(registry);
    neighbours::register(registry);
    neighbour_counters::register(registry);
    duplicate_detection::register(registry);
    proxies::register(registry);
    ip6_interface::register(registry);
    fib::register(registry);
    flow_hash::register(registry);
    limits::register(registry);
    groups::register(registry);
    icmp::register(registry);
    hop_by_hop::register(registry);
    ping::register(registry);
    punt::register(registry);
}

/// The small number of the table whose number stands under `name`; table 0 when none is given.
fn table_of(engine: &Engine, args: &Args<'_>, family: Family, name: &str) -> Result<u32, Refusal> {
    let id = args.or(name, 0u32)?;
    fib(engine)?.table_index(family, id).ok_or_else(|| {
        let error = FibError::NoTable { family, id };
        args.refuse(name, error.to_string())
    })
}

/// The FIB, to look at.
fn fib(engine: &Engine) -> Result<&Fib, Refusal> {
    engine.get::<Fib>().ok_or_else(busy)
}

fn busy() -> Refusal {
    Refusal::new("the forwarding table is being changed")
}
