//! Whether a number says more about the generator than about the forwarder, and why.

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::{Limit, Report};
use crate::self_test::OwnShare;
use crate::table::scaled;

/// A result that the generator limited.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GeneratorBound {
    /// Which side of it was at its end.
    pub side: Limit,
    /// What it sends and receives at most with this profile on this host, frames a second, all ports
    /// together, when that was measured.
    pub ceiling_pps: Option<f64>,
    /// In words.
    pub why: String,
}

/// Say of a report what was measured before, and whether the generator was the limit.
pub fn judge(report: &mut Report, own: Option<&OwnShare>, is_flat_out: bool) {
    report.own_latency = own.and_then(|own| own.latency_at(report.offered_pps)).cloned();
    report.self_test = own.cloned();
    let Some(side) = report.limit else { return };
    let why = match side {
        Limit::Transmit if is_flat_out => {
            "the forwarder took nearly every burst: it may forward more than was offered".to_owned()
        }
        Limit::Transmit => {
            format!("frames were offered at {}, slower than asked for", scaled(report.offered_pps, "pps"))
        }
        Limit::Receive => {
            "its receive ring was full while it ran, so that what was lost may have found no room in it"
                .to_owned()
        }
    };
    report.generator_bound =
        Some(GeneratorBound { side, ceiling_pps: own.map(|own| own.loop_pps).filter(|pps| *pps > 0.0), why });
}
