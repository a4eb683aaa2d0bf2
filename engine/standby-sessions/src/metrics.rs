//! What Prometheus reads of the link.

use quiver_core::Engine;
use quiver_metrics::{Labels, collect};

use crate::state::Standby;
use crate::translator::Translator;
use quiver_standby::link::State;

/// Let Prometheus read it, while there is a link.
pub(crate) fn start<T: Translator>(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let ([up, active], [records, refused]) = (&T::TEXTS.gauges, &T::TEXTS.counters);
        let Some(standby) = engine.get::<Standby<T>>() else { return };
        let Some(open) = &standby.open else { return };
        text.family(up);
        text.count(&Labels::default(), (open.link.state() == State::Up).into());
        if let Some(is_active) = standby.is_active() {
            text.family(active);
            text.count(&Labels::default(), is_active.into());
        }
        let counts = open.link.counts();
        text.family(records);
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
        text.family(refused);
        for (reason, value) in [
            ("malformed", counts.malformed),
            ("other-version", counts.other_version),
            ("unauthentic", counts.unauthentic),
            ("replayed", counts.replayed),
            ("disagreeing", counts.disagreeing),
        ] {
            text.count(&Labels::new([("reason", &reason)]), value);
        }
    });
}
