//! What Prometheus reads of the forwarding tables.

use quiver_core::Engine;
use quiver_forwarding::fib::{Family as IpFamily, Fib};
use quiver_metrics::{Family, Labels, Text, collect};

use crate::state::IpState;

const FAMILIES: [(&str, IpFamily); 2] = [("ip4", IpFamily::Ip4), ("ip6", IpFamily::Ip6)];

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, write);
}

fn write(engine: &Engine, text: &mut Text) {
    let Some(fib) = engine.get::<Fib>() else { return };
    let neighbours = fib.neighbours();
    by_family(text, Family::gauge("quiver_routes", "Routes, over all tables"), |family| {
        fib.route_count(family) as u64
    });
    by_family(text, Family::gauge("quiver_routes_max", "Routes that there may be"), |family| {
        fib.limits().routes(family) as u64
    });
    by_family(
        text,
        Family::gauge("quiver_neighbours_learned", "Neighbours that were learned"),
        |family| neighbours.dynamic(family == IpFamily::Ip6) as u64,
    );
    by_family(
        text,
        Family::counter(
            "quiver_neighbours_recycled_total",
            "Neighbours that gave way because the table was full",
        ),
        |family| neighbours.recycled(family == IpFamily::Ip6),
    );
    let mut one = |family: Family, value: u64| {
        text.family(&family);
        text.count(&Labels::default(), value);
    };
    one(Family::gauge("quiver_neighbours", "Neighbours of both families"), neighbours.len() as u64);
    let stores = fib.stores();
    one(
        Family::counter("quiver_route_stores_total", "Prefixes that were given other next hops"),
        stores.prefixes,
    );
    one(
        Family::counter(
            "quiver_next_hop_group_stores_total",
            "Next-hop groups that were given other next hops",
        ),
        stores.groups,
    );
    if let Some(state) = engine.get::<IpState>() {
        one(
            Family::gauge(
                "quiver_pending_packets",
                "Packets that wait for the layer 2 address of a neighbour",
            ),
            state.held.packets() as u64,
        );
    }
}

fn by_family(text: &mut Text, family: Family, value: impl Fn(IpFamily) -> u64) {
    text.family(&family);
    for (name, ip) in FAMILIES {
        text.count(&Labels::new([("family", &name)]), value(ip));
    }
}
