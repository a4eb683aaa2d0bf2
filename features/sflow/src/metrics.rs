//! What Prometheus reads of the agent.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};

use crate::agent::Agent;

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(agent) = engine.get::<Agent>() else { return };
        let lost = agent.records.counts().map(|(_, counts)| counts.lost).sum();
        let counts = agent.counts;
        for (name, help, value) in [
            (
                "quiver_sflow_flow_samples_total",
                "Packets sampled and exported by sFlow",
                counts.flow_samples,
            ),
            (
                "quiver_sflow_samples_lost_total",
                "Samples that came faster than the control thread took them",
                lost,
            ),
            (
                "quiver_sflow_interface_samples_total",
                "Counters of interfaces exported by sFlow",
                counts.counter_samples,
            ),
            (
                "quiver_sflow_drop_notifications_total",
                "Dropped packets that collectors were notified of by sFlow",
                agent.notifications.sent,
            ),
            (
                "quiver_sflow_drops_not_notified_total",
                "Dropped packets beyond the limit of notifications, or of a ring that was full",
                agent.notifications.missed(),
            ),
            ("quiver_sflow_datagrams_total", "sFlow datagrams made", counts.datagrams),
        ] {
            text.family(&Family::counter(name, help));
            text.count(&Labels::default(), value);
        }
    });
}
