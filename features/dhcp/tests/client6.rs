//! The DHCPv6 clients in a router: what leases change, and what lying servers do not.

use std::net::Ipv6Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_dhcp::datagram::{Datagram, packet};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::dhcp6::{Ia, IaAddress, IaPrefix, Message, Writer, message, option};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_dhcp::register];
const E0: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 0]);
const SERVER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x5]);
const SERVER_ID: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 5];
const NODE: &str = "dhcpv6-client";

/// Servers are behind `e0`, the site behind `e1`.
fn router(lines: &[&str]) -> Router {
    let mut router = Router::with(Settings::default(), &FEATURES);
    for line in [
        "create test interface e0",
        "create test interface e1",
        "set interface state e0 up",
        "set interface state e1 up",
    ] {
        router.cli(line);
    }
    lines.iter().for_each(|line| drop(router.cli(line)));
    router
}

/// The messages that clients have sent since the last call.
fn sent(router: &mut Router) -> Vec<Vec<u8>> {
    let frames = router.sent("e0");
    let datagrams = frames.iter().filter_map(|frame| Datagram::of(frame.get(14..)?));
    let datagrams = datagrams.filter(|datagram| datagram.ports == (546, 547));
    datagrams
        .map(|datagram| {
            assert!(datagram.is_good());
            assert_eq!(datagram.destination.to_string(), "ff02::1:2");
            datagram.payload.to_vec()
        })
        .collect()
}

/// Let time pass until a client sends a message of this type.
fn wait(router: &mut Router, kind: u8) -> Vec<u8> {
    for _ in 0..200 {
        router.advance(Duration::from_millis(100));
        if let Some(found) = sent(router).into_iter().find(|message| message[0] == kind) {
            return found;
        }
    }
    panic!("no message of type {kind}");
}

/// A server's reply to a client's message.
fn reply(request: &[u8], members: &[IaPrefix]) -> Vec<u8> {
    let read = Message::parse(request).expect("a message");
    let mut out = vec![0; 4000];
    let mut writer = Writer::message(&mut out, message::REPLY, read.transaction).expect("room");
    let client = read.options.find(option::CLIENT_ID).expect("a client");
    writer.put(option::CLIENT_ID, client).expect("room");
    writer.put(option::SERVER_ID, SERVER_ID).expect("room");
    writer.put(option::RAPID_COMMIT, &[]).expect("room");
    for code in [option::IA_NA, option::IA_PD] {
        let Some(ia) = read.options.find(code).and_then(Ia::parse) else { continue };
        writer
            .put_nested(code, &Ia::head(ia.iaid), |writer| {
                members.iter().try_for_each(|one| {
                    let IaPrefix { preferred_s, valid_s, prefix: address, .. } = *one;
                    let address = IaAddress { address, preferred_s, valid_s };
                    match code {
                        option::IA_NA => writer.put(option::IA_ADDRESS, &address.bytes()),
                        _ => writer.put(option::IA_PREFIX, &one.bytes()),
                    }
                })
            })
            .expect("room");
    }
    let length = writer.finish();
    out.truncate(length);
    out
}

fn member(text: &str, length: u8, valid_s: u32) -> IaPrefix {
    IaPrefix { preferred_s: valid_s / 2, valid_s, length, prefix: text.parse().expect("one") }
}

/// A frame of the server to the client's link-local address.
fn frame(payload: &[u8]) -> Vec<u8> {
    let from: Ipv6Addr = SERVER.link_local();
    let bytes = packet(from.into(), E0.link_local().into(), (547, 546), payload).expect("fits");
    let mut out = vec![0; EthernetHeader::LEN];
    EthernetHeader::new(E0, SERVER, EtherType::IPV6).write(&mut out).expect("room");
    out.extend(bytes);
    out
}

fn send(router: &mut Router, payload: &[u8]) {
    router.send("e0", &frame(payload));
    router.advance(Duration::from_millis(20));
}

/// What a show answers.
fn display(router: &mut Router, line: &str) -> String {
    router.execute(line).map_or_else(|refusal| refusal.to_string(), |output| output.to_text())
}

#[test]
fn a_leased_address_is_used_renewed_and_released() {
    let mut router = router(&["dhcp6 client e0"]);
    let solicit = wait(&mut router, message::SOLICIT);
    send(&mut router, &reply(&solicit, &[member("2001:db8::77", 128, 100)]));
    assert_eq!(router.count(NODE, "taken"), 1);
    router.advance(Duration::from_secs(3));
    let addresses = display(&mut router, "show interface address e0");
    assert!(addresses.contains("2001:db8::77/128 (leased)"), "{addresses}");
    let config = display(&mut router, "show running-config");
    assert!(config.contains("dhcp6 client e0") && !config.contains("2001:db8::77"), "{config}");
    let renew = wait_for_renew(&mut router);
    send(&mut router, &reply(&renew, &[member("2001:db8::77", 128, 100)]));
    assert!(display(&mut router, "show dhcp6 clients").contains("bound"));
    router.cli("dhcp6 client disable e0");
    assert_eq!(sent(&mut router)[0][0], message::RELEASE);
    let addresses = display(&mut router, "show interface address e0");
    assert!(!addresses.contains("2001:db8"), "{addresses}");
    assert!(router.execute("dhcp6 client disable e0").is_err(), "it is gone");
}

fn wait_for_renew(router: &mut Router) -> Vec<u8> {
    for _ in 0..100 {
        router.advance(Duration::from_secs(1));
        if let Some(found) = sent(router).into_iter().find(|sent| sent[0] == message::RENEW) {
            return found;
        }
    }
    panic!("no Renew");
}

#[test]
fn a_delegated_prefix_makes_addresses_and_a_discard_route_until_it_ends() {
    let mut router = router(&[
        "set ip6 address e1 prefix group site ::7:0:0:0:1/64",
        "set ip6 address e1 prefix group other ::8:0:0:0:1/64",
        "dhcp6 pd client e0 prefix group site",
    ]);
    let solicit = wait(&mut router, message::SOLICIT);
    send(&mut router, &reply(&solicit, &[member("2001:db8:aa00::", 48, 60)]));
    router.advance(Duration::from_secs(3));
    let addresses = display(&mut router, "show interface address e1");
    assert!(addresses.contains("2001:db8:aa00:7::1/64 (leased)"), "{addresses}");
    assert!(!addresses.contains("2001:db8:aa00:8:"), "{addresses}");
    let route = display(&mut router, "show ip6 fib 2001:db8:aa00:77::1");
    assert!(route.contains("2001:db8:aa00::/48") && route.contains("unreachable"), "{route}");
    let prefixes = display(&mut router, "show ip6 prefixes");
    assert!(prefixes.contains("site") && prefixes.contains("2001:db8:aa00::/48"), "{prefixes}");
    // The operator takes the address over, and gives it back.
    router.cli("set interface ip address e1 2001:db8:aa00:7::1/64");
    router.advance(Duration::from_secs(2));
    let made = display(&mut router, "show ip6 addresses");
    assert!(made.contains("2001:db8:aa00:7::1/64"), "{made}");
    assert!(!display(&mut router, "show interface address e1").contains("leased"));
    router.cli("set interface ip address del e1 2001:db8:aa00:7::1/64");
    router.advance(Duration::from_secs(2));
    assert!(display(&mut router, "show interface address e1").contains("leased"));
    // Nobody renews it: it ends.
    router.advance(Duration::from_secs(60));
    assert!(!display(&mut router, "show interface address e1").contains("leased"));
    let route = display(&mut router, "show ip6 fib 2001:db8:aa00:77::1");
    assert!(!route.contains("2001:db8:aa00::/48"), "{route}");
    let config = display(&mut router, "show running-config");
    assert!(config.contains("dhcp6 pd client e0 prefix group \"site\""), "{config}");
    assert!(config.contains("prefix group \"site\" ::7:0:0:0:1/64"), "{config}");
}

#[test]
fn interfaces_that_go_take_their_clients_and_addresses_along() {
    let mut router = router(&[
        "create loopback interface instance 3",
        "dhcp6 client loop3",
        "dhcp6 pd client loop3 prefix group site",
        "set ip6 address loop3 prefix group site ::1/64",
    ]);
    router.cli("delete loopback interface intfc loop3");
    for line in ["show dhcp6 clients", "show dhcp6 pd clients", "show ip6 addresses"] {
        assert!(!display(&mut router, line).contains("loop3"), "{line}");
    }
    assert!(!display(&mut router, "show running-config").contains("site"));
}

#[test]
fn replies_are_taken_by_clients_alone_and_a_flood_is_bounded() {
    let mut router = router(&["enable ip6 interface e0"]);
    router.advance(Duration::from_secs(3));
    send(&mut router, &[7, 0, 0, 1]);
    assert_eq!(router.count(NODE, "not-enabled"), 1);
    router.cli("dhcp6 client e0");
    let solicit = wait(&mut router, message::SOLICIT);
    for _ in 0..500 {
        router.send("e0", &frame(&[7, 0xff, 0xff, 0xff]));
    }
    router.advance(Duration::from_millis(20));
    assert!(router.count(NODE, "too-many") > 400);
    router.advance(Duration::from_secs(1));
    let again = sent(&mut router).pop().unwrap_or(solicit);
    send(&mut router, &reply(&again, &[member("2001:db8::77", 128, 100)]));
    assert!(display(&mut router, "show dhcp6 clients").contains("2001:db8::77"));
    send(&mut router, &[7, 0, 0]);
    assert_eq!(router.count(NODE, "malformed"), 1);
    send(&mut router, &vec![7; 2500]);
    assert_eq!(router.count(NODE, "too-long"), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn changed_replies_leave_the_router_sound(
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6), cut: u16,
        is_cut: bool, is_pd: bool
    ) {
        let client =
            if is_pd { "dhcp6 pd client e0 prefix group site" } else { "dhcp6 client e0" };
        let mut router = router(&[client, "set ip6 address e1 prefix group site ::1/64"]);
        let solicit = wait(&mut router, message::SOLICIT);
        let members: Vec<IaPrefix> =
            (0..30).map(|n| member(&format!("2001:db8:{n:x}::"), 48, 100)).collect();
        let mut bytes = reply(&solicit, &members);
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        if is_cut {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        send(&mut router, &bytes);
        router.advance(Duration::from_secs(5));
        for line in ["show dhcp6 clients", "show dhcp6 pd clients", "show ip6 prefixes"] {
            prop_assert!(router.execute(line).is_ok());
        }
        let off = if is_pd { "dhcp6 pd client e0 disable" } else { "dhcp6 client disable e0" };
        prop_assert!(router.execute(off).is_ok());
        prop_assert!(!display(&mut router, "show interface address").contains("leased"));
        prop_assert!(!display(&mut router, "show ip6 fib").contains("leased"));
    }
}
