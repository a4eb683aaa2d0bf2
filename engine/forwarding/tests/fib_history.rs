//! What the FIB says must not depend on how it came there: after any history it equals a FIB that
//! was told only the outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::adjacency::Adjacency;
use quiver_forwarding::fib::{Fib, InterfaceInfo, Only, Path, Source, Target};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use stand::NODES;

use crate::stand;

const SOURCES: [Source; 3] = [Source::Feature, Source::Static, Source::Dynamic];
const INTERFACES: usize = 3;

fn info(number: usize, up: bool) -> InterfaceInfo {
    InterfaceInfo {
        id: InterfaceId(number as u32),
        output: NodeId(100 + number as u16),
        // The last one has no Ethernet header.
        mac: (number + 1 < INTERFACES).then_some(MacAddress([2, 0, 0, 0, 0, number as u8])),
        vlan_tags: Vec::new(),
        mtu_bytes: 1500,
        family_mtu_bytes: [None; 2],
        mpls_mtu_bytes: None,
        up,
        ip4_table: 0,
        ip6_table: 0,
    }
}

/// What was configured, without its history.
#[derive(Clone, Debug, Default)]
struct Outcome {
    routes: BTreeMap<(IpPrefix, Source), Vec<Path>>,
    neighbours: BTreeMap<(usize, IpAddr), u8>,
    down: BTreeSet<usize>,
    addresses: BTreeSet<usize>,
}

fn address(number: usize) -> IpAddr {
    IpAddr::from([10, 0, number as u8, 1])
}

impl Outcome {
    fn build(&self) -> Fib {
        let mut fib = Fib::new(&Epochs::new(0), NODES).expect("memory");
        for number in 0..INTERFACES {
            fib.set_interface(info(number, !self.down.contains(&number))).expect("interface");
        }
        for number in &self.addresses {
            fib.add_address(InterfaceId(*number as u32), address(*number), 24).expect("address");
        }
        for ((number, address), mac) in &self.neighbours {
            let mac = MacAddress([2, 0, 0, 0, 9, *mac]);
            fib.learn_neighbour(InterfaceId(*number as u32), *address, mac, 0).expect("neighbour");
        }
        for ((prefix, source), paths) in &self.routes {
            fib.replace_route(0, *prefix, *source, paths).expect("route");
        }
        fib
    }
}

#[derive(Clone, Debug)]
enum Step {
    Route(IpPrefix, Source, Vec<Path>),
    Remove(IpPrefix, Source),
    Neighbour(usize, IpAddr, u8),
    Forget(usize, IpAddr),
    Up(usize, bool),
    Address(usize, bool),
}

/// Few addresses, so that routes cover each other's next hops and loops arise.
fn some_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u8..3, 1u8..4).prop_map(|(net, host)| IpAddr::from([10, 0, net, host])),
        (20u8..23, 0u8..2).prop_map(|(net, host)| IpAddr::from([net, 0, host, 1])),
    ]
}

fn some_prefix() -> impl Strategy<Value = IpPrefix> {
    (some_address(), prop::sample::select(vec![0u8, 8, 16, 24, 32]))
        .prop_map(|(address, len)| IpPrefix::new(address, len))
}

fn some_path() -> impl Strategy<Value = Path> {
    let target = prop_oneof![
        4 => some_address().prop_map(|next_hop| Target::Via { next_hop, interface: None }),
        3 => (some_address(), 0..INTERFACES).prop_map(|(next_hop, on)| {
            Target::Via { next_hop, interface: Some(InterfaceId(on as u32)) }
        }),
        1 => (0..INTERFACES).prop_map(|on| Target::Attached(InterfaceId(on as u32))),
        2 => (
            some_address(), prop::sample::select(vec![None, Some(Only::Host), Some(Only::Attached)])
        ).prop_map(
            |(next_hop, only)| Path::resolved(next_hop, Some(0), only).target
        ),
        1 => Just(Target::Drop),
        1 => Just(Target::Local),
    ];
    (target, 1u32..4, 0u8..2).prop_map(|(target, weight, preference)| {
        Path::new(target).weight(weight).preference(preference)
    })
}

fn some_step() -> impl Strategy<Value = Step> {
    let source = || prop::sample::select(SOURCES.to_vec());
    prop_oneof![
        6 => (
            some_prefix(), source(), prop::collection::vec(some_path(), 1..4)
        ).prop_map(|(prefix, source, mut paths)| {
            // Paths that differ in weight only count once.
            paths.sort_by_key(|path| (path.preference, path.target));
            paths.dedup_by_key(|path| (path.preference, path.target));
            Step::Route(prefix, source, paths)
        }),
        3 => (some_prefix(), source()).prop_map(|(prefix, source)| Step::Remove(prefix, source)),
        3 => (0..INTERFACES, some_address(), 1u8..4).prop_map(
            |(on, address, mac)| Step::Neighbour(on, address, mac)
        ),
        2 => (0..INTERFACES, some_address()).prop_map(|(on, address)| Step::Forget(on, address)),
        2 => (0..INTERFACES, any::<bool>()).prop_map(|(on, up)| Step::Up(on, up)),
        2 => (0..INTERFACES, any::<bool>()).prop_map(|(on, there)| Step::Address(on, there)),
    ]
}

fn apply(step: &Step, fib: &mut Fib, outcome: &mut Outcome) {
    match step {
        Step::Route(prefix, source, paths) => {
            fib.replace_route(0, *prefix, *source, paths).expect("room");
            outcome.routes.insert((*prefix, *source), paths.clone());
        }
        Step::Remove(prefix, source) => {
            let was_there = outcome.routes.remove(&(*prefix, *source)).is_some();
            assert_eq!(fib.remove_route(0, *prefix, *source).is_ok(), was_there);
        }
        Step::Neighbour(on, address, mac) => {
            let full = MacAddress([2, 0, 0, 0, 9, *mac]);
            fib.learn_neighbour(InterfaceId(*on as u32), *address, full, 0).expect("room");
            outcome.neighbours.insert((*on, *address), *mac);
        }
        Step::Forget(on, address) => {
            let was_there = outcome.neighbours.remove(&(*on, *address)).is_some();
            assert_eq!(fib.remove_neighbour(InterfaceId(*on as u32), *address).is_ok(), was_there);
        }
        Step::Up(on, up) => {
            fib.set_interface(info(*on, *up)).expect("interface");
            if *up {
                outcome.down.remove(on)
            } else {
                outcome.down.insert(*on)
            };
        }
        Step::Address(on, true) => {
            let new = outcome.addresses.insert(*on);
            assert_eq!(fib.add_address(InterfaceId(*on as u32), address(*on), 24).is_ok(), new);
        }
        Step::Address(on, false) => {
            let old = outcome.addresses.remove(on);
            assert_eq!(fib.remove_address(InterfaceId(*on as u32), address(*on), 24).is_ok(), old);
        }
    }
}

/// What a worker finds for `address`: per bucket the node, and what stands in the adjacency.
fn found(fib: &Fib, address: IpAddr) -> Vec<(NodeId, Adjacency)> {
    let IpAddr::V4(address) = address else { unreachable!("IPv4 only here") };
    let group = fib.ip4_tables().table(0).lookup(address.to_bits());
    let hops = fib.groups().hops(group).into_iter();
    // The index of a local hop is no adjacency.
    let index = |hop: quiver_forwarding::next_hop_group::Hop| {
        if hop.next == NODES.ip4.local { 0 } else { hop.index }
    };
    hops.map(|hop| (hop.next, *fib.adjacencies().get(index(hop)))).collect()
}

#[test]
fn who_is_heard_on_two_interfaces_that_lead_to_it_has_a_path_by_each() {
    let both = [0, 1].map(|on| Path::new(Target::Attached(InterfaceId(on))));
    let everything = IpPrefix::new(IpAddr::from([0, 0, 0, 0]), 0);
    let host = IpAddr::from([21, 0, 1, 1]);
    let by = |fib: &Fib| found(fib, host).iter().map(|(_, way)| way.tx.0).collect::<Vec<_>>();
    for order in [[0, 1], [1, 0]] {
        let mut outcome = Outcome::default();
        let mut fib = outcome.build();
        apply(&Step::Route(everything, Source::Feature, both.to_vec()), &mut fib, &mut outcome);
        for on in order {
            apply(&Step::Neighbour(on, host, 1), &mut fib, &mut outcome);
        }
        assert_eq!(by(&fib), [0, 1]);
        apply(&Step::Forget(0, host), &mut fib, &mut outcome);
        assert_eq!(by(&fib), [1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn the_fib_does_not_depend_on_its_history(steps in prop::collection::vec(some_step(), 1..40)) {
        let mut outcome = Outcome::default();
        let mut fib = outcome.build();
        let (lists, adjacencies) = (fib.path_lists(), fib.adjacency_views().count());
        let nets =
            (0..3u8).flat_map(|net| (0..5u8).map(move |host| IpAddr::from([10, 0, net, host])));
        let far =
            (20..24u8).flat_map(|net| (0..3u8).map(move |host| IpAddr::from([net, 0, host, 1])));
        let probes: Vec<_> = nets.chain(far).collect();
        for (number, step) in steps.iter().enumerate() {
            apply(step, &mut fib, &mut outcome);
            let rebuilt = outcome.build();
            for probe in &probes {
                prop_assert_eq!(
                    found(&fib, *probe),
                    found(&rebuilt, *probe),
                    "{} after step {}: {:?}",
                    probe,
                    number,
                    step
                );
            }
            prop_assert_eq!(fib.path_lists(), rebuilt.path_lists());
            prop_assert_eq!(fib.adjacency_views().count(), rebuilt.adjacency_views().count());
        }
        // And back to nothing.
        for number in 0..INTERFACES {
            fib.remove_interface(InterfaceId(number as u32)).expect("interface");
        }
        let left: Vec<_> = outcome.routes.keys().copied().collect();
        for (prefix, source) in left {
            let _ = fib.remove_route(0, prefix, source);
        }
        fib.collect();
        prop_assert_eq!((fib.path_lists(), fib.adjacency_views().count()), (lists, adjacencies));
    }
}
