//! The tables of a namespace: Linux's main table is the table of the first interface with a twin
//! there that is in no VRF of Linux. An interface that is moved to another table takes the routes
//! of Linux along.

use quiver_core::Engine;
use quiver_forwarding::fib::{Change, Family, Fib, RouteChange, Source};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::prefix::IpPrefix;

use crate::mirror::{Mirror, Namespace};
use crate::reader::Again;
use crate::segments;

/// The tables that Linux's main table is here; none when nothing has a twin there any more.
pub(crate) fn main_tables(
    engine: &Engine,
    mirror: &Mirror,
    namespace: &Namespace,
) -> Option<[u32; 2]> {
    let those = || mirror.pairs.iter().filter(|(_, pair)| pair.namespace == *namespace);
    let first = those().find(|(_, pair)| !pair.is_in_vrf).or_else(|| those().next());
    let calls = engine.get::<InterfaceAddresses>();
    first.map(|(id, _)| *id).zip(calls).map(|(id, calls)| (calls.tables)(engine, id))
}

/// Once a turn of the control loop: follow interfaces that were moved.
pub(crate) fn follow_all(engine: &mut Engine) {
    if engine.get::<Mirror>().is_none_or(|mirror| mirror.followed.is_empty()) {
        return;
    }
    engine.with(|engine, mirror: &mut Mirror| {
        let all: Vec<Namespace> = mirror.followed.keys().cloned().collect();
        for namespace in all {
            follow(engine, mirror, &namespace);
        }
    });
}

/// Learn the tables of a namespace. When they are others than before, its routes leave the old
/// ones, and are reported again. Returns whether anything there has a twin.
pub(crate) fn follow(engine: &mut Engine, mirror: &mut Mirror, namespace: &Namespace) -> bool {
    let Some(now) = main_tables(engine, mirror, namespace) else { return false };
    let Some(followed) = mirror.followed.get_mut(namespace) else { return true };
    let Some(before) = followed.main_tables.replace(now).filter(|before| *before != now) else {
        return true;
    };
    let owners: Vec<u32> = followed.feeds().map(|(_, feed)| feed.owner).collect();
    let others = mirror.followed.iter().filter(|(of, _)| *of != namespace);
    let others: Vec<[u32; 2]> = others.filter_map(|(_, other)| other.main_tables).collect();
    for (family, side) in [(Family::Ip4, 0), (Family::Ip6, 1)] {
        let is_shared = others.iter().any(|other| other[side] == before[side]);
        if before[side] != now[side] && !is_shared {
            empty(engine, family, before[side]);
        }
    }
    if before[1] != now[1] {
        segments::leave_table(engine, &mut mirror.sids, before[1], &owners);
    }
    mirror.report_again(namespace, Again::All);
    mirror.own.compare_all();
    true
}

/// Take Linux's routes from a table.
fn empty(engine: &mut Engine, family: Family, id: u32) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let Some(table) = fib.table_index(family, id) else { return };
    for source in [Source::Kernel, Source::Dynamic] {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for route in fib.routes_from(family, table, source) {
            let change = Change::RemoveIfThere;
            match route.prefix {
                IpPrefix::V4(prefix) => four.push(RouteChange { prefix, change }),
                IpPrefix::V6(prefix) => six.push(RouteChange { prefix, change }),
            }
        }
        // Taking away what is there cannot be refused.
        let _ = fib.change_ip4_routes(table, source, &[], &four);
        let _ = fib.change_ip6_routes(table, source, &[], &six);
    }
}
