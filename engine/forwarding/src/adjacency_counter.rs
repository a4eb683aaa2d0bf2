//! `ip4-adjacency-counter`, `ip6-adjacency-counter`: packets and bytes by adjacency. Routes lead
//! here while `adjacency counters` are enabled, and straight to the rewrite otherwise.

use std::sync::Arc;

use quiver_core::graph::node::{Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId};

use crate::adjacency::counts::{AdjacencyCounts, WorkerCounts};
use crate::ip::IpTables;
use crate::nodes;

struct AdjacencyCounter {
    tables: IpTables,
    counts: WorkerCounts,
    rewrite: NodeId,
}

impl Node for AdjacencyCounter {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let header = self.tables.adjacencies.of(packet).rewrite_len();
            self.counts.add(packet.handed_over(), packet, header);
            Ok::<_, Never>(self.rewrite)
        });
    }
}

/// The declaration of one of the two.
pub fn spec(six: bool, tables: &IpTables, counts: &Arc<AdjacencyCounts>) -> NodeSpec {
    let (tables, counts) = (tables.clone(), counts.clone());
    let [name, rewrite] = match six {
        false => [nodes::ip4::ADJACENCY_COUNTER, nodes::ip4::REWRITE],
        true => [nodes::ip6::ADJACENCY_COUNTER, nodes::ip6::REWRITE],
    };
    NodeSpec::new(name, "Counts packets and bytes by adjacency", move |wiring| {
        Box::new(AdjacencyCounter {
            tables: tables.clone(),
            counts: counts.of(wiring.worker),
            rewrite: wiring.node(rewrite),
        })
    })
    .takes_offloads()
    .describe(move |record, names| {
        let words = if six { crate::ip6::describe } else { crate::ip4::describe };
        format!(
            "{}, by adjacency {}, to {}",
            words(record.bytes()),
            record.index,
            names.node(record.next)
        )
    })
}
