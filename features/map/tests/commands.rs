//! What is configured: refused where it makes no sense, written down, and taken back.

use quiver_testkit::configuration::running;

use crate::fixture::*;
use crate::translation::relay;

#[test]
fn what_makes_no_domain_is_refused_and_changes_nothing() {
    let mut router = relay();
    let before = running(&mut router);
    for (line, says) in [
        (
            "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1 \
          ea-bits-len 8",
            "MAP domain 0 has 192.0.2.0/24 already",
        ),
        (
            "map add domain ip4-pfx 10.0.0.1/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1",
            "10.0.0.0/24 would be right",
        ),
        (
            "map add domain ip4-pfx 224.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1",
            "no host's",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1 \
          psid-offset 9 psid-len 8 ea-bits-len 16",
            "over 16 bits",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1 \
          psid-len 8 ea-bits-len 15",
            "ea-bits-len 16 would be right",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1 \
          psid-len 8",
            "an ip4-pfx of 32 bits",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/124 ip6-src 2001:db8::1 \
          ea-bits-len 8",
            "over 128 bits",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::/64",
            "no address of one host",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::/95 map-t",
            "RFC 6052",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/65 ip6-src 2001:db8:64::/96 \
             map-t",
            "does not fit",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8:7700::/40 \
          ip6-src 2001:db8:64::/96 map-t",
            "MAP domain 2 translates",
        ),
        (
            "map add domain ip4-pfx 10.0.0.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8::1 index 1",
            "another MAP domain 1",
        ),
        ("map del domain index 9", "no MAP domain 9"),
        ("map add rule index 9 psid 0 ip6-dst 2001:db8::1", "no MAP domain 9"),
        ("map add rule index 0 psid 0 ip6-dst 2001:db8::1", "follow from its prefix"),
        ("map add rule index 1 psid 64 ip6-dst 2001:db8::1", "no PSID 64"),
        ("map del rule index 1 psid 4", "no such rule"),
        ("map del rule index 1 psid 5 ip6-dst 2001:db8::1", "no such rule"),
        ("map interface e0", "is that already"),
        ("show map domain index 9", "no MAP domain 9"),
        ("show map customer 10.9.9.9 port 80", "in no MAP domain"),
        ("show map customer 192.0.2.18 port 80", "no customer has port 80"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}

#[test]
fn what_is_configured_is_written_down_and_taken_back() {
    let mut router = relay();
    for line in [
        "map params fragment inner ignore-df",
        "map params security-check off",
        "map params security-check fragments on",
        "map params traffic-class 32",
        "map params tcp-mss 1420",
        "map params icmp source-address 192.0.2.254",
        "map params icmp6 unreachables off",
    ] {
        router.cli(line);
        assert!(running(&mut router).contains(line), "{line}");
    }
    let text = running(&mut router);
    for line in [
        "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8:ffff::1 \
         index 0 ea-bits-len 16 psid-offset 6 psid-len 8",
        "map add domain tag softwires ip4-pfx 203.0.113.1/32 ip6-pfx ::/0 ip6-src \
         2001:db8:ffff::1 index 1 psid-len 6",
        "map add rule index 1 psid 5 ip6-dst 2001:db8:4446:5::1",
        "map interface e0 map-t",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // The same again changes nothing.
    for line in text.lines().filter(|line| line.starts_with("map add")) {
        router.cli(line);
    }
    assert_eq!(running(&mut router), text);
    for line in [
        "map params fragment outer honor-df",
        "map params security-check on",
        "map params security-check fragments off",
        "map params traffic-class copy",
        "map params tcp-mss 0",
        "map params icmp source-address 0.0.0.0",
        "map params icmp6 unreachables on",
        "map del domain index 0",
        "map del domain index 1",
        "map del domain index 2",
        "map interface e0 del",
        "map interface e1 del",
        "map interface e0 map-t del",
        "map interface e1 map-t del",
    ] {
        router.cli(line);
    }
    let text = running(&mut router);
    assert!(!text.contains("map"), "{text}");
    assert!(router.refused("show ip fib 192.0.2.18").contains("no route"));
}

#[test]
fn domains_are_shown_and_computed() {
    let mut router = relay();
    let domains = router.json("show map domain");
    assert_eq!(domains[1]["mode"], "lw4o6", "{domains}");
    assert_eq!(domains[1]["rules"], 1);
    assert_eq!(router.json("show map rule index 1")[0]["ip6_destination"], B4.to_string());
    let customer = router.json("show map customer 192.0.2.18 port 1232");
    assert_eq!(customer["ipv6_address"], CUSTOMER.to_string(), "{customer}");
    assert_eq!(customer["ports"][0]["first_port"], 1232);
    let customer = router.json("show map customer 203.0.113.1 port 5127");
    assert_eq!(customer["ipv6_address"], B4.to_string());
    let packet = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b"question"));
    router.send("e1", &from(CUSTOMER, &packet));
    router.sent("e0");
    let stats = router.json("show map stats");
    assert_eq!(stats["directions"][1]["packets"], 1, "{stats}");
    assert_eq!(stats["directions"][1]["bytes"], packet.len(), "{stats}");
    assert_eq!((&stats["domains"], &stats["rules"]), (&3.into(), &1.into()));
    assert_eq!(router.json("show map fragments")["cut"], "outer");
    assert_eq!(router.json("show map interface")[0]["translation"], true);
}

/// A binding table of 64k softwires: each PSID of 1,024 addresses has a customer of its own.
#[test]
fn sixty_four_thousand_softwires_are_told_apart() {
    let mut router = border();
    let mut lines = String::new();
    for address in 0..1024u32 {
        let ip4 = std::net::Ipv4Addr::from(0x0a80_0000 + address);
        lines += &format!(
            "map add domain ip4-pfx {ip4}/32 ip6-pfx ::/0 ip6-src 2001:db8:ffff::1 psid-len 6 \
             index {}\n",
            100 + address
        );
        for psid in 0..64 {
            let index = 100 + address;
            lines += &format!(
                "map add rule index {index} psid {psid} ip6-dst 2001:db8:a:{address:x}::{psid:x}\n"
            );
        }
    }
    router.script("softwires", &lines).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(router.json("show map stats")["rules"], 65_537);
    for address in [0u32, 1, 511, 1023] {
        for psid in [0u16, 1, 33, 63] {
            let ip4 = std::net::Ipv4Addr::from(0x0a80_0000 + address);
            let data = udp(53, psid << 10 | 77, b"");
            router.send("e0", &quiver_testkit::frames::ip4(0, (SERVER, ip4), UDP, whole(), &data));
            let expected: std::net::Ipv6Addr =
                format!("2001:db8:a:{address:x}::{psid:x}").parse().expect("an address");
            assert_eq!(ends6(&one(&mut router, "e1")).1, expected);
        }
    }
}
