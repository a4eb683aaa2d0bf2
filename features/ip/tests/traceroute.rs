//! `traceroute`: routers on the way are named, hop by hop, in both families.

use crate::stand;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use quiver_control::{Collected, Output, Started, Step};
use quiver_testkit::Router;
use quiver_wire::checksum::Sum;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, ip4};
use serde_json::Value;
use stand::{host, host_mac, port_mac, router};

/// Hops to the far host: two routers, and itself.
const FAR_HOPS: u8 = 3;

/// A packet of ICMP to the router's own address behind e1, from `from`.
fn icmp(from: IpAddr, mut message: Vec<u8>) -> Vec<u8> {
    let mut out = vec![0; 14];
    let (kind, mut header) = match (from, host(from.is_ipv6(), 1, 1)) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0; 20];
            ip4::Repr::new(from, to, IpProtocol::ICMP, message.len()).emit(&mut header).unwrap();
            let sum = Sum::new().bytes(&message).checksum();
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            (EtherType::IPV4, header)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = vec![0; 40];
            let length = message.len() as u16;
            Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length).write(&mut header).unwrap();
            let sum =
                Sum::pseudo6(from, to, IpProtocol::ICMP6, length.into()).bytes(&message).checksum();
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            (EtherType::IPV6, header)
        }
        _ => panic!("two families"),
    };
    EthernetHeader::new(port_mac(1), host_mac(9), kind).write(&mut out).unwrap();
    out.append(&mut header);
    out.append(&mut message);
    out
}

/// What the world behind e1 answers to a probe: a router at its last hop, or the host.
fn answer(packet: &[u8], six: bool, far: IpAddr) -> Vec<u8> {
    let (hops, message) = if six { (packet[7], &packet[40..]) } else { (packet[8], &packet[20..]) };
    if hops >= FAR_HOPS {
        let mut reply = message.to_vec();
        reply[..4].copy_from_slice(&[if six { 129 } else { 0 }, 0, 0, 0]);
        return icmp(far, reply);
    }
    let mut exceeded = vec![if six { 3 } else { 11 }, 0, 0, 0, 0, 0, 0, 0];
    exceeded.extend(packet);
    icmp(host(six, 1, 100 + hops), exceeded)
}

/// Run a traceroute; `world` answers what the router sends out of e1.
fn trace(
    router: &mut Router,
    line: &str,
    world: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> (String, Value) {
    let commands = router.commands();
    let commands = commands.borrow();
    let Ok(Started::Running(mut execution)) = commands.start(router.engine(), line) else {
        panic!("`{line}` does not take a while");
    };
    let mut sink = Collected::default();
    for _ in 0..1000 {
        if let Step::Done(last) =
            execution.step(&commands, router.engine(), &mut sink).expect("a traceroute")
        {
            let json = last.to_json();
            sink.outputs.push(last);
            return (sink.outputs.iter().map(Output::to_text).collect(), json);
        }
        router.run();
        for frame in router.sent("e1") {
            world(&frame[14..]).into_iter().for_each(|answer| router.inject("e1", &answer));
        }
        router.run();
        router.advance(Duration::from_millis(10));
    }
    panic!("`{line}` does not end");
}

fn with_gateway() -> Router {
    let mut router = router();
    router.cli("ip neighbor e1 10.1.0.9 02:00:00:00:00:09");
    router.cli("ip neighbor e1 2001:db8:1::9 02:00:00:00:00:09");
    router.cli("ip route add 192.0.2.0/24 via 10.1.0.9");
    router.cli("ip route add 2001:db8:ffff::/48 via 2001:db8:1::9");
    router
}

#[test]
fn each_router_on_the_way_and_the_host_are_named_in_both_families() {
    for (far, line) in [
        ("192.0.2.9", "traceroute 192.0.2.9 probes 2"),
        ("192.0.2.9", "traceroute ipv4 192.0.2.9 probes 2 size 100"),
        ("2001:db8:ffff::9", "traceroute ipv6 2001:db8:ffff::9 probes 2 source e1"),
        ("2001:db8:ffff::9", "traceroute 2001:db8:ffff::9 e1 probes 2"),
    ] {
        let far: IpAddr = far.parse().unwrap();
        let six = far.is_ipv6();
        let mut router = with_gateway();
        let (text, json) = trace(&mut router, line, |packet| Some(answer(packet, six, far)));
        assert_eq!(json["reached"], true, "{text}");
        let hops = json["hops"].as_array().unwrap();
        assert_eq!(hops.len(), usize::from(FAR_HOPS), "{text}");
        for (index, hop) in hops.iter().enumerate() {
            let here = if index == 2 { far } else { host(six, 1, 101 + index as u8) };
            let probes = hop["probes"].as_array().unwrap();
            assert_eq!((&hop["hop"], probes.len()), (&(index + 1).into(), 2));
            assert!(probes.iter().all(|probe| probe["from"] == here.to_string()), "{json:#}");
            assert!(text.contains(&format!("\n {}  {here}  ", index + 1)), "{text}");
        }
    }
}

#[test]
fn silence_is_told_and_ends_at_the_limit() {
    let mut router = with_gateway();
    let (text, json) =
        trace(&mut router, "traceroute 192.0.2.9 hops 4 probes 3 wait 0.1", |_| None);
    assert_eq!(json["reached"], false);
    assert_eq!(json["hops"].as_array().unwrap().len(), 4);
    assert!(text.contains(" 4  *  *  *"), "{text}");
}

#[test]
fn an_error_other_than_used_up_hops_ends_the_way() {
    let mut router = with_gateway();
    let prohibited = |packet: &[u8]| {
        let mut message = vec![3, 13, 0, 0, 0, 0, 0, 0];
        message.extend(packet);
        Some(icmp(Ipv4Addr::new(10, 1, 0, 66).into(), message))
    };
    let (text, json) = trace(&mut router, "traceroute 192.0.2.9", prohibited);
    assert_eq!(
        (json["reached"].clone(), json["hops"].as_array().unwrap().len()),
        (false.into(), 1),
        "{text}"
    );
    assert!(text.contains("administratively prohibited"), "{text}");
}

#[test]
fn the_router_itself_is_one_hop_away() {
    let mut router = router();
    let said = router.cli("traceroute 10.0.0.1 probes 1");
    assert!(said.contains("10.0.0.1 answers, 1 hops away"), "{said}");
}

#[test]
fn what_cannot_be_traced_is_refused_with_a_remedy() {
    let mut router = router();
    for (line, words) in [
        ("traceroute 198.51.100.1", "ip route add"),
        ("traceroute fe80::9", "traceroute fe80::9 source IF"),
        ("traceroute 192.0.2.1 table-id 77", "ip table add 77"),
        ("traceroute 10.0.0.2 e0 source e1", "two interfaces"),
        ("traceroute ipv6 192.0.2.1", "2001:db8::1"),
    ] {
        let said = router.refused(line);
        assert!(said.contains(words), "{line}: {said}");
    }
}
