#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
pub mod config;
pub mod control;
pub mod database;
mod header;
mod input;
pub mod message;
mod request;
mod show;

use quiver_control::{Registry, order};
use quiver_core::graph::arrivals::arrivals;
use quiver_encap::tunnel;
use quiver_forwarding::fib::Family;
use quiver_wire::lisp::CONTROL_PORT;

pub use crate::config::State;
pub use crate::header::Lisp;

/// `lisp4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type LispEncap<O, F> = tunnel::TunnelEncap<Lisp, O, F>;
/// `lisp4-input`, `lisp6-input`.
pub type LispInput<O> = tunnel::TunnelInput<Lisp, O>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("lisp", "LISP: packets to endpoint identifiers by the locators behind them");
    if !tunnel::register_nodes::<Lisp>(registry) {
        return;
    }
    for spec in request::specs() {
        registry.graph.node(spec);
    }
    let (senders, mut arrived) = arrivals(2 * registry.graph.workers(), input::PACKETS_WAITING_MAX);
    for (family, space) in [(Family::Ip4, "udp4-port"), (Family::Ip6, "udp6-port")] {
        registry.graph.node(input::spec(family, senders.clone()));
        registry.graph.claim(space, CONTROL_PORT.into(), input::node(family));
    }
    commands::register(registry);
    show::register(registry);
    registry.running_config(order::INTERFACES, commands::write_instances);
    registry.running_config(order::FEATURES, commands::write_config);
    registry.on_start(move |engine| {
        config::start(engine);
        control::start(engine);
        engine.on_turn(move |engine| control::fetch(engine, &mut arrived));
    });
}
