//! What packets meet at a local SID (RFC 8986 §4): one file for each family of behaviours, with its command and
//! its nodes, and beside them what they share.

mod closer;
mod end;
mod exposed;
mod reasons;
mod segments;
mod ways;
mod words;

use std::sync::Arc;

use quiver_control::Registry;
use quiver_tables::CountedLines;

use crate::local_sids::Kind;

pub use end::Endpoint;

/// The nodes that routes to local SIDs lead to, and `ip6-local`: a packet that goes from one SID to another of the
/// same router has taken a hop, though it went over no link (RFC 8986 §4.1, S12).
pub(crate) const LOCAL_NODES: [&str; 2] = ["ip6-local", end::NODE];

/// Register the nodes of RFC 8986's behaviours; returns what the command knows of them.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) -> Vec<Kind> {
    registry.graph.node(end::spec(lines));
    end::KINDS.to_vec()
}
