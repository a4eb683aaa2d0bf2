//! The FIB as a whole: small networks, and what workers find after each change.

use std::net::IpAddr;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::{
    Family, Fib, FibError, InterfaceInfo, Path, ROUTE_CHANGES_MAX, RouteWatcher, Source,
    TakenChanges, Target,
};
use quiver_forwarding::neighbour::Learned;
use quiver_forwarding::{adjacency::AdjacencyKind, next_hop_group::Hop};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use stand::NODES;

use crate::stand;

const LEFT: InterfaceId = InterfaceId(1);
const RIGHT: InterfaceId = InterfaceId(2);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> IpPrefix {
    let (address, len) = text.split_once('/').expect("a prefix");
    IpPrefix::new(ip(address), len.parse().expect("a length"))
}

fn info(id: InterfaceId) -> InterfaceInfo {
    InterfaceInfo {
        id,
        output: NodeId(100 + id.0 as u16),
        mac: Some(MacAddress([2, 0, 0, 0, 0, id.0 as u8])),
        vlan_tags: Vec::new(),
        mtu_bytes: 1500,
        family_mtu_bytes: [None; 2],
        mpls_mtu_bytes: None,
        up: true,
        ip4_table: 0,
        ip6_table: 0,
    }
}

/// Two interfaces: 10.0.1.1/24 and 2001:db8:1::1/64 on the left, 10.0.2.1/24 on the right.
fn router() -> Fib {
    let mut fib = Fib::new(&Epochs::new(0), NODES).expect("memory");
    fib.set_interface(info(LEFT)).expect("left");
    fib.set_interface(info(RIGHT)).expect("right");
    fib.add_address(LEFT, ip("10.0.1.1"), 24).expect("left IPv4");
    fib.add_address(LEFT, ip("2001:db8:1::1"), 64).expect("left IPv6");
    fib.add_address(RIGHT, ip("10.0.2.1"), 24).expect("right IPv4");
    fib
}

fn hops(fib: &Fib, address: &str) -> Vec<Hop> {
    let group = match ip(address) {
        IpAddr::V4(address) => fib.ip4_tables().table(0).lookup(address.to_bits()),
        IpAddr::V6(address) => fib.ip6_tables().table(0).lookup(address.to_bits()),
    };
    fib.groups().hops(group)
}

fn hop(fib: &Fib, address: &str) -> Hop {
    let hops = hops(fib, address);
    assert_eq!(hops.len(), 1, "{address}: {hops:?}");
    hops[0]
}

fn next(fib: &Fib, address: &str) -> NodeId {
    hop(fib, address).next
}

/// The interface that packets to `address` leave by, and the first six bytes of the frame.
fn rewrite(fib: &Fib, address: &str) -> (InterfaceId, Vec<u8>) {
    let hop = hop(fib, address);
    assert!(
        [NODES.ip4.rewrite, NODES.ip6.rewrite].contains(&hop.next),
        "{address} goes to {:?}",
        hop.next
    );
    let adjacency = fib.adjacencies().get(hop.index);
    assert_eq!(adjacency.kind, AdjacencyKind::Complete);
    (adjacency.tx, adjacency.rewrite()[..6].to_vec())
}

fn add(fib: &mut Fib, route: &str, paths: &[Path]) {
    fib.add_route(0, prefix(route), Source::Static, paths).expect(route);
}

#[test]
fn an_address_gives_local_glean_and_drop_routes() {
    let fib = router();
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.local);
    assert_eq!(next(&fib, "10.0.1.7"), NODES.ip4.glean);
    assert_eq!(next(&fib, "10.0.1.0"), NODES.ip4.drop);
    assert_eq!(next(&fib, "10.0.1.255"), NODES.ip4_broadcast);
    assert_eq!(next(&fib, "8.8.8.8"), NODES.ip4.drop);
    assert_eq!(next(&fib, "224.0.0.5"), NODES.ip4.drop);
    assert_eq!(next(&fib, "2001:db8:1::1"), NODES.ip6.local);
    assert_eq!(next(&fib, "2001:db8:1::2"), NODES.ip6.glean);
    assert_eq!(next(&fib, "2001:db8:2::2"), NODES.ip6.drop);
    assert_eq!(next(&fib, "fe80::1"), NODES.ip6_link_local);
    let adjacency = hop(&fib, "10.0.1.7").index;
    assert_eq!(fib.adjacencies().get(adjacency).tx, LEFT);
}

#[test]
fn link_local_destinations_are_found_by_interface() {
    let mut fib = router();
    fib.add_address(LEFT, ip("fe80::5"), 64).expect("link-local");
    fib.enable_ip6(RIGHT).expect("IPv6");
    let table = |id| fib.link_local_table(id).expect("speaks IPv6");
    let find = |table, address: &str| {
        let IpAddr::V6(address) = ip(address) else { panic!("IPv6") };
        let group = fib.ip6_tables().table(table).lookup(address.to_bits());
        fib.groups().resolve(group, 0)
    };
    assert_eq!(find(table(LEFT), "fe80::5").next, NODES.ip6.local);
    assert_eq!(find(table(RIGHT), "fe80::5").next, NODES.ip6.glean);
    assert_eq!(fib.adjacencies().get(find(table(RIGHT), "fe80::7").index).tx, RIGHT);
}

#[test]
fn a_route_is_incomplete_until_its_neighbour_is_known() {
    let mut fib = router();
    add(&mut fib, "192.168.0.0/16", &[Path::via(ip("10.0.1.9"), Some(LEFT))]);
    let before = hop(&fib, "192.168.3.4");
    assert_eq!(before.next, NODES.ip4.incomplete);
    assert_eq!(fib.adjacencies().get(before.index).next_hop(), ip("10.0.1.9"));
    assert_eq!(fib.learn_neighbour(LEFT, ip("10.0.1.9"), PEER, 1).expect("room"), Learned::Changed);
    assert_eq!(rewrite(&fib, "192.168.3.4"), (LEFT, PEER.0.to_vec()));
    assert_eq!(rewrite(&fib, "10.0.1.9"), (LEFT, PEER.0.to_vec()));
    let full = fib.adjacencies().get(hop(&fib, "192.168.3.4").index);
    assert_eq!(full.rewrite(), [2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 0]);
    // Another MAC: another slot, for the route and the host alike.
    let (group, old) =
        (fib.route(0, prefix("192.168.0.0/16"))[0].group, hop(&fib, "192.168.3.4").index);
    let other = MacAddress([2, 0, 0, 0, 0, 0xaa]);
    fib.learn_neighbour(LEFT, ip("10.0.1.9"), other, 2).expect("room");
    assert_eq!(rewrite(&fib, "192.168.3.4").1, other.0);
    assert_eq!(rewrite(&fib, "10.0.1.9").1, other.0);
    assert_ne!(hop(&fib, "192.168.3.4").index, old);
    assert_eq!(
        fib.adjacencies().get(old).rewrite()[..6],
        PEER.0,
        "a late reader still sees the whole old one"
    );
    assert_eq!(fib.route(0, prefix("192.168.0.0/16"))[0].group, group, "the group is the same");
    fib.remove_neighbour(LEFT, ip("10.0.1.9")).expect("it is there");
    assert_eq!(next(&fib, "192.168.3.4"), NODES.ip4.incomplete);
    assert_eq!(next(&fib, "10.0.1.9"), NODES.ip4.glean);
}

#[test]
fn ip4_via_an_ip6_neighbour_has_the_ip4_ether_type() {
    let mut fib = router();
    add(&mut fib, "192.168.0.0/16", &[Path::via(ip("fe80::9"), Some(LEFT))]);
    fib.learn_neighbour(LEFT, ip("fe80::9"), PEER, 1).expect("room");
    let adjacency = *fib.adjacencies().get(hop(&fib, "192.168.0.1").index);
    assert_eq!(adjacency.rewrite()[12..], [8, 0]);
}

#[test]
fn a_neighbour_outside_the_subnets_draws_no_traffic() {
    let mut fib = router();
    fib.learn_neighbour(LEFT, ip("8.8.8.8"), PEER, 1).expect("room");
    assert_eq!(next(&fib, "8.8.8.8"), NODES.ip4.drop);
    fib.add_address(LEFT, ip("8.8.8.1"), 24).expect("address");
    assert_eq!(rewrite(&fib, "8.8.8.8").0, LEFT);
    fib.remove_address(LEFT, ip("8.8.8.1"), 24).expect("address");
    assert_eq!(next(&fib, "8.8.8.8"), NODES.ip4.drop);
}

#[test]
fn weights_become_buckets() {
    let mut fib = router();
    let paths = [
        Path::via(ip("10.0.1.9"), Some(LEFT)).weight(3),
        Path::via(ip("10.0.2.9"), Some(RIGHT)).weight(1),
    ];
    add(&mut fib, "192.168.0.0/16", &paths);
    let found = hops(&fib, "192.168.1.1");
    assert_eq!(found.len(), 4);
    let left = found.iter().filter(|hop| fib.adjacencies().get(hop.index).tx == LEFT).count();
    assert_eq!(left, 3);
}

#[test]
fn paths_accumulate_and_go_one_by_one() {
    let mut fib = router();
    let (a, b) = (Path::via(ip("10.0.1.9"), Some(LEFT)), Path::via(ip("10.0.2.9"), Some(RIGHT)));
    add(&mut fib, "192.168.0.0/16", &[a]);
    add(&mut fib, "192.168.0.0/16", &[b]);
    assert_eq!(hops(&fib, "192.168.1.1").len(), 2);
    fib.remove_paths(0, prefix("192.168.0.0/16"), Source::Static, &[a]).expect("path a");
    assert_eq!(hops(&fib, "192.168.1.1").len(), 1);
    let error =
        fib.remove_paths(0, prefix("192.168.0.0/16"), Source::Static, &[a]).expect_err("gone");
    assert!(matches!(error, FibError::NoSuchPath(_)));
    fib.remove_paths(0, prefix("192.168.0.0/16"), Source::Static, &[b]).expect("path b");
    assert!(fib.route(0, prefix("192.168.0.0/16")).is_empty());
}

#[test]
fn a_less_preferred_path_waits_until_the_other_interface_is_down() {
    let mut fib = router();
    let paths = [
        Path::via(ip("10.0.1.9"), Some(LEFT)),
        Path::via(ip("10.0.2.9"), Some(RIGHT)).preference(1),
    ];
    add(&mut fib, "0.0.0.0/0", &paths);
    let out = |fib: &Fib| fib.adjacencies().get(hop(fib, "8.8.8.8").index).tx;
    assert_eq!(out(&fib), LEFT);
    fib.set_interface(InterfaceInfo { up: false, ..info(LEFT) }).expect("down");
    assert_eq!(out(&fib), RIGHT);
    // Its subnet and its address are out of the table: the default route takes their packets.
    for address in ["10.0.1.7", "10.0.1.1"] {
        assert_eq!(out(&fib), fib.adjacencies().get(hop(&fib, address).index).tx, "{address}");
    }
    fib.set_interface(info(LEFT)).expect("up");
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.local);
    assert_eq!(out(&fib), LEFT);
    assert_eq!(next(&fib, "10.0.1.7"), NODES.ip4.glean);
}

#[test]
fn a_recursive_route_follows_its_covering_routes() {
    let mut fib = router();
    add(&mut fib, "192.168.0.0/16", &[Path::via(ip("172.16.0.1"), None)]);
    assert_eq!(next(&fib, "192.168.0.1"), NODES.ip4.drop);
    add(&mut fib, "172.16.0.0/12", &[Path::via(ip("10.0.1.9"), Some(LEFT))]);
    assert_eq!(fib.adjacencies().get(hop(&fib, "192.168.0.1").index).tx, LEFT);
    add(&mut fib, "172.16.0.0/24", &[Path::via(ip("10.0.2.9"), None)]);
    let adjacency = *fib.adjacencies().get(hop(&fib, "192.168.0.1").index);
    assert_eq!((adjacency.tx, adjacency.next_hop()), (RIGHT, ip("10.0.2.9")));
    fib.learn_neighbour(RIGHT, ip("10.0.2.9"), PEER, 1).expect("room");
    assert_eq!(rewrite(&fib, "192.168.0.1"), (RIGHT, PEER.0.to_vec()));
    fib.remove_route(0, prefix("172.16.0.0/24"), Source::Static).expect("route");
    assert_eq!(fib.adjacencies().get(hop(&fib, "192.168.0.1").index).tx, LEFT);
    fib.remove_route(0, prefix("172.16.0.0/12"), Source::Static).expect("route");
    assert_eq!(next(&fib, "192.168.0.1"), NODES.ip4.drop);
}

#[test]
fn a_recursive_next_hop_on_a_connected_subnet_is_asked_for_itself() {
    let mut fib = router();
    add(&mut fib, "192.168.0.0/16", &[Path::via(ip("10.0.1.77"), None)]);
    let hop = hop(&fib, "192.168.0.1");
    assert_eq!(hop.next, NODES.ip4.incomplete);
    assert_eq!(fib.adjacencies().get(hop.index).next_hop(), ip("10.0.1.77"));
}

#[test]
fn routes_that_resolve_through_each_other_drop() {
    let mut fib = router();
    add(&mut fib, "11.0.0.0/8", &[Path::via(ip("10.0.1.9"), Some(LEFT))]);
    add(&mut fib, "12.0.0.0/8", &[Path::via(ip("11.0.0.1"), None)]);
    assert_eq!(next(&fib, "12.0.0.1"), NODES.ip4.incomplete);
    fib.replace_route(0, prefix("11.0.0.0/8"), Source::Static, &[Path::via(ip("12.0.0.1"), None)])
        .expect("loop");
    assert_eq!(next(&fib, "11.0.0.1"), NODES.ip4.drop);
    assert_eq!(next(&fib, "12.0.0.1"), NODES.ip4.drop);
    add(&mut fib, "13.0.0.0/8", &[Path::via(ip("13.0.0.1"), None)]);
    assert_eq!(next(&fib, "13.0.0.1"), NODES.ip4.drop);
}

#[test]
fn the_better_source_wins_and_the_other_returns() {
    let mut fib = router();
    fib.learn_neighbour(LEFT, ip("10.0.1.9"), PEER, 1).expect("room");
    add(&mut fib, "10.0.1.9/32", &[Path::new(Target::Drop)]);
    assert_eq!(next(&fib, "10.0.1.9"), NODES.ip4.drop);
    fib.add_route(0, prefix("10.0.1.9/32"), Source::Dynamic, &[Path::new(Target::Punt)])
        .expect("dynamic");
    assert_eq!(fib.route(0, prefix("10.0.1.9/32")).len(), 3);
    fib.remove_route(0, prefix("10.0.1.9/32"), Source::Static).expect("route");
    assert_eq!(next(&fib, "10.0.1.9"), NODES.ip4.punt);
    fib.remove_route(0, prefix("10.0.1.9/32"), Source::Dynamic).expect("route");
    assert_eq!(next(&fib, "10.0.1.9"), NODES.ip4.rewrite);
    // A static route never beats the router's own address, and is still configuration.
    add(&mut fib, "10.0.1.1/32", &[Path::new(Target::Drop)]);
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.local);
    let configured: Vec<_> =
        fib.routes_from(Family::Ip4, 0, Source::Static).map(|route| route.prefix).collect();
    assert_eq!(configured, [prefix("10.0.1.1/32")]);
}

#[test]
fn tables_are_apart_and_lead_into_each_other() {
    let mut fib = router();
    let red = fib.add_table(Family::Ip4, 7).expect("table");
    let into = Path::new(Target::LookupIn { family: Family::Ip4, table: red });
    add(&mut fib, "172.16.0.0/12", &[into]);
    assert_eq!(hop(&fib, "172.16.0.1"), Hop { next: NODES.ip4.lookup, index: red });
    fib.add_route(red, prefix("0.0.0.0/0"), Source::Static, &[Path::new(Target::Punt)])
        .expect("default");
    let group = fib.ip4_tables().table(red).lookup(0x0808_0808);
    assert_eq!(fib.groups().resolve(group, 0).next, NODES.ip4.punt);
    assert_eq!(next(&fib, "8.8.8.8"), NODES.ip4.drop);
    assert!(matches!(fib.delete_table(Family::Ip4, 7), Err(FibError::TableInUse { .. })));
    fib.remove_route(0, prefix("172.16.0.0/12"), Source::Static).expect("route");
    fib.delete_table(Family::Ip4, 7).expect("unused");
    let group = fib.ip4_tables().table(red).lookup(0x0808_0808);
    assert_eq!(fib.groups().resolve(group, 0).next, NODES.ip4.drop);
}

#[test]
fn an_mtu_or_mac_change_renews_the_adjacencies() {
    let mut fib = router();
    fib.set_static_neighbour(LEFT, ip("10.0.1.9"), PEER, 0).expect("room");
    let own = MacAddress([2, 0, 0, 0, 7, 7]);
    fib.set_interface(InterfaceInfo { mtu_bytes: 9000, mac: Some(own), ..info(LEFT) })
        .expect("change");
    let adjacency = *fib.adjacencies().get(hop(&fib, "10.0.1.9").index);
    assert_eq!(adjacency.mtu_bytes, 9000);
    assert_eq!(adjacency.rewrite()[6..12], own.0);
    let glean = *fib.adjacencies().get(hop(&fib, "10.0.1.7").index);
    assert_eq!(glean.mtu_bytes, 9000);
}

#[test]
fn a_point_to_point_interface_needs_no_neighbour() {
    let mut fib = router();
    let tunnel = InterfaceId(3);
    fib.set_interface(InterfaceInfo { mac: None, ..info(tunnel) }).expect("tunnel");
    add(&mut fib, "192.168.0.0/16", &[Path::via(ip("1.2.3.4"), Some(tunnel))]);
    add(&mut fib, "2001:db8:9::/48", &[Path::new(Target::Attached(tunnel))]);
    for (address, node) in
        [("192.168.0.1", NODES.ip4.rewrite), ("2001:db8:9::1", NODES.ip6.rewrite)]
    {
        let hop = hop(&fib, address);
        assert_eq!(hop.next, node);
        assert_eq!(fib.adjacencies().get(hop.index).rewrite_len(), 0);
    }
}

#[test]
fn what_names_a_deleted_interface_goes_with_it() {
    let mut fib = router();
    let (a, b) = (Path::via(ip("10.0.1.9"), Some(LEFT)), Path::via(ip("10.0.2.9"), Some(RIGHT)));
    add(&mut fib, "192.168.0.0/16", &[a, b]);
    add(&mut fib, "192.169.0.0/16", &[a]);
    add(&mut fib, "192.170.0.0/16", &[Path::via(ip("10.0.1.9"), None)]);
    fib.learn_neighbour(LEFT, ip("10.0.1.9"), PEER, 0).expect("room");
    fib.remove_interface(LEFT).expect("left");
    assert_eq!(fib.adjacencies().get(hop(&fib, "192.168.0.1").index).tx, RIGHT);
    assert_eq!(next(&fib, "192.169.0.1"), NODES.ip4.drop);
    assert_eq!(next(&fib, "192.170.0.1"), NODES.ip4.drop);
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.drop);
    assert!(fib.neighbours().is_empty());
    assert!(fib.adjacency_views().all(|view| view.key.interface == RIGHT));
    fib.remove_interface(RIGHT).expect("right");
    assert_eq!(fib.adjacency_views().count(), 0);
    fib.remove_route(0, prefix("192.170.0.0/16"), Source::Static).expect("the recursive one stays");
}

#[test]
fn a_refused_change_says_why_and_changes_nothing() {
    let mut fib = router();
    let lists = fib.path_lists();
    let far = InterfaceId(77);
    let cases: [(&str, Path); 5] = [
        ("10.9.0.0/16", Path::via(ip("10.0.1.9"), Some(far))),
        ("10.9.0.0/16", Path::via(ip("224.0.0.1"), Some(LEFT))),
        ("10.9.0.0/16", Path::via(ip("10.0.1.9"), Some(LEFT)).weight(0)),
        ("2001:db8::/32", Path::via(ip("fe80::1"), None)),
        ("10.9.0.0/16", Path::new(Target::LookupIn { family: Family::Ip4, table: 0 })),
    ];
    for (route, path) in cases {
        let error = fib.add_route(0, prefix(route), Source::Static, &[path]).expect_err(route);
        assert!(!error.to_string().is_empty());
        assert!(fib.route(0, prefix(route)).is_empty());
    }
    let error = fib.add_route(
        0,
        prefix("10.9.0.0/16"),
        Source::Static,
        &[Path::via(ip("10.0.1.9"), Some(far))],
    );
    assert_eq!(
        error.expect_err("no interface").to_string(),
        "route 10.9.0.0/16: there is no interface number 77; create it first"
    );
    let error = fib.add_routes(
        0,
        prefix("255.255.255.0/24"),
        2,
        Source::Static,
        &[Path::new(Target::Drop)],
    );
    assert!(matches!(error, Err(FibError::CountTooLarge { fit: 1, .. })));
    assert!(matches!(
        fib.add_address(RIGHT, ip("10.0.1.3"), 24),
        Err(FibError::SubnetConnected(_))
    ));
    assert_eq!(fib.addresses(RIGHT).count(), 1);
    assert!(matches!(
        fib.set_interface(InterfaceInfo { ip4_table: 9, ..info(LEFT) }),
        Err(FibError::NoTableIndex { .. })
    ));
    assert_eq!(fib.path_lists(), lists);
}

#[test]
fn a_second_address_in_a_subnet_keeps_it_connected() {
    let mut fib = router();
    fib.add_address(LEFT, ip("10.0.1.2"), 24).expect("second");
    fib.remove_address(LEFT, ip("10.0.1.1"), 24).expect("first");
    assert_eq!(next(&fib, "10.0.1.2"), NODES.ip4.local);
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.glean);
    fib.remove_address(LEFT, ip("10.0.1.2"), 24).expect("second");
    assert_eq!(next(&fib, "10.0.1.1"), NODES.ip4.drop);
    assert_eq!(next(&fib, "10.0.1.0"), NODES.ip4.drop);
}

#[test]
fn consecutive_routes_share_one_group_and_go_together() {
    let mut fib = router();
    let path = [Path::via(ip("10.0.1.9"), Some(LEFT))];
    fib.add_routes(0, prefix("20.0.0.0/24"), 100_000, Source::Static, &path).expect("room");
    let group = fib.route(0, prefix("20.0.0.0/24"))[0].group;
    assert_eq!(fib.route(0, prefix("21.134.159.0/24"))[0].group, group);
    assert!(fib.route(0, prefix("21.134.160.0/24")).is_empty());
    assert_eq!(fib.count_by_len(Family::Ip4, 0)[24], 100_000 + 2);
    let view = fib.group_views().find(|view| view.group == group).expect("in use");
    assert_eq!(view.routes, 100_000);
    // One store moves them all.
    fib.learn_neighbour(LEFT, ip("10.0.1.9"), PEER, 0).expect("room");
    assert_eq!(rewrite(&fib, "21.134.159.1").0, LEFT);
    assert_eq!(
        fib.remove_routes(0, prefix("20.0.0.0/24"), 100_000, Source::Static).expect("room"),
        100_000
    );
    assert_eq!(next(&fib, "20.0.0.1"), NODES.ip4.drop);
    assert!(fib.group_views().all(|view| view.paths != path || view.routes == 1));
}

#[test]
fn all_that_was_made_is_given_back() {
    let mut fib = router();
    let before = (
        fib.path_lists(),
        fib.adjacency_views().count(),
        fib.usage(Family::Ip4),
        fib.usage(Family::Ip6),
    );
    for n in 1..200u8 {
        let next_hop = ip(&format!("10.0.1.{n}"));
        if n > 1 {
            fib.learn_neighbour(LEFT, next_hop, MacAddress([2, 0, 0, 0, 1, n]), 0).expect("room");
        }
        let route = prefix(&format!("100.{n}.0.0/16"));
        let paths = [
            Path::via(next_hop, None),
            Path::via(ip("10.0.2.9"), Some(RIGHT)).weight(u32::from(n)),
        ];
        fib.add_route(0, route, Source::Static, &paths).expect("room");
    }
    for n in 1..200u8 {
        fib.remove_route(0, prefix(&format!("100.{n}.0.0/16")), Source::Static).expect("there");
        if n > 1 {
            fib.remove_neighbour(LEFT, ip(&format!("10.0.1.{n}"))).expect("there");
        }
    }
    fib.collect();
    fib.collect();
    let after = (
        fib.path_lists(),
        fib.adjacency_views().count(),
        fib.usage(Family::Ip4),
        fib.usage(Family::Ip6),
    );
    assert_eq!(before.0, after.0);
    assert_eq!(before.1, after.1);
    assert_eq!((before.2.entries, before.2.nodes), (after.2.entries, after.2.nodes));
    assert_eq!((before.3.entries, before.3.nodes), (after.3.entries, after.3.nodes));
}

#[test]
fn a_route_to_a_feature_says_its_hop_without_a_group_and_moves_with_what_replaces_it() {
    let mut fib = router();
    let (node, other) = (NodeId(200), NodeId(201));
    let to = |next, index| Path::new(Target::Feature(Hop { next, index }));
    let group = |fib: &Fib, address: &str| match ip(address) {
        IpAddr::V4(address) => fib.ip4_tables().table(0).lookup(address.to_bits()),
        IpAddr::V6(address) => fib.ip6_tables().table(0).lookup(address.to_bits()),
    };
    let (sid, same) = (prefix("2001:db8:5::1/128"), prefix("198.51.100.0/24"));
    let found = fib.group_views().count();
    fib.replace_route(0, sid, Source::Feature, &[to(node, 77)]).expect("room");
    assert!(group(&fib, "2001:db8:5::1").is_resolved());
    assert_eq!(hop(&fib, "2001:db8:5::1"), Hop { next: node, index: 77 });
    assert_eq!(fib.group_views().count(), found + 1);
    // Another list with this hop, another family's, has a group; both are right.
    fib.replace_route(0, same, Source::Feature, &[to(node, 77)]).expect("room");
    assert!(!group(&fib, "198.51.100.9").is_resolved());
    assert_eq!(hop(&fib, "198.51.100.9"), Hop { next: node, index: 77 });
    // A hop that has no room in a number, and two paths.
    fib.replace_route(0, sid, Source::Feature, &[to(node, 1 << 20)]).expect("room");
    assert_eq!(hop(&fib, "2001:db8:5::1"), Hop { next: node, index: 1 << 20 });
    fib.replace_route(0, sid, Source::Feature, &[to(node, 1), to(other, 2)]).expect("room");
    assert_eq!(hops(&fib, "2001:db8:5::1").len(), 2);
    // What is recursive through it, and its end.
    fib.replace_route(0, sid, Source::Feature, &[to(other, 78)]).expect("room");
    assert_eq!(hop(&fib, "2001:db8:5::1"), Hop { next: other, index: 78 });
    let through = prefix("2001:db8:6::/48");
    fib.replace_route(0, through, Source::Static, &[Path::via(ip("2001:db8:5::1"), None)])
        .expect("room");
    assert_eq!(hop(&fib, "2001:db8:6::1"), Hop { next: other, index: 78 });
    fib.replace_route(0, sid, Source::Feature, &[to(node, 79)]).expect("room");
    assert_eq!(hop(&fib, "2001:db8:6::1"), Hop { next: node, index: 79 });
    for (prefix, source) in
        [(through, Source::Static), (sid, Source::Feature), (same, Source::Feature)]
    {
        fib.remove_route(0, prefix, source).expect("it is there");
    }
    assert_eq!(next(&fib, "2001:db8:5::1"), NODES.ip6.drop);
    assert_eq!(fib.group_views().count(), found);
}

#[test]
fn changes_of_configured_routes_are_kept_for_who_wants_them() {
    let mut fib = router();
    let via = |hop: &str| [Path::via(ip(hop), Some(LEFT))];
    let configured = RouteWatcher::Configured;
    let places = |fib: &mut Fib| match fib.take_route_changes(configured, usize::MAX) {
        TakenChanges::Any => None,
        TakenChanges::These(mut places) => {
            places.sort_by_key(|place| place.prefix);
            Some(places.iter().map(|place| place.prefix.to_string()).collect::<Vec<_>>())
        }
    };
    add(&mut fib, "192.0.2.0/24", &via("10.0.1.2"));
    assert_eq!(places(&mut fib), Some(vec![]), "nobody watched");
    fib.watch_route_changes(configured, true);
    assert_eq!(places(&mut fib), None, "what was there before may be anything");
    add(&mut fib, "192.0.3.0/24", &via("10.0.1.2"));
    add(&mut fib, "192.0.3.0/24", &via("10.0.1.3"));
    fib.remove_route(0, prefix("192.0.2.0/24"), Source::Static).expect("it is there");
    let of_kernel = prefix("192.0.9.0/24");
    fib.add_route(0, of_kernel, Source::Kernel, &via("10.0.1.2")).expect("a route");
    assert_eq!(places(&mut fib), Some(vec!["192.0.2.0/24".into(), "192.0.3.0/24".into()]));
    fib.replace_route(
        0,
        prefix("192.0.3.0/24"),
        Source::Static,
        &[via("10.0.1.2")[0], via("10.0.1.3")[0]],
    )
    .expect("the same");
    assert_eq!(places(&mut fib), Some(vec![]), "the same again is no change");
    let many = ROUTE_CHANGES_MAX as u64 + 1;
    fib.add_routes(0, prefix("16.0.0.0/32"), many, Source::Static, &via("10.0.1.2")).expect("room");
    assert_eq!(places(&mut fib), None, "more than is kept");
    let table = fib.add_table(Family::Ip4, 7).expect("a table");
    fib.add_route(table, prefix("192.0.2.0/24"), Source::Static, &via("10.0.1.2")).expect("room");
    let few = places(&mut fib).expect("few");
    assert!(few.contains(&"192.0.2.0/24".into()), "{few:?}");
    fib.delete_table(Family::Ip4, 7).expect("nothing names it");
    assert_eq!(places(&mut fib), None, "its routes went with it");
}

#[test]
fn changes_of_routes_of_all_sources_are_kept_for_who_wants_them() {
    let mut fib = router();
    let via = [Path::via(ip("10.0.1.2"), Some(LEFT))];
    let taken = |fib: &mut Fib, most| match fib.take_route_changes(RouteWatcher::All, most) {
        TakenChanges::Any => panic!("none is lost"),
        TakenChanges::These(places) => places.len(),
    };
    add(&mut fib, "192.0.2.0/24", &via);
    fib.watch_route_changes(RouteWatcher::All, true);
    assert_eq!(taken(&mut fib, 9), 0, "it hears of what comes");
    fib.add_route(0, prefix("192.0.9.0/24"), Source::Kernel, &via).expect("a route");
    fib.add_routes(0, prefix("16.0.0.0/32"), 10, Source::Static, &via).expect("room");
    assert_eq!([taken(&mut fib, 4), taken(&mut fib, 4), taken(&mut fib, 4)], [4, 4, 3]);
    fib.remove_route(0, prefix("192.0.9.0/24"), Source::Kernel).expect("it is there");
    assert_eq!(taken(&mut fib, 9), 1);
}
