//! Every frame that a source makes is right in every header, whatever varies.

use std::collections::HashSet;
use std::path::Path;

use proptest::prelude::*;
use quiver_core::buffer::{BufferPool, DATA_BYTES_DEFAULT};
use quiver_core::memory::PageSize;
use quiver_wire::{EtherType, IpProtocol, ethernet, ip4, ip6, udp};

use super::Source;
use crate::profile::Profile;
use crate::profile::layout::ETHER_TYPE_PLAIN;
use crate::stamp::{STAMP_BYTES, Stamp};

fn frames(stream: &str, count: usize) -> Vec<Vec<u8>> {
    let text = format!("ports: [{{tap: {{name: a}}}}]\nstreams:\n  - {{from: 0, to: 0, {stream}}}\n");
    let profile = Profile::parse(&text, Path::new("test")).expect("profile");
    let mut source = Source::new(&profile.streams[0].value).expect("source");
    let mut cache = BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache();
    (0..count)
        .map(|k| {
            let mut packet = cache.packet().expect("buffer");
            let stamp = Stamp { measurement: 1, stream: 0, sequence: k as u64, sent_ns: 77 * k as u64 + 1 };
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
    let layers = r#"ethernet: {src: {first: "02:00:00:00:00:fe", count: 3}, dst: {first: "02:fe:00:00:00:01", count: 2}}"#;
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
    ["198.18.0.2", "{first: 20.0.255.0, count: 600}", "{first: 1.2.3.4, count: 1000, order: random}"]
        [usize::from(pick) % 3]
}

fn address6(pick: u8) -> &'static str {
    [
        "\"2001:2::2\"",
        "{first: \"2001:2:0:1:ffff:ffff:ffff:ff00\", count: 600}",
        "{first: \"2001:db8::\", count: 1000, order: zipf}",
    ][usize::from(pick) % 3]
}

fn port(pick: u8) -> &'static str {
    ["1024", "{first: 0, count: 65536}", "{first: 5000, count: 99, order: random}"][usize::from(pick) % 3]
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
    let layers = format!("{ETHERNET}, ip4: {{src: 10.0.0.1, dst: {{first: 10.1.0.0, count: 300}}}}");
    let all: Vec<String> =
        frames(&format!("frame: 64, layers: {{{layers}}}"), 301).iter().map(|f| check(f).1).collect();
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
