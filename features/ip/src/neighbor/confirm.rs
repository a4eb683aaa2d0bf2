//! `ip4-confirm-neighbor`, `ip6-confirm-neighbor`: a packet goes to a neighbour that was not heard
//! from for some time. The control thread is told, and asks the neighbour in a moment (RFC 4861
//! §7.3.3); the packet goes on as if nothing were. Routes lead here only until the control thread
//! has heard, so that the plain path does not have to note who is used.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::{Recent, TokenBucket, key};
use quiver_core::{Context, Frame};
use quiver_forwarding::adjacency::counts::{AdjacencyCounts, WorkerCounts};
use quiver_forwarding::adjacency_counter::{Onward, Payload};
use quiver_forwarding::handover::AdjacencyIndex;
use quiver_forwarding::ip::IpTables;

use crate::notifications::Notification;

/// The control thread is told of one neighbour at most so often by a worker.
const NOTIFY_INTERVAL_NS: u64 = 100_000_000;
/// It is told of all together at most so often by a worker.
const TELLS_PER_SECOND: u64 = 10_000;
/// It may be told of so many at once.
const TELLS_BURST: u64 = 2048;

quiver_core::reasons! {
    /// What these nodes count.
    pub enum Confirm {
        /// Told.
        Told = info "told", "neighbours that are used told to the control thread, to be asked";
    }
}

struct ConfirmNeighbour {
    tables: IpTables,
    /// Packets of an adjacency, while they are counted.
    counts: Arc<AdjacencyCounts>,
    own_counts: WorkerCounts,
    onward: Onward,
    recent: Recent,
    bucket: TokenBucket,
}

impl ConfirmNeighbour {
    fn notify(&mut self, cx: &mut Context<'_>, index: u32) {
        let adjacency = self.tables.adjacencies.get(index);
        let (tx, address) = (adjacency.tx, adjacency.next_hop());
        let bits = u128::from_be_bytes(*adjacency.next_hop_bytes());
        let about =
            key(&[u64::from(tx.0), bits as u64, (bits >> 64) as u64, u64::from(is_six(address))]);
        if self.recent.may(about, cx.now_ns) && self.bucket.take(cx.now_ns) {
            Notification::Used { address }.send(cx, tx);
            cx.count(Confirm::Told, 1);
        }
    }
}

fn is_six(address: IpAddr) -> bool {
    address.is_ipv6()
}

impl Node for ConfirmNeighbour {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let (mut last, counts) = (u32::MAX, self.counts.is_on());
        frame.route(|packet| {
            let adjacency = self.tables.adjacencies.of(packet);
            if counts {
                self.own_counts.add(packet.handed_over(), packet, adjacency.rewrite_len());
            }
            let next = self.onward.of(adjacency);
            let AdjacencyIndex(index) = packet.handed_over();
            if index != last {
                last = index;
                self.notify(cx, last);
            }
            Ok::<_, quiver_core::graph::node::Never>(next)
        });
    }
}

/// The declaration of one of the two.
pub(crate) fn spec(
    name: &str,
    payload: Payload,
    tables: &IpTables,
    counts: &Arc<AdjacencyCounts>,
) -> NodeSpec {
    let (tables, counts) = (tables.clone(), counts.clone());
    NodeSpec::new(
        name,
        "Has a neighbour confirmed that was not heard from for some time",
        move |wiring| {
            Box::new(ConfirmNeighbour {
                tables: tables.clone(),
                counts: counts.clone(),
                own_counts: counts.of(wiring.worker),
                onward: payload.onward(wiring),
                recent: Recent::new(NOTIFY_INTERVAL_NS),
                bucket: TokenBucket::new(TELLS_PER_SECOND, TELLS_BURST),
            })
        },
    )
    .takes_offloads()
    .reasons::<Confirm>()
    .describe(move |record, names| {
        let words = payload.describe();
        let next = names.node(record.next);
        format!(
            "{}, to a neighbour that is to be asked whether it is there, on to {next}",
            words(record.bytes())
        )
    })
}
