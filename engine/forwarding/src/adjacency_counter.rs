//! `ip4-adjacency-counter` and its siblings: packets and bytes by adjacency. Routes lead here while
//! `adjacency counters` are enabled, and straight to the rewrite otherwise.

use std::sync::Arc;

use quiver_core::graph::node::{Never, Node, NodeSpec, Wiring};
use quiver_core::{Context, Frame, NodeId};

use crate::adjacency::Adjacency;
use crate::adjacency::counts::{AdjacencyCounts, WorkerCounts};
use crate::fib::Family;
use crate::ip::IpTables;
use crate::mpls::LabelledRewrites;
use crate::nodes;

/// The packets of a node in front of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// IPv4 packets.
    Ip4 = 0,
    /// IPv6 packets.
    Ip6 = 1,
    /// Packets that have labels, or get some.
    Labelled = 2,
}

impl Payload {
    /// The family of IP packets.
    pub fn family(self) -> Option<Family> {
        match self {
            Payload::Ip4 => Some(Family::Ip4),
            Payload::Ip6 => Some(Family::Ip6),
            Payload::Labelled => None,
        }
    }

    /// Writes such packets in words, for traces.
    pub fn describe(self) -> fn(&[u8]) -> String {
        match self {
            Payload::Ip4 => crate::ip4::describe,
            Payload::Ip6 => crate::ip6::describe,
            Payload::Labelled => crate::mpls::describe,
        }
    }

    /// Where such packets go on.
    pub fn onward(self, wiring: &Wiring<'_>) -> Onward {
        match self {
            Payload::Ip4 => Onward::Rewrite(wiring.node(nodes::ip4::REWRITE)),
            Payload::Ip6 => Onward::Rewrite(wiring.node(nodes::ip6::REWRITE)),
            Payload::Labelled => Onward::Labelled(LabelledRewrites::new(wiring)),
        }
    }

    fn counter(self) -> &'static str {
        match self {
            Payload::Ip4 => nodes::ip4::ADJACENCY_COUNTER,
            Payload::Ip6 => nodes::ip6::ADJACENCY_COUNTER,
            Payload::Labelled => nodes::mpls::ADJACENCY_COUNTER,
        }
    }
}

/// The rewrites behind a node.
#[derive(Clone, Copy, Debug)]
pub enum Onward {
    /// One for all.
    Rewrite(NodeId),
    /// By the kind of packets of the adjacency.
    Labelled(LabelledRewrites),
}

impl Onward {
    /// The rewrite of an adjacency.
    #[inline]
    pub fn of(&self, adjacency: &Adjacency) -> NodeId {
        match self {
            Onward::Rewrite(node) => *node,
            Onward::Labelled(rewrites) => rewrites.of(adjacency),
        }
    }
}

struct AdjacencyCounter {
    tables: IpTables,
    counts: WorkerCounts,
    onward: Onward,
}

impl Node for AdjacencyCounter {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let adjacency = self.tables.adjacencies.of(packet);
            self.counts.add(packet.handed_over(), packet, adjacency.rewrite_len());
            Ok::<_, Never>(self.onward.of(adjacency))
        });
    }
}

/// The declaration of one of the three.
pub fn spec(payload: Payload, tables: &IpTables, counts: &Arc<AdjacencyCounts>) -> NodeSpec {
    let (tables, counts) = (tables.clone(), counts.clone());
    NodeSpec::new(payload.counter(), "Counts packets and bytes by adjacency", move |wiring| {
        Box::new(AdjacencyCounter {
            tables: tables.clone(),
            counts: counts.of(wiring.worker),
            onward: payload.onward(wiring),
        })
    })
    .takes_offloads()
    .describe(move |record, names| {
        let words = payload.describe();
        format!(
            "{}, by adjacency {}, to {}",
            words(record.bytes()),
            record.index,
            names.node(record.next)
        )
    })
}
