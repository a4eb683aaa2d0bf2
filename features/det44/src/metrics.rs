//! What Prometheus reads of sessions.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};

use crate::census::counted;
use crate::config::Det44;

const SESSIONS: Family = Family::gauge(
    "quiver_det44_sessions",
    "Sessions of deterministic NAT in use, by the mapping; one outside address is counted anew \
     every 0.1 s",
);
const SESSIONS_MAX: Family = Family::gauge(
    "quiver_det44_sessions_max",
    "Sessions of deterministic NAT that there can be, by the mapping",
);

/// Let Prometheus read it, while DET44 is enabled.
pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(det) = engine.get::<Det44>().filter(|det| det.enabled.is_some()) else { return };
        let mappings = det.mappings.iter().map(|of| {
            (Labels::new([("inside", &of.inside), ("outside", &of.outside)]), &of.mapping)
        });
        text.family(&SESSIONS);
        for (labels, mapping) in mappings.clone() {
            text.count(&labels, counted(det, mapping.addresses()));
        }
        text.family(&SESSIONS_MAX);
        for (labels, mapping) in mappings {
            text.count(&labels, mapping.sessions_max() as u64);
        }
    });
}
