//! Counters by adjacency, and of ARP and neighbour discovery by interface.

use crate::stand;

use std::time::Duration;

use quiver_testkit::{Router, Settings};
use quiver_wire::arp;
use stand::{answer, arp_frame, asks4, host, host_mac, host4, ping_to, router};

/// Packets and bytes of the adjacency to host number 9 behind e1.
fn counted(router: &mut Router, six: bool) -> Option<(u64, u64)> {
    let shown = router.json("show adj");
    let next_hop = host(six, 1, 9).to_string();
    let row =
        shown.as_array().unwrap().iter().find(|row| row["next_hop"] == next_hop.as_str())?.clone();
    Some((row["packets"].as_u64()?, row["bytes"].as_u64()?))
}

#[test]
fn packets_are_counted_by_adjacency_while_that_is_switched_on() {
    for six in [false, true] {
        let mut router = router();
        router.send("e0", &ping_to(six, 9));
        router.send("e1", &answer(six, 9));
        router.sent("e1");
        assert_eq!(counted(&mut router, six), None, "it is off");
        router.cli("adjacency counters enable");
        assert_eq!(counted(&mut router, six), Some((0, 0)));
        let frame = ping_to(six, 9);
        (0..5).for_each(|_| router.send("e0", &frame));
        assert_eq!(router.sent("e1").len(), 5, "they go on");
        assert_eq!(counted(&mut router, six), Some((5, 5 * frame.len() as u64)));
        // The neighbour has another MAC address: another slot, the same counters.
        router.cli(&format!("ip neighbor e1 {} 02:00:00:00:00:77", host(six, 1, 9)));
        router.send("e0", &frame);
        assert_eq!(counted(&mut router, six), Some((6, 6 * frame.len() as u64)));
        assert!(router.cli("show running-config").contains("adjacency counters enable"));
        router.cli("adjacency counters disable");
        router.send("e0", &frame);
        assert_eq!(router.sent("e1").len(), 2);
        let node = if six { "ip6-adjacency-counter" } else { "ip4-adjacency-counter" };
        assert!(!router.cli("show adj").contains(node));
        router.cli("adjacency counters enable");
        assert_eq!(counted(&mut router, six), Some((0, 0)), "from zero");
    }
}

#[test]
fn a_stale_neighbours_packets_are_counted_too() {
    let mut router = router();
    router.cli("adjacency counters enable");
    router.send("e0", &ping_to(false, 9));
    router.send("e1", &answer(false, 9));
    router.advance(Duration::from_secs(61));
    assert_eq!(stand::state(&mut router, false, 9).as_deref(), Some("stale"));
    let before = counted(&mut router, false).unwrap().0;
    router.send("e0", &ping_to(false, 9));
    assert_eq!(counted(&mut router, false).unwrap().0, before + 1);
}

/// The row of an interface's protocol.
fn messages(router: &mut Router, interface: &str, protocol: &str) -> serde_json::Value {
    let shown = router.json("show ip neighbor-counters");
    let rows = shown.as_array().unwrap().iter();
    rows.clone()
        .find(|row| row["interface"] == interface && row["protocol"] == protocol)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn messages_of_arp_and_neighbour_discovery_are_counted_by_interface() {
    let settings = Settings { unasked: true, ..Settings::default() };
    let mut router = Router::with(settings, &[quiver_ethernet::register, quiver_ip::register]);
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.{number}.0.1/16"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
    }
    router.advance(Duration::from_secs(10));
    let own = messages(&mut router, "e1", "arp");
    assert_eq!((own["tx_gratuitous"].as_u64(), own["rx_requests"].as_u64()), (Some(2), Some(0)));
    let own = messages(&mut router, "e1", "nd");
    assert_eq!((own["tx_requests"].as_u64(), own["tx_gratuitous"].as_u64()), (Some(2), Some(4)));
    router.cli("clear ip neighbor-counters");
    assert_eq!(router.json("show ip neighbor-counters"), serde_json::json!([]));
    for six in [false, true] {
        router.send("e0", &ping_to(six, 9));
        router.send("e1", &answer(six, 9));
        let own = messages(&mut router, "e1", if six { "nd" } else { "arp" });
        assert_eq!((own["tx_requests"].as_u64(), own["rx_replies"].as_u64()), (Some(1), Some(1)));
    }
    router.send("e1", &asks4(1, 7));
    let own = arp::Repr::request(host_mac(7), host4(1, 7), host4(1, 7));
    router.send("e1", &arp_frame(None, host_mac(7), &own));
    let row = messages(&mut router, "e1", "arp");
    let of = |word: &str| row[word].as_u64().unwrap();
    assert_eq!((of("rx_requests"), of("rx_gratuitous"), of("tx_replies")), (1, 1, 1));
    assert_eq!(messages(&mut router, "e0", "arp"), serde_json::Value::Null);
}
