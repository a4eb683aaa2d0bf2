//! Multicast routes as workers find them, beside a naive model.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use quiver_core::memory::epoch::{Epochs, Reader};
use quiver_core::{InterfaceId, NodeId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, InterfaceInfo};
use quiver_forwarding::mfib::{Mfib, MfibError, OUTPUTS_MAX, ROUTES_MAX, Route, RouteKey};
use quiver_wire::MacAddress;

use crate::stand;

struct Stand {
    fib: Fib,
    mfib: Mfib,
    reader: Reader,
}

fn stand() -> Stand {
    let epochs = Epochs::new(1);
    let mut reader = epochs.reader(0);
    reader.wake();
    Stand { fib: stand::router(24), mfib: Mfib::new(&epochs, 2).expect("memory"), reader }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn at(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Stand {
    fn find(&self, table: u32, source: &str, group: &str) -> Option<u32> {
        let (source, group) = (at(source), at(group));
        self.mfib.tables().find(
            group.is_ipv6(),
            table,
            bits(source),
            bits(group),
            self.reader.pass(),
        )
    }

    fn accepts(&self, source: &str, group: &str, rx: u32) -> bool {
        let number = self.find(0, source, group).expect("a route");
        self.mfib
            .tables()
            .entry(number, self.reader.pass())
            .expect("it is there")
            .accepts(InterfaceId(rx))
    }

    fn outputs(&self, group: &str) -> Vec<(u32, u16, usize)> {
        let number = self.find(0, "10.0.0.1", group).expect("a route");
        let entry = self.mfib.tables().entry(number, self.reader.pass()).expect("it is there");
        entry
            .outputs
            .iter()
            .map(|out| (out.tx.0, out.mtu_bytes, usize::from(out.header_len)))
            .collect()
    }

    fn set(&mut self, source: Option<&str>, group: &str, length: u8, route: Route) {
        let key = RouteKey::new(0, source.map(at), at(group), length).expect("a group");
        self.mfib.set(key, route, &self.fib).expect("room");
    }
}

fn from(interface: u32) -> Route {
    Route { accept: [InterfaceId(interface)].into(), ..Route::default() }
}

fn to(interface: u32) -> Route {
    Route { forward: [(InterfaceId(interface), 0)].into(), ..Route::default() }
}

fn info(id: u32, mtu_bytes: u16, up: bool) -> InterfaceInfo {
    InterfaceInfo {
        id: InterfaceId(id),
        output: NodeId(100 + id as u16),
        mac: Some(MacAddress([2, 0, 0, 0, 0, id as u8])),
        vlan_tags: Vec::new(),
        mtu_bytes,
        family_mtu_bytes: [None; 2],
        mpls_mtu_bytes: None,
        up,
        ip4_table: 0,
        ip6_table: 0,
    }
}

#[test]
fn a_source_goes_before_a_group_and_a_group_before_a_prefix() {
    let mut stand = stand();
    stand.set(None, "224.0.0.0", 4, from(1));
    stand.set(None, "232.1.0.0", 16, from(2));
    stand.set(None, "232.1.1.1", 32, from(3));
    stand.set(Some("10.0.0.9"), "232.1.1.1", 32, from(4));
    for (source, group, rx) in [
        ("10.0.0.9", "239.9.9.9", 1),
        ("10.0.0.9", "232.1.2.1", 2),
        ("10.0.0.8", "232.1.1.1", 3),
        ("10.0.0.9", "232.1.1.1", 4),
    ] {
        for interface in 1..=4 {
            assert_eq!(
                stand.accepts(source, group, interface),
                interface == rx,
                "{source} {group}"
            );
        }
    }
    assert_eq!(stand.find(1, "10.0.0.9", "232.1.1.1"), None, "another table");
    assert_eq!(stand.find(0, "2001:db8::1", "ff05::1"), None, "another family");
}

#[test]
fn the_same_words_in_the_other_family_are_another_route() {
    let mut stand = stand();
    stand.set(None, "ff0e::1", 128, from(6));
    stand.set(None, "ff00::", 8, from(7));
    assert!(stand.accepts("2001:db8::1", "ff0e::1", 6));
    assert!(stand.accepts("2001:db8::1", "ff05::1", 7));
    assert_eq!(stand.find(0, "10.0.0.1", "232.1.1.1"), None);
}

#[test]
fn a_route_that_was_removed_is_found_no_more_and_its_number_waits_for_the_pass() {
    let mut stand = stand();
    stand.set(None, "232.1.1.1", 32, from(1));
    let number = stand.find(0, "10.0.0.1", "232.1.1.1").expect("a route");
    let key = RouteKey::new(0, None, at("232.1.1.1"), 32).expect("a group");
    stand.mfib.remove(&key, &stand.fib).expect("it is there");
    assert!(matches!(stand.mfib.remove(&key, &stand.fib), Err(MfibError::NoRoute)));
    assert_eq!(stand.find(0, "10.0.0.1", "232.1.1.1"), None);
    stand.set(None, "232.1.1.2", 32, from(1));
    assert_ne!(
        stand.find(0, "10.0.0.1", "232.1.1.2"),
        Some(number),
        "a worker may still hold the number"
    );
    assert!(stand.mfib.tables().entry(number, stand.reader.pass()).is_none());
}

#[test]
fn outputs_follow_the_interfaces() {
    let mut stand = stand();
    stand.fib.set_interface(info(2, 1500, true)).expect("port");
    stand.set(None, "232.1.1.1", 32, to(2));
    assert_eq!(stand.outputs("232.1.1.1"), [(2, 1500, 14)]);
    stand.fib.set_interface(info(2, 9000, true)).expect("port");
    stand.mfib.refresh(InterfaceId(2), &stand.fib);
    assert_eq!(stand.outputs("232.1.1.1"), [(2, 9000, 14)]);
    stand.fib.set_interface(info(2, 9000, false)).expect("port");
    stand.mfib.refresh(InterfaceId(2), &stand.fib);
    assert_eq!(stand.outputs("232.1.1.1"), []);
    stand.mfib.forget(InterfaceId(2), &stand.fib);
    assert!(stand.mfib.is_empty(), "a route that says nothing goes with its interface");
}

#[test]
fn the_header_of_a_copy_has_the_mac_address_of_the_group() {
    let mut stand = stand();
    let mut tagged = info(2, 1500, true);
    tagged.vlan_tags = vec![0x81, 0, 0, 7];
    stand.fib.set_interface(tagged).expect("port");
    stand.set(None, "232.0.0.0", 8, to(2));
    let number = stand.find(0, "10.0.0.1", "232.1.2.3").expect("a route");
    let entry = stand.mfib.tables().entry(number, stand.reader.pass()).expect("it is there");
    let mac = MacAddress::for_ip4_multicast(Ipv4Addr::new(232, 129, 2, 3));
    let header = entry.outputs[0].header_for(mac.0);
    assert_eq!(header[14..20], [0x01, 0, 0x5e, 1, 2, 3]);
    assert_eq!(header[20..], [2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 8, 0]);
}

#[test]
fn counts_stay_when_a_route_changes() {
    let mut stand = stand();
    stand.set(None, "232.1.1.1", 32, from(1));
    let number = stand.find(0, "10.0.0.1", "232.1.1.1").expect("a route");
    let entry = stand.mfib.tables().entry(number, stand.reader.pass()).expect("it is there");
    entry.counts.accepted(WorkerId(0), (1, 100));
    entry.counts.accepted(WorkerId(1), (1, 50));
    entry.counts.rejected(WorkerId(1), 1);
    stand.set(None, "232.1.1.1", 32, from(2));
    let (_, route, _, totals) = stand.mfib.iter_all().next().expect("a route");
    assert_eq!((totals.packets, totals.bytes, totals.rejected), (2, 150, 1));
    assert!(route.accept.contains(&InterfaceId(2)));
}

#[test]
fn what_is_no_route_for_groups_has_no_key() {
    let key = |source: Option<&str>, group: &str, length| {
        RouteKey::new(0, source.map(at), at(group), length)
    };
    assert!(key(None, "10.0.0.1", 32).is_none());
    assert!(key(None, "232.1.1.1", 24).is_none(), "bits behind the length");
    assert!(key(None, "224.0.0.0", 3).is_none());
    assert!(key(Some("10.0.0.1"), "232.1.0.0", 16).is_none(), "a source and a prefix");
    assert!(key(Some("2001:db8::1"), "232.1.1.1", 32).is_none());
    assert!(key(Some("2001:db8::1"), "ff05::1", 128).is_some());
}

#[test]
fn limits_are_told_and_nothing_changes() {
    let mut stand = stand();
    let key = |n: u32| {
        RouteKey::new(0, None, IpAddr::V4(Ipv4Addr::from_bits(0xe800_0000 + n)), 32)
            .expect("a group")
    };
    let many = Route {
        forward: (0..=OUTPUTS_MAX as u32).map(|id| (InterfaceId(id), 0)).collect(),
        ..from(1)
    };
    assert!(matches!(stand.mfib.set(key(0), many, &stand.fib), Err(MfibError::OutputsMax(257))));
    for n in 0..ROUTES_MAX as u32 {
        stand.mfib.set(key(n), from(1), &stand.fib).expect("room");
        if n % 1024 == 0 {
            stand.reader.quiescent();
            stand.mfib.collect();
        }
    }
    let refused = stand.mfib.set(key(ROUTES_MAX as u32), from(1), &stand.fib).unwrap_err();
    assert!(refused.to_string().contains("65536"), "{refused}");
    assert_eq!(stand.mfib.len(), ROUTES_MAX);
    assert!(stand.find(0, "10.0.0.1", "232.0.255.255").is_some());
    assert_eq!(stand.find(0, "10.0.0.1", "232.1.0.0"), None);
}

type Model = BTreeMap<RouteKey, u32>;

/// The route that a naive reader would take.
fn model_find(model: &Model, table: u32, source: IpAddr, group: IpAddr) -> Option<u32> {
    let family = Family::of(group);
    let covers = |key: &RouteKey| {
        let width = if family == Family::Ip4 { 32 } else { 128 };
        let spare = u32::from(width - key.length);
        bits(key.group) >> spare == bits(group) >> spare
            && key.source.is_none_or(|own| own == source)
    };
    let here =
        model.iter().filter(|(key, _)| key.family == family && key.table == table && covers(key));
    here.max_by_key(|(key, _)| (key.source.is_some(), key.length)).map(|(_, rx)| *rx)
}

fn address(six: bool, group: bool, low: u8) -> IpAddr {
    let low = low & 0x0f;
    match (six, group) {
        (false, false) => IpAddr::V4(Ipv4Addr::new(10, 0, 0, low)),
        (false, true) => IpAddr::V4(Ipv4Addr::new(232, low << 4, 0, low)),
        (true, false) => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, low.into())),
        (true, true) => {
            IpAddr::V6(Ipv6Addr::new(0xff0e, u16::from(low) << 12, 0, 0, 0, 0, 0, low.into()))
        }
    }
}

fn key_of(six: bool, table: u32, source: Option<u8>, group: u8, shorter: u8) -> Option<RouteKey> {
    let width: u8 = if six { 128 } else { 32 };
    let length = if source.is_some() { width } else { width - shorter % 25 };
    let group = bits(address(six, true, group));
    let spare = u32::from(width - length);
    let masked = group >> spare << spare;
    let group = if six {
        IpAddr::from(masked.to_be_bytes())
    } else {
        IpAddr::from((masked as u32).to_be_bytes())
    };
    RouteKey::new(table, source.map(|low| address(six, false, low)), group, length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn workers_find_what_a_naive_reader_would(
        changes in prop::collection::vec(
            (any::<bool>(), 0..3u32, prop::option::of(0..16u8), 0..16u8, 0..25u8, 0..4u8), 1..120,
        ),
        asked in prop::collection::vec((any::<bool>(), 0..3u32, 0..16u8, 0..16u8), 1..60),
    ) {
        let mut stand = stand();
        let mut model = Model::new();
        for (number, (six, table, source, group, shorter, what)) in changes.into_iter().enumerate()
        {
            let Some(key) = key_of(six, table, source, group, shorter) else { continue };
            if what == 0 {
                prop_assert_eq!(
                    stand.mfib.remove(&key, &stand.fib).is_ok(),
                    model.remove(&key).is_some()
                );
            } else {
                stand.mfib.set(key, from(number as u32), &stand.fib).expect("room");
                model.insert(key, number as u32);
            }
            stand.reader.quiescent();
            stand.mfib.collect();
        }
        for (six, table, source, group) in asked {
            let (source, group) = (address(six, false, source), address(six, true, group));
            let pass = stand.reader.pass();
            let found = stand.mfib.tables().find(six, table, bits(source), bits(group), pass);
            let entry =
                found.map(|number| stand.mfib.tables().entry(number, pass).expect("it is there"));
            let rx = entry.map(|entry| entry.accept[0].0);
            prop_assert_eq!(rx, model_find(&model, table, source, group), "{} {}", source, group);
        }
    }
}
