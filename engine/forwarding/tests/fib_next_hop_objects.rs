//! Next-hop objects: routes name them by number, and follow them by one store.

use std::net::IpAddr;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::{
    Family, Fib, FibError, InterfaceInfo, NextHopObjectId, Path, Source, Target,
};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use stand::NODES;

use crate::stand;

const LEFT: InterfaceId = InterfaceId(1);
const RIGHT: InterfaceId = InterfaceId(2);
const OBJECT: NextHopObjectId = NextHopObjectId { owner: 1, number: 7 };
const ROUTES: u64 = 10_000;

fn first() -> IpPrefix {
    IpPrefix::new(IpAddr::from([16, 0, 0, 0]), 32)
}

fn via(interface: InterfaceId) -> Path {
    Path::via([10, 0, interface.0 as u8, 2], Some(interface))
}

fn set_interface(fib: &mut Fib, id: InterfaceId, up: bool) {
    let info = InterfaceInfo {
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
    };
    fib.set_interface(info).expect("interface");
}

/// Two interfaces with a neighbour each, and routes that name an object.
fn router() -> Fib {
    let mut fib = Fib::new(&Epochs::new(0), NODES).expect("memory");
    for id in [LEFT, RIGHT] {
        set_interface(&mut fib, id, true);
        let net = id.0 as u8;
        fib.add_address(id, IpAddr::from([10, 0, net, 1]), 24).expect("address");
        let mac = MacAddress([2, 0, 0, 0, net, 2]);
        fib.learn_neighbour(id, IpAddr::from([10, 0, net, 2]), mac, 0).expect("neighbour");
    }
    let path = Path::new(Target::NextHopObject(OBJECT));
    fib.add_routes(0, first(), ROUTES, Source::Kernel, &[path]).expect("routes");
    fib
}

/// The interfaces that packets to the last of the routes leave by, with their shares.
fn out(fib: &Fib) -> Vec<(InterfaceId, u32)> {
    let address = u32::from_be_bytes([16, 0, 0, 0]) + ROUTES as u32 - 1;
    let group = fib.ip4_tables().table(0).lookup(address);
    let view = fib.group_views().find(|view| view.group == group).expect("its group");
    let sends = view.hops.iter().filter(|(hop, _)| hop.next == NODES.ip4.rewrite);
    sends.map(|(hop, weight)| (fib.adjacencies().get(hop.index).tx, *weight)).collect()
}

#[test]
fn an_object_that_changes_moves_all_routes_by_one_store() {
    let mut fib = router();
    assert_eq!(out(&fib), [], "an object that is not there leads nowhere");
    fib.set_next_hop_object(OBJECT, vec![via(LEFT)]).expect("an object");
    assert_eq!(out(&fib), [(LEFT, 1)]);
    let before = fib.stores();
    fib.set_next_hop_object(OBJECT, vec![via(RIGHT).weight(3), via(LEFT)]).expect("a group");
    let after = fib.stores();
    assert_eq!(out(&fib).len(), 2);
    assert_eq!(after.prefixes, before.prefixes);
    assert_eq!(after.groups, before.groups + 1);
    fib.remove_next_hop_object(OBJECT);
    assert_eq!(out(&fib), []);
    assert_eq!(fib.route_count(Family::Ip4) as u64 / ROUTES, 1, "the routes stay");
}

#[test]
fn routes_follow_the_interfaces_of_their_object() {
    let mut fib = router();
    fib.set_next_hop_object(OBJECT, vec![via(LEFT), via(RIGHT).preference(1)]).expect("object");
    assert_eq!(out(&fib), [(LEFT, 1)]);
    set_interface(&mut fib, LEFT, false);
    assert_eq!(out(&fib), [(RIGHT, 1)]);
    set_interface(&mut fib, LEFT, true);
    assert_eq!(out(&fib), [(LEFT, 1)]);
    fib.remove_interface(LEFT).expect("it is there");
    assert_eq!(out(&fib), [(RIGHT, 1)]);
    // Another interface of that number is none of the object's.
    set_interface(&mut fib, LEFT, true);
    assert_eq!(out(&fib), [(RIGHT, 1)]);
    assert_eq!(fib.next_hop_object(OBJECT).len(), 1);
}

#[test]
fn an_object_has_paths_that_lead_somewhere_by_themselves() {
    let mut fib = router();
    for path in [
        Path::new(Target::NextHopObject(OBJECT)),
        Path::via([10, 0, 1, 2], None),
        Path::via([224, 0, 0, 5], Some(LEFT)),
        Path::new(Target::Local),
        via(LEFT).weight(0),
    ] {
        let refused = fib.set_next_hop_object(OBJECT, vec![path]);
        assert!(matches!(refused, Err(FibError::BadNextHopObject(7))), "{path:?}");
    }
    assert!(fib.next_hop_object(OBJECT).is_empty());
    fib.set_next_hop_object(OBJECT, vec![Path::new(Target::Drop)]).expect("a blackhole");
    assert_eq!(out(&fib), []);
}
