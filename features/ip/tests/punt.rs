//! Packets for the host: redirected to a next hop, and limited in number.

use crate::stand;

use std::net::IpAddr;
use std::time::Duration;

use stand::{host, host_mac, ping, router};

/// A packet to the router's address on `e0` by a route that punts, with this TTL.
fn punted(six: bool, ttl: u8) -> Vec<u8> {
    let to: IpAddr = if six { "2001:db8:f::9" } else { "203.0.113.9" }.parse().unwrap();
    let mut frame = ping(0, host(six, 0, 2), to, 20);
    match six {
        true => frame[21] = ttl,
        false => {
            let sum = u16::from_be_bytes([frame[24], frame[25]]);
            // RFC 1624: the TTL is the high byte of its word.
            let lower = u32::from(frame[22] - ttl) << 8;
            let folded = u32::from(sum) + lower;
            frame[22] = ttl;
            frame[24..26]
                .copy_from_slice(&(((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
        }
    }
    frame
}

#[test]
fn packets_for_the_host_are_redirected_as_they_came_and_policed() {
    for six in [false, true] {
        let mut router = router();
        let (ip, nodes) = if six { ("ip6", "ip6-punt") } else { ("ip", "ip4-punt") };
        router.cli(if six {
            "ip route add 2001:db8:f::/48 via punt"
        } else {
            "ip route add 203.0.113.0/24 via punt"
        });
        router.cli(&format!("ip neighbor e1 {} {}", host(six, 1, 9), host_mac(9)));
        router.cli(&format!("ip neighbor e1 {} {}", host(six, 1, 8), host_mac(8)));
        router.send("e0", &punted(six, 1));
        assert!(router.sent("e1").is_empty());
        assert_eq!(router.count(nodes, "punted"), 1);
        let add = |rx: &str, number: u8| {
            format!("{ip} punt redirect add rx {rx} via {} e1", host(six, 1, number))
        };
        router.cli(&add("all", 9));
        router.send("e0", &punted(six, 1));
        let sent = router.sent("e1");
        assert_eq!(sent.len(), 1, "a TTL of 1 lives on");
        assert_eq!((&sent[0][..6], &sent[0][14..]), (&host_mac(9).0[..], &punted(six, 1)[14..]));
        router.cli(&add("e0", 8));
        router.send("e0", &punted(six, 64));
        assert_eq!(router.sent("e1")[0][..6], host_mac(8).0);
        assert_eq!(router.count(nodes, "redirected"), 2);
        let written = router.cli("show running-config");
        assert!(written.contains(&add("all", 9)) && written.contains(&add("e0", 8)), "{written}");
        router.cli(&format!("{ip} punt policer rate 10 burst 3"));
        (0..8).for_each(|_| router.send("e0", &punted(six, 64)));
        assert_eq!((router.sent("e1").len(), router.count(nodes, "policed")), (3, 5));
        router.advance(Duration::from_secs(1));
        router.send("e0", &punted(six, 64));
        assert_eq!(router.sent("e1").len(), 1);
        assert!(router.cli(&format!("show {ip} punt redirect")).contains("at most 10"));
        router.cli(&format!("{ip} punt policer rate 0"));
        router.cli(&format!("{ip} punt redirect del rx e0"));
        assert!(
            router.refused(&format!("{ip} punt redirect del rx e0")).contains("not redirected")
        );
        // The redirect to an interface goes with it.
        let id = router.id("e1");
        router.engine().delete_interface(id).unwrap();
        assert_eq!(router.json(&format!("show {ip} punt redirect")), serde_json::json!([]));
        router.send("e0", &punted(six, 64));
        assert_eq!(router.count(nodes, "policed"), 5);
    }
}

#[test]
fn redirects_are_written_in_the_order_of_the_interfaces_names() {
    let mut router = router();
    router.interface("a");
    for rx in ["e1", "a", "all", "e0"] {
        router.cli(&format!("ip punt redirect add rx {rx} via 10.0.1.9 e1"));
    }
    let config = router.cli("show running-config");
    let redirects = config.lines().filter_map(|line| line.strip_prefix("ip punt redirect add rx "));
    let on: Vec<&str> = redirects.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(on, ["all", "a", "e0", "e1"], "whatever numbers the interfaces have");
}
