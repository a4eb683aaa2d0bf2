//! What operators see, and what comes only with time.

use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::{Register, Router};
use quiver_wire::icmp6::nd::{self, NdOption, Options, PrefixInformation};
use quiver_wire::icmp6::{Message, within};
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xc0]);

fn router() -> Router {
    let features: [Register; 3] =
        [quiver_ethernet::register, quiver_ip::register, quiver_router_advertisement::register];
    let mut router = Router::new(&features);
    router.interface("e0");
    router.cli("set interface ip address e0 2001:db8::1/64");
    router
}

fn advertising(settings: &str) -> Router {
    let mut router = router();
    if !settings.is_empty() {
        router.cli(&format!("ip6 nd e0 {settings}"));
    }
    router.cli("ip6 nd e0 no ra-suppress");
    router
}

fn advance(router: &mut Router, milliseconds: u64) {
    router.advance(Duration::from_millis(milliseconds));
}

/// Lifetimes of the advertisements that were sent, each from its source.
fn lifetimes(router: &mut Router) -> Vec<(Ipv6Addr, u16)> {
    let read = |frame: &Vec<u8>| {
        let (header, message) = within(&frame[14..])?;
        let (source, destination) = (header.source(), header.destination());
        match Message::parse(source, destination, message) {
            Ok(Message::Nd(nd::Message::RouterAdvertisement { lifetime_s, .. })) => {
                Some((source, lifetime_s))
            }
            _ => None,
        }
    };
    router.sent("e0").iter().filter_map(read).collect()
}

fn frame(source: Ipv6Addr, destination: Ipv6Addr, message: nd::Message<'_>) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + 600];
    let length = Message::Nd(message).emit(source, destination, &mut frame[54..]).unwrap();
    let to = MacAddress::for_ip6_multicast(destination);
    EthernetHeader::new(to, HOST, EtherType::IPV6).write(&mut frame).unwrap();
    let header = Ip6Header::new(source, destination, IpProtocol::ICMP6, 255, length as u16);
    header.write(&mut frame[14..]).unwrap();
    frame.truncate(54 + length);
    frame
}

fn solicitation(from: &str) -> Vec<u8> {
    let message = nd::Message::RouterSolicitation { options: Options::NONE };
    frame(from.parse().unwrap(), "ff02::2".parse().unwrap(), message)
}

fn advertisement(from: &str, hop_limit: u8, flags: u8, options: &[u8]) -> Vec<u8> {
    let message = nd::Message::RouterAdvertisement {
        hop_limit,
        flags,
        lifetime_s: 1800,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: Options::new(options).unwrap(),
    };
    frame(from.parse().unwrap(), "ff02::1".parse().unwrap(), message)
}

#[test]
fn nothing_is_advertised_before_somebody_says_so() {
    let mut router = router();
    router.cli("ip6 nd e0 prefix 2001:db8:7::/64");
    router.send("e0", &solicitation("fe80::c0"));
    advance(&mut router, 1_000_000);
    assert!(router.sent("e0").is_empty());
    router.cli("ip6 nd e0 no ra-suppress");
    advance(&mut router, 2000);
    assert_eq!(lifetimes(&mut router).len(), 1);
}

#[test]
fn advertisements_stay_between_their_intervals_for_a_long_time() {
    let mut router = advertising("ra-interval 40 20");
    advance(&mut router, 60_000);
    router.sent("e0");
    let mut last = router.now_ns();
    for _ in 0..200 {
        let before = last;
        while lifetimes(&mut router).is_empty() {
            advance(&mut router, 250);
            assert!(router.now_ns() - last <= 41_000_000_000, "one comes within 40 s");
        }
        last = router.now_ns();
        if before > 60_000_000_000 + 40_000_000_000 {
            assert!(last - before >= 19_500_000_000, "none before 20 s");
        }
    }
}

#[test]
fn a_storm_of_solicitations_is_answered_every_three_seconds() {
    let mut router = advertising("ra-initial 1 16");
    advance(&mut router, 10_000);
    router.sent("e0");
    for tenth in 0..600u32 {
        for host in 0..5 {
            router.inject("e0", &solicitation(&format!("fe80::c:{tenth:x}:{host}")));
        }
        advance(&mut router, 100);
    }
    let answers = lifetimes(&mut router).len();
    assert!((15..=20).contains(&answers), "60 s: {answers}");
    let shown = router.json("show ip6 nd e0");
    assert_eq!(shown[0]["solicitations"], 3000);
}

#[test]
fn a_worker_tells_of_so_many_solicitations_only() {
    let mut router = advertising("");
    for _ in 0..500 {
        router.inject("e0", &solicitation("::"));
    }
    router.run();
    assert_eq!(router.count("icmp6-router-solicitation", "told"), 100);
    assert_eq!(router.count("icmp6-router-solicitation", "too-many"), 400);
}

#[test]
fn answers_to_single_hosts_are_bounded() {
    let mut router = advertising("ra-initial 1 16 ra-send-unicast");
    advance(&mut router, 10_000);
    router.sent("e0");
    for burst in 0..5 {
        for host in 0..100 {
            router.inject("e0", &solicitation(&format!("fe80::{burst}:{host:x}")));
        }
        router.run();
        advance(&mut router, 1);
    }
    assert!(router.json("show ip6 nd")[0]["solicitations"].as_u64() >= Some(100));
    advance(&mut router, 600);
    assert!(router.json("show ip6 nd")[0]["sent_unicast"].as_u64() <= Some(256));
    router.expect_held(0);
    advance(&mut router, 10_000);
}

#[test]
fn hosts_learn_that_the_link_local_address_is_another_one() {
    let mut router = advertising("ra-initial 1 16");
    advance(&mut router, 10_000);
    let old = lifetimes(&mut router)[0].0;
    router.cli("set interface ip address e0 fe80::7/64");
    advance(&mut router, 5000);
    let seven: Ipv6Addr = "fe80::7".parse().unwrap();
    assert_eq!(lifetimes(&mut router), [(old, 0), (seven, 600)]);
}

#[test]
fn a_link_that_fails_ends_it_and_a_new_one_begins_again() {
    let mut router = advertising("ra-initial 1 16");
    advance(&mut router, 10_000);
    router.sent("e0");
    let id = router.id("e0");
    router.engine().set_link_up(id, false).unwrap();
    advance(&mut router, 1000);
    assert_eq!(router.json("show ip6 nd")[0]["state"], "silent");
    assert!(router.sent("e0").is_empty(), "nothing can be said any more");
    router.engine().set_link_up(id, true).unwrap();
    advance(&mut router, 4000);
    assert_eq!(lifetimes(&mut router).len(), 1);
}

#[test]
fn an_interface_that_is_deleted_takes_its_settings_with_it() {
    let mut router = advertising("");
    router.cli("create loopback interface instance 0");
    router.cli("ip6 nd loop0 prefix 2001:db8:5::/64");
    router.cli("ip6 nd loop0 no ra-suppress");
    router.cli("delete loopback interface intfc loop0");
    assert_eq!(router.json("show ip6 nd").as_array().unwrap().len(), 1);
    advance(&mut router, 1000);
}

#[test]
fn other_routers_are_shown_with_what_contradicts_us() {
    let mut router = advertising("");
    advance(&mut router, 1000);
    let mut options = [0; 32];
    let prefix = PrefixInformation {
        length: 64,
        flags: 0xc0,
        valid_s: 60,
        preferred_s: 30,
        prefix: "2001:db8::".parse().unwrap(),
    };
    NdOption::Prefix(prefix).emit(&mut options).unwrap();
    router.send("e0", &advertisement("fe80::c0", 64, 0, &[]));
    router.send("e0", &advertisement("fe80::c1", 32, 0x80, &options));
    let shown = router.json("show ip6 ra");
    assert_eq!(
        (&shown[0]["address"], &shown[0]["contradicts"]),
        (&"fe80::c0".into(), &serde_json::json!([]))
    );
    let expected = serde_json::json!(["hop limit", "managed flag", "lifetimes of 2001:db8::/64"]);
    assert_eq!(shown[1]["contradicts"], expected);
    assert_eq!(shown[1]["prefixes"][0], "2001:db8::/64 60 30");
    let ours = router.json("show ip6 nd");
    assert_eq!((&ours[0]["advertisements"], &ours[0]["inconsistent"]), (&2.into(), &1.into()));
    advance(&mut router, 2_000_000);
    assert_eq!(router.json("show ip6 ra").as_array().unwrap().len(), 0, "silent for too long");
}

#[test]
fn the_running_configuration_makes_the_same_advertisements() {
    let lines = [
        "ip6 nd e0 ra-managed-config-flag ra-send-unicast ra-lifetime 1000 ra-initial 2 8 \
         ra-interval 100 50",
        "ip6 nd e0 ra-hop-limit 32 ra-mtu 1400 ra-preference low ra-other-config-flag \
         ra-suppress-link-layer",
        "ip6 nd e0 ra-retransmit-time 100 ra-reachable-time 200 ra-cease",
        "ip6 nd e0 prefix 2001:db8:5::/64 infinite no-onlink no-autoconfig",
        "ip6 nd e0 prefix 2001:db8:6::/64 100 50",
        "ip6 nd e0 prefix 2001:db8::/64 default no-advertise",
        "ip6 nd e0 ra-route 2001:db8:8000::/33 lifetime 60 preference high",
        "ip6 nd e0 ra-dns-server 2001:db8::53 lifetime 700",
        "ip6 nd e0 ra-dns-search example.com",
        "ip6 nd e0 no ra-suppress",
    ];
    let mut first = router();
    lines.iter().for_each(|line| drop(first.cli(line)));
    let written = first.cli("show running-config");
    let ours = |text: &str| {
        text.lines().filter(|l| l.starts_with("ip6 nd")).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut second = router();
    ours(&written).iter().for_each(|line| drop(second.cli(line)));
    assert_eq!(ours(&second.cli("show running-config")), ours(&written));
    for line in [
        "ip6 nd e0 no ra-managed-config-flag ra-send-unicast ra-lifetime ra-initial ra-interval",
        "ip6 nd e0 no ra-hop-limit ra-mtu ra-preference ra-other-config-flag \
         ra-suppress-link-layer",
        "ip6 nd e0 no ra-retransmit-time ra-reachable-time ra-cease",
        "ip6 nd e0 no prefix 2001:db8:5::/64",
        "ip6 nd e0 no prefix 2001:db8:6::/64",
        "ip6 nd e0 no prefix 2001:db8::/64",
        "ip6 nd e0 no ra-route 2001:db8:8000::/33",
        "ip6 nd e0 no ra-dns-server 2001:db8::53",
        "ip6 nd e0 no ra-dns-search example.com",
        "ip6 nd e0 ra-suppress",
    ] {
        second.cli(line);
    }
    assert!(ours(&second.cli("show running-config")).is_empty());
}

#[test]
fn a_refused_setting_changes_nothing() {
    let mut router = advertising("ra-interval 100 50");
    let before = router.cli("show running-config");
    for (line, why) in [
        ("ip6 nd e0", "nothing to set"),
        ("ip6 nd e0 ra-lifetime 50", "100 to 9000"),
        ("ip6 nd e0 ra-managed-config-flag ra-interval 8 7", "3 to 6 s"),
        ("ip6 nd e0 prefix 2001:db8::1/64", "2001:db8::/64"),
        ("ip6 nd e0 prefix fe80::/64", "no prefix that hosts"),
        ("ip6 nd e0 prefix 2001:db8:1::/64 10 20", "longer one"),
        ("ip6 nd e0 no prefix 2001:db8:1::/64", "not configured"),
        ("ip6 nd e0 ra-dns-server ff02::1", "no host's address"),
        ("ip6 nd e0 ra-dns-search a..b", "labels"),
        ("ip6 nd e9 no ra-suppress", "no interface 'e9'"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    for n in 0..6 {
        router.cli(&format!("ip6 nd e0 ra-dns-server 2001:db8::{n}"));
    }
    assert!(router.refused("ip6 nd e0 ra-dns-server 2001:db8::99").contains("at most 6 do"));
    for n in 0..6 {
        router.cli(&format!("ip6 nd e0 no ra-dns-server 2001:db8::{n}"));
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_trace_reads_as_a_sentence() {
    let mut router = advertising("");
    router.cli("trace add test-input 5");
    router.send("e0", &solicitation("fe80::c0"));
    let trace = router.cli("show trace");
    assert!(trace.contains("fe80::c0 on e0 asks for routers, to ip-done"), "{trace}");
}

#[test]
fn who_goes_down_is_deleted_or_ends_says_farewell_on_the_port_and_on_its_parts() {
    let leave: [fn(&mut Router); 4] = [
        |router| drop(router.cli("set interface state e0 down")),
        |router| router.engine().take_leave_of_all(),
        |router| {
            router.cli("set interface state e0.7 down");
            router.cli("ip6 nd e0 ra-suppress");
        },
        |router| {
            let part = router.id("e0.7");
            router.engine().delete_interface(part).expect("it is there");
            router.cli("set interface state e0 down");
        },
    ];
    for leave in leave {
        let mut router = advertising("");
        router.cli("create sub-interfaces e0 7");
        router.cli("set interface state e0.7 up");
        router.cli("set interface ip address e0.7 2001:db8:7::1/64");
        router.cli("ip6 nd e0.7 no ra-suppress");
        advance(&mut router, 1_000);
        let frames = router.sent("e0");
        assert!(frames.iter().any(|frame| frame[12..16] == [0x81, 0, 0, 7]), "it advertises");
        leave(&mut router);
        advance(&mut router, 10);
        let tagged = |frame: &Vec<u8>| frame[12..14] == [0x81, 0];
        let lifetime = |frame: &Vec<u8>| {
            let at = if tagged(frame) { 64 } else { 60 };
            u16::from_be_bytes([frame[at], frame[at + 1]])
        };
        let mut last: Vec<_> =
            router.sent("e0").iter().map(|frame| (tagged(frame), lifetime(frame))).collect();
        last.sort_unstable();
        assert_eq!(last, [(false, 0), (true, 0)]);
    }
}

/// Valid and preferred lifetimes of a prefix in the advertisements that were sent.
fn advertised(router: &mut Router, wanted: Ipv6Addr) -> Vec<(u32, u32)> {
    let mut told = Vec::new();
    for frame in router.sent("e0") {
        let Some((header, message)) = within(&frame[14..]) else { continue };
        let parsed = Message::parse(header.source(), header.destination(), message);
        let Ok(Message::Nd(nd::Message::RouterAdvertisement { options, .. })) = parsed else {
            continue;
        };
        for option in options.iter() {
            if let NdOption::Prefix(PrefixInformation { prefix, valid_s, preferred_s, .. }) = option
                && prefix == wanted
            {
                told.push((valid_s, preferred_s));
            }
        }
    }
    told
}

#[test]
fn a_prefix_that_was_named_is_deprecated_when_that_is_taken_back() {
    let mut router = advertising("prefix 2001:db8::/64 86400 14400");
    let old: Ipv6Addr = "2001:db8::".parse().unwrap();
    advance(&mut router, 20_000);
    assert!(advertised(&mut router, old).iter().all(|times| *times == (86_400, 14_400)));
    router.cli("set interface ip address e0 2001:db8:2::1/64");
    router.cli("set interface ip address del e0 2001:db8::1/64");
    advance(&mut router, 60_000);
    // It was named: it is told as it was said.
    assert!(advertised(&mut router, old).iter().all(|times| *times == (86_400, 14_400)));
    router.cli("ip6 nd e0 no prefix 2001:db8::/64");
    advance(&mut router, 60_000);
    let last = advertised(&mut router, old);
    assert!(!last.is_empty() && last.iter().all(|times| *times == (0, 0)), "{last:?}");
}
