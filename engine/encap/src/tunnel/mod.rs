//! Tunnels of every protocol: interfaces whose packets get an outer header. A protocol says how its
//! header is written and read, and gives the words of its commands ([`TunnelProtocol`]); the rest
//! stands here.

mod behind_output;
mod commands;
pub mod config;
mod encap;
mod ends;
mod errors;
mod frames;
mod input;
mod protocol;
mod reasons;
mod table;
mod teib;

pub use commands::{CommandText, TunnelTexts, described, explained, tunnel_named, words};
pub use config::{
    INSTANCE_MAX, PeerView, Tunnel, TunnelConfig, TunnelError, Tunnels, create, reconfigure,
};
pub use encap::TunnelEncap;
pub use ends::{Ends, OuterEnds};
pub use errors::TunnelErrorDrop;
pub use frames::FrameEncap;
pub use input::TunnelInput;
pub use protocol::{
    ETHERNET, EndWords, Nodes, Parsed, Payload, Sent, Stack, TunnelKey, TunnelProtocol,
};
use quiver_control::Registry;
use quiver_core::graph::builder::GraphBuilder;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::memory::MemoryError;
pub use reasons::TunnelDrop;
pub use teib::{NextHop, TEIB_ENTRIES_MAX, Teib};

/// Register nodes and commands of a protocol, and keep its tunnels.
pub fn register<P: TunnelProtocol>(registry: &mut Registry) {
    let tunnels = declare::<P>(&mut registry.graph);
    let Some(tunnels) = registry.require(tunnels) else { return };
    commands::register::<P>(registry);
    registry.on_start(move |engine| config::start(engine, tunnels));
}

/// Declare the nodes of a protocol, and make the tables that they read.
fn declare<P: TunnelProtocol>(graph: &mut GraphBuilder) -> Result<Tunnels<P>, MemoryError> {
    let tunnels = Tunnels::<P>::new(graph.workers(), graph.epochs())?;
    let (entries, table) = (tunnels.worker_entries(), tunnels.table());
    let arcs = [graph.arc("ip4-unicast"), graph.arc("ip6-unicast")];
    if P::CARRIES_PACKETS {
        graph.node(encap::spec::<P, Ip4, Ip4>(&entries));
        graph.node(encap::spec::<P, Ip4, Ip6>(&entries));
        graph.node(encap::spec::<P, Ip6, Ip4>(&entries));
        graph.node(encap::spec::<P, Ip6, Ip6>(&entries));
        graph.node(behind_output::spec::<P>(&entries));
    }
    if P::CARRIES_FRAMES {
        graph.node(frames::spec::<P, Ip4, false>(&entries, &tunnels));
        graph.node(frames::spec::<P, Ip6, false>(&entries, &tunnels));
    }
    if !P::NODES.encap_numbered[0].is_empty() {
        graph.node(frames::spec::<P, Ip4, true>(&entries, &tunnels));
        graph.node(frames::spec::<P, Ip6, true>(&entries, &tunnels));
    }
    graph.node(input::spec::<P, Ip4>(&table, arcs));
    graph.node(input::spec::<P, Ip6>(&table, arcs));
    graph.node(errors::spec::<P, Ip4>(&table, &entries));
    graph.node(errors::spec::<P, Ip6>(&table, &entries));
    // Who follows hops to interfaces asks for the nodes whose index is a stacked adjacency.
    let encap = P::NODES.encap.into_iter().flatten();
    for (place, node) in encap.filter(|_| P::CARRIES_PACKETS).enumerate() {
        let number =
            u32::from(P::IP_PROTOCOLS.first().map_or(0, |protocol| protocol.0)) << 8 | place as u32;
        graph.claim("stacked-adjacency", number, node);
    }
    for protocol in P::IP_PROTOCOLS {
        let number = protocol.0.into();
        graph.claim(Ip4::CLAIMS, number, P::NODES.input[0]);
        graph.claim(Ip6::CLAIMS, number, P::NODES.input[1]);
        graph.claim(Ip4::ERROR_CLAIMS, number, P::NODES.errors[0]);
        graph.claim(Ip6::ERROR_CLAIMS, number, P::NODES.errors[1]);
    }
    Ok(tunnels)
}
