//! Every frame that a source makes is right in every header, whatever varies.

use std::collections::HashSet;
use std::path::Path;

use proptest::prelude::*;
use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
use quiver_core::memory::mapping::PageSize;
use quiver_wire::{EtherType, IpProtocol, ethernet, ip4, ip6, mpls, udp};

use super::Source;
use crate::profile::Profile;
use crate::profile::layout::ETHER_TYPE_PLAIN;
use crate::stamp::{STAMP_BYTES, Stamp};

fn frames(stream: &str, count: usize) -> Vec<Vec<u8>> {
    let text =
        format!("ports: [{{tap: {{name: a}}}}]\nstreams:\n  - {{from: 0, to: 0, {stream}}}\n");
    let profile = Profile::parse(&text, Path::new("test")).expect("profile");
    let mut source = Source::new(&profile.streams[0].value).expect("source");
    let mut cache =
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache();
    (0..count)
        .map(|k| {
            let mut packet = cache.packet().expect("buffer");
            let stamp =
                Stamp { measurement: 1, stream: 0, sequence: k as u64, sent_ns: 77 * k as u64 + 1 };
            assert!(source.write(&mut packet, &stamp.encode(), DATA_BYTES_DEFAULT, &mut cache));
            let mut bytes = Vec::new();
            packet.copy_to(&mut bytes);
            cache.free(packet);
            let end: &[u8; STAMP_BYTES] = bytes.last_chunk().expect("stamp");
            assert_eq!(Stamp::decode(end), Ok(stamp));
            bytes
        })
        .collect()
}

const ETHERNET: &str = r#"ethernet: {src: "02:00:00:00:00:01", dst: "02:fe:00:00:00:01"}"#;

#[test]
fn mac_addresses_vary_each_by_itself() {
    let layers = r#"ethernet: {src: {first: "02:00:00:00:00:fe", count: 3},
        dst: {first: "02:fe:00:00:00:01", count: 2}}"#;
    let made = frames(&format!("frame: 64, layers: {{{layers}}}"), 4);
    let macs: Vec<_> = made
        .iter()
        .map(|frame| ethernet::Repr::parse(frame).expect("ethernet").0)
        .map(|l2| (l2.source.0[4..].to_vec(), l2.destination.0[5]))
        .collect();
    let expected = [([0, 0xfe], 1), ([0, 0xff], 2), ([1, 0], 1), ([0, 0xfe], 2)];
    assert_eq!(macs, expected.map(|(source, destination)| (source.to_vec(), destination)));
}

/// Parse everything, check every sum; the two addresses and the ports.
fn check(frame: &[u8]) -> (String, String, u16, u16) {
    let (l2, packet) = ethernet::Repr::parse(frame).expect("ethernet");
    match l2.ether_type {
        EtherType::IPV4 => {
            let (header, payload) = ip4::Repr::parse(packet).expect("ip4");
            assert_eq!(header.header_len() + payload.len(), packet.len());
            let (source, destination) = (header.source.to_string(), header.destination.to_string());
            if header.protocol != IpProtocol::UDP {
                return (source, destination, 0, 0);
            }
            let (datagram, rest) = udp::Repr::parse(payload).expect("udp");
            assert_eq!(datagram.payload_len, rest.len());
            assert_ne!(datagram.checksum, 0);
            assert!(udp::is_good_over_ip4(header.source, header.destination, payload), "checksum");
            (source, destination, datagram.source_port, datagram.destination_port)
        }
        EtherType::IPV6 => {
            let (header, payload) = ip6::Repr::parse(packet).expect("ip6");
            assert_eq!(header.payload_len, packet.len() - 40);
            let (source, destination) = (header.source.to_string(), header.destination.to_string());
            if header.next_header != IpProtocol::UDP {
                return (source, destination, 0, 0);
            }
            assert!(udp::is_good_over_ip6(header.source, header.destination, payload), "checksum");
            let (datagram, _) = udp::Repr::parse(payload).expect("udp");
            (source, destination, datagram.source_port, datagram.destination_port)
        }
        other => {
            assert_eq!(other, EtherType(ETHER_TYPE_PLAIN));
            (String::new(), String::new(), 0, 0)
        }
    }
}

fn address4(pick: u8) -> &'static str {
    [
        "198.18.0.2",
        "{first: 20.0.255.0, count: 600}",
        "{first: 1.2.3.4, count: 1000, order: random}",
    ][usize::from(pick) % 3]
}

fn address6(pick: u8) -> &'static str {
    [
        "\"2001:2::2\"",
        "{first: \"2001:2:0:1:ffff:ffff:ffff:ff00\", count: 600}",
        "{first: \"2001:db8::\", count: 1000, order: zipf}",
    ][usize::from(pick) % 3]
}

fn port(pick: u8) -> &'static str {
    ["1024", "{first: 0, count: 65536}", "{first: 5000, count: 99, order: random}"]
        [usize::from(pick) % 3]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn headers_and_checksums_are_right_whatever_varies(
        is_ip6: bool, has_udp: bool, picks: [u8; 4], size in 78usize..2200,
    ) {
        let (source, destination) = if is_ip6 {
            (address6(picks[0]), address6(picks[1]))
        } else {
            (address4(picks[0]), address4(picks[1]))
        };
        let version = if is_ip6 { "ip6" } else { "ip4" };
        let udp = if has_udp {
            format!(", udp: {{src_port: {}, dst_port: {}}}", port(picks[2]), port(picks[3]))
        } else {
            String::new()
        };
        let layers = format!("{ETHERNET}, {version}: {{src: {source}, dst: {destination}}}{udp}");
        for frame in frames(&format!("frame: {size}, layers: {{{layers}}}"), 700) {
            prop_assert_eq!(frame.len(), size);
            check(&frame);
        }
    }
}

#[test]
fn a_run_of_addresses_is_sent_in_order() {
    let layers =
        format!("{ETHERNET}, ip4: {{src: 10.0.0.1, dst: {{first: 10.1.0.0, count: 300}}}}");
    let all: Vec<String> = frames(&format!("frame: 64, layers: {{{layers}}}"), 301)
        .iter()
        .map(|f| check(f).1)
        .collect();
    assert_eq!(
        (all[0].as_str(), all[299].as_str(), all[300].as_str()),
        ("10.1.0.0", "10.1.1.43", "10.1.0.0")
    );
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 300);
}

#[test]
fn a_mix_has_its_sizes_in_its_shares_and_a_jumbo_frame_is_whole() {
    let layers = format!("{ETHERNET}, ip6: {{src: \"2001:2::2\", dst: \"2001:2::3\"}}, udp: {{}}");
    let sizes: Vec<usize> =
        frames(&format!("frame: imix, layers: {{{layers}}}"), 120).iter().map(Vec::len).collect();
    for (size, count) in [(78, 70), (570, 40), (1518, 10)] {
        assert_eq!(sizes.iter().filter(|s| **s == size).count(), count);
    }
    for size in [2048, 2049, 2060, 4096, 9000, 9216] {
        for frame in frames(&format!("frame: {size}, layers: {{{layers}}}"), 3) {
            assert_eq!(frame.len(), size);
            check(&frame);
        }
    }
}

#[test]
fn a_plain_frame_needs_no_ip() {
    for frame in frames(&format!("frame: 60, layers: {{{ETHERNET}}}"), 3) {
        check(&frame);
    }
}

/// The one's complement sum of 16-bit words, as RFC 1071 §4.1 has it; 0xffff when a checksum in it
/// is right.
fn naive_sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The headers of a frame by their names, every length and checksum looked at.
fn walk_ethernet(frame: &[u8], names: &mut Vec<&'static str>) {
    names.push("ethernet");
    walk_type(u16::from_be_bytes([frame[12], frame[13]]), &frame[14..], names);
}

fn walk_type(ether_type: u16, bytes: &[u8], names: &mut Vec<&'static str>) {
    match ether_type {
        0x8100 | 0x88a8 => {
            names.push(if ether_type == 0x8100 { "vlan" } else { "dot1ad" });
            walk_type(u16::from_be_bytes([bytes[2], bytes[3]]), &bytes[4..], names);
        }
        0x8847 => {
            names.push("mpls");
            let (entry, rest) = mpls::Repr::parse(bytes).expect("a label");
            let next = match (entry.is_bottom, rest[0] >> 4) {
                (false, _) => 0x8847,
                (true, 4) => 0x0800,
                (true, _) => 0x86dd,
            };
            walk_type(next, rest, names);
        }
        0x0800 => {
            names.push("ip4");
            assert_eq!(
                usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
                bytes.len(),
                "ip4 length"
            );
            assert_eq!(naive_sum(&[&bytes[..20]]), 0xffff, "ip4 checksum");
            walk_protocol(bytes[9], &[&bytes[12..20]], &bytes[20..], names);
        }
        0x86dd => {
            names.push("ip6");
            assert_eq!(
                usize::from(u16::from_be_bytes([bytes[4], bytes[5]])) + 40,
                bytes.len(),
                "ip6 length"
            );
            walk_protocol(bytes[6], &[&bytes[8..40]], &bytes[40..], names);
        }
        0x6558 => walk_ethernet(bytes, names),
        other => assert_eq!(other, ETHER_TYPE_PLAIN),
    }
}

fn walk_protocol(protocol: u8, addresses: &[&[u8]], bytes: &[u8], names: &mut Vec<&'static str>) {
    let length = (bytes.len() as u32).to_be_bytes();
    let pseudo = naive_sum(&[addresses[0], &length, &[0, protocol], bytes]);
    match protocol {
        17 => {
            names.push("udp");
            assert_eq!(
                usize::from(u16::from_be_bytes([bytes[4], bytes[5]])),
                bytes.len(),
                "udp length"
            );
            if bytes[2..4] == [0x12, 0xb5] {
                assert_eq!(bytes[6..8], [0, 0]);
                names.push("vxlan");
                return walk_ethernet(&bytes[16..], names);
            }
            assert_eq!(pseudo, 0xffff, "udp checksum");
            assert_ne!(bytes[6..8], [0, 0]);
        }
        6 | 58 => {
            names.push(if protocol == 6 { "tcp" } else { "icmp6" });
            assert_eq!(pseudo, 0xffff, "checksum over addresses");
        }
        1 => {
            names.push("icmp4");
            assert_eq!(naive_sum(&[bytes]), 0xffff, "icmp4 checksum");
        }
        47 => {
            names.push("gre");
            let header = if bytes[0] & 0x20 != 0 { 8 } else { 4 };
            walk_type(u16::from_be_bytes([bytes[2], bytes[3]]), &bytes[header..], names);
        }
        4 => walk_type(0x0800, bytes, names),
        41 => walk_type(0x86dd, bytes, names),
        other => assert_eq!(other, 253),
    }
}

/// A field of so many bits that varies in some way.
fn varying(bits: u32, pick: u8) -> String {
    let most = if bits >= 24 { 1 << 24 } else { 1u64 << bits };
    match pick % 5 {
        0 => format!("{{first: 0, count: {most}, order: random, seed: {pick}}}"),
        1 => format!("{{first: {}, count: 2, order: decrement}}", most - 2),
        2 => format!("{{list: [{}, 0, 1], order: zipf}}", most - 1),
        3 => format!("{{first: 0, last: {}, mask: 5}}", most - 1),
        _ => format!("{}", most - 1),
    }
}

/// A header with fields that vary; what may follow it.
fn header(pick: u8, number: usize) -> (&'static str, String) {
    let vary = |bits| varying(bits, pick.wrapping_mul(31).wrapping_add(number as u8));
    let name = ["vlan", "dot1ad", "mpls", "ip4", "ip6", "gre", "vxlan"][usize::from(pick) % 7];
    let fields = match name {
        "vlan" | "dot1ad" => format!("{{id: {}, priority: {}}}", vary(12), vary(3)),
        "mpls" => format!("{{label: {}, ttl: {}}}", vary(20), vary(8)),
        "ip4" => format!(
            "{{src: {}, dst: 10.1.0.1, id: {}, ttl: {}}}",
            address4(pick),
            vary(16),
            vary(8)
        ),
        "ip6" => {
            format!("{{src: {}, dst: \"2001:db8::9\", flow_label: {}}}", address6(pick), vary(20))
        }
        "gre" => format!("{{key: {}}}", vary(32)),
        _ => format!("{{vni: {}}}", vary(24)),
    };
    (name, fields)
}

/// Can headers follow one another?
fn follows(before: &str, next: &str) -> bool {
    let is_ip = |name| ["ip4", "ip6"].contains(&name);
    match next {
        "vlan" | "dot1ad" => ["ethernet", "vlan", "dot1ad"].contains(&before),
        "mpls" => ["ethernet", "vlan", "dot1ad", "mpls", "gre"].contains(&before),
        "vxlan" => false,
        "gre" => is_ip(before),
        _ => before != "vxlan" && before != "udp",
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_frame_of_a_random_stack_is_right_in_all_its_headers(
        picks in prop::collection::vec(any::<u8>(), 1..8), last: u8, sizes in 0usize..4,
        flows in 0u8..3,
    ) {
        let mut names = vec!["ethernet"];
        let mut layers = format!("[{{{ETHERNET}}}");
        for (number, pick) in picks.iter().enumerate() {
            let before = names.last().copied().unwrap_or_default();
            let (name, fields) = header(*pick, number);
            if name == "vxlan" && ["ip4", "ip6"].contains(&before) {
                layers += &format!(", {{udp: {{src_port: {}}}}}, {{vxlan: {fields}}}, \
                    {{{ETHERNET}}}", varying(16, *pick));
                names.extend(["udp", "vxlan", "ethernet"]);
            } else if follows(before, name) {
                layers += &format!(", {{{name}: {fields}}}");
                names.push(name);
            }
        }
        let ip = names.last().copied().unwrap_or_default();
        let transports = match ip {
            "ip4" => ["udp", "tcp", "icmp4"],
            "ip6" => ["udp", "tcp", "icmp6"],
            _ => [""; 3],
        };
        let transport = transports[usize::from(last) % 3];
        let number = varying(16, last);
        match transport {
            "" => layers.push(']'),
            "icmp4" | "icmp6" => layers += &format!(", {{{transport}: {{id: {number}, seq: \
             {number}}}}}]"),
            _ => layers += &format!(", {{{transport}: {{src_port: {number}, dst_port: 9}}}}]"),
        }
        names.extend(Some(transport).filter(|name| !name.is_empty()));
        // A stack that ends in a label or a key has nothing known behind it.
        prop_assume!(!["mpls", "gre"].contains(&ip));
        let size = ["400", "imix", "{first: 400, last: 463}", "{first: 500, last: 999, order: \
            random}"][sizes];
        let flows = if flows == 0 && !layers.contains("order") { ", flows: {count: \
            1000}" } else { "" };
        for frame in frames(&format!("frame: {size}, layers: {layers}{flows}"), 150) {
            let mut found = Vec::new();
            walk_ethernet(&frame, &mut found);
            prop_assert_eq!(&found, &names);
        }
    }
}

#[test]
fn flows_are_the_product_of_their_fields_or_go_in_lockstep() {
    let layers = format!(
        "{ETHERNET}, ip4: {{src: {{first: 10.0.0.0, count: 3}}, dst: [20.0.0.1, 20.0.0.9]}}, \
         udp: {{src_port: {{first: 5, count: 2}}}}"
    );
    let flows = |fields: &str| -> Vec<(String, String, u16)> {
        let made = frames(&format!("layers: {{{layers}}}, flows: {{fields: {fields}}}"), 13);
        made.iter().map(|frame| check(frame)).map(|(src, dst, port, _)| (src, dst, port)).collect()
    };
    let product = flows("product");
    for (number, (src, dst, port)) in product.iter().enumerate() {
        let number = number % 12;
        assert_eq!(*src, format!("10.0.0.{}", number % 3));
        assert_eq!(*dst, ["20.0.0.1", "20.0.0.9"][number / 3 % 2]);
        assert_eq!(usize::from(*port), 5 + number / 6);
    }
    for (number, (src, dst, port)) in flows("lockstep").iter().enumerate() {
        let number = number % 3;
        assert_eq!(
            (src, dst),
            (&format!("10.0.0.{number}"), &["20.0.0.1", "20.0.0.9"][number % 2].to_owned())
        );
        assert_eq!(usize::from(*port), 5 + number % 2);
    }
}
