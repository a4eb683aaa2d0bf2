//! Two routers on one link: one is active, the other takes over; who asks for the addresses gets
//! the virtual MAC address.

use std::time::Duration;

use quiver_forwarding::fib::Fib;
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::arp::{Operation, Repr};
use quiver_wire::vrrp::{Advertisement, ChecksumOver, GROUP4, virtual_mac};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_multicast::register,
    quiver_vrrp::register,
];
const STEP: Duration = Duration::from_millis(10);
const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xa]);
const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xb]);
const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);

/// Router `a` is 192.0.2.1, router `b` is .2; the virtual router is .254.
struct Link {
    a: Router,
    b: Router,
    is_whole: bool,
    /// Frames that each has sent since last asked.
    seen: [Vec<Vec<u8>>; 2],
}

fn router(mac: MacAddress, own: u8, workers: usize) -> Router {
    let mut router = Router::with(Settings { workers, ..Settings::default() }, &FEATURES);
    for (name, mac, net) in [("e0", mac, 2), ("e1", MacAddress([2, 0, 0, 0, 1, own]), 3)] {
        router.cli(&format!("create test interface {name} mac {mac}"));
        router.cli(&format!("set interface state {name} up"));
        router.cli(&format!("set interface ip address {name} 192.0.{net}.{own}/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::{own}/64"));
    }
    router
}

impl Link {
    fn new(workers: usize) -> Link {
        let (a, b) = (router(A, 1, workers), router(B, 2, workers));
        Link { a, b, is_whole: true, seen: [Vec::new(), Vec::new()] }
    }

    fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms / 10 {
            self.a.advance(STEP);
            self.b.advance(STEP);
            let (from_a, from_b) = (self.a.sent("e0"), self.b.sent("e0"));
            if self.is_whole {
                from_a.iter().for_each(|frame| self.b.send("e0", frame));
                from_b.iter().for_each(|frame| self.a.send("e0", frame));
            }
            self.seen[0].extend(from_a);
            self.seen[1].extend(from_b);
        }
    }

    fn states(&mut self) -> [String; 2] {
        [state(&mut self.a), state(&mut self.b)]
    }

    /// Both have virtual router 7 of IPv4; `a` wants it more.
    fn with_router(workers: usize, more: &str) -> Link {
        let mut link = Link::new(workers);
        link.a.cli(&format!("vrrp vr add e0 vr_id 7 priority 200 {more} 192.0.2.254"));
        link.b.cli(&format!("vrrp vr add e0 vr_id 7 {more} 192.0.2.254"));
        for router in [&mut link.a, &mut link.b] {
            router.cli("vrrp proto start e0 vr_id 7");
        }
        link.run(5000);
        assert_eq!(link.states(), ["Master", "Backup"]);
        link
    }
}

fn row(router: &mut Router) -> serde_json::Value {
    router.json("show vrrp vr")[0].clone()
}

fn state(router: &mut Router) -> String {
    row(router)["state"].as_str().expect("a state").to_owned()
}

/// Who has the address? The reply, if there is one.
fn ask(router: &mut Router, target: [u8; 4]) -> Option<(Repr, MacAddress)> {
    let mut frame = [0; 42];
    EthernetHeader::new(MacAddress::BROADCAST, HOST, EtherType::ARP).write(&mut frame).ok()?;
    Repr::request(HOST, [192, 0, 2, 99].into(), target.into()).emit(&mut frame[14..]).ok()?;
    router.sent("e0");
    router.send("e0", &frame);
    let mut replies = router.sent("e0").into_iter().filter_map(|frame| {
        let header = EthernetHeader::overlay(&frame)?;
        let (arp, _) = Repr::parse(frame.get(14..)?).ok()?;
        (arp.operation == Operation::Reply).then_some((arp, header.source))
    });
    replies.next_back()
}

#[test]
fn the_router_that_wants_it_more_is_active_and_the_other_takes_over() {
    let mut link = Link::with_router(1, "");
    let mac = virtual_mac(7, false);
    let (reply, source) = ask(&mut link.a, [192, 0, 2, 254]).expect("a reply");
    assert_eq!((reply.sender_mac, source), (mac, mac));
    assert!(ask(&mut link.b, [192, 0, 2, 254]).is_none(), "a backup is silent");
    let (own, _) = ask(&mut link.a, [192, 0, 2, 1]).expect("a reply");
    assert_eq!(own.sender_mac, A, "its own address has its own MAC address");
    link.is_whole = false;
    link.run(5000);
    assert_eq!(link.states(), ["Master", "Master"]);
    assert_eq!(ask(&mut link.b, [192, 0, 2, 254]).expect("a reply").0.sender_mac, mac);
    link.is_whole = true;
    link.run(2000);
    assert_eq!(link.states(), ["Master", "Backup"]);
    assert!(ask(&mut link.b, [192, 0, 2, 254]).is_none());
}

#[test]
fn who_becomes_active_tells_all_hosts_with_the_virtual_mac_address() {
    let mut link = Link::with_router(1, "");
    let mac = virtual_mac(7, false);
    let frames = &link.seen[0];
    let is_announced = frames.iter().any(|frame| {
        let arp = Repr::parse(&frame[14..]);
        frame[..6] == [0xff; 6]
            && frame[6..12] == mac.0
            && arp.is_ok_and(|(arp, _)| {
                (arp.sender_mac, arp.sender_ip, arp.target_ip)
                    == (mac, [192, 0, 2, 254].into(), [192, 0, 2, 254].into())
            })
    });
    assert!(is_announced, "a gratuitous ARP request");
    let told = frames.iter().filter(|frame| frame[23] == 112 && frame[12..14] == [8, 0]);
    let told: Vec<_> = told.collect();
    assert!(told.len() >= 2);
    for frame in told {
        assert_eq!(frame[..6], [1, 0, 0x5e, 0, 0, 18]);
        assert_eq!((&frame[6..12], frame[22]), (&mac.0[..], 255));
        let (from, to) = ([192, 0, 2, 1].into(), GROUP4.into());
        let read = Advertisement::parse(from, to, &frame[34..46]).expect("an advertisement");
        assert_eq!(
            (read.advertisement.priority, read.checksum_over),
            (200, ChecksumOver::PseudoHeader)
        );
    }
    link.run(10);
}

#[test]
fn an_active_router_that_ends_hands_over_within_the_skew_time() {
    for how in
        ["vrrp proto stop e0 vr_id 7", "vrrp vr del e0 vr_id 7", "set interface state e0 down"]
    {
        let mut link = Link::with_router(1, "");
        link.a.cli(how);
        link.run(700);
        assert_eq!(state(&mut link.b), "Master", "{how}: the skew of priority 100 is 0.61 s");
        assert!(link.seen[0].iter().any(|frame| frame[23] == 112 && frame[36] == 0), "{how}");
        if how.contains("state") {
            link.a.cli("set interface state e0 up");
            link.run(5000);
            assert_eq!(link.states(), ["Master", "Backup"], "it preempts");
        }
    }
}

#[test]
fn without_preemption_the_active_router_stays() {
    let mut link = Link::with_router(1, "no_preempt");
    link.a.cli("vrrp proto stop e0 vr_id 7");
    link.run(1000);
    link.a.cli("vrrp proto start e0 vr_id 7");
    link.run(6000);
    assert_eq!(link.states(), ["Backup", "Master"]);
}

#[test]
fn a_tracked_interface_that_goes_down_takes_priority() {
    let mut link = Link::with_router(1, "");
    link.a.cli("vrrp vr track-if add e0 vr_id 7 track-interface e1 priority 150");
    link.run(100);
    assert_eq!(row(&mut link.a)["priority"], 200);
    link.a.cli("set interface state e1 down");
    link.run(5000);
    assert_eq!(row(&mut link.a)["priority"], 50);
    assert_eq!(link.states(), ["Backup", "Master"]);
    link.a.cli("set interface state e1 up");
    link.run(5000);
    assert_eq!(link.states(), ["Master", "Backup"]);
    link.a.cli("vrrp vr track-if del e0 vr_id 7 track-interface e1");
    assert!(link.a.refused("vrrp vr track-if del e0 vr_id 7 track-interface e1").contains("track"));
    link.run(10);
}

#[test]
fn a_bfd_session_that_is_down_takes_priority_at_once() {
    let mut link = Link::with_router(1, "");
    let track = "e0 vr_id 7 track-interface e1 peer-addr 192.0.3.9";
    link.a.cli(&format!("vrrp vr track-bfd add {track} priority 150"));
    link.a.cli("vrrp vr track-bfd add e0 vr_id 7 peer-addr 198.51.100.9 priority 10");
    link.run(100);
    assert_eq!(row(&mut link.a)["priority"], 200);
    let e1 = link.a.id("e1");
    let set = |link: &mut Link, interface, peer: &str, is_alive| {
        let peer = peer.parse().expect("an address");
        let fib = link.a.engine().get_mut::<Fib>().expect("the FIB");
        fib.set_neighbour_alive((interface, peer), is_alive);
    };
    set(&mut link, Some(e1), "192.0.3.9", false);
    link.run(50);
    assert_eq!(row(&mut link.a)["priority"], 50);
    set(&mut link, None, "198.51.100.9", false);
    link.run(5000);
    assert_eq!(row(&mut link.a)["priority"], 40);
    assert_eq!(link.states(), ["Backup", "Master"]);
    set(&mut link, Some(e1), "192.0.3.9", true);
    link.run(5000);
    assert_eq!(
        (row(&mut link.a)["priority"].as_u64(), link.states()[0].as_str()),
        (Some(190), "Master")
    );
    link.a.cli(&format!("vrrp vr track-bfd del {track}"));
    assert!(link.a.refused(&format!("vrrp vr track-bfd del {track}")).contains("track"));
    link.run(10);
}

/// A frame from a host to a MAC address with an ICMP echo request to an IPv4 address.
fn ping(to_mac: MacAddress, to: [u8; 4]) -> Vec<u8> {
    use quiver_wire::{IpProtocol, icmp4, ip4};
    let message = icmp4::Message::EchoRequest { identifier: 1, sequence: 1 };
    let echo = icmp4::Repr { message, data: &[0; 20] };
    let from = [192, 0, 2, 99].into();
    let ip = ip4::Repr::new(from, to.into(), IpProtocol::ICMP, echo.len());
    let mut frame = vec![0; 14 + ip.header_len() + echo.len()];
    EthernetHeader::new(to_mac, HOST, EtherType::IPV4).write(&mut frame).expect("room");
    let at = ip.emit(&mut frame[14..]).expect("room");
    echo.emit(&mut frame[14 + at..]).expect("room");
    frame
}

#[test]
fn frames_to_the_virtual_mac_address_are_taken_while_active() {
    let mut link = Link::with_router(1, "");
    link.a.cli(&format!("ip neighbor e1 192.0.3.9 {HOST} static"));
    let mac = virtual_mac(7, false);
    link.a.send("e0", &ping(mac, [192, 0, 3, 9]));
    assert_eq!(link.a.sent("e1").len(), 1, "forwarded for hosts that have it as their gateway");
    let before = link.b.count("ethernet-input", "mac-mismatch");
    link.b.send("e0", &ping(mac, [192, 0, 3, 9]));
    assert_eq!(link.b.count("ethernet-input", "mac-mismatch"), before + 1, "not by a backup");
    link.a.send("e0", &ping(virtual_mac(8, false), [192, 0, 3, 9]));
    assert_eq!(link.a.count("ethernet-input", "mac-mismatch"), 1, "of another virtual router");
}

#[test]
fn packets_to_the_address_are_taken_in_accept_mode_only() {
    for (more, answers, dropped) in [("", 0, 1), ("accept_mode", 1, 0)] {
        let mut link = Link::with_router(1, more);
        link.a.cli(&format!("ip neighbor e0 192.0.2.99 {HOST} static"));
        link.a.sent("e0");
        link.a.send("e0", &ping(virtual_mac(7, false), [192, 0, 2, 254]));
        assert_eq!(link.a.sent("e0").len(), answers, "{more}");
        assert_eq!(link.a.count("vrrp-virtual-address", "not-accepted"), dropped, "{more}");
    }
}

#[test]
fn an_owner_is_active_at_once_and_hears_nobody() {
    let mut link = Link::new(1);
    link.a.cli("vrrp vr add e0 vr_id 7 priority 255 192.0.2.1");
    link.a.cli("vrrp proto start e0 vr_id 7");
    link.b.cli("vrrp vr add e0 vr_id 7 priority 254 192.0.2.1");
    link.b.cli("vrrp proto start e0 vr_id 7");
    link.run(20);
    assert_eq!(link.states(), ["Master", "Backup"]);
    assert_eq!(
        ask(&mut link.a, [192, 0, 2, 1]).expect("a reply").0.sender_mac,
        virtual_mac(7, false)
    );
    link.is_whole = false;
    link.run(5000);
    assert_eq!(link.states(), ["Master", "Master"]);
    let told = link.seen[1].iter().rfind(|frame| frame[23] == 112).cloned();
    link.a.send("e0", &told.expect("an advertisement of the other one"));
    assert_eq!(link.a.count("vrrp-input", "address-owner"), 1);
    link.is_whole = true;
    link.run(1500);
    assert_eq!(link.states(), ["Master", "Backup"]);
}

#[test]
fn virtual_routers_of_both_families_live_beside_each_other() {
    let mut link = Link::with_router(2, "");
    for (router, priority) in [(&mut link.a, 50), (&mut link.b, 150)] {
        router.cli(&format!(
            "vrrp vr add e0 vr_id 7 priority {priority} ipv6 fe80::fe 2001:db8:2::fe"
        ));
        router.cli("vrrp proto start e0 vr_id 7 ipv6");
    }
    link.run(6000);
    let six = |router: &mut Router| router.json("show vrrp vr")[1]["state"].clone();
    assert_eq!(link.states(), ["Master", "Backup"]);
    assert_eq!((six(&mut link.a), six(&mut link.b)), ("Backup".into(), "Master".into()));
    assert!(link.a.dropped().is_empty(), "{:?}", link.a.dropped());
}

#[test]
fn peers_are_advertised_to_one_by_one() {
    let mut link = Link::new(1);
    for (router, own, priority, other, mac) in
        [(&mut link.a, 1, 200, 2, B), (&mut link.b, 2, 100, 1, A)]
    {
        router.cli(&format!("ip neighbor e0 192.0.2.{other} {mac} static"));
        router.cli(&format!("vrrp vr add e0 vr_id 7 priority {priority} unicast 192.0.2.254"));
        assert!(router.refused("vrrp proto start e0 vr_id 7").contains("has none"));
        router.cli(&format!("vrrp peers e0 vr_id 7 192.0.2.{other}"));
        router.cli("vrrp proto start e0 vr_id 7");
        let _ = own;
    }
    link.run(5000);
    assert_eq!(link.states(), ["Master", "Backup"]);
    let told = link.seen[0].iter().rfind(|frame| frame[23] == 112).expect("one");
    assert_eq!((&told[..6], &told[6..12], told[22]), (&B.0[..], &A.0[..], 255));
    assert_eq!(told[30..34], [192, 0, 2, 2]);
}

#[test]
fn what_makes_no_sense_is_refused_and_the_configuration_is_written_as_given() {
    let mut link = Link::new(1);
    let router = &mut link.a;
    for (line, says) in [
        ("vrrp vr add e0 vr_id 7 ipv6 2001:db8::1", "link-local"),
        ("vrrp vr add e0 vr_id 7 fe80::1", "no IPv4 address"),
        ("vrrp vr add e0 vr_id 7 224.0.0.5", "no IPv4 address"),
        ("vrrp vr add e0 vr_id 7 10.0.0.1 10.0.0.1", "twice"),
        ("vrrp proto start e0 vr_id 7", "no virtual router 7"),
        ("vrrp vr del e0 vr_id 7 ipv6", "no virtual router 7"),
    ] {
        assert!(router.refused(line).contains(says), "{line}: {}", router.refused(line));
    }
    let lines = [
        "vrrp vr add e0 vr_id 7 priority 200 interval 50 no_preempt accept_mode 192.0.2.254",
        "vrrp vr track-bfd add e0 vr_id 7 peer-addr 2001:db8::9 priority 40",
        "vrrp vr track-bfd add e0 vr_id 7 track-interface e1 peer-addr 192.0.3.9 priority 30",
        "vrrp vr track-if add e0 vr_id 7 track-interface e1 priority 20",
        "vrrp proto start e0 vr_id 7",
        "vrrp vr add e0 vr_id 9 ipv6 fe80::fe 2001:db8:2::fe",
        "vrrp vr add e1 vr_id 7 unicast 192.0.3.254",
        "vrrp peers e1 vr_id 7 192.0.3.8 192.0.3.9",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    assert!(router.refused(lines[0]).contains("already"));
    assert!(router.refused("vrrp peers e0 vr_id 7 192.0.2.9").contains("unicast"));
    let config = router.cli("show running-config");
    let written: Vec<&str> = config.lines().filter(|line| line.starts_with("vrrp ")).collect();
    assert_eq!(written, lines);
    let id = router.id("e0");
    router.engine().delete_interface(id).expect("deleted");
    assert_eq!(router.json("show vrrp vr").as_array().map(Vec::len), Some(1));
    link.b.advance(STEP);
}
