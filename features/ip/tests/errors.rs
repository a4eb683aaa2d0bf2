//! ICMP errors: how many the router sends, and what it makes of those about its own packets.

use crate::stand;

use std::time::Duration;

use quiver_control::{Collected, Started, Step};
use quiver_testkit::Router;
use quiver_wire::checksum::Sum;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, ip4};
use stand::{answer4, answer6, host, host_mac, host4, host6, ping, port_mac, router};

/// Execute `line`, which takes a while; `meanwhile` sees the router on the way. What it says.
fn drive(router: &mut Router, line: &str, mut meanwhile: impl FnMut(&mut Router)) -> String {
    let commands = router.commands();
    let commands = commands.borrow();
    let Ok(Started::Running(mut execution)) = commands.start(router.engine(), line) else {
        panic!("`{line}` does not take a while");
    };
    let mut sink = Collected::default();
    for _ in 0..1000 {
        let step = execution.step(&commands, router.engine(), &mut sink).expect("a ping");
        if let Step::Done(last) = step {
            sink.outputs.push(last);
            return sink.outputs.iter().map(quiver_control::Output::to_text).collect();
        }
        router.run();
        meanwhile(router);
        router.advance(Duration::from_millis(50));
    }
    panic!("`{line}` does not end");
}

/// A router on the way says that `packet`, of the router under test, is too long.
fn too_long(packet: &[u8], mtu_bytes: u16) -> Vec<u8> {
    let mut out = vec![0; 14];
    if packet[0] >> 4 == 4 {
        EthernetHeader::new(port_mac(1), host_mac(9), EtherType::IPV4).write(&mut out).unwrap();
        let mut icmp = vec![3, 4, 0, 0, 0, 0];
        icmp.extend(mtu_bytes.to_be_bytes());
        icmp.extend(&packet[..packet.len().min(500)]);
        let sum = Sum::new().bytes(&icmp).checksum();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut header = vec![0; 20];
        ip4::Repr::new(host4(1, 9), host4(1, 1), IpProtocol::ICMP, icmp.len())
            .emit(&mut header)
            .unwrap();
        out.extend(header);
        out.extend(icmp);
    } else {
        EthernetHeader::new(port_mac(1), host_mac(9), EtherType::IPV6).write(&mut out).unwrap();
        let mut icmp = vec![2, 0, 0, 0];
        icmp.extend(u32::from(mtu_bytes).to_be_bytes());
        icmp.extend(&packet[..packet.len().min(1000)]);
        let length = icmp.len() as u16;
        let pseudo = Sum::pseudo6(host6(1, 9), host6(1, 1), IpProtocol::ICMP6, length.into());
        let sum = pseudo.bytes(&icmp).checksum();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut header = vec![0; 40];
        Ip6Header::new(host6(1, 9), host6(1, 1), IpProtocol::ICMP6, 64, length)
            .write(&mut header)
            .unwrap();
        out.extend(header);
        out.extend(icmp);
    }
    out
}

/// Host 9 behind e1 is known, and the way to everything far.
fn with_gateway() -> Router {
    let mut router = router();
    router.cli("ip neighbor e1 10.1.0.9 02:00:00:00:00:09");
    router.cli("ip neighbor e1 2001:db8:1::9 02:00:00:00:00:09");
    router.cli("ip route add 192.0.2.0/24 via 10.1.0.9");
    router.cli("ip route add 2001:db8:ffff::/48 via 2001:db8:1::9");
    router
}

fn path_mtus(router: &mut Router) -> Vec<(String, u64)> {
    let shown = router.json("show ip pmtu");
    let rows = shown.as_array().unwrap().iter();
    rows.map(|row| {
        (row["destination"].as_str().unwrap().to_owned(), row["mtu_bytes"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn a_ping_learns_what_its_path_takes_and_is_not_sent_longer_whole() {
    let mut router = with_gateway();
    let mut sent = 0;
    let said =
        drive(&mut router, "ping 192.0.2.1 repeat 3 interval 0.2 size 1400 df-bit", |router| {
            for frame in router.sent("e1") {
                assert_eq!(frame[20] & 0x40, 0x40, "it must not be cut");
                sent += 1;
                router.send("e1", &too_long(&frame[14..], 1300));
            }
        });
    assert!(said.contains("fragmentation needed"), "{said}");
    assert!(
        said.contains("icmp_seq=2 is not sent: it is longer than the path takes, 1300 bytes"),
        "{said}"
    );
    assert_eq!(sent, 1);
    assert_eq!(path_mtus(&mut router), [("192.0.2.1".to_owned(), 1300)]);
    router.advance(Duration::from_secs(601));
    assert_eq!(path_mtus(&mut router), []);
}

#[test]
fn over_ip6_the_next_request_is_cut_to_fit_the_path() {
    let mut router = with_gateway();
    let mut lengths = Vec::new();
    drive(&mut router, "ping 2001:db8:ffff::1 repeat 2 interval 0.2 size 1400", |router| {
        for frame in router.sent("e1") {
            lengths.push(frame.len() - 14);
            if frame.len() - 14 > 1300 {
                router.send("e1", &too_long(&frame[14..], 1300));
            }
        }
    });
    assert_eq!(lengths, [1448, 1296, 48 + (1408 - 1248)]);
    assert_eq!(path_mtus(&mut router), [("2001:db8:ffff::1".to_owned(), 1300)]);
}

#[test]
fn an_error_about_a_packet_that_was_not_sent_teaches_nothing() {
    let mut router = with_gateway();
    let mut done = false;
    drive(&mut router, "ping 192.0.2.1 repeat 1 size 1400 df-bit", |router| {
        let Some(frame) = router.sent("e1").pop() else { return };
        done = true;
        let mut elsewhere = frame[14..].to_vec();
        elsewhere[19] = 77; // to another destination
        router.send("e1", &too_long(&elsewhere, 1300));
        let mut other = frame[14..].to_vec();
        other[24] ^= 0x40; // another identifier
        router.send("e1", &too_long(&other, 1300));
    });
    assert!(done);
    assert_eq!(path_mtus(&mut router), []);
    drive(&mut router, "ping 192.0.2.1 repeat 1 size 1400 df-bit", |router| {
        for frame in router.sent("e1") {
            router.send("e1", &too_long(&frame[14..], 60)); // less than any path has
        }
    });
    assert_eq!(path_mtus(&mut router), []);
}

#[test]
fn what_a_path_takes_can_be_said_shown_and_taken_back() {
    let mut router = with_gateway();
    router.cli("set ip pmtu peer 192.0.2.1 path-mtu 1000");
    let said = drive(&mut router, "ping 192.0.2.1 repeat 1 size 1400 df-bit", |_| {});
    assert!(said.contains("longer than the path takes, 1000 bytes"), "{said}");
    assert!(router.cli("show ip pmtu").contains("never"));
    assert!(router.cli("show running-config").contains("set ip pmtu peer 192.0.2.1 path-mtu 1000"));
    router.cli("clear ip pmtu");
    router.cli("set ip pmtu del peer 192.0.2.1");
    assert!(router.refused("set ip pmtu del peer 192.0.2.1").contains("nothing is known"));
    assert!(router.refused("set ip pmtu peer 2001:db8::1 path-mtu 1279").contains("1280"));
}

#[test]
fn each_table_has_paths_of_its_own() {
    let mut router = with_gateway();
    router.interface("e2");
    router.cli("ip table add 10");
    router.cli("set interface ip table e2 10");
    router.cli("set interface ip address e2 10.2.0.1/16");
    router.cli("ip route add 192.0.2.0/24 table 10 via 10.1.0.9 e1");
    router.cli("set ip pmtu peer 192.0.2.1 table 10 path-mtu 1000");
    let pings = |router: &mut Router, source: &str| {
        drive(router, &format!("ping 192.0.2.1 {source} repeat 1 size 1400 df-bit"), |_| {})
    };
    assert!(pings(&mut router, "source e2").contains("longer than the path takes, 1000 bytes"));
    assert!(!pings(&mut router, "").contains("longer than the path"));
    let shown = router.json("show ip pmtu");
    assert_eq!((shown.as_array().unwrap().len(), &shown[0]["table"]), (1, &10.into()));
    assert!(
        router
            .cli("show running-config")
            .contains("set ip pmtu peer 192.0.2.1 table 10 path-mtu 1000")
    );
    assert!(router.refused("set ip pmtu del peer 192.0.2.1").contains("nothing is known"));
    assert!(
        router
            .refused("set ip pmtu peer 192.0.2.1 table 11 path-mtu 1000")
            .contains("ip table add 11")
    );
    // What is known of a table's paths goes with it.
    router.cli("ip route del 192.0.2.0/24 table 10");
    router.cli("set interface ip address del e2 10.2.0.1/16");
    router.cli("set interface ip table e2 0");
    router.cli("ip table del 10");
    assert_eq!(path_mtus(&mut router), []);
}

#[test]
fn a_ping_longer_than_the_first_link_is_not_sent_whole() {
    let mut router = with_gateway();
    for to in ["192.0.2.1", "2001:db8:ffff::1"] {
        let said = drive(&mut router, &format!("ping {to} repeat 1 size 2000 df-bit"), |_| {});
        assert!(said.contains("longer than the path takes, 1500 bytes"), "{said}");
        assert!(router.sent("e1").is_empty());
        drive(&mut router, &format!("ping {to} repeat 1 size 2000"), |_| {});
        assert_eq!(router.sent("e1").len(), 2, "in fragments");
    }
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn how_many_errors_are_sent_is_said_for_each_family() {
    for six in [false, true] {
        let mut router = router();
        let (family, other) = if six { ("ip6", "ip4") } else { ("ip4", "ip6") };
        let to = if six { "4000::1".parse().unwrap() } else { host4(77, 1).into() };
        let told = |router: &mut Router| {
            for _ in 0..200 {
                router.inject("e0", &ping(0, host(six, 0, 2), to, 20));
            }
            router.run();
            router.sent("e0").len()
        };
        assert_eq!(told(&mut router), 100, "the usual burst");
        router.cli(&format!("set ip icmp-rate-limit {other} 1 burst 1"));
        router.advance(Duration::from_secs(1));
        assert_eq!(told(&mut router), 100);
        router.cli(&format!("set ip icmp-rate-limit {family} 50 burst 7"));
        assert_eq!(told(&mut router), 7);
        router.advance(Duration::from_millis(40));
        assert_eq!(told(&mut router), 2);
        router.cli("set ip icmp-rate-limit 0");
        router.advance(Duration::from_secs(1));
        assert_eq!(told(&mut router), 0);
        let node = format!("{family}-icmp-error");
        assert_eq!(router.count(&node, "rate-limited"), 1000 - 209);
        let shown = router.json("show ip icmp-rate-limit");
        assert_eq!((&shown[0]["per_second"], &shown[1]["per_second"]), (&0.into(), &0.into()));
        assert!(
            router.cli("show running-config").contains("set ip icmp-rate-limit ip4 0 burst 100")
        );
    }
}

#[test]
fn no_error_is_sent_to_an_address_that_is_no_hosts_or_about_a_group() {
    let mut router = router();
    let to: std::net::IpAddr = host4(77, 1).into();
    for from in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"] {
        router.send("e0", &ping(0, from.parse().unwrap(), to, 20));
    }
    for from in ["::", "::1", "ff02::1", "::ffff:10.0.0.1"] {
        router.send("e0", &ping(0, from.parse().unwrap(), "4000::1".parse().unwrap(), 20));
    }
    for group in ["224.0.1.1", "239.1.2.3", "10.0.255.255"] {
        router.send("e0", &ping(0, host(false, 0, 2), group.parse().unwrap(), 20));
    }
    for group in ["ff02::99", "ff0e::1"] {
        router.send("e0", &ping(0, host(true, 0, 2), group.parse().unwrap(), 20));
    }
    assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
}

#[test]
fn a_host_that_answers_in_time_is_not_said_to_be_unreachable() {
    for six in [false, true] {
        let mut router = router();
        router.send("e0", &stand::ping_to(six, 9));
        router.advance(Duration::from_millis(2900));
        router.send("e1", &if six { answer6(9) } else { answer4(1, 9) });
        router.advance(Duration::from_secs(5));
        assert!(router.sent("e0").is_empty());
    }
}
