//! What a liveness protocol says of neighbours: routes leave a neighbour that is down, what is for
//! the neighbour itself does not.

use std::net::IpAddr;

use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::adjacency::AdjacencyKind;
use quiver_forwarding::fib::{
    Family, Fib, InterfaceInfo, Path, PathState, Source, Target, Unusable,
};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;

use crate::stand::{self, NODES, PORT};

const OTHER: InterfaceId = InterfaceId(2);

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// 10.0.0.1/24 on the port and 10.0.2.1/24 on the other one; 10.0.0.2 and 10.0.2.2 are known.
fn router() -> Fib {
    let mut fib = stand::router(24);
    let info = InterfaceInfo {
        id: OTHER,
        output: NodeId(102),
        mac: Some(MacAddress([2, 0, 0, 0, 0, 2])),
        ..fib.interface(PORT).expect("the port").clone()
    };
    fib.set_interface(info).expect("interface");
    fib.add_address(OTHER, ip("10.0.2.1"), 24).expect("address");
    for (id, address) in [(PORT, "10.0.0.2"), (OTHER, "10.0.2.2")] {
        fib.learn_neighbour(id, ip(address), MacAddress([2, 9, 0, 0, 0, 9]), 0).expect("learned");
    }
    fib
}

fn add(fib: &mut Fib, prefix: &str, paths: &[Path]) {
    let (address, length) = prefix.split_once('/').expect("a prefix");
    let prefix = IpPrefix::new(ip(address), length.parse().expect("a length"));
    fib.add_route(0, prefix, Source::Static, paths).expect("a route");
}

fn hops(fib: &Fib, address: &str) -> Vec<Hop> {
    fib.best_route(0, ip(address)).expect("a route").hops.iter().map(|(hop, _)| *hop).collect()
}

fn interfaces(fib: &Fib, address: &str) -> Vec<InterfaceId> {
    hops(fib, address).iter().map(|hop| fib.adjacencies().get(hop.index).tx).collect()
}

#[test]
fn routes_leave_a_neighbour_that_is_down_and_come_back() {
    let mut fib = router();
    let both = [Path::via(ip("10.0.0.2"), Some(PORT)), Path::via(ip("10.0.2.2"), Some(OTHER))];
    add(&mut fib, "192.0.2.0/24", &both);
    add(&mut fib, "198.51.100.0/24", &[both[0], both[1].preference(1)]);
    add(&mut fib, "203.0.113.0/24", &[Path::via(ip("10.0.0.2"), None)]);
    let before: Vec<_> =
        ["192.0.2.1", "198.51.100.1", "203.0.113.1"].map(|to| hops(&fib, to)).to_vec();

    fib.set_neighbour_alive((Some(PORT), ip("10.0.0.2")), false);
    assert!(fib.is_neighbour_dead((Some(PORT), ip("10.0.0.2"))));
    assert_eq!(interfaces(&fib, "192.0.2.1"), [OTHER]);
    assert_eq!(interfaces(&fib, "198.51.100.1"), [OTHER], "the path of the next preference");
    let lost = hops(&fib, "203.0.113.1");
    assert_eq!((lost[0].next, lost[0].index), (NODES.ip4.drop, 0), "a next hop that is looked up");

    fib.set_neighbour_alive((Some(PORT), ip("10.0.0.2")), true);
    let after: Vec<_> =
        ["192.0.2.1", "198.51.100.1", "203.0.113.1"].map(|to| hops(&fib, to)).to_vec();
    assert_eq!(after, before);
}

#[test]
fn what_is_for_the_neighbour_itself_still_goes_to_it() {
    let mut fib = router();
    let before = hops(&fib, "10.0.0.2");
    fib.set_neighbour_alive((Some(PORT), ip("10.0.0.2")), false);
    assert_eq!(hops(&fib, "10.0.0.2"), before);
    assert_eq!(interfaces(&fib, "10.0.0.3"), [PORT], "others on the link");
    // a neighbour that is forgotten and heard again is still down
    fib.remove_neighbour(PORT, ip("10.0.0.2")).expect("forgotten");
    add(&mut fib, "192.0.2.0/24", &[Path::via(ip("10.0.0.2"), Some(PORT))]);
    assert_eq!(hops(&fib, "192.0.2.1")[0].next, NODES.ip4.drop);
    let mac = MacAddress([2, 9, 0, 0, 0, 9]);
    fib.learn_neighbour(PORT, ip("10.0.0.2"), mac, 0).expect("learned");
    assert_eq!(hops(&fib, "192.0.2.1")[0].next, NODES.ip4.drop);
    fib.set_neighbour_alive((Some(PORT), ip("10.0.0.2")), true);
    let hop = hops(&fib, "192.0.2.1")[0];
    assert_eq!(fib.adjacencies().get(hop.index).kind, AdjacencyKind::Complete);
}

#[test]
fn a_path_through_a_neighbour_that_is_down_says_so() {
    let mut fib = router();
    add(&mut fib, "192.0.2.0/24", &[Path::via(ip("10.0.0.2"), Some(PORT))]);
    fib.set_neighbour_alive((Some(PORT), ip("10.0.0.2")), false);
    let group = fib.best_route(0, ip("192.0.2.1")).expect("a route").group;
    let (_, state) = fib.path_states(group)[0];
    assert_eq!(state, PathState::Unusable(Unusable::NeighbourDown(PORT, ip("10.0.0.2"))));
}

#[test]
fn ipv4_by_an_ipv6_next_hop_that_is_down_moves_too() {
    let mut fib = router();
    fib.add_address(PORT, ip("2001:db8::1"), 64).expect("address");
    let paths = [Path::via(ip("2001:db8::2"), Some(PORT)), Path::via(ip("10.0.2.2"), Some(OTHER))];
    add(&mut fib, "192.0.2.0/24", &paths);
    assert_eq!(interfaces(&fib, "192.0.2.1").len(), 2);
    fib.set_neighbour_alive((Some(PORT), ip("2001:db8::2")), false);
    assert_eq!(interfaces(&fib, "192.0.2.1"), [OTHER]);
}

#[test]
fn routes_leave_a_next_hop_of_several_hops_but_not_the_packets_that_watch_it() {
    let mut fib = router();
    add(&mut fib, "10.9.0.0/24", &[Path::via(ip("10.0.0.2"), Some(PORT))]);
    add(&mut fib, "192.0.2.0/24", &[Path::via(ip("10.9.0.9"), None)]);
    add(
        &mut fib,
        "198.51.100.0/24",
        &[Path::via(ip("10.9.0.9"), None), Path::via(ip("10.0.2.2"), Some(OTHER)).preference(1)],
    );
    let watching = Target::Through { next_hop: ip("10.9.0.9"), table: Some(0), only: None };
    let watching = fib.hold_paths(Family::Ip4, 0, &[Path::new(watching)]).expect("a group");
    let (changes, state) = (fib.liveness_changes(), fib.path_states(watching));
    let before = hops(&fib, "192.0.2.1");

    fib.set_neighbour_alive((None, ip("10.9.0.9")), false);
    assert_eq!(hops(&fib, "192.0.2.1")[0].next, NODES.ip4.drop);
    assert_eq!(interfaces(&fib, "198.51.100.1"), [OTHER]);
    assert_eq!(interfaces(&fib, "10.9.0.9"), [PORT], "for itself");
    assert_eq!(fib.path_states(watching), state);
    let group = fib.best_route(0, ip("192.0.2.1")).expect("a route").group;
    let down = PathState::Unusable(Unusable::NextHopDown(ip("10.9.0.9")));
    assert_eq!(fib.path_states(group)[0].1, down);
    assert_ne!(fib.liveness_changes(), changes);

    fib.set_neighbour_alive((None, ip("10.9.0.9")), true);
    assert_eq!(hops(&fib, "192.0.2.1"), before);
    assert_eq!(interfaces(&fib, "198.51.100.1"), [PORT]);
}
