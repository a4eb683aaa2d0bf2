//! What packets meet at a local SID (RFC 8986 §4): one file for each family of behaviours, with its
//! command and its nodes, and beside them what they share.

pub(crate) mod adjacent;
pub(crate) mod description;
mod dt;
mod dt2;
mod dt2_sources;
mod dx;
mod dx2;
pub(crate) mod end;
mod end_bm;
pub(crate) mod end_x;
mod inner_frame;
pub(crate) mod inner_packet;
pub(crate) mod lookup_keys;
pub(crate) mod lookup_node;
pub(crate) mod next_nodes;
pub(crate) mod oam;
pub(crate) mod reasons;
pub(crate) mod segments;
pub(crate) mod sid_entry;
pub(crate) mod slow_path;
pub(crate) mod table_references;
mod vlan_tables;

use std::sync::Arc;

pub use dt::DecapsulateLookUp;
pub use dt2::DecapsulateToBridge;
pub use dx::DecapsulateCross;
pub use dx2::DecapsulateFrame;
pub use end::{Endpoint, NextSegment};
pub use end_x::CrossConnect;
use quiver_control::{Registry, order};
use quiver_forwarding::nodes;
use quiver_tables::CountedLines;

use crate::headend::binding;
use crate::local_sids::Kind;
use crate::{csid, mobile, proxy};

pub(crate) use dt::dt;
pub(crate) use dx::dx;
pub(crate) use dx2::dx2;
pub(crate) use end::end;
pub(crate) use end_x::end_x;

/// The nodes that routes to local SIDs lead to, and `ip6-local`: a packet that goes from one SID to
/// another of the same router has taken a hop, though it went over no link (RFC 8986 §4.1, S12).
pub(crate) const LOCAL_NODES: [&str; 22] = [
    nodes::ip6::LOCAL,
    end::NODE,
    end_x::NODE,
    dx::NODE,
    dt::NODE,
    dx2::NODE,
    dx2::NODE_V,
    dt2::NODE_U,
    dt2::NODE_M,
    csid::NODES[0],
    csid::NODES[1],
    csid::NODES[2],
    csid::NODES[3],
    binding::ENCAPS,
    binding::INSERT,
    proxy::NODES[0],
    proxy::NODES[1],
    proxy::NODES[2],
    mobile::LOCAL_NODES[0],
    mobile::LOCAL_NODES[1],
    mobile::LOCAL_NODES[2],
    mobile::LOCAL_NODES[3],
];

/// Register the nodes of RFC 8986's behaviours; returns what the command knows of them.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) -> Vec<Kind> {
    for spec in [end::spec, end_x::spec, dx::spec, dt::spec] {
        registry.graph.node(spec(lines));
    }
    oam::register(registry, &LOCAL_NODES[1..]);
    let views = vlan_tables::register(registry);
    registry.graph.node(dx2::spec::<false>(lines, &views));
    registry.graph.node(dx2::spec::<true>(lines, &views));
    let sources = dt2_sources::register(registry);
    registry.graph.node(dt2::spec::<false>(lines, &sources));
    registry.graph.node(dt2::spec::<true>(lines, &sources));
    registry.running_config(order::ROUTES, vlan_tables::write_config);
    [
        &end::KINDS[..],
        &end_x::KINDS,
        &end_bm::KINDS,
        &dx::KINDS,
        &dt::KINDS,
        &dx2::KINDS,
        &dt2::KINDS,
    ]
    .concat()
}
