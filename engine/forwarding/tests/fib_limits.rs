//! Tables at their limit: a clear refusal, nothing else changed, and deletion makes room again.

use quiver_forwarding::fib::{Change, Family, Fib, FibError, FibLimits, Path, RouteChange, Source};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::{Ip4Prefix, IpPrefix};
use stand::{PORT, router};

use crate::stand;

fn host(number: u32) -> IpPrefix {
    IpPrefix::V4(Ip4Prefix::host((20 << 24) + number))
}

fn via(number: u32) -> [Path; 1] {
    [Path::via([10, 0, (number >> 8) as u8, number as u8], Some(PORT))]
}

/// Everything that a refused change must leave as it was.
fn all(fib: &Fib) -> (Vec<String>, Vec<Vec<Hop>>, usize, usize, usize) {
    let routes =
        fib.routes(Family::Ip4, 0, None).map(|route| format!("{} {:?}", route.prefix, route.paths));
    let lookups = (0..300u32).map(|n| fib.ip4_tables().table(0).lookup((20 << 24) + n));
    let hops = lookups.map(|group| fib.groups().hops(group));
    let counts = (fib.path_lists(), fib.adjacency_views().count(), fib.route_count(Family::Ip4));
    (routes.collect(), hops.collect(), counts.0, counts.1, counts.2)
}

/// Routes with a next hop each are added until one is refused; then one makes room for one.
fn hits(mut fib: Fib, limits: FibLimits, fits: u32, is_it: fn(&FibError) -> bool) {
    fib.set_limits(limits);
    for number in 0..fits {
        fib.add_route(0, host(number), Source::Static, &via(2 + number)).expect("within the limit");
    }
    let before = all(&fib);
    let refused =
        fib.add_route(0, host(fits), Source::Static, &via(2 + fits)).expect_err("at the limit");
    assert!(is_it(&refused), "{refused}");
    assert_eq!(all(&fib), before, "one refused route");
    let two = [2, 3].map(|n| RouteChange {
        prefix: Ip4Prefix::host((21 << 24) + n),
        change: Change::Add(n - 2),
    });
    let sets = [via(2 + fits).to_vec(), via(3 + fits).to_vec()];
    let refused = fib.change_ip4_routes(0, Source::Static, &sets, &two).expect_err("at the limit");
    assert!(refused.at == 0 && is_it(&refused.error), "{}", refused.error);
    assert_eq!(all(&fib), before, "a refused series");
    fib.remove_route(0, host(0), Source::Static).expect("there");
    fib.collect();
    fib.add_route(0, host(fits), Source::Static, &via(2 + fits)).expect("there is room again");
    assert!(is_it(&fib.add_route(0, host(0), Source::Static, &via(2)).expect_err("full again")));
}

#[test]
fn more_lists_of_paths_than_the_limit_are_refused() {
    let fib = router(16);
    let limits = FibLimits { path_lists: fib.path_lists() + 20, ..FibLimits::default() };
    hits(fib, limits, 20, |error| matches!(error, FibError::PathListsFull(_)));
}

#[test]
fn more_adjacencies_than_the_limit_are_refused() {
    let fib = router(16);
    let limits =
        FibLimits { adjacencies: fib.adjacency_views().count() + 20, ..FibLimits::default() };
    hits(fib, limits, 20, |error| matches!(error, FibError::AdjacenciesFull(_)));
}

#[test]
fn more_routes_than_the_limit_are_refused() {
    let fib = router(16);
    let limits =
        FibLimits { ip4_routes: fib.route_count(Family::Ip4) + 20, ..FibLimits::default() };
    hits(fib, limits, 20, |error| matches!(error, FibError::RoutesFull { .. }));
}

#[test]
fn a_counted_range_that_does_not_fit_is_taken_back_whole() {
    let mut fib = router(16);
    fib.add_route(0, host(7), Source::Static, &via(9)).expect("room");
    let before = all(&fib);
    fib.set_limits(FibLimits { ip4_routes: 100_000, ..FibLimits::default() });
    let refused =
        fib.add_routes(0, host(0), 150_000, Source::Static, &via(2)).expect_err("too many");
    assert_eq!(
        refused.to_string(),
        "there are 100000 IPv4 routes already, in all tables; remove some, or raise the limit \
         (`show fib limits`)"
    );
    assert_eq!(all(&fib), before);
    fib.add_routes(0, host(0), 90_000, Source::Static, &via(2)).expect("these fit");
}

#[test]
fn the_weight_grows_with_the_routes_and_shrinks_when_they_go() {
    let mut fib = router(16);
    let before = fib.weight();
    fib.add_routes(0, host(0), 100_000, Source::Static, &via(2)).expect("room");
    let with = fib.weight();
    assert!(
        with.routes >= before.routes + 1_600_000 && with.routes < before.routes + 4_000_000,
        "{with:?}"
    );
    fib.remove_routes(0, host(0), 100_000, Source::Static).expect("there");
    fib.collect();
    assert!(fib.weight().routes <= before.routes + (1 << 17), "{:?}", fib.weight());
}

#[test]
fn what_routes_weigh_is_given_back_when_they_go() {
    const COUNT: u32 = 1_000_000;
    let mut fib = router(16);
    let empty = fib.weight();
    fib.add_routes(0, host(0), u64::from(COUNT), Source::Static, &via(2)).expect("room");
    let full = fib.weight();
    let entry_bytes = size_of::<u64>() + size_of::<u64>(); // a key and a route
    assert!(full.routes >= COUNT as usize * entry_bytes, "{full:?}");
    assert!(full.routes <= COUNT as usize * (entry_bytes + 4), "{full:?}");
    let gone =
        fib.remove_routes(0, host(0), u64::from(COUNT), Source::Static).expect("they are there");
    assert_eq!(gone, u64::from(COUNT));
    fib.collect();
    let after = fib.weight();
    assert!(after.routes <= empty.routes + (64 << 10), "{empty:?} {after:?}");
    // The first large page of each array stays.
    assert!(after.prefix_match <= empty.prefix_match + (8 << 20), "{empty:?} {after:?}");
    assert_eq!((after.groups, after.adjacencies), (empty.groups, empty.adjacencies));
}

#[test]
fn the_few_routes_that_stay_of_many_do_not_keep_the_memory_of_all() {
    const COUNT: u32 = 400_000;
    const KEPT: u32 = 16;
    let mut fib = router(16);
    fib.add_routes(0, host(0), u64::from(COUNT), Source::Static, &via(2)).expect("room");
    let full = fib.weight().routes;
    // Here and there, not in order: 7919 and the count have no common divisor.
    let gone: Vec<_> = (0..COUNT)
        .map(|n| (u64::from(n) * 7919 % u64::from(COUNT)) as u32)
        .filter(|number| number % KEPT != 0)
        .map(|number| RouteChange {
            prefix: Ip4Prefix::host((20 << 24) + number),
            change: Change::Remove,
        })
        .collect();
    for some in gone.chunks(1000) {
        fib.change_ip4_routes(0, Source::Static, &[], some).expect("they are there");
    }
    let left = fib.weight().routes;
    assert!(left <= full * 5 / KEPT as usize, "{full} bytes became {left}");
}
