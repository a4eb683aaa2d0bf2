//! Compressed SIDs (RFC 9800): End and its kin with the flavours NEXT-C-SID and REPLACE-C-SID.

mod behavior;
mod next;
mod node;
mod replace;
mod step;

use std::sync::Arc;

use quiver_control::Registry;
use quiver_tables::CountedLines;

use crate::local_sids::Kind;

pub(crate) use behavior::next;
pub use next::NextCsid;
pub use node::{Compressed, CompressedCross};
pub use replace::ReplaceCsid;
pub(crate) use replace::replaced;

use step::Flavor;

/// The nodes.
pub(crate) const NODES: [&str; 4] =
    [NextCsid::NODE, NextCsid::NODE_X, ReplaceCsid::NODE, ReplaceCsid::NODE_X];

/// Register the nodes; returns what the command knows of the behaviours.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) -> Vec<Kind> {
    registry.graph.node(node::spec::<NextCsid>(lines));
    registry.graph.node(node::spec_x::<NextCsid>(lines));
    registry.graph.node(node::spec::<ReplaceCsid>(lines));
    registry.graph.node(node::spec_x::<ReplaceCsid>(lines));
    behavior::KINDS.to_vec()
}
