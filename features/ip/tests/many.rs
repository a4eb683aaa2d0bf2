//! Thousands of interfaces: a change costs what it concerns, however many others there are.

use std::collections::BTreeMap;

use quiver_core::InterfaceId;
use quiver_forwarding::ip::{Addresses, IpTables, NOT_ENABLED};
use quiver_testkit::Router;

const PARTS: u16 = 2_000;
/// Values that one change of one interface may replace.
const REPLACED_MAX: usize = 8;

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router
}

/// What workers see of an interface.
fn seen(router: &mut Router, id: InterfaceId) -> Option<Addresses> {
    let tables = router.engine().shared::<IpTables>().unwrap();
    let reader = router.engine().epochs().reader(0);
    tables.interfaces.addresses(id, reader.pass()).cloned()
}

/// Where what workers see stands in memory, by interface.
fn places(router: &mut Router) -> BTreeMap<InterfaceId, usize> {
    let tables = router.engine().shared::<IpTables>().unwrap();
    let reader = router.engine().epochs().reader(0);
    let place = |id| {
        let addresses = tables.interfaces.addresses(id, reader.pass())?;
        Some((id, std::ptr::from_ref(addresses).addr()))
    };
    router.engine().all_interfaces().filter_map(|interface| place(interface.id)).collect()
}

/// Execute, and say how many values were replaced that workers may still see.
fn replaced_by(router: &mut Router, line: &str) -> usize {
    router.step(); // makes free what no worker sees any more
    let before = router.engine().epochs().retired();
    router.cli(line);
    router.engine().epochs().retired() - before
}

/// e0.1 to e0.2000, each with an address of both families. Returns the most that one command
/// replaced.
fn add_parts(router: &mut Router) -> usize {
    router.cli(&format!("create sub-interfaces e0 1-{PARTS}"));
    let mut most = 0;
    for part in 1..=PARTS {
        let (high, low) = (part / 256, part % 256);
        for address in [format!("10.{high}.{low}.1/24"), format!("2001:db8:{part:x}::1/64")] {
            let line = format!("set interface ip address e0.{part} {address}");
            most = most.max(replaced_by(router, &line));
        }
    }
    most
}

#[test]
fn an_address_among_thousands_of_interfaces_moves_nothing_but_its_own() {
    let mut router = router();
    let most = add_parts(&mut router);
    assert!(most <= REPLACED_MAX, "{most}");
    let before = places(&mut router);
    assert_eq!(before.len(), usize::from(PARTS));
    let changed = router.id("e0.1000");
    let replaced = replaced_by(&mut router, "set interface ip address e0.1000 172.16.0.1/24");
    assert!(replaced <= REPLACED_MAX, "{replaced}");
    let after = places(&mut router);
    let moved: Vec<_> = before.keys().filter(|id| after.get(id) != before.get(id)).collect();
    assert_eq!(moved, [&changed]);
    assert_eq!(seen(&mut router, changed).unwrap().ip4.len(), 2);
}

#[test]
fn one_of_thousands_that_goes_moves_nothing_else_and_a_port_takes_all_of_them_along() {
    let mut router = router();
    add_parts(&mut router);
    let before = places(&mut router);
    let gone = router.id("e0.7");
    let replaced = replaced_by(&mut router, "delete sub-interface e0.7");
    assert!(replaced <= REPLACED_MAX, "{replaced}");
    let after = places(&mut router);
    let moved: Vec<_> = before.keys().filter(|id| after.get(id) != before.get(id)).collect();
    assert_eq!(moved, [&gone]);
    let (port, parts): (_, Vec<InterfaceId>) = (router.id("e0"), after.into_keys().collect());
    router.engine().delete_interface(port).unwrap();
    assert!(places(&mut router).is_empty());
    let tables = router.engine().shared::<IpTables>().unwrap();
    for part in parts {
        assert_eq!(tables.interfaces.table4(part), NOT_ENABLED);
        assert_eq!(tables.interfaces.table6(part), NOT_ENABLED);
        assert_eq!(tables.interfaces.link_local_table(part), NOT_ENABLED);
    }
    assert!(!router.cli("show ip fib").contains("10.0.9.0"));
}

#[test]
fn who_has_but_a_link_local_address_borrows_another_while_there_is_one() {
    let mut router = router();
    for name in ["e1", "e2", "e3"] {
        router.interface(name);
    }
    let bare = router.id("e2");
    router.cli("enable ip6 interface e2");
    let source =
        |router: &mut Router| seen(router, bare).unwrap().elsewhere6.map(|own| own.to_string());
    assert_eq!(source(&mut router), None);
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    assert_eq!(source(&mut router).as_deref(), Some("2001:db8:1::1"));
    // It stays while it can.
    router.cli("set interface ip address e0 2001:db8::1/64");
    router.cli("set interface ip address e3 2001:db8:3::1/64");
    assert_eq!(source(&mut router).as_deref(), Some("2001:db8:1::1"));
    router.cli("set interface ip address del e1 2001:db8:1::1/64");
    assert_eq!(source(&mut router).as_deref(), Some("2001:db8:3::1"));
    let gone = router.id("e3");
    router.engine().delete_interface(gone).unwrap();
    assert_eq!(source(&mut router).as_deref(), Some("2001:db8::1"));
    router.cli("set interface ip address del e0 2001:db8::1/64");
    assert_eq!(source(&mut router), None);
}
