//! Next hops behind next hops: constraints, other tables, loops, why a path is not used, and how
//! little changes when a next hop that many routes share changes.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_core::NodeId;
use quiver_core::memory::epoch::Epochs;
use quiver_forwarding::fib::{
    Family, Fib, FibError, InterfaceInfo, Only, Path, PathState, Source, Target, Unusable,
};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use quiver_wire::flow::FlowFields;
use stand::NODES;

use crate::stand;

const LEFT: InterfaceId = InterfaceId(1);
const RIGHT: InterfaceId = InterfaceId(2);

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> IpPrefix {
    let (address, len) = text.split_once('/').expect("a prefix");
    IpPrefix::new(ip(address), len.parse().expect("a length"))
}

fn info(id: InterfaceId, up: bool) -> InterfaceInfo {
    InterfaceInfo {
        id,
        output: NodeId(100 + id.0 as u16),
        mac: Some(MacAddress([2, 0, 0, 0, 0, id.0 as u8])),
        vlan_tags: Vec::new(),
        mtu_bytes: 1500,
        family_mtu_bytes: [None; 2],
        mpls_mtu_bytes: None,
        up,
        ip4_table: 0,
        ip6_table: 0,
    }
}

/// 10.0.1.1/24 and 2001:db8:1::1/64 on the left, 10.0.2.1/24 and 2001:db8:2::1/64 on the right;
/// hosts 2 and 3 are known on each.
fn router() -> Fib {
    let mut fib = Fib::new(&Epochs::new(0), NODES).expect("memory");
    for (id, net) in [(LEFT, 1), (RIGHT, 2)] {
        fib.set_interface(info(id, true)).expect("interface");
        fib.add_address(id, ip(&format!("10.0.{net}.1")), 24).expect("IPv4");
        fib.add_address(id, ip(&format!("2001:db8:{net}::1")), 64).expect("IPv6");
        for host in [2, 3] {
            let mac = MacAddress([2, 0, 0, 0, net, host]);
            fib.learn_neighbour(id, ip(&format!("10.0.{net}.{host}")), mac, 0)
                .expect("IPv4 neighbour");
            fib.learn_neighbour(id, ip(&format!("2001:db8:{net}::{host}")), mac, 0)
                .expect("IPv6 neighbour");
        }
    }
    fib
}

fn add(fib: &mut Fib, route: &str, paths: &[Path]) {
    fib.add_route(0, prefix(route), Source::Static, paths)
        .unwrap_or_else(|error| panic!("{route}: {error}"));
}

fn via(next_hop: &str) -> Path {
    Path::via(ip(next_hop), None)
}

fn hops_in(fib: &Fib, table: u32, address: &str) -> Vec<Hop> {
    let group = match ip(address) {
        IpAddr::V4(address) => fib.ip4_tables().table(table).lookup(address.to_bits()),
        IpAddr::V6(address) => fib.ip6_tables().table(table).lookup(address.to_bits()),
    };
    fib.groups().hops(group)
}

/// The interface that packets to `address` leave by, if they do.
fn out(fib: &Fib, address: &str) -> Option<InterfaceId> {
    let hop = hops_in(fib, 0, address)[0];
    let sends = [NODES.ip4.rewrite, NODES.ip6.rewrite, NODES.ip4.incomplete, NODES.ip4.glean]
        .contains(&hop.next);
    sends.then(|| fib.adjacencies().get(hop.index).tx)
}

/// What the paths of the static route are doing.
fn states(fib: &Fib, route: &str) -> Vec<PathState> {
    let view = fib.route(0, prefix(route)).into_iter().find(|route| route.source == Source::Static);
    fib.path_states(view.expect("a static route").group)
        .into_iter()
        .map(|(_, state)| state)
        .collect()
}

#[test]
fn a_route_is_followed_through_eight_next_hops_and_no_further() {
    for (family, bits) in [("10.0.1.2", 32), ("2001:db8:1::2", 128)] {
        let mut fib = router();
        let at = |level: u32| match bits {
            32 => format!("50.0.0.{level}"),
            _ => format!("2001:db8:50::{level:x}"),
        };
        add(&mut fib, &format!("{}/{bits}", at(0)), &[via(family)]);
        for level in 1..12 {
            add(&mut fib, &format!("{}/{bits}", at(level)), &[via(&at(level - 1))]);
        }
        for level in 0..12 {
            let deep = level > 7;
            assert_eq!(out(&fib, &at(level)).is_none(), deep, "{} of {bits} bits", at(level));
            let state = states(&fib, &format!("{}/{bits}", at(level)))[0];
            assert_eq!(state == PathState::Unusable(Unusable::TooDeep), deep, "{state:?}");
        }
    }
}

#[test]
fn a_next_hop_that_must_be_a_host_route_does_not_fall_back_to_the_default_route() {
    for (next_hop, bits, default) in
        [("198.51.100.1", 32, "0.0.0.0/0"), ("2001:db8:f::1", 128, "::/0")]
    {
        let mut fib = router();
        let (neighbour, route) = match bits {
            32 => ("10.0.1.2", "203.0.113.0/24"),
            _ => ("2001:db8:1::2", "2001:db8:e::/48"),
        };
        add(&mut fib, default, &[via(neighbour)]);
        add(&mut fib, route, &[Path::resolved(ip(next_hop), None, Some(Only::Host))]);
        assert_eq!(states(&fib, route), [PathState::Unusable(Unusable::NotHost(ip(next_hop)))]);
        add(&mut fib, &format!("{next_hop}/{bits}"), &[via(neighbour)]);
        assert_eq!(states(&fib, route), [PathState::Used]);
        assert_eq!(out(&fib, route.split('/').next().expect("an address")), Some(LEFT));
        fib.remove_route(0, prefix(&format!("{next_hop}/{bits}")), Source::Static)
            .expect("it is there");
        assert_eq!(out(&fib, route.split('/').next().expect("an address")), None);
    }
}

#[test]
fn a_next_hop_that_must_be_attached_is_a_neighbour_or_nobody() {
    for (near, far, route) in [
        ("10.0.1.2", "198.51.100.1", "203.0.113.0/24"),
        ("2001:db8:1::2", "2001:db8:f::1", "2001:db8:e::/48"),
    ] {
        let mut fib = router();
        let host = if near.contains(':') { 128 } else { 32 };
        add(&mut fib, &format!("{far}/{host}"), &[via(near)]);
        add(&mut fib, route, &[Path::resolved(ip(far), None, Some(Only::Attached))]);
        assert_eq!(states(&fib, route), [PathState::Unusable(Unusable::NotAttached(ip(far)))]);
        add(&mut fib, route, &[Path::resolved(ip(near), None, Some(Only::Attached))]);
        assert_eq!(
            states(&fib, route).iter().filter(|state| **state == PathState::Used).count(),
            1
        );
        // Not known, but on the connected subnet: attached all the same.
        let unknown = if host == 32 { "10.0.2.77" } else { "2001:db8:2::77" };
        let one = if host == 32 { "203.0.113.9/32" } else { "2001:db8:e::9/128" };
        add(&mut fib, one, &[Path::resolved(ip(unknown), None, Some(Only::Attached))]);
        assert_eq!(states(&fib, one), [PathState::Used]);
    }
}

#[test]
fn a_next_hop_is_looked_up_in_the_table_that_is_named() {
    let mut fib = router();
    let ten = fib.add_table(Family::Ip4, 10).expect("a table");
    fib.add_route(
        ten,
        prefix("198.51.100.0/24"),
        Source::Static,
        &[Path::via(ip("10.0.2.2"), Some(RIGHT))],
    )
    .expect("a route of table 10");
    add(&mut fib, "198.51.100.0/24", &[via("10.0.1.2")]);
    add(&mut fib, "203.0.113.0/24", &[Path::resolved(ip("198.51.100.1"), Some(ten), None)]);
    add(&mut fib, "203.0.112.0/24", &[via("198.51.100.1")]);
    assert_eq!(out(&fib, "203.0.113.1"), Some(RIGHT));
    assert_eq!(out(&fib, "203.0.112.1"), Some(LEFT));
    let refused = fib.delete_table(Family::Ip4, 10).expect_err("a route looks up in it");
    assert!(refused.to_string().contains("looks up in it"), "{refused}");
    fib.remove_route(ten, prefix("198.51.100.0/24"), Source::Static).expect("it is there");
    assert_eq!(out(&fib, "203.0.113.1"), None, "it follows that table");
    fib.remove_route(0, prefix("203.0.113.0/24"), Source::Static).expect("it is there");
    fib.delete_table(Family::Ip4, 10).expect("nobody uses it");
}

#[test]
fn a_route_through_itself_says_that_it_is_a_loop() {
    for (route, inside) in [("203.0.113.0/24", "203.0.113.1"), ("2001:db8:e::/48", "2001:db8:e::1")]
    {
        let mut fib = router();
        add(&mut fib, route, &[via(inside)]);
        assert_eq!(states(&fib, route), [PathState::Unusable(Unusable::Loop(ip(inside)))]);
        assert_eq!(out(&fib, inside), None);
        // Another path takes over, whatever its preference.
        let neighbour = if inside.contains(':') { "2001:db8:1::2" } else { "10.0.1.2" };
        add(&mut fib, route, &[via(neighbour).preference(9)]);
        assert_eq!(
            states(&fib, route),
            [PathState::Unusable(Unusable::Loop(ip(inside))), PathState::Used]
        );
        assert_eq!(out(&fib, inside), Some(LEFT));
    }
}

#[test]
fn three_routes_in_a_ring_are_unusable_until_the_ring_is_cut() {
    let mut fib = router();
    add(&mut fib, "50.0.0.0/24", &[via("51.0.0.1")]);
    add(&mut fib, "51.0.0.0/24", &[via("52.0.0.1")]);
    add(&mut fib, "52.0.0.0/24", &[via("50.0.0.1")]);
    for (route, next_hop) in
        [("50.0.0.0/24", "51.0.0.1"), ("51.0.0.0/24", "52.0.0.1"), ("52.0.0.0/24", "50.0.0.1")]
    {
        assert!(
            matches!(states(&fib, route)[0], PathState::Unusable(Unusable::Loop(_))),
            "{route} via {next_hop}"
        );
    }
    add(&mut fib, "52.0.0.1/32", &[via("10.0.2.2")]);
    for address in ["50.0.0.9", "51.0.0.9", "52.0.0.9"] {
        assert_eq!(out(&fib, address), Some(RIGHT), "{address}");
    }
}

#[test]
fn why_a_path_is_not_used_is_told() {
    let mut fib = router();
    fib.set_interface(info(RIGHT, false)).expect("down");
    for (path, why) in [
        (via("192.0.2.1"), Unusable::NoRoute(ip("192.0.2.1"))),
        (via("10.0.1.1"), Unusable::NextHopIsOurs),
        (via("224.0.0.1").preference(0), Unusable::NextHopDies),
        (Path::via(ip("10.0.2.2"), Some(RIGHT)), Unusable::InterfaceDown(RIGHT)),
        (Path::new(Target::Attached(RIGHT)), Unusable::InterfaceDown(RIGHT)),
    ] {
        match fib.replace_route(0, prefix("203.0.113.0/24"), Source::Static, &[path]) {
            Ok(()) => assert_eq!(states(&fib, "203.0.113.0/24"), [PathState::Unusable(why)]),
            Err(error) => assert!(matches!(error, FibError::BadNextHop(..)), "{error}"),
        }
    }
}

#[test]
fn a_backup_path_waits_and_takes_over() {
    let mut fib = router();
    let paths = [
        Path::via(ip("10.0.1.2"), Some(LEFT)),
        Path::via(ip("10.0.2.2"), Some(RIGHT)).preference(1),
    ];
    add(&mut fib, "203.0.113.0/24", &paths);
    assert_eq!(states(&fib, "203.0.113.0/24"), [PathState::Used, PathState::Waits]);
    fib.set_interface(info(LEFT, false)).expect("down");
    assert_eq!(
        states(&fib, "203.0.113.0/24"),
        [PathState::Unusable(Unusable::InterfaceDown(LEFT)), PathState::Used]
    );
    assert_eq!(out(&fib, "203.0.113.1"), Some(RIGHT));
    fib.set_interface(info(LEFT, true)).expect("up");
    assert_eq!(out(&fib, "203.0.113.1"), Some(LEFT));
}

/// A million routes over a next hop that is looked up, which itself stands behind another.
const MANY: u64 = 1_000_000;

#[test]
fn a_next_hop_that_a_million_routes_share_changes_by_one_store_through_recursion_too() {
    for (first, hop, behind, one, other) in [
        ("16.0.0.0/32", "198.51.100.1", "198.51.100.2", "10.0.1.2", "10.0.2.2"),
        ("2001:db8:f000::/64", "2001:db8:f::1", "2001:db8:f::2", "2001:db8:1::2", "2001:db8:2::2"),
    ] {
        let mut fib = router();
        let host = if hop.contains(':') { 128 } else { 32 };
        add(&mut fib, &format!("{behind}/{host}"), &[via(one)]);
        add(&mut fib, &format!("{hop}/{host}"), &[via(behind)]);
        fib.add_routes(0, prefix(first), MANY, Source::Static, &[via(hop)])
            .expect("a million routes");
        assert_eq!(out(&fib, first.split('/').next().expect("an address")), Some(LEFT));
        let before = fib.stores();
        fib.replace_route(0, prefix(&format!("{behind}/{host}")), Source::Static, &[via(other)])
            .expect("moved");
        let after = fib.stores();
        assert_eq!(out(&fib, first.split('/').next().expect("an address")), Some(RIGHT));
        assert_eq!(after.prefixes - before.prefixes, 1, "the one route that was changed");
        // The list of the million, and that of the level between.
        assert_eq!(after.groups - before.groups, 2);
        // A neighbour's new MAC address: the host route, the route behind, the level between, the
        // million.
        let before = fib.stores();
        fib.learn_neighbour(RIGHT, ip(other), MacAddress([2, 0, 0, 0, 9, 9]), 1).expect("learned");
        let after = fib.stores();
        assert_eq!(after.prefixes, before.prefixes);
        assert!(after.groups - before.groups <= 5, "{} groups", after.groups - before.groups);
    }
}

#[test]
fn an_interface_that_goes_down_moves_a_million_routes_to_their_backup_by_one_store() {
    let mut fib = router();
    let paths = [
        Path::via(ip("10.0.1.2"), Some(LEFT)),
        Path::via(ip("10.0.2.2"), Some(RIGHT)).preference(1),
    ];
    fib.add_routes(0, prefix("16.0.0.0/32"), MANY, Source::Static, &paths)
        .expect("a million routes");
    let before = fib.stores();
    fib.set_interface(info(LEFT, false)).expect("down");
    let after = fib.stores();
    assert_eq!(out(&fib, "16.0.0.7"), Some(RIGHT));
    let own = after.prefixes - before.prefixes;
    assert!(
        own <= 12,
        "{own} prefixes: those of the interface's own addresses, subnets and neighbours"
    );
    // The list of the million; the connected subnet and two neighbours of each family.
    assert!(after.groups - before.groups <= 8, "{} groups", after.groups - before.groups);
}

#[test]
fn an_interface_that_is_deleted_takes_its_paths_out_of_many_routes_and_leaves_the_others() {
    for (first, left, right) in [
        ("16.0.0.0/32", "10.0.1.2", "10.0.2.2"),
        ("2001:db8:f000::/64", "2001:db8:1::2", "2001:db8:2::2"),
    ] {
        let mut fib = router();
        let both = [Path::via(ip(left), Some(LEFT)), Path::via(ip(right), Some(RIGHT))];
        let default = if left.contains(':') { "::/0" } else { "0.0.0.0/0" };
        add(&mut fib, default, &both[..1]);
        fib.add_routes(0, prefix(first), 10_000, Source::Static, &both).expect("both");
        fib.add_routes(0, prefix(first), 100, Source::Dynamic, &both[..1])
            .expect("the left one alone");
        let count = fib.route_count(Family::of(ip(left)));
        fib.remove_interface(LEFT).expect("it is there");
        assert_eq!(out(&fib, first.split('/').next().expect("an address")), Some(RIGHT));
        let paths: Vec<_> =
            fib.route(0, prefix(first)).iter().map(|route| route.paths.to_vec()).collect();
        assert_eq!(
            paths,
            [vec![both[1]]],
            "the dynamic route is gone, the static one has one path"
        );
        assert!(fib.route(0, prefix(default)).is_empty());
        assert!(fib.route_count(Family::of(ip(left))) < count - 100);
    }
}

#[test]
fn the_default_routes_group_is_nobody_elses() {
    let mut fib = router();
    let path = [Path::via(ip("10.0.1.2"), Some(LEFT))];
    add(&mut fib, "10.0.0.0/8", &path);
    add(&mut fib, "0.0.0.0/0", &path);
    add(&mut fib, "11.0.0.0/8", &path);
    let table = fib.ip4_tables().table(0);
    let group = |address: [u8; 4]| table.lookup(u32::from_be_bytes(address));
    assert_eq!(group([10, 9, 9, 9]), group([11, 9, 9, 9]));
    assert_ne!(group([10, 9, 9, 9]), group([12, 9, 9, 9]));
    assert_eq!(group([12, 9, 9, 9]), table.miss_group());
}

#[test]
fn what_makes_a_flow_is_a_tables_own_choice_and_changes_in_place() {
    let mut fib = router();
    let ten = fib.add_table(Family::Ip4, 10).expect("a table");
    let two = [Path::via(ip("10.0.1.2"), Some(LEFT)), Path::via(ip("10.0.2.2"), Some(RIGHT))];
    fib.add_routes(0, prefix("16.0.0.0/32"), 1000, Source::Static, &two).expect("routes");
    fib.add_route(ten, prefix("16.0.0.0/32"), Source::Static, &two).expect("a route of table 10");
    let fields = |fib: &Fib, table| {
        let group = fib.ip4_tables().table(table).lookup(0x1000_0000);
        fib.groups().word(group).flow_fields()
    };
    let before = fib.stores();
    fib.set_flow_fields(Family::Ip4, 0, FlowFields::SYMMETRIC.normal()).expect("a table");
    assert_eq!(
        (fields(&fib, 0), fields(&fib, ten)),
        (FlowFields::SYMMETRIC.normal(), FlowFields::DEFAULT)
    );
    assert_eq!(fib.stores().groups - before.groups, 1);
    assert_eq!(fib.stores().prefixes, before.prefixes);
    // It stays when the group's hops change, and reaches groups that are made later.
    fib.set_interface(info(LEFT, false)).expect("down");
    fib.set_interface(info(LEFT, true)).expect("up");
    assert_eq!(fields(&fib, 0), FlowFields::SYMMETRIC.normal());
    assert_eq!(hops_in(&fib, 0, "16.0.0.0").len(), 2, "it has its buckets still");
    fib.set_flow_fields(Family::Ip4, 0, FlowFields::DEFAULT).expect("a table");
    assert_eq!(fields(&fib, 0), FlowFields::DEFAULT);
}

#[test]
fn paths_that_a_feature_holds_follow_neighbours_and_end_with_it() {
    let mut fib = router();
    let before = fib.path_lists();
    let group = fib.hold_paths(Family::Ip4, 0, &[via("10.0.2.9")]).expect("held");
    let next = |fib: &Fib| fib.groups().resolve(group, 0).next;
    assert_eq!(next(&fib), NODES.ip4.incomplete);
    fib.learn_neighbour(RIGHT, ip("10.0.2.9"), MacAddress([2, 0, 0, 0, 9, 9]), 1).expect("learned");
    assert_eq!(next(&fib), NODES.ip4.rewrite);
    fib.set_interface(info(RIGHT, false)).expect("down");
    assert_eq!(next(&fib), NODES.ip4.drop);
    fib.set_interface(info(RIGHT, true)).expect("up");
    fib.remove_neighbour(RIGHT, ip("10.0.2.9")).expect("it is there");
    fib.release_paths(group);
    assert_eq!(fib.path_lists(), before);
    assert!(fib.hold_paths(Family::Ip4, 0, &[]).is_err());
    assert!(fib.hold_paths(Family::Ip4, 7, &[via("10.0.2.9")]).is_err());
}

#[test]
fn a_table_that_a_feature_names_is_not_deleted() {
    let mut fib = router();
    let ten = fib.add_table(Family::Ip6, 10).expect("a table");
    fib.hold_table(Family::Ip6, ten, "uRPF");
    let refused = fib.delete_table(Family::Ip6, 10).expect_err("it is held").to_string();
    assert!(refused.contains("uRPF"), "{refused}");
    fib.release_table(Family::Ip6, ten, "uRPF");
    fib.delete_table(Family::Ip6, 10).expect("nobody holds it");
}
