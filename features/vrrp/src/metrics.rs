//! What Prometheus reads of virtual routers.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, Scope, collect_each, sampled};

use crate::config::Vrrp;
use crate::machine::State;
use crate::shared::VrKey;

const STATES: [State; 3] = [State::Initialize, State::Backup, State::Active];

pub(crate) fn start(engine: &mut Engine) {
    let state = sampled(
        Family::gauge("quiver_vrrp_state", "1 for the state of a virtual router"),
        |engine: &Engine, text, (slot, state): &(u16, State), labels: &Labels| {
            let now = engine.get::<Vrrp>().map(|vrrp| vrrp.shared.state(*slot));
            text.count(labels, u64::from(now == Some(*state)));
        },
    );
    collect_each(engine, states, vec![state]);
    let changes = sampled(
        Family::counter("quiver_vrrp_changes_total", "Changes of a virtual router's state"),
        |engine: &Engine, text, slot: &u16, labels: &Labels| {
            let of = |vrrp: &Vrrp| vrrp.shared.states().get(*slot).change;
            text.count(labels, engine.get::<Vrrp>().map_or(0, of).into());
        },
    );
    collect_each(engine, routers, vec![changes]);
}

fn routers(engine: &Engine, _: Scope) -> Vec<(u16, Labels)> {
    let all = engine.get::<Vrrp>().into_iter().flat_map(|vrrp| &vrrp.routers);
    all.map(|(key, entry)| {
        let (interface, family) = names(engine, *key);
        let labels =
            Labels::new([("interface", &interface), ("vr_id", &key.vr_id), ("family", &family)]);
        (entry.place.slot, labels)
    })
    .collect()
}

fn states(engine: &Engine, _: Scope) -> Vec<((u16, State), Labels)> {
    let mut keys = Vec::new();
    for (key, entry) in engine.get::<Vrrp>().into_iter().flat_map(|vrrp| &vrrp.routers) {
        let (interface, family) = names(engine, *key);
        for state in STATES {
            let labels = Labels::new([
                ("interface", &interface),
                ("vr_id", &key.vr_id),
                ("family", &family),
                ("state", &state.name()),
            ]);
            keys.push(((entry.place.slot, state), labels));
        }
    }
    keys
}

fn names(engine: &Engine, key: VrKey) -> (String, &'static str) {
    (engine.interface_name(key.interface), if key.is_ip6 { "ip6" } else { "ip4" })
}
