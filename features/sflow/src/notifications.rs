//! Packets that were not sent on, as the agent notifies collectors of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_core::Engine;
use quiver_core::graph::drop_reason::DropReason;
use quiver_export::records::Records;
use quiver_export::route::if_index;
use quiver_forwarding::fib::Family;
use quiver_forwarding::nodes;

use crate::agent::Agent;
use crate::datagram::{Discarded, SYMBOL_BYTES_MAX};
use crate::discard::{Discard, Discards, Why};
use crate::drop_codes;

/// Packets that a worker may be ahead of the control thread.
const RING_DISCARDS: usize = 1_024;
/// Bytes of a notification beside the packet's own, at most.
const DISCARDED_BYTES_MAX: usize = 80 + SYMBOL_BYTES_MAX;

/// The agent's part.
pub(crate) struct Notifications {
    pub discards: Arc<Discards>,
    pub records: Records<Discard>,
    /// Notifications made.
    pub sent: u64,
    /// Those of each source, which is the interface that packets came in by.
    sequences: BTreeMap<u32, u32>,
}

impl Notifications {
    pub fn new(workers: usize) -> Notifications {
        Notifications {
            discards: Arc::new(Discards::new(workers)),
            records: Records::default(),
            sent: 0,
            sequences: BTreeMap::new(),
        }
    }

    /// Make the rings of workers, once.
    pub fn open(&mut self) {
        let Notifications { discards, records, .. } = self;
        discards.open(|| records.open(RING_DISCARDS));
    }

    /// Packets that no collector is notified of: beyond the limit, or the ring was full.
    pub fn missed(&self) -> u64 {
        let lost: u64 = self.records.counts().map(|(_, counts)| counts.lost).sum();
        lost.wrapping_add(self.discards.suppressed())
    }

    fn next_of(&mut self, source: u32) -> u32 {
        let sequence = self.sequences.entry(source).or_default();
        *sequence = sequence.wrapping_add(1);
        *sequence
    }
}

/// The code of a reason, and the node and reason in words.
fn reason(engine: &Engine, why: Why) -> (u32, String) {
    match why {
        Why::Dropped(DropReason { node, number }) => {
            let info = engine.node_info(node);
            let text = info.and_then(|info| info.spec.reasons.get(usize::from(number)));
            let (node, reason) = (engine.node_name(node), text.map_or("unknown", |text| text.name));
            (drop_codes::of_drop(&node, reason), format!("{node}/{reason}"))
        }
        Why::Answered(family, kind, code) => {
            let node = match family {
                Family::Ip4 => nodes::ip4::ICMP_ERROR,
                Family::Ip6 => nodes::ip6::ICMP_ERROR,
            };
            (drop_codes::of_icmp(family, kind, code), format!("{node}/type-{kind}-code-{code}"))
        }
    }
}

impl Agent {
    /// Notify collectors of a packet that was not sent on.
    pub(crate) fn notify(&mut self, engine: &Engine, now_ns: u64, discard: &Discard) {
        let (reason, symbol) = reason(engine, discard.why);
        self.make_room(now_ns, DISCARDED_BYTES_MAX + discard.first.bytes().len());
        let source = if_index(discard.came_in);
        let own = &mut self.notifications;
        own.sent += 1;
        let (sequence, drops) = (own.next_of(source), own.missed() as u32);
        self.datagram.discarded(&Discarded {
            sequence,
            source,
            drops,
            input: source,
            output: if_index(discard.leaves_by),
            reason,
            kind: discard.first.kind(),
            frame_bytes: discard.first.frame_bytes,
            header: discard.first.bytes(),
            symbol: &symbol,
        });
    }
}
