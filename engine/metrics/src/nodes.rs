//! Families of nodes: what each did, and why it dropped packets.

use quiver_core::graph::counters::REASONS_PER_NODE_MAX;
use quiver_core::graph::node::Severity;
use quiver_core::{Engine, NodeId, WorkerId};

use crate::collect::{Scope, collect_each, sampled};
use crate::text::{Family, Labels};

/// A node on a worker.
type On = (NodeId, WorkerId);
/// A reason of a node, by its number.
type Reason = (NodeId, u16);

fn workers(engine: &Engine) -> impl Iterator<Item = WorkerId> + use<> {
    (0..engine.worker_count()).map(|worker| WorkerId(worker as u16))
}

pub(crate) fn start(engine: &mut Engine) {
    let vpp = vec![
        sampled(Family::vpp("nodes_calls", "Calls of a node"), |engine, text, key: &On, labels| {
            text.count(labels, engine.node_totals(key.1, key.0).calls);
        }),
        sampled(
            Family::vpp("nodes_vectors", "Packets that a node was given"),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).vectors);
            },
        ),
        sampled(
            Family::vpp("nodes_clocks", "Clocks of the time stamp counter that a node took"),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).clocks);
            },
        ),
    ];
    collect_each(engine, |engine, scope| on_workers(engine, scope, true), vpp);
    let own = vec![
        sampled(
            Family::counter("quiver_node_calls_total", "Calls of a node"),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).calls);
            },
        ),
        sampled(
            Family::counter("quiver_node_packets_total", "Packets that a node was given"),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).vectors);
            },
        ),
        sampled(
            Family::counter(
                "quiver_node_clocks_total",
                "Clocks of the time stamp counter that a node took",
            ),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).clocks);
            },
        ),
        sampled(
            Family::counter(
                "quiver_node_block_driver_calls_total",
                "Calls of a node in passes of the block driver",
            ),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).fused);
            },
        ),
        sampled(
            Family::gauge("quiver_node_clocks_max", "Clocks of the longest call since the start"),
            |engine, text, key: &On, labels| {
                text.count(labels, engine.node_totals(key.1, key.0).max_clocks);
            },
        ),
    ];
    collect_each(engine, |engine, scope| on_workers(engine, scope, false), own);
    let err = Family::vpp("err", "Reasons and events of a node, all workers together");
    let err = sampled(err, |engine, text, key: &Reason, labels| {
        text.count(labels, engine.reason_count(key.0, key.1));
    });
    collect_each(engine, |engine, scope| reasons(engine, scope, "error", None), vec![err]);
    for (severity, family, label) in [
        (
            Severity::Error,
            Family::counter("quiver_drops_total", "Packets dropped, by node and reason"),
            "reason",
        ),
        (
            Severity::Info,
            Family::counter("quiver_events_total", "What nodes counted that is no drop"),
            "event",
        ),
    ] {
        let count = sampled(family, |engine: &Engine, text, key: &Reason, labels: &Labels| {
            text.count(labels, engine.reason_count(key.0, key.1));
        });
        let keys = move |engine: &Engine, scope| reasons(engine, scope, label, Some(severity));
        collect_each(engine, keys, vec![count]);
    }
}

/// Nodes that ran, or all, with VPP's labels or ours.
fn on_workers(engine: &Engine, scope: Scope, is_vpp: bool) -> Vec<(On, Labels)> {
    let mut keys = Vec::new();
    for worker in workers(engine) {
        let Some(counters) = engine.worker_counters(worker) else { continue };
        for (id, node) in engine.all_nodes() {
            if !scope.all_stats && counters.node(id).calls.get() == 0 {
                continue;
            }
            let name = &node.spec.name;
            let labels = match is_vpp {
                true => {
                    Labels::new([("node", name), ("index", &id.0), ("thread", &(worker.0 + 1))])
                }
                false => Labels::new([("node", name), ("worker", &worker.0)]),
            };
            keys.push(((id, worker), labels));
        }
    }
    keys
}

/// Reasons that were given, or all, of one severity or of both.
fn reasons(
    engine: &Engine,
    scope: Scope,
    label: &str,
    only: Option<Severity>,
) -> Vec<(Reason, Labels)> {
    let mut keys = Vec::new();
    for (id, node) in engine.all_nodes() {
        let declared = node.spec.reasons.iter().take(REASONS_PER_NODE_MAX);
        for (number, reason) in declared.enumerate() {
            let number = number as u16;
            let is_given = || engine.all_counters().any(|all| all.reason(id, number).get() > 0);
            if only.is_none_or(|only| only == reason.severity) && (scope.all_stats || is_given()) {
                let labels = Labels::new([("node", &node.spec.name), (label, &reason.name)]);
                keys.push(((id, number), labels));
            }
        }
    }
    keys
}
