//! SR proxies (draft-ietf-spring-sr-service-programming §6): a function that knows no segments
//! stands between the SID, which sends packets to it, and the interface by which they come back.
//!
//! One file for the way to the function, one for each kind of what comes back, and beside them what
//! they share.

mod behavior;
mod cached_header;
mod commands;
mod description;
mod flows;
mod from_function;
mod from_function_l2;
mod inner;
mod masquerade;
mod outer_header;
mod proxies;
mod reasons;
mod return_interfaces;
mod to_function;
mod transmit;
mod unmask;
mod without_segments;

use std::sync::Arc;

use quiver_control::Registry;
use quiver_core::graph::arc::{FeatureSpec, Phase};
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::CountedLines;

use crate::local_sids::Kind;
pub(crate) use proxies::Proxies;

pub use from_function::FromFunction;
pub use masquerade::Masquerade;
pub use to_function::ToFunction;
pub use unmask::Unmask;

/// The nodes of SIDs that are proxies.
pub(crate) const NODES: [&str; 3] = [to_function::STATIC, to_function::DYNAMIC, masquerade::NODE];

/// Register nodes, commands and what is kept of proxies; returns what `sr localsid` knows of them.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) -> Vec<Kind> {
    let proxies = Proxies::new(registry.graph.epochs(), registry.graph.workers());
    let backs = proxies.backs().clone();
    let (arc4, arc6) = (registry.graph.arc("ip4-unicast"), registry.graph.arc("ip6-unicast"));
    let graph = &mut registry.graph;
    graph.node(to_function::spec::<false>(lines, &backs));
    graph.node(to_function::spec::<true>(lines, &backs));
    graph.node(masquerade::spec(lines, &backs));
    graph.node(from_function::spec::<Ip4>(arc4, &backs));
    graph.node(from_function::spec::<Ip6>(arc6, &backs));
    graph.node(from_function_l2::spec(&backs));
    graph.node(unmask::spec(arc6, lines, &backs));
    for (arc, node, after) in [
        ("ip4-unicast", from_function::IP4, &[][..]),
        ("ip6-unicast", from_function::IP6, &[]),
        ("ip6-unicast", unmask::NODE, &[from_function::IP6]),
    ] {
        graph.feature(FeatureSpec { arc, node, phase: Phase::ServiceChain, after });
    }
    commands::register(registry);
    registry.on_start(move |engine| engine.insert(proxies));
    behavior::KINDS.to_vec()
}
