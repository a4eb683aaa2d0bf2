//! Classes of defects that other routers had, each a test here or named in
//! `tests/netns/DEFECTS.md`. Whatever comes: a counted reason, nothing else changed, all buffers
//! back.

use crate::stand;

use std::time::Duration;

use quiver_testkit::Router;
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip6Header, IpProtocol, icmp4, ip4};
use stand::{
    Cut, FAR4, FAR6, Family, Four, HOST4, HOST6, ROUTER4, ROUTER6, Six, Whole, replies, router,
    send_all,
};

/// A frame for the router's e0.
fn frame(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa0];
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

fn packet4(repr: &ip4::Repr<'_>, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; 60];
    let length = repr.emit(&mut header).expect("a header");
    [&header[..length], payload].concat()
}

fn packet6(to: std::net::Ipv6Addr, next: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ip6Header::new(HOST6, to, IpProtocol(next), hop_limit, payload.len() as u16);
    let mut bytes = vec![0; 40];
    header.write(&mut bytes).expect("room");
    bytes.extend_from_slice(payload);
    bytes
}

/// UDP from port 7 to port 9 with its checksum, or none.
fn udp(family: Family, to_router: bool, data: &[u8], summed: bool) -> Vec<u8> {
    let length = (8 + data.len()) as u16;
    let mut bytes = vec![0, 7, 0, 9];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(data);
    if summed {
        let sum = match (family, to_router) {
            (Four, true) => Sum::pseudo4(HOST4, ROUTER4, IpProtocol::UDP, length),
            (Four, false) => Sum::pseudo4(HOST4, FAR4, IpProtocol::UDP, length),
            (Six, true) => Sum::pseudo6(HOST6, ROUTER6, IpProtocol::UDP, length.into()),
            (Six, false) => Sum::pseudo6(HOST6, FAR6, IpProtocol::UDP, length.into()),
        };
        let sum = sum.bytes(&bytes).udp_checksum().to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
    }
    bytes
}

fn udp_frame(family: Family, to_router: bool, data: &[u8], summed: bool) -> Vec<u8> {
    let udp = udp(family, to_router, data, summed);
    match family {
        Four => {
            let to = if to_router { ROUTER4 } else { FAR4 };
            frame(0x0800, &packet4(&ip4::Repr::new(HOST4, to, IpProtocol::UDP, udp.len()), &udp))
        }
        Six => frame(0x86dd, &packet6(if to_router { ROUTER6 } else { FAR6 }, 17, 64, &udp)),
    }
}

fn nothing_left(router: &mut Router) {
    assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn truncated_fragment_header() {
    for to in [ROUTER6, FAR6] {
        for command in [
            "show version",
            "set interface reassembly e0 on",
            "set interface reassembly e0 virtual on",
        ] {
            for length in 0..8 {
                let mut router = router();
                router.cli(command);
                router.send(
                    "e0",
                    &frame(0x86dd, &packet6(to, 44, 64, &[17, 0, 0, 1, 0, 0, 0, 9][..length])),
                );
                let left = router.sent("e1").len();
                let dead: u64 = router.dropped().iter().map(|(_, _, count)| count).sum();
                assert_eq!((left as u64) + dead, 1, "{to} {command} {length}");
                assert_eq!(router.buffers_in_use(), 0);
            }
        }
    }
}

#[test]
fn truncated_fragment_of_ip4() {
    for length in 0..8 {
        let mut router = router();
        let repr = ip4::Repr {
            more_fragments: true,
            ..ip4::Repr::new(HOST4, ROUTER4, IpProtocol::UDP, length)
        };
        router.send("e0", &frame(0x0800, &packet4(&repr, &[0; 8][..length])));
        nothing_left(&mut router);
    }
}

#[test]
fn hop_by_hop_option_beyond_the_header() {
    let options = [17, 0, 0x1e, 40, 0, 0, 0, 0, 0, 7, 0, 9, 0, 8, 0, 0];
    // To the router: dropped.
    let mut local = router();
    local.send("e0", &frame(0x86dd, &packet6(ROUTER6, 0, 64, &options)));
    assert_eq!(local.count("ip6-local", "extension-truncated"), 1);
    nothing_left(&mut local);
    // Through it: nobody looks, unless told to.
    let mut through = router();
    through.send("e0", &frame(0x86dd, &packet6(FAR6, 0, 64, &options)));
    assert_eq!(through.sent("e1").len(), 1);
    through.cli("set ip6 hop-by-hop e0 process");
    through.send("e0", &frame(0x86dd, &packet6(FAR6, 0, 64, &options)));
    assert_eq!(through.count("ip6-hop-by-hop-process", "truncated"), 1);
    nothing_left(&mut through);
}

#[test]
fn hop_by_hop_header_beyond_the_packet() {
    for policy in ["ignore", "process", "drop", "punt"] {
        for to in [ROUTER6, FAR6] {
            let mut router = router();
            router.cli(&format!("set ip6 hop-by-hop e0 {policy}"));
            router.send("e0", &frame(0x86dd, &packet6(to, 0, 64, &[17, 200, 0, 0, 0, 0, 0, 0])));
            assert_eq!(router.sent("e1").len(), usize::from(policy == "ignore" && to == FAR6));
            assert_eq!(router.buffers_in_use(), 0);
        }
    }
}

#[test]
fn hop_by_hop_policies() {
    // An option that is to be reported by who does not know it.
    let unknown = [17, 0, 0x9e, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0, 8, 0, 0];
    let padding = [17, 0, 1, 4, 0, 0, 0, 0, 0, 7, 0, 9, 0, 8, 0, 0];
    for (policy, bytes, passes, reason) in [
        ("ignore", unknown, true, None),
        ("process", padding, true, None),
        ("process", unknown, false, Some(("ip6-hop-by-hop-process", "unknown-option"))),
        ("drop", padding, false, Some(("ip6-hop-by-hop-drop", "hop-by-hop"))),
        ("punt", padding, false, Some(("ip6-hop-by-hop-punt", "punted"))),
    ] {
        let mut router = router();
        router.cli(&format!("set ip6 hop-by-hop e0 {policy}"));
        router.send("e0", &frame(0x86dd, &packet6(FAR6, 0, 64, &bytes)));
        assert_eq!(router.sent("e1").len(), usize::from(passes), "{policy}");
        if let Some((node, reason)) = reason {
            assert_eq!(router.count(node, reason), 1);
        }
        // A packet without such options is not concerned.
        router.send("e0", &udp_frame(Six, false, b"plain", true));
        assert_eq!(router.sent("e1").len(), 1, "{policy}");
        let config = router.cli("show running-config");
        assert_eq!(config.contains("set ip6 hop-by-hop"), policy != "ignore");
    }
}

#[test]
fn routing_header_type_0_to_the_router() {
    let mut bytes = vec![17, 2, 0, 1, 0, 0, 0, 0];
    bytes.extend_from_slice(&FAR6.octets());
    bytes.extend_from_slice(&udp(Six, false, b"source routed", true));
    let mut router = router();
    router.send("e0", &frame(0x86dd, &packet6(ROUTER6, 43, 64, &bytes)));
    assert_eq!(router.count("ip6-local", "routing-header"), 1);
    let sent = router.sent("e0");
    assert_eq!((sent.len(), sent[0][54], sent[0][55]), (1, 4, 0), "parameter problem");
    assert!(router.sent("e1").is_empty());
}

#[test]
fn source_0_0_0_0() {
    let mut router = router();
    for to in [ROUTER4, FAR4] {
        let repr = ip4::Repr::new([0, 0, 0, 0].into(), to, IpProtocol::ICMP, 8);
        router.send("e0", &frame(0x0800, &packet4(&repr, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0])));
    }
    assert_eq!(router.count("ip4-input", "source-this-network"), 2);
    nothing_left(&mut router);
}

#[test]
fn source_unspecified_in_ip6() {
    let mut router = router();
    let mut packet = packet6(FAR6, 17, 64, &udp(Six, false, b"", true));
    packet[8..24].fill(0);
    router.send("e0", &frame(0x86dd, &packet));
    assert_eq!(router.count("ip6-input", "source-unspecified"), 1);
    nothing_left(&mut router);
}

#[test]
fn ping_to_self() {
    let mut router = router();
    for address in ["10.0.0.1", "10.0.1.1", "2001:db8::1", "2001:db8:1::1"] {
        for size in [0, 1, 56, 1473, 9000] {
            let said = router.cli(&format!("ping {address} repeat 1 size {size}"));
            assert!(said.contains("1 sent, 1 received"), "{address} {size}: {said}");
        }
    }
}

#[test]
fn a_packet_from_the_routers_own_address() {
    let mut router = router();
    let repr = ip4::Repr::new(ROUTER4, ROUTER4, IpProtocol::UDP, 8);
    router.send("e0", &frame(0x0800, &packet4(&repr, &udp(Four, true, b"", false))));
    assert_eq!(router.count("ip4-local", "source-is-ours"), 1);
    nothing_left(&mut router);
}

#[test]
fn one_byte_last_fragment() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 1232 - 8 + 1);
        send_all(&mut router, &whole.frames(1232));
        assert_eq!(replies(&mut router, family, "e0"), [&whole.payload[8..]]);
    }
}

#[test]
fn overlapping_fragments() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 2000);
        let cut = |start, end, more| whole.frame(Cut { start, end, more });
        send_all(&mut router, &[cut(0, 1232, true), cut(1224, 2008, false)]);
        assert_eq!(router.count(family.full(), "overlap"), 2);
        nothing_left(&mut router);
    }
}

#[test]
fn teardrop() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole { protocol: IpProtocol::UDP, ..Whole::echo(family, 242, 100) };
        let cut = |start, end, more| whole.frame(Cut { start, end, more });
        send_all(&mut router, &[cut(0, 40, true), cut(24, 28, false)]);
        assert_eq!(router.count(family.full(), "overlap"), 2);
        nothing_left(&mut router);
    }
}

#[test]
fn duplicate_first_fragment() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 2000);
        let frames = whole.frames(1232);
        send_all(&mut router, &[frames[0].clone(), frames[0].clone(), frames[1].clone()]);
        assert_eq!(replies(&mut router, family, "e0"), [&whole.payload[8..]]);
    }
}

#[test]
fn reassembly_table_full() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set ip reassembly max-reassemblies 16");
        for number in 0..1000 {
            router.send("e0", &Whole::echo(family, number, 2000).frames(1232)[0]);
        }
        assert_eq!(router.count(family.full(), "table-full"), 984);
        let whole = Whole::echo(family, 2000, 2000);
        send_all(&mut router, &whole.frames(1232));
        assert_eq!(replies(&mut router, family, "e0"), [&whole.payload[8..]]);
    }
}

#[test]
fn trace_of_a_packet_that_reassembly_holds() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("trace add test-input 3");
        let frames = Whole::echo(family, 1, 2000).frames(1232);
        router.send("e0", &frames[0]);
        router.cli("show trace");
        router.cli("clear trace");
        router.cli("trace add test-input 3");
        router.send("e0", &frames[1]);
        router.cli("show trace");
        router.advance(Duration::from_secs(61));
        assert_eq!(router.buffers_in_use(), 0);
        router.sent("e0");
    }
}

#[test]
fn icmp_error_that_embeds_a_truncated_header() {
    // Time exceeded about our ping, cut at every length.
    let echo =
        packet4(&ip4::Repr::new(ROUTER4, FAR4, IpProtocol::ICMP, 8), &[8, 0, 0, 0, 0, 1, 0, 1]);
    for length in 0..=echo.len() {
        let mut router = router();
        let repr = icmp4::Repr {
            message: icmp4::Message::TimeExceeded { code: 0 },
            data: &echo[..length],
        };
        let mut message = vec![0; repr.len()];
        repr.emit(&mut message).expect("room");
        let outer = ip4::Repr::new(HOST4, ROUTER4, IpProtocol::ICMP, message.len());
        router.send("e0", &frame(0x0800, &packet4(&outer, &message)));
        assert_eq!(router.count("ip4-icmp-input", "error-received"), 1);
        nothing_left(&mut router);
    }
    let echo6 = packet6(FAR6, 58, 64, &[128, 0, 0, 0, 0, 1, 0, 1]);
    for length in 0..=echo6.len() {
        let mut router = router();
        let mut message = vec![3, 0, 0, 0, 0, 0, 0, 0];
        message.extend_from_slice(&echo6[..length]);
        let sum =
            Sum::pseudo6(HOST6, ROUTER6, IpProtocol::ICMP6, message.len() as u32).bytes(&message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        router.send("e0", &frame(0x86dd, &packet6(ROUTER6, 58, 64, &message)));
        nothing_left(&mut router);
    }
}

#[test]
fn no_icmp_error_about_an_icmp_error() {
    let mut router = router();
    // An error whose time is over.
    let quoted = packet4(&ip4::Repr::new(HOST4, FAR4, IpProtocol::UDP, 8), &[0; 8]);
    let repr = icmp4::Repr { message: icmp4::Message::TimeExceeded { code: 0 }, data: &quoted };
    let mut message = vec![0; repr.len()];
    repr.emit(&mut message).expect("room");
    let outer =
        ip4::Repr { ttl: 1, ..ip4::Repr::new(HOST4, FAR4, IpProtocol::ICMP, message.len()) };
    router.send("e0", &frame(0x0800, &packet4(&outer, &message)));
    assert_eq!(router.count("ip4-icmp-error", "about-error"), 1);
    nothing_left(&mut router);
}

#[test]
fn ttl_at_every_hop() {
    for ttl in [0, 1, 2, 3, 64, 254, 255] {
        let mut router = router();
        let data = udp(Four, false, b"how far", true);
        let repr = ip4::Repr { ttl, ..ip4::Repr::new(HOST4, FAR4, IpProtocol::UDP, data.len()) };
        router.send("e0", &frame(0x0800, &packet4(&repr, &data)));
        router.send(
            "e0",
            &frame(0x86dd, &packet6(FAR6, 17, ttl, &udp(Six, false, b"how far", true))),
        );
        let sent = router.sent("e1");
        if ttl <= 1 {
            assert!(sent.is_empty());
            let told: Vec<(u8, u8)> = router.sent("e0").iter().map(|f| (f[34], f[54])).collect();
            assert_eq!((told.len(), told[0].0, told[1].1), (2, 11, 3), "both senders are told");
        } else {
            assert_eq!((sent[0][22], sent[1][21]), (ttl - 1, ttl - 1));
            assert!(Sum::new().bytes(&sent[0][14..34]).is_good());
        }
    }
}

#[test]
fn udp_checksum_of_zero() {
    let mut router = router();
    router.send("e0", &udp_frame(Four, true, b"no sum", false));
    assert_eq!(router.count("ip4-local", "udp-port-closed"), 1, "IPv4 needs none (RFC 768)");
    router.send("e0", &udp_frame(Six, true, b"no sum", false));
    assert_eq!(router.count("ip6-local", "udp-bad-checksum"), 1, "IPv6 does (RFC 8200 §8.1)");
    // Who passes packets on does not look.
    for family in Family::BOTH {
        router.send("e0", &udp_frame(family, false, b"no sum", false));
        assert_eq!(router.sent("e1").len(), 1);
    }
}

#[test]
fn odd_lengths() {
    for family in Family::BOTH {
        let mut router = router();
        for length in (0..70).chain([1001, 1459, 1471]) {
            let data: Vec<u8> = (0..length).map(|at| at as u8 ^ 0x5a).collect();
            router.send("e0", &udp_frame(family, false, &data, true));
            let sent = router.sent("e1");
            let behind = if family == Four { 34 } else { 54 };
            assert_eq!(sent[0][behind + 8..], data, "{family:?} {length}");
            let whole = Whole::echo(family, 1, length);
            send_all(&mut router, &[whole_frame(&whole)]);
            assert_eq!(
                replies(&mut router, family, "e0"),
                [&whole.payload[8..]],
                "{family:?} {length}"
            );
        }
    }
}

/// Uncut: in IPv6 without a fragment header.
fn whole_frame(whole: &Whole) -> Vec<u8> {
    match whole.family {
        Four => whole.frame(Cut { start: 0, end: whole.payload.len(), more: false }),
        Six => frame(0x86dd, &packet6(ROUTER6, whole.protocol.0, 64, &whole.payload)),
    }
}

#[test]
fn padding_beyond_the_ip_length() {
    for family in Family::BOTH {
        for padding in [1, 18, 46, 1000] {
            let mut router = router();
            let mut padded = udp_frame(family, false, b"x", true);
            let length = padded.len();
            padded.extend(std::iter::repeat_n(0xee, padding));
            router.send("e0", &padded);
            assert_eq!(router.sent("e1")[0].len(), length, "padding is not passed on");
            let whole = Whole::echo(family, 1, 5);
            let mut asked = whole_frame(&whole);
            asked.extend(std::iter::repeat_n(0xee, padding));
            router.send("e0", &asked);
            assert_eq!(replies(&mut router, family, "e0"), [&whole.payload[8..]]);
        }
    }
}

#[test]
fn length_frames_of_802_3() {
    let mut router = router();
    for length in [0, 3, 46, 1500, 1535] {
        let mut llc = vec![0x42, 0x42, 3];
        llc.resize(46, 0);
        router.send("e0", &frame(length, &llc));
    }
    let dead: u64 = router.dropped().iter().map(|(_, _, count)| count).sum();
    assert_eq!(dead, 5, "{:?}", router.dropped());
    nothing_left(&mut router);
}

#[test]
fn vlan_stacks_deeper_than_known() {
    let mut router = router();
    for depth in 1..12 {
        let mut packet = Vec::new();
        for tag in 0..depth {
            packet.extend_from_slice(&[0, tag]);
            packet.extend_from_slice(&if tag + 1 < depth { [0x81, 0] } else { [8, 0] });
        }
        packet.extend_from_slice(&udp_frame(Four, false, b"deep", true)[14..]);
        router.send("e0", &frame(0x8100, &packet));
        router.send("e0", &frame(0x88a8, &packet[..packet.len().min(usize::from(depth) * 4)]));
    }
    // Priority tags alone (VLAN 0) may be taken off; nothing else leaves.
    assert!(router.sent("e1").len() <= 1);
    assert!(router.sent("e0").is_empty());
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn arp_for_everything() {
    let mut router = router();
    for number in 0..2000u16 {
        let mut arp =
            vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0xa0, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0];
        let [high, low] = number.to_be_bytes();
        arp.extend_from_slice(&[10, 0, high, low]);
        let mut asked = frame(0x0806, &arp);
        asked[..6].fill(0xff);
        router.inject("e0", &asked);
        if number % 200 == 0 {
            router.run();
        }
    }
    router.run();
    let answers = router.sent("e0");
    assert_eq!(answers.len(), 1, "for our address alone");
    assert_eq!(answers[0][28..32], [10, 0, 0, 1]);
}

#[test]
fn packets_to_every_address_of_a_subnet() {
    let mut router = router();
    router.cli("set interface ip address e1 10.8.0.1/16");
    router.run();
    router.sent("e1");
    for number in 0..5000u16 {
        let [high, low] = number.to_be_bytes();
        let data = udp(Four, false, b"scan", false);
        let repr = ip4::Repr::new(HOST4, [10, 8, high, low].into(), IpProtocol::UDP, data.len());
        router.inject("e0", &frame(0x0800, &packet4(&repr, &data)));
        if number % 200 == 0 {
            router.run();
        }
    }
    router.run();
    let asked = router.sent("e1").len();
    assert!((1..=4000).contains(&asked), "the router asks, but within limits: {asked}");
    router.advance(Duration::from_secs(10));
    assert_eq!(router.buffers_in_use(), 0);
    // It still serves those it knows.
    router.sent("e1");
    router.send("e0", &udp_frame(Four, false, b"still there", true));
    assert_eq!(router.sent("e1").len(), 1);
}

#[test]
fn solicitations_for_every_address_of_a_subnet() {
    let mut router = router();
    for number in 0..3000u16 {
        let to = std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 9, number);
        router.inject("e0", &frame(0x86dd, &packet6(to, 17, 64, &udp(Six, false, b"scan", true))));
        if number % 200 == 0 {
            router.run();
        }
    }
    router.run();
    let asked = router.sent("e1").len();
    assert!((1..=2500).contains(&asked), "the router asks, but within limits: {asked}");
    router.advance(Duration::from_secs(10));
    router.sent("e1");
    router.sent("e0");
    router.send("e0", &udp_frame(Six, false, b"still there", true));
    assert_eq!(router.sent("e1").len(), 1);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn ip4_options_of_every_length_and_kind() {
    let mut router = router();
    for kind in 0..=255u8 {
        for length in [0, 1, 2, 3, 4, 40] {
            let mut options = [1; 8];
            (options[0], options[1]) = (kind, length);
            let repr = ip4::Repr {
                options: &options,
                ..ip4::Repr::new(HOST4, ROUTER4, IpProtocol::UDP, 8)
            };
            router.send("e0", &frame(0x0800, &packet4(&repr, &udp(Four, true, b"", false))));
            assert_eq!(router.buffers_in_use(), 0, "kind {kind}, length {length}");
        }
    }
}
