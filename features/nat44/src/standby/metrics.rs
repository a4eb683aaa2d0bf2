//! What Prometheus reads of the link.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};
use quiver_standby::link::State;

use crate::standby::state::Standby;

const UP: Family = Family::gauge(
    "quiver_nat44_ha_up",
    "1 while the other router is there and is told what NAT44 makes",
);
const ACTIVE: Family = Family::gauge(
    "quiver_nat44_ha_active",
    "1 when packets came here last, 0 when they came to the other router",
);
const RECORDS: Family = Family::counter(
    "quiver_nat44_ha_records_total",
    "Records to the other router and from it, by what became of them",
);
const REFUSED: Family = Family::counter(
    "quiver_nat44_ha_refused_datagrams_total",
    "Datagrams that change nothing, by the reason",
);

/// Let Prometheus read it, while there is a link.
pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(standby) = engine.get::<Standby>() else { return };
        let Some(open) = &standby.open else { return };
        text.family(&UP);
        text.count(&Labels::default(), (open.link.state() == State::Up).into());
        if let Some(is_active) = standby.is_active() {
            text.family(&ACTIVE);
            text.count(&Labels::default(), is_active.into());
        }
        let counts = open.link.counts();
        text.family(&RECORDS);
        for (outcome, value) in [
            ("sent", counts.records_sent),
            ("acknowledged", counts.records_acknowledged),
            ("lost", counts.records_lost),
            ("received", counts.records_received),
            ("missed", standby.counts.missed),
            ("overflow", standby.lost()),
        ] {
            text.count(&Labels::new([("outcome", &outcome)]), value);
        }
        text.family(&REFUSED);
        for (reason, value) in [
            ("malformed", counts.malformed),
            ("unauthentic", counts.unauthentic),
            ("replayed", counts.replayed),
            ("disagreeing", counts.disagreeing),
        ] {
            text.count(&Labels::new([("reason", &reason)]), value);
        }
    });
}
