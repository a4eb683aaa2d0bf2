//! What Prometheus reads of bridge domains.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, Scope, Text, collect, collect_each, sampled};
use quiver_tables::mac::{DomainCounts, DomainIndex};

use crate::state::Bridges;

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(bridges) = engine.get::<Bridges>() else { return };
        for (family, count) in [
            (Family::gauge("quiver_macs", "MAC addresses"), bridges.macs.len()),
            (
                Family::gauge("quiver_macs_learned", "MAC addresses that were learned"),
                bridges.macs.learned(),
            ),
            (
                Family::gauge("quiver_macs_learned_max", "MAC addresses that may be learned"),
                bridges.macs.learn_limit(),
            ),
            (Family::gauge("quiver_bridge_domains", "Bridge domains"), bridges.domains().len()),
        ] {
            text.family(&family);
            text.count(&Labels::default(), count as u64);
        }
    });
    let count = |name, help, value: fn(DomainCounts) -> usize| {
        sampled(
            Family::gauge(name, help),
            move |engine: &Engine, text: &mut Text, index: &DomainIndex, labels: &Labels| {
                if let Some(bridges) = engine.get::<Bridges>() {
                    text.count(labels, value(bridges.macs.counts(*index)) as u64);
                }
            },
        )
    };
    let families = vec![
        count("quiver_bridge_macs", "MAC addresses of a bridge domain", |own| own.entries),
        count("quiver_bridge_macs_learned", "MAC addresses that a bridge domain learned", |own| {
            own.learned
        }),
        count(
            "quiver_bridge_macs_learned_max",
            "MAC addresses that a bridge domain may learn",
            |own| own.learn_limit,
        ),
    ];
    collect_each(engine, domains, families);
}

fn domains(engine: &Engine, _: Scope) -> Vec<(DomainIndex, Labels)> {
    let all = engine.get::<Bridges>().into_iter().flat_map(Bridges::domains);
    all.map(|(number, domain)| (domain.index, Labels::new([("domain", number)]))).collect()
}
