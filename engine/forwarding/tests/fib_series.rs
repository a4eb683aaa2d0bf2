//! A series of changes is what its changes are, one after the other; a range is all or nothing.

use std::net::IpAddr;

use proptest::prelude::*;
use quiver_forwarding::fib::{
    Change, Family, Fib, FibError, Path, RangeAction, RouteChange, Source, Target,
};
use quiver_tables::prefix::{Ip4Prefix, IpPrefix};
use stand::{PORT, router};

use crate::stand;

fn via(last: u8) -> Path {
    Path::via([10, 0, 0, last], Some(PORT))
}

/// A next hop that other routes of these tests cover.
fn recursive(second: u8) -> Path {
    Path::via([20, second, 0, 9], None)
}

fn path_sets() -> Vec<Vec<Path>> {
    vec![
        vec![via(2)],
        vec![via(3), via(4)],
        vec![via(2).weight(3)],
        vec![recursive(0)],
        vec![recursive(1), via(2)],
        vec![Path::new(Target::Drop)],
        vec![Path::via([224, 0, 0, 1], None)], // refused
        Vec::new(),                            // refused
    ]
}

/// Routes of all sources with their paths, and what they come down to.
fn said(fib: &Fib) -> Vec<String> {
    let routes = fib.routes(Family::Ip4, 0, None).flat_map(|best| fib.route(0, best.prefix));
    let words = |hop: &quiver_forwarding::next_hop_group::Hop| {
        let adjacency = fib.adjacencies().get(hop.index);
        format!("{:?} {}", hop.next, adjacency.next_hop())
    };
    routes
        .map(|route| {
            let hops: Vec<_> =
                route.hops.iter().map(|(hop, weight)| (words(hop), *weight)).collect();
            format!("{} {:?} {:?} {hops:?}", route.prefix, route.source, route.paths)
        })
        .collect()
}

/// What packets meet, at the edges of everything.
fn answers(fib: &Fib) -> Vec<String> {
    let addresses = (0..=255u32).map(|n| 20 << 24 | (n & 3) << 16 | (n >> 2 & 3) << 8 | n >> 4);
    let hops =
        addresses.map(|address| fib.groups().hops(fib.ip4_tables().table(0).lookup(address)));
    hops.map(|hops| {
        let words = hops.iter().map(|hop| (hop.next, fib.adjacencies().get(hop.index).next_hop()));
        format!("{:?}", words.collect::<Vec<_>>())
    })
    .collect()
}

fn prefixes() -> impl Strategy<Value = Ip4Prefix> {
    let addresses = (0u32..4, 0u32..4, 0u32..16);
    let address = addresses.prop_map(|(b, c, d)| 20 << 24 | b << 16 | c << 8 | d);
    (address, prop::sample::select(vec![8u8, 15, 16, 22, 24, 30, 32]))
        .prop_map(|(address, len)| Ip4Prefix::new(address, len))
}

fn changes() -> impl Strategy<Value = Change> {
    let set = 0..path_sets().len() as u32;
    let good = 0..6u32;
    prop_oneof![
        8 => good.clone().prop_map(Change::Add),
        4 => good.clone().prop_map(Change::Replace),
        3 => good.prop_map(Change::RemovePaths),
        4 => Just(Change::Remove),
        2 => Just(Change::RemoveIfThere),
        1 => set.prop_map(Change::Add),
    ]
}

fn one_by_one(fib: &mut Fib, changes: &[RouteChange<u32>]) -> Result<(), (usize, String)> {
    let sets = path_sets();
    for (at, RouteChange { prefix, change }) in changes.iter().enumerate() {
        let (prefix, set) = (IpPrefix::V4(*prefix), |set: &u32| sets[*set as usize].as_slice());
        let done = match change {
            Change::Add(paths) => fib.add_route(0, prefix, Source::Static, set(paths)),
            Change::Replace(paths) => fib.replace_route(0, prefix, Source::Static, set(paths)),
            Change::RemovePaths(paths) => fib.remove_paths(0, prefix, Source::Static, set(paths)),
            Change::Remove => fib.remove_route(0, prefix, Source::Static),
            Change::RemoveIfThere => match fib.remove_route(0, prefix, Source::Static) {
                Err(FibError::NoRoute(_)) => Ok(()),
                done => done,
            },
        };
        done.map_err(|error| (at, error.to_string()))?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_series_equals_its_changes_one_after_the_other(
        before in prop::collection::vec((prefixes(), 0u32..6), 0..30),
        dynamic in prop::collection::vec(prefixes(), 0..10),
        changes in prop::collection::vec((prefixes(), changes()), 0..40),
    ) {
        let changes: Vec<_> =
            changes.into_iter().map(|(prefix, change)| RouteChange { prefix, change }).collect();
        let make = || {
            let mut fib = router(24);
            for (prefix, set) in &before {
                fib.add_route(
                    0,
                    IpPrefix::V4(*prefix),
                    Source::Static,
                    &path_sets()[*set as usize],
                )
                .expect("room");
            }
            for prefix in &dynamic {
                fib.add_route(0, IpPrefix::V4(*prefix), Source::Dynamic, &[via(9)]).expect("room");
            }
            fib
        };
        let (mut together, mut apart) = (make(), make());
        let done = together.change_ip4_routes(0, Source::Static, &path_sets(), &changes);
        let done = done.map_err(|refused| (refused.at, refused.error.to_string()));
        prop_assert_eq!(done, one_by_one(&mut apart, &changes));
        prop_assert_eq!(said(&together), said(&apart));
        prop_assert_eq!(answers(&together), answers(&apart));
        prop_assert_eq!(together.path_lists(), apart.path_lists());
    }

    #[test]
    fn a_range_that_is_undone_was_never_there(
        before in prop::collection::vec((0u32..300, 0u32..6), 0..60),
        action in 0usize..5, slices in 1u64..4, slice in 1u64..90,
    ) {
        let mut fib = router(24);
        for (number, set) in &before {
            let prefix = IpPrefix::V4(Ip4Prefix::host((20 << 24) + number));
            fib.add_route(0, prefix, Source::Static, &path_sets()[*set as usize]).expect("room");
        }
        let (routes, packets, lists) = (said(&fib), answers(&fib), fib.path_lists());
        let action = match action {
            0 => RangeAction::Remove,
            1 => RangeAction::RemovePaths(vec![via(2)]),
            set => RangeAction::Add(path_sets()[set].clone()),
        };
        let first = IpPrefix::new(IpAddr::from([20, 0, 0, 0]), 32);
        let mut range =
            fib.begin_range(0, first, 300, Source::Static, action).expect("it makes sense");
        for _ in 0..slices {
            if !matches!(fib.step_range(&mut range, slice), Ok(true)) {
                break;
            }
        }
        while fib.undo_range(&mut range, slice) {}
        prop_assert_eq!(said(&fib), routes);
        prop_assert_eq!(answers(&fib), packets);
        prop_assert_eq!(fib.path_lists(), lists);
    }
}
