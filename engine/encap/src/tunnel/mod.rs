//! Tunnels of every protocol: interfaces whose packets get an outer header. A protocol says how its
//! header is written and read, and gives the words of its commands ([`TunnelProtocol`]); the rest
//! stands here.

mod accepted;
mod behind_output;
mod commands;
pub mod config;
mod encap;
mod ends;
mod errors;
mod far_commands;
mod far_end_book;
mod far_ends;
mod frames;
mod input;
mod protocol;
mod reasons;
mod table;
mod teib;
mod udp;
mod udp_commands;

pub use accepted::{AcceptedWords, accept};
pub use commands::{CommandText, TunnelTexts, described, explained, tunnel_named, words};
pub use config::{
    INSTANCE_MAX, PeerView, Tunnel, TunnelConfig, TunnelError, Tunnels, UdpConfig, create,
    reconfigure, set_peer,
};
pub use encap::TunnelEncap;
pub use ends::{Ends, OuterEnds};
pub use errors::TunnelErrorDrop;
pub use far_commands::{FarEndCommands, FarEndTexts};
pub use far_ends::{FAR_ENDS_MAX, FLOOD_LIST_MAX, ManyEnds, ReplicateDrop};
pub use frames::{FrameEncap, FrameTarget, NumberedEnd, OneEnd};
pub use input::TunnelInput;
pub use protocol::{
    ETHERNET, EndWords, FarEndNodes, Nodes, Parsed, Payload, SESSIONS, Sent, Stack, TunnelCommands,
    TunnelProtocol, UdpCommands,
};
use quiver_control::Registry;
use quiver_core::graph::builder::GraphBuilder;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::memory::MemoryError;
use quiver_wire::IpProtocol;
pub use reasons::TunnelDrop;
pub use teib::{NextHop, TEIB_ENTRIES_MAX, Teib};
pub use udp::source_port;
pub use udp_commands::{GroupTexts, UdpTexts, UdpWords};

/// Register nodes and commands of a protocol, and keep its tunnels.
pub fn register<P: TunnelCommands>(registry: &mut Registry) {
    if register_nodes::<P>(registry) {
        commands::register::<P>(registry);
    }
}

/// Register nodes of a protocol in UDP and the commands that such protocols have, and keep its
/// tunnels.
pub fn register_in_udp<P: UdpCommands>(registry: &mut Registry) {
    if register_nodes::<P>(registry) {
        udp_commands::register::<P>(registry);
    }
}

/// Register the commands of ports with many far ends of a protocol in UDP, and the calls of control
/// planes that name those.
pub fn register_far_ends<P: FarEndCommands>(registry: &mut Registry) {
    far_commands::register::<P>(registry);
    registry.on_start(|engine| engine.insert(far_commands::calls::<P>()));
}

/// Register nodes of a protocol, and keep its tunnels. False where memory is missing.
pub fn register_nodes<P: TunnelProtocol>(registry: &mut Registry) -> bool {
    let tunnels = declare::<P>(&mut registry.graph);
    let Some(tunnels) = registry.require(tunnels) else { return false };
    registry.on_start(move |engine| config::start(engine, tunnels));
    true
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
        claim_stacks::<P>(graph);
    }
    if P::CARRIES_FRAMES {
        graph.node(frames::spec::<P, Ip4>(&entries, &tunnels));
        graph.node(frames::spec::<P, Ip6>(&entries, &tunnels));
    }
    if !P::NUMBERED_NODES[0].is_empty() {
        graph.node(frames::numbered_spec::<P, Ip4>(&entries, &tunnels));
        graph.node(frames::numbered_spec::<P, Ip6>(&entries, &tunnels));
    }
    if let Some(nodes) = P::FAR_ENDS {
        let tables = &tunnels.far_tables;
        graph.node(frames::far_spec::<P, Ip4>(&entries, &tunnels, nodes));
        graph.node(frames::far_spec::<P, Ip6>(&entries, &tunnels, nodes));
        for (flood, encap) in nodes.flood.into_iter().zip(nodes.encap) {
            graph.node(far_ends::spec([flood, encap], tables));
        }
    }
    if P::RECEIVES {
        graph.node(input::spec::<P, Ip4>(&table, arcs));
        graph.node(input::spec::<P, Ip6>(&table, arcs));
    }
    if P::TAKES_ERRORS {
        graph.node(errors::spec::<P, Ip4>(&table, &entries));
        graph.node(errors::spec::<P, Ip6>(&table, &entries));
    }
    if P::TAKES_DATAGRAM_ERRORS {
        graph.claim(Ip4::ERROR_CLAIMS, IpProtocol::UDP.0.into(), P::NODES.errors[0]);
        graph.claim(Ip6::ERROR_CLAIMS, IpProtocol::UDP.0.into(), P::NODES.errors[1]);
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

/// Claim the nodes whose index is a stacked adjacency: features that follow hops to interfaces read
/// these claims.
fn claim_stacks<P: TunnelProtocol>(graph: &mut GraphBuilder) {
    for (place, node) in P::NODES.encap.into_iter().flatten().enumerate() {
        let protocol = P::IP_PROTOCOLS.first().map_or(0, |protocol| u32::from(protocol.0));
        let number = protocol << 8 | u32::from(P::UDP_PORT.unwrap_or(0)) << 16 | place as u32;
        graph.claim("stacked-adjacency", number, node);
    }
}
