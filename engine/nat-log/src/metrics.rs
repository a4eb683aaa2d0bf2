//! What Prometheus reads of the log.

use quiver_core::Engine;
use quiver_export::records::KindCounts;
use quiver_metrics::{Family, Labels, collect};

use crate::state::NatLog;

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(log) = engine.get::<NatLog>() else { return };
        let families: [(Family, fn(KindCounts) -> u64); 2] = [
            (Family::counter("quiver_nat_log_records", "Events of NAT that were logged"), |own| {
                own.made
            }),
            (
                Family::counter(
                    "quiver_nat_log_records_lost",
                    "Events of NAT that came faster than the control thread took them",
                ),
                |own| own.lost,
            ),
        ];
        for (family, value) in families {
            text.family(&family);
            for (event, counts) in log.records.counts() {
                text.count(&Labels::new([("event", &event)]), value(counts));
            }
        }
    });
}
