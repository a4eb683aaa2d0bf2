#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod drop;
mod flow;
mod handover;
mod icmp_error;
mod imposition;
mod input;
mod interfaces;
mod lookup;
mod lookup_in_table;
mod output;
mod policies;
mod pop;
mod pop_lookup;
mod push;
mod reasons;
mod receive;
mod stack;
mod state;
mod swap;
mod too_big;
mod tunnel;

use std::sync::Arc;

use quiver_control::Registry;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_wire::EtherType;

pub use crate::imposition::Impose;
pub use crate::input::MplsInput;
pub use crate::swap::Swap;

use crate::interfaces::MplsInterfaces;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("mpls", "MPLS: labels pushed, swapped and taken off");
    let interfaces = Arc::new(MplsInterfaces::new());
    let graph = &mut registry.graph;
    graph.share(interfaces.clone());
    graph.node(input::spec());
    graph.node(lookup::spec());
    graph.node(lookup_in_table::spec());
    graph.node(swap::spec());
    graph.node(output::spec());
    graph.node(imposition::spec::<Ip4>());
    graph.node(imposition::spec::<Ip6>());
    graph.node(imposition::spec_of_frames());
    graph.node(pop::spec());
    graph.node(pop_lookup::spec::<Ip4>());
    graph.node(pop_lookup::spec::<Ip6>());
    graph.node(receive::spec_of_packets());
    graph.node(receive::spec_of_frames());
    graph.node(drop::spec());
    graph.node(too_big::spec());
    graph.node(icmp_error::spec());
    graph.claim("ethertype", u32::from(EtherType::MPLS.0), input::NODE);
    state::register(registry, interfaces);
    commands::register(registry);
    tunnel::register(registry);
    policies::register(registry);
}
