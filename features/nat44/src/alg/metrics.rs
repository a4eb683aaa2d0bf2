//! What Prometheus reads of the helpers.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};

use crate::alg::{Count, Helper};
use crate::config::Nat44;

const EVENTS: Family = Family::counter(
    "quiver_nat44_helper_events_total",
    "What helpers of NAT44 have done, by the helper and the event",
);

/// Let Prometheus read it, while NAT44 is enabled.
pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(nat) = engine.get::<Nat44>().filter(|nat| nat.enabled.is_some()) else { return };
        text.family(&EVENTS);
        for helper in Helper::ALL {
            for (count, word) in Count::ALL {
                let labels = Labels::new([("helper", &helper.word()), ("event", &word)]);
                text.count(&labels, nat.shared.algs.counted(helper, count));
            }
        }
    });
}
