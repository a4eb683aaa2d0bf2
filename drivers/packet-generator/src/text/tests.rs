use proptest::prelude::*;
use quiver_wire::{Header, Ip4Header, checksum, ip4, ip6, udp};

use super::*;
use crate::edit::RunningEdit;

fn packets(text: &str, sizes: Option<(u64, u64)>) -> Vec<Vec<u8>> {
    Description::parse(text).and_then(|d| d.plan(sizes)).expect(text).packets
}

fn refused(text: &str) -> String {
    Description::parse(text).and_then(|d| d.plan(None)).expect_err(text).to_string()
}

#[test]
fn the_classic_udp_packet_comes_out_as_it_should() {
    let text = "{ IP4: 00:00:00:00:00:0a -> 0.1.2
        UDP: 1.2.3.4 -> 5.6.7.8
        UDP: 1234 -> 2345 length 128 checksum 0 incrementing 100 }";
    let made = packets(text, None);
    assert_eq!(made.len(), 1);
    let bytes = &made[0];
    assert_eq!(bytes.len(), 14 + 20 + 8 + 100);
    assert_eq!(bytes[..14], [0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 10, 8, 0]);
    let header = Ip4Header::overlay(&bytes[14..]).expect("header");
    assert!(checksum::header_is_good(header));
    assert_eq!(header.total_length(), 128);
    assert_eq!(bytes[34..42], [0x04, 0xd2, 0x09, 0x29, 0, 128, 0, 0]);
    assert!(bytes[42..].iter().enumerate().all(|(i, b)| i as u8 == *b));
}

#[test]
fn sizes_go_up_one_by_one_with_lengths_and_checksums_right() {
    let text = "IP4: 1.2.3 -> 4.5.6 UDP: 10.0.0.1 -> 10.0.0.2 UDP: 1 -> 2 incrementing 8";
    let made = packets(text, Some((60, 70)));
    assert_eq!(made.iter().map(Vec::len).collect::<Vec<_>>(), (60..=70).collect::<Vec<_>>());
    for bytes in &made {
        let (ip, _) = ip4::Repr::parse(&bytes[14..]).expect("ip");
        assert!(udp::is_good_over_ip4(ip.source, ip.destination, &bytes[34..]));
        assert_eq!(usize::from(u16::from_be_bytes([bytes[38], bytes[39]])), bytes.len() - 34);
    }
}

#[test]
fn a_range_of_addresses_is_gone_through_in_turn() {
    let text = "UDP: 1.0.0.1 - 1.0.0.254 -> 2.0.0.1 UDP: 5000-5001 -> 7 zero 4";
    let plan = Description::parse(text).unwrap().plan(None).unwrap();
    assert_eq!((plan.packets.len(), plan.edits.len()), (254, 0));
    for (i, bytes) in plan.packets.iter().enumerate() {
        assert_eq!(bytes[12..16], [1, 0, 0, 1 + i as u8]);
        assert_eq!(bytes[20..22], (5000 + (i as u16 & 1)).to_be_bytes());
        let (ip, rest) = ip4::Repr::parse(bytes).expect("ip");
        assert!(udp::is_good_over_ip4(ip.source, ip.destination, rest));
    }
}

#[test]
fn a_large_range_is_written_when_sent_and_checksums_stay_right() {
    let text = "IP6: 1.2.3 -> 4.5.6 UDP: 2001:db8::1 + 2001:db8::ffff:ffff -> 2001:db8::2 - \
                2001:db8::1:2 UDP: 1 + 60000 -> 5 incrementing 10";
    let plan = Description::parse(text).unwrap().plan(None).unwrap();
    assert_eq!((plan.packets.len(), plan.edits.len()), (1, 3));
    let mut bytes = plan.packets[0].clone();
    let mut edits: Vec<_> = plan.edits.into_iter().map(|e| RunningEdit::new(e, 5)).collect();
    for _ in 0..200 {
        edits.iter_mut().for_each(|e| e.apply(&mut bytes));
        let (ip, rest) = ip6::Repr::parse(&bytes[14..]).expect("ip");
        assert!(udp::is_good_over_ip6(ip.source, ip.destination, rest));
    }
}

#[test]
fn icmp_tcp_vlan_and_tunnels_have_right_checksums() {
    let echo =
        &packets("ICMP: 1.1.1.1 -> 2.2.2.2 ICMP echo_request id 7 seq 9 incrementing 9", None)[0];
    assert_eq!(checksum::of(&echo[20..]), 0);
    assert_eq!(echo[20..22], [8, 0]);
    let echo = &packets("ICMP6: 2001:db8::1 -> ff02::1 ICMP6: echo_request code 3", None)[0];
    assert_eq!((echo[6], echo[40], echo[41]), (58, 128, 3));
    let tcp = &packets(
        "TCP: 1.1.1.1 -> 2.2.2.2 ttl 3 df TCP: 80 -> 1024 syn ack seq 5 incrementing 5",
        None,
    )[0];
    assert_eq!((tcp[8], tcp[6], tcp[33], tcp.len()), (3, 0x40, 0x12, 45));
    let sum = checksum::Sum::pseudo4(
        [1, 1, 1, 1].into(),
        [2, 2, 2, 2].into(),
        quiver_wire::IpProtocol::TCP,
        25,
    );
    assert!(sum.bytes(&tcp[20..]).is_good());
    let tagged = &packets("0x88b5: 1.2.3 -> 4.5.6 dot1ad 5 vlan 100 hex 0xabcd ef", None)[0];
    assert_eq!(tagged[12..], [0x88, 0xa8, 0, 5, 0x81, 0, 0, 100, 0x88, 0xb5, 0xab, 0xcd, 0xef]);
    let nested = &packets("IP6: 1.1.1.1 -> 2.2.2.2 UDP: ::1 -> ::2 UDP: 1 -> 2", None)[0];
    assert_eq!((nested[9], nested[26], nested.len()), (41, 17, 68));
}

#[test]
fn raw_bytes_need_no_layer() {
    assert_eq!(packets("{ hex 0x00112233 }", None), [[0, 0x11, 0x22, 0x33]]);
    assert_eq!(packets("{ hex 0x0011 }", Some((4, 4))), [[0, 0x11, 0, 0]]);
    assert_eq!(packets("incrementing 3", None), [[0, 1, 2]]);
}

#[test]
fn an_error_names_the_word() {
    let cases = [
        ("IP4: 1.2.3 => 4.5.6", "word 3 of data, '=>': `->` belongs here"),
        ("IP5: 1.2.3 -> 4.5.6", "word 1 of data, 'IP5:': the kind of the frame is"),
        ("UDP: 1.2.3.4 -> 5.6.7.256", "word 4 of data, '5.6.7.256': an IPv4 address belongs here"),
        (
            "IP4: 1.2.3 -> 4.5.6 UDP: ::1 -> ::2",
            "word 5 of data, 'UDP:': the layer before announces",
        ),
        (
            "UDP: 9.0.0.1 - 1.0.0.1 -> 2.2.2.2",
            "word 4 of data, '1.0.0.1': a range goes from the lower",
        ),
        ("UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 70000", "word 8 of data, '70000': a port"),
        ("UDP: 1.1.1.1 -> 2.2.2.2 TCP: 1 -> 2", "word 5 of data, 'TCP:': the layer before"),
        ("ICMP: 1.1.1.1 -> 2.2.2.2 ICMP hello", "word 6 of data, 'hello': the type is echo_reply"),
        ("hex 0x123", "word 2 of data, '0x123': bytes are an even number"),
        ("hex", "data ends too early: the hexadecimal digits is missing"),
        ("UDP: 1.1.1.1 ->", "data ends too early: what the layer goes to is missing"),
        ("incrementing 5 more", "word 3 of data, 'more': a layer such as"),
        ("{ }", "data describes nothing"),
    ];
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    let size = Description::parse("hex 0x00").unwrap().plan(Some((64, 70_000))).unwrap_err();
    assert!(size.to_string().contains("70000"));
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}", low in 0u64..300, more in 0u64..300) {
        if let Ok(description) = Description::parse(&text) {
            let _ = description.plan(Some((low, low + more)));
        }
    }

    #[test]
    fn no_order_of_known_words_panics(
        words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "IP4:", "IP6:", "UDP:", "TCP:", "ICMP:", "ICMP6:", "ICMP", "ICMP6",
            "echo_request", "->", "-", "+",
            "1.2.3", "4.5.6", "1.2.3.4", "5.6.7.8", "1.0.0.1-1.0.0.9", "::1", "2001:db8::1", "1",
            "2", "65535", "70000",
            "vlan", "ttl", "length", "checksum", "incrementing", "hex", "0x1234", "zero", "syn",
            "seq", "id", "0x88b5:",
            "offset", "df", "fragment-id", "hop-limit", "02:fe:00:00:00:01", "code", "dot1ad",
        ]), 0..24),
        size in prop::option::of((0u64..200, 0u64..200)),
    ) {
        if let Ok(description) = Description::parse(&words.join(" ")) {
            if let Ok(plan) = description.plan(size) {
                prop_assert!(plan.edits.iter().all(|e| e.fault().is_none()), "{:?}", plan.edits);
            }
            // What is written to the configuration reads the same.
            let again = Description::parse(description.text()).expect("again");
            prop_assert_eq!(again.headers, description.headers);
        }
    }
}
