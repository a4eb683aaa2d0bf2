//! What Prometheus reads: shapers, a bounded number of them, and all subscribers together.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};
use quiver_shaping::stats::Counted;

use crate::config::Shapers;

/// Shapers that have series of their own; the others are in `show shaper`.
const SERIES_MAX: usize = 256;

const RATE: Family = Family::gauge("quiver_shaper_rate_bits", "Bits a second of a shaper");
const PACKETS: Family = Family::counter(
    "quiver_shaper_packets_total",
    "Packets that a shaper has let pass, those of its children too",
);
const BYTES: Family = Family::counter(
    "quiver_shaper_bytes_total",
    "Bytes that a shaper has let pass, those of its children too",
);
const DROPPED: Family = Family::counter(
    "quiver_shaper_dropped_total",
    "Packets without a subscriber that a shaper has dropped",
);
const MARKED: Family = Family::counter(
    "quiver_shaper_marked_total",
    "Packets without a subscriber that a shaper has marked (ECN)",
);
const WAITING: Family = Family::gauge(
    "quiver_shaper_waiting_bytes",
    "Bytes of packets without a subscriber that wait in a shaper",
);
const SUBSCRIBERS: Family = Family::gauge("quiver_shaper_subscribers", "Subscribers");

/// Let Prometheus read it, while there are shapers.
pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(shapers) = engine.get::<Shapers>() else { return };
        if shapers.named.is_empty() {
            return;
        }
        let others = |node: Option<u32>| {
            node.map_or_else(Counted::default, |node| shapers.numbers.counted(node))
        };
        let all: Vec<_> = shapers
            .named
            .iter()
            .take(SERIES_MAX)
            .map(|(name, of)| {
                let sent = shapers.numbers.counted(of.node).sent;
                (Labels::new([("shaper", name)]), of.plan.rate_bps, sent, others(of.others))
            })
            .collect();
        text.family(&RATE);
        all.iter().for_each(|(of, rate, ..)| text.count(of, *rate));
        text.family(&PACKETS);
        all.iter().for_each(|(of, _, sent, _)| text.count(of, sent.0));
        text.family(&BYTES);
        all.iter().for_each(|(of, _, sent, _)| text.count(of, sent.1));
        text.family(&DROPPED);
        all.iter().for_each(|(of, _, _, counted)| text.count(of, counted.dropped));
        text.family(&MARKED);
        all.iter().for_each(|(of, _, _, counted)| text.count(of, counted.marked));
        text.family(&WAITING);
        all.iter().for_each(|(of, _, _, counted)| text.count(of, counted.waiting.0.into()));
        text.family(&SUBSCRIBERS);
        text.count(&Labels::default(), shapers.subscribers.known.len() as u64);
    });
}
