//! Whether a number says more about the generator than about the forwarder, and why.

use crate::own_share::OwnShare;
use crate::report::{GeneratorBound, Limit, Report};
use quiver_tg_traffic::figures::scaled;

/// Say of a report what was measured before, and whether the generator was the limit.
pub fn classify(report: &mut Report, own: Option<&OwnShare>, is_flat_out: bool) {
    report.own_latency = own.and_then(|own| own.latency_at(report.offered_pps)).cloned();
    report.self_test = own.cloned();
    let Some(side) = report.limit else { return };
    let why = match side {
        Limit::Transmit if is_flat_out => {
            "the forwarder took nearly every burst: it may forward more than was offered".to_owned()
        }
        Limit::Transmit => {
            format!(
                "frames were offered at {}, slower than \
                requested",
                scaled(report.offered_pps, "pps")
            )
        }
        Limit::Receive => {
            "its receive ring was full while it ran, so that what was lost may have found no room \
             in it"
                .to_owned()
        }
    };
    report.generator_bound = Some(GeneratorBound {
        side,
        ceiling_pps: own.map(|own| own.loop_pps).filter(|pps| *pps > 0.0),
        why,
    });
}
