//! Packets that are translated without state, and what is configured for it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::configuration::running;
use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};
use quiver_testkit::{Register, Router, Settings};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_siit::register];
/// A host that has only IPv4, behind this router.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const UDP: u8 = 17;
/// What the two have as addresses of IPv6.
const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xaa, 0, 0, 0, 0, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0xc633, 0x6407);

/// The CLAT of 464XLAT: hosts of IPv4 on e0, IPv6 alone on e1.
fn clat() -> Router {
    clat_with(Settings::default())
}

/// The same, set up otherwise.
fn clat_with(settings: Settings) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    let lines = "create test interface e0
        create test interface e1
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.1.0.1/24
        set interface ip address e1 2001:db8:1::1/64
        ip neighbor e0 10.1.0.2 02:00:00:00:00:00 static
        ip neighbor e1 2001:db8:1::2 02:00:00:00:00:01 static
        ip route add ::/0 via 2001:db8:1::2
        siit add prefix 2001:db8:64::/96 hosts ip6
        siit add mapping 10.1.0.0/24 2001:db8:aa::/120 hosts ip4";
    router.script("setup", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

fn whole() -> Fragment {
    Fragment { identification: 7, offset_bytes: 0, more: false }
}

fn udp(data: &[u8]) -> Vec<u8> {
    let length = (8 + data.len() as u16).to_be_bytes();
    let mut bytes = vec![0x10, 0, 0, 53, length[0], length[1], 1, 1];
    bytes.extend(data);
    bytes
}

fn ip6(ends: (Ipv6Addr, Ipv6Addr), next: u8, hops: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((data.len() as u16).to_be_bytes());
    frame.extend([next, hops]);
    frame.extend(ends.0.octets());
    frame.extend(ends.1.octets());
    frame.extend(data);
    frame
}

#[test]
fn a_host_of_ip4_and_a_prefix_of_nat64_are_translated_both_ways() {
    let mut router = clat();
    router.send("e0", &ip4(0, (HOST, SERVER), UDP, whole(), &udp(b"question")));
    let there = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((there[20], there[21]), (UDP, 63), "UDP, one hop less");
    assert_eq!(there[22..38], HOST6.octets());
    assert_eq!(there[38..54], SERVER6.octets());
    router.send("e1", &ip6((SERVER6, HOST6), UDP, 64, &udp(b"answer")));
    let back = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((back[22], back[23]), (63, UDP));
    assert_eq!(back[26..30], SERVER.octets());
    assert_eq!(back[30..34], HOST.octets());
}

/// RFC 7915 §4: packets that may be cut fit 1280 bytes, with the identification of IPv4.
#[test]
fn long_packets_that_may_be_cut_become_fragments() {
    let mut router = clat();
    router.send("e0", &ip4(0, (HOST, SERVER), UDP, whole(), &udp(&[5; 1400])));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    let fields = |frame: &[u8]| {
        let length = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
        (frame[20], length, u16::from_be_bytes([frame[56], frame[57]]), frame[58..62].to_vec())
    };
    assert_eq!(fields(&sent[0]), (44, 8 + 1232, 1, vec![0, 0, 0, 7]));
    assert_eq!(fields(&sent[1]), (44, 8 + 176, 1232, vec![0, 0, 0, 7]));
}

/// RFC 7915 §4.1, §5.1.1: a fragment stays the fragment that it is.
#[test]
fn fragments_stay_fragments() {
    let mut router = clat();
    let middle = Fragment { identification: 0x1234, offset_bytes: 800, more: true };
    router.send("e0", &ip4(0, (HOST, SERVER), UDP, middle, &[9; 80]));
    let there = router.sent("e1").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!(there[54..62], [UDP, 0, 0x03, 0x21, 0, 0, 0x12, 0x34]);
    let later = Fragment { identification: 0xabcd_1234, offset_bytes: 800, more: false };
    router.send("e1", &ip6_fragment(1, (SERVER6, HOST6), UDP, later, &[9; 80]));
    let back = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!(back[18..22], [0x12, 0x34, 0, 100], "identification, offset of 800 bytes");
    router.send("e0", &ip4(0, (HOST, SERVER), 1, middle, &[9; 80]));
    assert_eq!(router.count("siit-ip4-to-ip6", "fragmented-icmp"), 1);
}

#[test]
fn the_router_itself_and_its_subnets_stay_reachable() {
    let mut router = clat();
    let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 1];
    let sum = quiver_wire::checksum::of(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &ip4(0, (HOST, Ipv4Addr::new(10, 1, 0, 1)), 1, whole(), &echo));
    let answer = router.sent("e0").pop().expect("an echo reply");
    assert_eq!(answer[34], 0);
    assert!(router.sent("e1").is_empty());
}

/// RFC 6791: a router between has no address of IPv4; this router's own stands for it.
#[test]
fn errors_of_routers_without_address_come_from_this_router() {
    let mut router = clat();
    router.send("e0", &ip4(0, (HOST, SERVER), UDP, whole(), &udp(b"question")));
    let there = router.sent("e1").pop().expect("translated");
    let between: Ipv6Addr = "2001:db8:1::2".parse().expect("an address");
    let mut message = vec![3, 0, 0, 0, 0, 0, 0, 0];
    message.extend(&there[14..]);
    let sum = quiver_wire::checksum::Sum::pseudo6(
        between,
        HOST6,
        quiver_wire::IpProtocol::ICMP6,
        message.len() as u32,
    );
    let sum = sum.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    router.send("e1", &ip6((between, HOST6), 58, 64, &message));
    let error = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!(error[26..30], [10, 1, 0, 1]);
    assert_eq!((error[34], error[35]), (11, 0));
    assert_eq!(error[42 + 12..42 + 16], HOST.octets());
    assert_eq!(error[42 + 16..42 + 20], SERVER.octets());
    assert_eq!(quiver_wire::checksum::of(&error[34..]), 0);
}

/// The link behind is too narrow: the sender hears of it in its own version.
#[test]
fn errors_of_this_router_come_in_the_senders_version() {
    let mut router = clat();
    router.cli("set interface mtu packet 1400 e1");
    let mut frame = ip4(0, (HOST, SERVER), UDP, whole(), &udp(&[5; 1400]));
    frame[20] |= 0x40;
    let header: Vec<u8> = frame[14..34].to_vec();
    let mut header = header;
    header[10..12].fill(0);
    let sum = quiver_wire::checksum::of(&header);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &frame);
    let error = router.sent("e0").pop().unwrap_or_else(|| panic!("{:?}", router.dropped()));
    assert_eq!((error[34], error[35]), (3, 4));
    assert_eq!(error[40..42], 1380u16.to_be_bytes());
    assert_eq!(error[42 + 12..42 + 16], HOST.octets());
}

#[test]
fn what_has_no_mapping_is_answered() {
    let mut router = clat();
    let stranger: Ipv6Addr = "2001:db8:99::1".parse().expect("an address");
    router.send("e1", &ip6((stranger, HOST6), UDP, 64, &udp(b"")));
    let error = router.sent("e1").pop().expect("an ICMPv6 error");
    assert_eq!((error[54], error[55]), (1, 5));
    assert_eq!(router.count("siit-ip6-to-ip4", "unmapped-source"), 1);
    router.send("e1", &ip6((SERVER6, HOST6), UDP, 1, &udp(b"")));
    let error = router.sent("e1").pop().expect("an ICMPv6 error");
    assert_eq!((error[54], error[55]), (3, 0));
}

/// A host of IPv4 that no route leads to is not looked for in IPv6, whose way leads back here.
#[test]
fn a_name_that_leads_back_is_unreachable() {
    let mut router = clat();
    router.cli("siit add mapping 10.77.0.0/24 2001:db8:77::/120 hosts ip4");
    router.send("e0", &ip4(0, (HOST, Ipv4Addr::new(10, 77, 0, 1)), UDP, whole(), &udp(b"")));
    let error = router.sent("e0").pop().expect("an ICMP error");
    assert_eq!((error[34], error[35]), (3, 1));
    assert_eq!(router.count("siit-ip4-to-ip6", "unmapped-destination"), 1);
}

#[test]
fn what_is_configured_is_written_down_and_goes_again() {
    let mut router = clat();
    router.cli("siit add mapping 198.51.100.7/32 2001:db8::80/128 hosts ip6");
    assert_eq!(
        router.json("show siit address 198.51.100.7")[0]["address"],
        "2001:db8::80",
        "the longest mapping counts"
    );
    assert_eq!(router.json("show siit address 2001:db8:aa::9")[0]["address"], "10.1.0.9");
    let text = router.cli("show running-config");
    for line in [
        "siit add prefix 2001:db8:64::/96 hosts ip6",
        "siit add mapping 10.1.0.0/24 2001:db8:aa::/120 hosts ip4",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let before = running(&mut router);
    for line in [
        "siit add prefix 2001:db8:65::/96 hosts ip6",
        "siit add prefix 2001:db8:64::/96 hosts ip4",
        "siit add prefix 2001:db8:64::/95 hosts ip4",
        "siit add mapping 10.1.0.0/24 2001:db8:bb::/120 hosts ip4",
        "siit add mapping 10.2.0.0/24 2001:db8:bb::/121 hosts ip4",
        "siit add mapping 10.2.0.1/24 2001:db8:bb::/120 hosts ip4",
        "siit add mapping 10.2.0.0/24 2001:db8:bb::/120 hosts ip4 del",
    ] {
        router.refused(line);
        assert_eq!(running(&mut router), before, "{line}");
    }
    for line in before.lines().filter(|line| line.contains("siit")) {
        router.cli(&format!("{line} del"));
    }
    assert!(!running(&mut router).contains("siit"));
    router.send("e0", &ip4(0, (HOST, SERVER), UDP, whole(), &udp(b"question")));
    assert!(router.sent("e1").is_empty(), "no route leads to the translator any more");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes, each packet is sent or counted, and no buffer is lost.
    #[test]
    fn whatever_comes_loses_no_buffer(
        packets in prop::collection::vec(
            (any::<bool>(), prop::sample::select(vec![0u8, 1, 6, 17, 43, 44, 50, 51, 58, 60, 132]),
             0u8..4, prop::collection::vec(any::<u8>(), 0..120), any::<Option<(u8, u8)>>()),
            1..20,
        ),
    ) {
        let mut router = clat();
        for (six, protocol, hops, data, edit) in packets {
            let (port, mut frame) = match six {
                true => ("e1", ip6((SERVER6, HOST6), protocol, hops, &data)),
                false => ("e0", ip4(0, (HOST, SERVER), protocol, whole(), &data)),
            };
            if let Some((at, value)) = edit {
                let at = 14 + usize::from(at) % (frame.len() - 14);
                frame[at] = value;
            }
            router.inject(port, &frame);
        }
        router.run();
        router.sent("e0");
        router.sent("e1");
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

/// The shortest buffers that there are, in bytes of data: packets that do not fit into one take the
/// general path.
const SHORT_BYTES: usize = 1024;

/// A datagram with a checksum that nobody has made, longer than a short buffer.
fn long_udp(checksum: u16, length: usize) -> Vec<u8> {
    let mut bytes = udp(&vec![0x5a; length]);
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn both_paths_send_and_count_the_same(
        packets in prop::collection::vec(
            (any::<[bool; 2]>(), any::<u16>(), SHORT_BYTES..1_300, 0u8..4, 0usize..20), 1..30,
        ),
    ) {
        let short = Settings { buffer_data_bytes: SHORT_BYTES, ..Settings::default() };
        let [general, fast] = [short, Settings::default()].map(|settings| {
            let mut router = clat_with(settings);
            for ([is_out, is_known], checksum, length, hops, padding) in &packets {
                let data = long_udp(*checksum, *length);
                let stranger = if *is_known { HOST } else { Ipv4Addr::new(10, 9, 0, 2) };
                let (interface, mut frame) = match is_out {
                    true => ("e0", ip4(0, (stranger, SERVER), UDP, whole(), &data)),
                    false => ("e1", ip6((SERVER6, HOST6), UDP, *hops, &data)),
                };
                frame.resize(frame.len() + padding, 0);
                router.inject(interface, &frame);
            }
            router.run();
            let mut counts = router.dropped();
            counts.extend(router.events());
            (router.sent("e0"), router.sent("e1"), counts)
        });
        prop_assert_eq!(fast, general);
    }
}
