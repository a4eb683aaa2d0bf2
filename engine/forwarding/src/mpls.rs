//! What nodes outside of MPLS read of labelled packets and of adjacencies with labels.

use quiver_core::NodeId;
use quiver_core::graph::node::{DROP, Wiring};
use quiver_wire::Header;
use quiver_wire::mpls::MplsEntry;

use crate::adjacency::Adjacency;
use crate::fib::Link;
use crate::nodes;

/// The nodes that send packets by adjacencies with labels.
#[derive(Clone, Copy, Debug)]
pub struct LabelledRewrites {
    by_link: [NodeId; Link::ALL.len()],
    pop: NodeId,
}

impl LabelledRewrites {
    /// Those that are built in.
    pub fn new(wiring: &Wiring<'_>) -> LabelledRewrites {
        let node = |name| wiring.node_if_built(name).unwrap_or(DROP);
        let by_link = [
            nodes::mpls::IMPOSE_IP4,
            nodes::mpls::IMPOSE_IP6,
            nodes::mpls::IMPOSE_ETHERNET,
            nodes::mpls::OUTPUT,
            nodes::mpls::SWAP,
            nodes::mpls::SWAP,
        ];
        LabelledRewrites { by_link: by_link.map(node), pop: node(nodes::mpls::POP) }
    }

    /// The node for packets of an adjacency.
    pub fn of(&self, adjacency: &Adjacency) -> NodeId {
        let link = adjacency.link();
        if link == (Link::Label { is_bottom: true }) && adjacency.label_count() == 0 {
            return self.pop;
        }
        self.by_link.get(usize::from(link.number())).copied().unwrap_or(DROP)
    }
}

/// A label stack in words: `16/s ttl 64, 64 bytes`.
pub fn describe(bytes: &[u8]) -> String {
    let mut words = Vec::new();
    let mut rest = bytes;
    while let Some((entry, behind)) = MplsEntry::split(rest) {
        let bottom = if entry.is_bottom() { "/s" } else { "" };
        let (class, ttl) = (entry.traffic_class(), entry.ttl());
        words.push(format!("{}{bottom} tc {class} ttl {ttl}", entry.label()));
        rest = behind;
        if entry.is_bottom() || words.len() >= LABELS_DESCRIBED_MAX {
            break;
        }
    }
    format!("labels [{}]", words.join(" | "))
}

/// Labels of a trace's line at most.
const LABELS_DESCRIBED_MAX: usize = 8;
