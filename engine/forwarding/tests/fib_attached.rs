//! What routes resolve to, compared with a naive model under random sequences of changes of
//! addresses, links, neighbours and routes, in several tables and both families.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::adjacency::AdjacencyKind;
use quiver_forwarding::fib::{Family, Fib, InterfaceInfo, Path, Source, Target};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::MacAddress;
use stand::NODES;

use crate::stand;

const INTERFACES: u32 = 3;
/// Tables 0 and 7, by their small numbers.
const TABLES: u32 = 2;
const RED: u32 = 7;

/// One change, in small numbers.
#[derive(Clone, Copy, Debug)]
enum Op {
    Address {
        on: u32,
        address: usize,
        add: bool,
    },
    Link {
        on: u32,
        up: bool,
    },
    /// Look packets of a family up in another table.
    Table {
        on: u32,
        six: bool,
        table: u32,
    },
    /// A link-local address, as an interface has that borrows its other addresses (unnumbered).
    LinkLocal {
        on: u32,
        add: bool,
    },
    PointToPoint {
        on: u32,
        is: bool,
    },
    Neighbour {
        on: u32,
        address: usize,
        mac: u8,
        add: bool,
    },
    Route {
        table: u32,
        prefix: usize,
        source: usize,
        target: usize,
        change: u8,
    },
    Delete {
        on: u32,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let on = 1..=INTERFACES;
    prop_oneof![
        3 => (on.clone(), 0..ADDRESSES.len(), prop::bool::weighted(0.7))
            .prop_map(|(on, address, add)| Op::Address { on, address, add }),
        2 => (on.clone(), any::<bool>()).prop_map(|(on, up)| Op::Link { on, up }),
        2 => (on.clone(), any::<bool>(), 0..TABLES)
            .prop_map(|(on, six, table)| Op::Table { on, six, table }),
        1 => (on.clone(), any::<bool>()).prop_map(|(on, add)| Op::LinkLocal { on, add }),
        1 => (on.clone(), any::<bool>()).prop_map(|(on, is)| Op::PointToPoint { on, is }),
        4 => (on.clone(), 0..HOSTS.len(), 1..3u8, prop::bool::weighted(0.7))
            .prop_map(|(on, address, mac, add)| Op::Neighbour { on, address, mac, add }),
        6 => (0..TABLES, 0..PREFIXES.len(), 0..2usize, 0..TARGETS, 0..4u8).prop_map(
            |(table, prefix, source, target, change)| {
                Op::Route { table, prefix, source, target, change }
            }
        ),
        1 => on.prop_map(|on| Op::Delete { on }),
    ]
}

/// Addresses of interfaces: subnets inside each other, /31, /32, both families.
const ADDRESSES: [&str; 7] = [
    "10.0.0.1/16",
    "10.0.1.1/24",
    "10.0.1.2/24",
    "10.0.2.0/31",
    "10.0.3.1/32",
    "2001:db8:1::1/64",
    "2001:db8:1::1:1/112",
];
/// Neighbours, destinations and next hops.
const HOSTS: [&str; 8] = [
    "10.0.1.9",
    "10.0.1.200",
    "10.0.2.1",
    "10.0.9.9",
    "172.16.0.9",
    "2001:db8:1::9",
    "2001:db8:1::1:9",
    "2001:db8:9::9",
];
const PREFIXES: [&str; 9] = [
    "0.0.0.0/0",
    "10.0.0.0/16",
    "10.0.1.0/24",
    "10.0.1.128/25",
    "10.0.1.9/32",
    "172.16.0.0/12",
    "::/0",
    "2001:db8:1::/64",
    "2001:db8::/32",
];
const SOURCES: [Source; 2] = [Source::Static, Source::Dynamic];
/// See [`target`].
const TARGETS: usize = 3 + INTERFACES as usize + HOSTS.len() * 2;

fn target(number: usize) -> Target {
    let interfaces = INTERFACES as usize;
    match number {
        0 => Target::Drop,
        1 => Target::Local,
        2 => Target::Punt,
        n if n < 3 + interfaces => Target::Attached(InterfaceId((n - 2) as u32)),
        n => {
            let n = n - 3 - interfaces;
            let next_hop = HOSTS[n / 2].parse().unwrap();
            let interface = (n % 2 == 1).then_some(InterfaceId(1 + n as u32 / 2 % INTERFACES));
            Target::Via { next_hop, interface }
        }
    }
}

fn prefix(text: &str) -> IpPrefix {
    let (address, length) = text.split_once('/').unwrap();
    IpPrefix::new(address.parse().unwrap(), length.parse().unwrap())
}

fn length(prefix: IpPrefix) -> u8 {
    match prefix {
        IpPrefix::V4(prefix) => prefix.len(),
        IpPrefix::V6(prefix) => prefix.len(),
    }
}

fn is_host(prefix: IpPrefix) -> bool {
    length(prefix) == if prefix.is_ip6() { 128 } else { 32 }
}

/// Where packets may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Drop,
    Local,
    Punt,
    /// A broadcast of a subnet.
    Broadcast,
    /// The destination is asked for on this interface.
    Glean(u32),
    /// The next hop is asked for.
    Incomplete(u32, IpAddr),
    /// The frame is complete: the neighbour's MAC address, or none on a point-to-point interface.
    Complete(u32, Option<MacAddress>),
}

#[derive(Clone, Default)]
struct Link {
    up: bool,
    point_to_point: bool,
    addresses: BTreeSet<(IpAddr, u8)>,
    link_local: bool,
    /// Small numbers of its IPv4 and its IPv6 table.
    tables: [u32; 2],
}

impl Link {
    fn table_of(&self, address: IpAddr) -> u32 {
        self.tables[usize::from(address.is_ipv6())]
    }
}

fn link_local(on: u32) -> IpAddr {
    IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, on as u16])
}

/// A route of a source, and its paths.
type Routes = BTreeMap<(u32, IpPrefix, Source), BTreeSet<Target>>;

/// The same network without any structure: everything is derived anew for every question.
#[derive(Clone, Default)]
struct Model {
    links: BTreeMap<u32, Link>,
    neighbours: BTreeMap<(u32, IpAddr), MacAddress>,
    configured: Routes,
}

impl Model {
    /// All routes but those of neighbours: configured ones and those of interfaces that are up.
    fn given(&self) -> Routes {
        let mut all = self.configured.clone();
        for (number, link) in self.links.iter().filter(|(_, link)| link.up) {
            let id = InterfaceId(*number);
            let mut add = |prefix: IpPrefix, target| {
                let table = link.tables[usize::from(prefix.is_ip6())];
                all.insert((table, prefix, Source::Interface), BTreeSet::from([target]));
            };
            for (address, length) in &link.addresses {
                let subnet = IpPrefix::new(*address, *length);
                if let (IpPrefix::V4(of), true) = (subnet, *length <= 30) {
                    add(IpPrefix::new(IpAddr::V4(of.first().into()), 32), Target::Drop);
                    add(
                        IpPrefix::new(IpAddr::V4(of.last().into()), 32),
                        Target::Broadcast { interface: id, forward: false },
                    );
                }
            }
            for (address, length) in &link.addresses {
                let subnet = IpPrefix::new(*address, *length);
                if !is_host(subnet) {
                    add(subnet, Target::Attached(id));
                }
            }
            for (address, _) in &link.addresses {
                add(IpPrefix::host(*address), Target::InterfaceAddress);
            }
        }
        all
    }

    /// With the host routes that neighbours have where they are attached.
    fn all(&self) -> Routes {
        let given = self.given();
        let mut all = given.clone();
        for (on, address) in self.neighbours.keys() {
            let id = InterfaceId(*on);
            if self.links.get(on).is_none_or(|link| link.point_to_point) {
                continue;
            }
            for table in 0..TABLES {
                let cover = longest(&given, table, *address, |prefix| !is_host(prefix));
                if cover.is_some_and(|(_, targets)| targets.contains(&Target::Attached(id))) {
                    let host = (table, IpPrefix::host(*address), Source::Neighbour);
                    let via = Target::Via { next_hop: *address, interface: Some(id) };
                    all.entry(host).or_default().insert(via);
                }
            }
        }
        all
    }

    fn adjacency(&self, on: InterfaceId, next_hop: Option<IpAddr>) -> Option<End> {
        let link = self.links.get(&on.0).filter(|link| link.up)?;
        Some(match (link.point_to_point, next_hop) {
            (true, _) => End::Complete(on.0, None),
            (false, None) => End::Glean(on.0),
            (false, Some(next_hop)) => match self.neighbours.get(&(on.0, next_hop)) {
                Some(mac) => End::Complete(on.0, Some(*mac)),
                None => End::Incomplete(on.0, next_hop),
            },
        })
    }

    /// Where the paths of a route lead; `sought` is the next hop behind which it stands.
    fn ends(
        &self,
        all: &Routes,
        place: (u32, IpPrefix),
        targets: &BTreeSet<Target>,
        sought: Option<IpAddr>,
        walked: &mut Vec<(u32, bool, BTreeSet<Target>)>,
    ) -> BTreeSet<End> {
        // Routes of a table with the same paths are one: a walk does not pass there twice.
        walked.push((place.0, length(place.1) == 0, targets.clone()));
        let mut ends = BTreeSet::new();
        for target in targets {
            match *target {
                Target::Via { next_hop, interface: Some(on) } => {
                    ends.extend(self.adjacency(on, Some(next_hop)))
                }
                Target::Attached(on) => ends.extend(self.adjacency(on, sought)),
                Target::Via { next_hop, interface: None } => {
                    let six = place.1.is_ip6();
                    let table = if next_hop.is_ipv6() == six { place.0 } else { 0 };
                    if let Some((prefix, found)) = longest(all, table, next_hop, |_| true) {
                        let again = (table, length(prefix) == 0, found.clone());
                        if !walked.contains(&again) {
                            ends.extend(self.ends(
                                all,
                                (table, prefix),
                                found,
                                Some(next_hop),
                                walked,
                            ));
                        }
                    }
                }
                _ if sought.is_some() => {}
                Target::Local | Target::InterfaceAddress => {
                    ends.insert(End::Local);
                }
                Target::Punt => {
                    ends.insert(End::Punt);
                }
                Target::Broadcast { interface, .. } => {
                    let to_all =
                        self.links.get(&interface.0).is_some_and(|link| !link.point_to_point);
                    ends.insert(if to_all { End::Broadcast } else { End::Drop });
                }
                _ => {
                    ends.insert(End::Drop);
                }
            }
        }
        walked.pop();
        ends
    }

    fn resolve(&self, all: &Routes, table: u32, address: IpAddr) -> BTreeSet<End> {
        let Some((prefix, targets)) = longest(all, table, address, |_| true) else {
            return BTreeSet::from([End::Drop]);
        };
        let ends = self.ends(all, (table, prefix), targets, None, &mut Vec::new());
        if ends.is_empty() { BTreeSet::from([End::Drop]) } else { ends }
    }
}

/// The best source's paths of the longest prefix around an address, among the prefixes that
/// `counts` names.
fn longest(
    routes: &Routes,
    table: u32,
    address: IpAddr,
    counts: impl Fn(IpPrefix) -> bool,
) -> Option<(IpPrefix, &BTreeSet<Target>)> {
    routes
        .iter()
        .filter(|((of, prefix, _), _)| *of == table && prefix.contains(address) && counts(*prefix))
        .max_by_key(|((_, prefix, source), _)| (length(*prefix), std::cmp::Reverse(*source)))
        .map(|((_, prefix, _), targets)| (*prefix, targets))
}

/// The FIB and the model side by side.
struct Both {
    fib: Fib,
    model: Model,
}

impl Both {
    fn new() -> Both {
        let mut fib = Fib::new(&Epochs::new(0), NODES).unwrap();
        for family in [Family::Ip4, Family::Ip6] {
            assert_eq!(fib.add_table(family, RED).unwrap(), 1);
        }
        let mut both = Both { fib, model: Model::default() };
        (1..=INTERFACES).for_each(|on| both.set(on, |link| link.up = true));
        both
    }

    fn set(&mut self, on: u32, change: impl FnOnce(&mut Link)) {
        assert!(self.try_set(on, change));
    }

    /// Change an interface; false when the FIB refuses that.
    fn try_set(&mut self, on: u32, change: impl FnOnce(&mut Link)) -> bool {
        let mut link = self.model.links.get(&on).cloned().unwrap_or_default();
        change(&mut link);
        let mac = MacAddress([2, 0xfe, 0, 0, 0, on as u8]);
        let info = InterfaceInfo {
            id: InterfaceId(on),
            output: NodeId(100 + on as u16),
            mac: (!link.point_to_point).then_some(mac),
            vlan_tags: Vec::new(),
            mtu_bytes: 1500,
            family_mtu_bytes: [None; 2],
            mpls_mtu_bytes: None,
            up: link.up,
            ip4_table: link.tables[0],
            ip6_table: link.tables[1],
        };
        let done = self.fib.set_interface(info).is_ok();
        if done {
            self.model.links.insert(on, link);
        }
        done
    }

    /// Make a change in the FIB; in the model, too, when the FIB takes it.
    fn make(&mut self, op: Op) {
        match op {
            Op::Link { on, up } => self.set(on, |link| link.up = up),
            Op::Table { on, six, table } => {
                let old = self.model.links.get(&on).cloned().unwrap_or_default();
                let of_family = old.addresses.iter().any(|(address, _)| address.is_ipv6() == six);
                let stays =
                    (of_family || six && old.link_local) && old.tables[usize::from(six)] != table;
                let moved = self.try_set(on, |link| link.tables[usize::from(six)] = table);
                assert_eq!(moved, !stays, "an interface with addresses stays in its table");
            }
            Op::LinkLocal { on, add } => {
                let (id, own) = (InterfaceId(on), link_local(on));
                let done = match add {
                    true => self.fib.add_address(id, own, 128),
                    false => self.fib.remove_address(id, own, 128),
                };
                let known = self.model.links.get_mut(&on).filter(|link| link.link_local != add);
                assert_eq!(done.is_ok(), known.is_some());
                known.into_iter().for_each(|link| link.link_local = add);
            }
            Op::PointToPoint { on, is } => self.set(on, |link| link.point_to_point = is),
            Op::Address { on, address, add } => self.address(on, ADDRESSES[address], add),
            Op::Neighbour { on, address, mac, add } => {
                let (id, address) = (InterfaceId(on), HOSTS[address].parse().unwrap());
                let mac = MacAddress([2, 0, 0, 0, 0, mac]);
                if add {
                    if self.fib.learn_neighbour(id, address, mac, 0).is_ok() {
                        self.model.neighbours.insert((on, address), mac);
                    }
                } else {
                    let was = self.model.neighbours.remove(&(on, address)).is_some();
                    assert_eq!(self.fib.remove_neighbour(id, address).is_ok(), was);
                }
            }
            Op::Route { table, prefix: at, source, target: to, change } => {
                self.route(table, prefix(PREFIXES[at]), SOURCES[source], target(to), change);
            }
            Op::Delete { on } => {
                if self.fib.remove_interface(InterfaceId(on)).is_ok() {
                    self.model.links.remove(&on);
                    self.model.neighbours.retain(|(at, _), _| *at != on);
                    let names = |target: &Target| {
                        matches!(target, Target::Attached(id) | Target::Via {
                            interface: Some(id), ..
                        }
                            if id.0 == on)
                    };
                    self.model.configured.retain(|_, targets| {
                        targets.retain(|target| !names(target));
                        !targets.is_empty()
                    });
                }
            }
        }
    }

    fn address(&mut self, on: u32, text: &str, add: bool) {
        let (address, length) = text.split_once('/').unwrap();
        let (address, length): (IpAddr, u8) = (address.parse().unwrap(), length.parse().unwrap());
        let id = InterfaceId(on);
        let before = self.model.given();
        let done = if add {
            self.fib.add_address(id, address, length)
        } else {
            self.fib.remove_address(id, address, length)
        };
        let Some(link) = self.model.links.get_mut(&on) else {
            assert!(done.is_err());
            return;
        };
        match (&done, add) {
            (Ok(()), true) => assert!(link.addresses.insert((address, length))),
            (Ok(()), false) => assert!(link.addresses.remove(&(address, length))),
            (Err(_), _) => assert_eq!(before, self.model.given()),
        }
        // No two interfaces connect one subnet, whether they are up or not.
        let mut owners: BTreeMap<(u32, IpPrefix), u32> = BTreeMap::new();
        for (number, link) in &self.model.links {
            for (address, length) in &link.addresses {
                let place = (link.table_of(*address), IpPrefix::new(*address, *length));
                let owner = *owners.entry(place).or_insert(*number);
                assert_eq!(owner, *number, "{address}/{length}");
            }
        }
    }

    fn route(&mut self, table: u32, prefix: IpPrefix, source: Source, target: Target, change: u8) {
        let (fib, paths) = (&mut self.fib, [Path::new(target)]);
        let key = (table, prefix, source);
        let known = &mut self.model.configured;
        match change {
            0 if fib.add_route(table, prefix, source, &paths).is_ok() => {
                known.entry(key).or_default().insert(target);
            }
            1 if fib.replace_route(table, prefix, source, &paths).is_ok() => {
                known.insert(key, BTreeSet::from([target]));
            }
            2 if fib.remove_paths(table, prefix, source, &paths).is_ok() => {
                let left = known.get_mut(&key).unwrap();
                assert!(left.remove(&target));
                if left.is_empty() {
                    known.remove(&key);
                }
            }
            3 => {
                let was = known.remove(&key).is_some();
                assert_eq!(fib.remove_route(table, prefix, source).is_ok(), was);
            }
            _ => {}
        }
    }

    /// What workers find.
    fn found(&self, table: u32, address: IpAddr) -> BTreeSet<End> {
        let (group, nodes) = match address {
            IpAddr::V4(to) => (self.fib.ip4_tables().table(table).lookup(to.to_bits()), NODES.ip4),
            IpAddr::V6(to) => (self.fib.ip6_tables().table(table).lookup(to.to_bits()), NODES.ip6),
        };
        let end = |hop: quiver_forwarding::next_hop_group::Hop| {
            let adjacency = self.fib.adjacencies().get(hop.index);
            match hop.next {
                next if next == nodes.drop => End::Drop,
                next if next == nodes.local => End::Local,
                next if next == nodes.punt => End::Punt,
                next if next == NODES.ip4_broadcast => End::Broadcast,
                next if next == nodes.glean => End::Glean(adjacency.tx.0),
                next if next == nodes.incomplete => {
                    End::Incomplete(adjacency.tx.0, adjacency.next_hop())
                }
                next => {
                    assert_eq!((next, adjacency.kind), (nodes.rewrite, AdjacencyKind::Complete));
                    let mac = adjacency.rewrite().get(..6);
                    End::Complete(
                        adjacency.tx.0,
                        mac.map(|mac| MacAddress(mac.try_into().unwrap())),
                    )
                }
            }
        };
        self.fib.groups().hops(group).into_iter().map(end).collect()
    }

    fn compare(&self) {
        let all = self.model.all();
        let own = ADDRESSES.iter().map(|text| text.split_once('/').unwrap().0);
        let edges =
            ["10.0.1.255", "10.0.1.0", "10.0.1.77", "10.0.2.1", "2001:db8:1::77", "192.0.2.1"];
        for address in HOSTS.into_iter().chain(own).chain(edges) {
            let address: IpAddr = address.parse().unwrap();
            for table in 0..TABLES {
                let expected = self.model.resolve(&all, table, address);
                assert_eq!(self.found(table, address), expected, "{address} in table {table}");
            }
        }
        for (on, link) in self.model.links.iter().filter(|(_, link)| link.link_local) {
            let table = self.fib.link_local_table(InterfaceId(*on)).expect("it speaks IPv6");
            let ours = self.found(table, link_local(*on)) == BTreeSet::from([End::Local]);
            assert_eq!(ours, link.up, "the link-local address of {on}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn routes_resolve_to_what_a_naive_model_says(ops in prop::collection::vec(op(), 1..60)) {
        let mut both = Both::new();
        both.compare();
        for op in ops {
            both.make(op);
            both.compare();
        }
    }
}

/// A subnet of table 0 that is attached in another table, in both families.
#[test]
fn a_known_neighbour_is_reached_by_an_attached_route_of_another_table() {
    for (address, route, host) in [(1, "10.0.1.0/24", 0), (5, "2001:db8:1::/64", 5)] {
        let mut both = Both::new();
        both.make(Op::Address { on: 1, address, add: true });
        both.make(Op::Neighbour { on: 1, address: host, mac: 1, add: true });
        let to = HOSTS[host].parse().unwrap();
        both.route(1, prefix(route), Source::Static, Target::Attached(InterfaceId(1)), 0);
        let known = BTreeSet::from([End::Complete(1, Some(MacAddress([2, 0, 0, 0, 0, 1])))]);
        assert_eq!(both.found(1, to), known);
        both.make(Op::Neighbour { on: 1, address: host, mac: 1, add: false });
        assert_eq!(both.found(1, to), BTreeSet::from([End::Glean(1)]));
        both.compare();
    }
}

/// Otherwise a neighbour under a subnet would take packets that a longer prefix leads elsewhere.
#[test]
fn a_neighbour_under_a_longer_prefix_that_leads_elsewhere_draws_no_traffic() {
    let mut both = Both::new();
    both.make(Op::Address { on: 1, address: 1, add: true });
    both.make(Op::Neighbour { on: 1, address: 1, mac: 1, add: true });
    let to = HOSTS[1].parse().unwrap();
    both.route(0, prefix("10.0.1.128/25"), Source::Static, Target::Punt, 0);
    assert_eq!(both.found(0, to), BTreeSet::from([End::Punt]));
    both.route(0, prefix("10.0.1.128/25"), Source::Static, Target::Punt, 3);
    assert_eq!(
        both.found(0, to),
        BTreeSet::from([End::Complete(1, Some(MacAddress([2, 0, 0, 0, 0, 1])))])
    );
    both.compare();
}

#[test]
fn an_interface_that_is_down_has_no_routes_and_keeps_its_subnet() {
    let mut both = Both::new();
    both.make(Op::Address { on: 1, address: 1, add: true });
    both.route(0, prefix("10.0.0.0/16"), Source::Static, Target::Punt, 0);
    both.make(Op::Link { on: 1, up: false });
    for address in ["10.0.1.1", "10.0.1.77"] {
        assert_eq!(
            both.found(0, address.parse().unwrap()),
            BTreeSet::from([End::Punt]),
            "{address}"
        );
    }
    assert!(both.fib.add_address(InterfaceId(2), "10.0.1.2".parse().unwrap(), 24).is_err());
    both.make(Op::Link { on: 1, up: true });
    assert_eq!(both.found(0, "10.0.1.1".parse().unwrap()), BTreeSet::from([End::Local]));
    both.compare();
}
