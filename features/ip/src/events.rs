//! What clients can subscribe to: neighbours, routes, and whether addresses of the router are its
//! own.

use std::net::IpAddr;

use quiver_control::{EventValue, Field, Topic, publish, publish_lost, wants};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, ROUTE_CHANGES_MAX, RoutePlace, RouteWatcher, TakenChanges};
use quiver_forwarding::neighbour::NeighbourChange;
use quiver_wire::MacAddress;

use crate::commands::{path_words, source_word};

/// Neighbours, of both families.
pub(crate) static NEIGHBOR: Topic = Topic {
    name: "neighbor",
    help: "a neighbour is known, is known by another MAC address, or is known no more",
    fields: &[
        Field { key: "event", help: "added, changed or removed" },
        Field { key: "interface", help: "the interface that it is on" },
        Field { key: "address", help: "its IPv4 or IPv6 address" },
        Field { key: "mac", help: "its MAC address; of one that was removed, the last" },
        Field { key: "static", help: "was it configured?" },
    ],
};

/// Routes of all sources but neighbours.
pub(crate) static ROUTE: Topic = Topic {
    name: "route",
    help: "a route is set or changed, or a prefix has none any more",
    fields: &[
        Field { key: "event", help: "set or removed" },
        Field { key: "table_id", help: "the table" },
        Field { key: "prefix", help: "the prefix" },
        Field { key: "source", help: "who says so, of the route that is used now" },
        Field { key: "paths", help: "its paths, in the words of `ip route add`" },
    ],
};

/// Routes that are published in one turn at most.
const ROUTES_PER_TURN: usize = 256;

/// Duplicate address detection (RFC 4862 §5.4, RFC 5227 §2.1) and later conflicts.
pub(crate) static DAD: Topic = Topic {
    name: "duplicate-address-detection",
    help: "an address of the router is its own, or somebody else has it too",
    fields: &[
        Field { key: "event", help: "preferred, duplicate or conflict" },
        Field { key: "interface", help: "the interface of the address" },
        Field { key: "address", help: "the address" },
        Field { key: "mac", help: "who else has it" },
    ],
};

/// Publish what has changed of neighbours since the last turn.
pub(crate) fn publish_neighbours(engine: &mut Engine) {
    let wanted = wants(engine, &NEIGHBOR);
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    fib.watch_neighbour_changes(wanted);
    if !wanted {
        return;
    }
    let (changes, lost) = fib.take_neighbour_changes();
    if lost > 0 {
        publish_lost(engine, &NEIGHBOR, lost);
    }
    for NeighbourChange { interface, address, before, now, is_static } in changes {
        let event = match (before, now) {
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        };
        let name = EventValue::Text(engine.interface_name(interface));
        let mac = now.or(before).map_or(EventValue::None, |mac| EventValue::Mac(mac.0));
        let values = [
            EventValue::Word(event),
            name,
            EventValue::Ip(address),
            mac,
            EventValue::Flag(is_static),
        ];
        publish(engine, &NEIGHBOR, values);
    }
}

/// Publish which routes have changed since the last turn, as they are now.
pub(crate) fn publish_routes(engine: &mut Engine) {
    let wanted = wants(engine, &ROUTE);
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    fib.watch_route_changes(RouteWatcher::All, wanted);
    if !wanted {
        return;
    }
    match fib.take_route_changes(RouteWatcher::All, ROUTES_PER_TURN) {
        TakenChanges::Any => publish_lost(engine, &ROUTE, ROUTE_CHANGES_MAX as u64),
        TakenChanges::These(places) => {
            places.into_iter().for_each(|place| publish_route(engine, place));
        }
    }
}

fn publish_route(engine: &Engine, place: RoutePlace) {
    let Some(fib) = engine.get::<Fib>() else { return };
    let table = fib.table_id(place.family(), place.table);
    let table = table.map_or(EventValue::None, |id| EventValue::Number(id.into()));
    let prefix = EventValue::Text(place.prefix.to_string());
    let known = fib.route(place.table, place.prefix);
    let values = match known.first() {
        None => [EventValue::Word("removed"), table, prefix, EventValue::None, EventValue::None],
        Some(route) => {
            let words = |path| path_words(engine, fib, place.prefix, path);
            let paths: Vec<String> = route.paths.iter().map(words).collect();
            let source = EventValue::Word(source_word(route.source));
            [EventValue::Word("set"), table, prefix, source, EventValue::Text(paths.join(", "))]
        }
    };
    publish(engine, &ROUTE, values);
}

/// Publish what is known of an address of the router.
pub(crate) fn publish_dad(
    engine: &Engine,
    event: &'static str,
    on: InterfaceId,
    address: IpAddr,
    other: Option<MacAddress>,
) {
    let name = EventValue::Text(engine.interface_name(on));
    let mac = other.map_or(EventValue::None, |mac| EventValue::Mac(mac.0));
    publish(engine, &DAD, [EventValue::Word(event), name, EventValue::Ip(address), mac]);
}
