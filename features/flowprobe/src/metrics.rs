//! What Prometheus reads of flow records.

use std::sync::atomic::Ordering;

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};

use crate::config::Flowprobe;

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(own) = engine.get::<Flowprobe>() else { return };
        let live =
            own.shared.workers.iter().map(|worker| worker.live.load(Ordering::Relaxed)).sum();
        text.family(&Family::gauge("quiver_flowprobe_flows", "Flows that live"));
        text.count(&Labels::default(), live);
        text.family(&Family::counter("quiver_flowprobe_records_total", "Flow records made"));
        for (reason, counts) in own.records.counts() {
            text.count(&Labels::new([("reason", &reason)]), counts.made);
        }
        text.family(&Family::counter(
            "quiver_flowprobe_records_lost_total",
            "Flow records that came faster than the control thread took them",
        ));
        text.count(&Labels::default(), own.lost());
    });
}
