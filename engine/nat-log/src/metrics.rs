//! What Prometheus reads of the log.

use quiver_core::Engine;
use quiver_export::records::KindCounts;
use quiver_metrics::{Family, Labels, Text, collect};

use crate::state::NatLog;

const MADE: Family =
    Family::counter("quiver_nat_log_records_total", "Events of NAT that were logged");
const LOST: Family = Family::counter(
    "quiver_nat_log_records_lost_total",
    "Events of NAT that came faster than the control thread took them",
);

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        add(engine, text, &MADE, |counts| counts.made);
        add(engine, text, &LOST, |counts| counts.lost);
    });
}

fn add(engine: &Engine, text: &mut Text, family: &Family, value: fn(KindCounts) -> u64) {
    let Some(log) = engine.get::<NatLog>() else { return };
    text.family(family);
    for (event, counts) in log.records.counts() {
        text.count(&Labels::new([("event", &event)]), value(counts));
    }
}
