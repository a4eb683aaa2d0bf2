//! Profiles that are right, and profiles that say what would be.

use std::path::Path;

use super::field::ValueOrder;
use super::*;

const GOOD: &str = r#"
version: 1
cores: [0]
burst: 32
ports:
  - memif: {socket: /run/x/memif.sock, id: 0, role: slave, ring_size: 1024}
    ip4: [198.18.0.2]
    ip6: ["2001:2::2"]
  - tap: {name: tap0}
streams:
  - from: 0
    to: 1
    frame: 64
    layers:
      ethernet: {src: "02:00:00:00:00:01", dst: "02:fe:00:00:00:01"}
      ip4:
        src: 198.18.0.2
        dst: {first: 20.0.0.0, count: 254, order: zipf, seed: 7, exponent: 0.9}
      udp: {src_port: 1024, dst_port: {first: 1024, count: 10}}
  - from: 1
    to: 0
    weight: 0.5
    frame: imix
    layers:
      ethernet: {src: "02:00:00:00:01:01", dst: "02:fe:00:00:00:02"}
      ip6: {src: "2001:2:0:1::2", dst: {file: /tmp/list.txt}, hop_limit: 3}
      udp: {}
"#;

fn parse(text: &str) -> Result<Profile, String> {
    Profile::parse(text, Path::new("profile.yaml")).map_err(|e| e.to_string())
}

#[test]
fn a_profile_is_read_with_its_defaults() {
    let profile = parse(GOOD).expect("profile");
    assert_eq!(profile.ports[0].value.memif.as_ref().map(|m| m.buffer_size), Some(2048));
    let first = &profile.streams[0].value;
    let run = &first.layout.parts[0];
    let value_order = ValueOrder { order: Some(Order::Zipf), seed: Some(7), exponent: Some(0.9) };
    assert_eq!((run.name.as_str(), run.bit, run.field.value_order), ("ip4.dst", 240, value_order));
    assert_eq!(run.field.values, Values::Run { first: 0x1400_0000, count: 254, step: 1 });
    let second = &profile.streams[1].value;
    assert_eq!(second.frame, FrameSizes::Named("imix"));
    assert_eq!(second.layout.parts[0].field.values, Values::File("/tmp/list.txt".into()));
    assert_eq!(second.layout.frame_bytes_min(16), 78);
    assert_eq!(second.sizes.genome(), Some("IMIX - ABAABAgABABA; A=78, B=570".to_owned()));
}

#[test]
fn five_lines_are_a_profile() {
    let profile = parse(
        "ports:
  - {memif: {socket: /run/q.sock, id: 0}, ip4: [198.18.0.2], gateway_mac: \"02:fe:00:00:00:01\"}
  - {memif: {socket: /run/q.sock, id: 1}, ip4: [198.18.1.2], gateway: 198.18.1.1}
streams:
  - {from: 0, to: 1}
  - {from: 1, to: 0}",
    )
    .expect("profile");
    let stream = &profile.streams[0].value;
    assert_eq!(stream.sizes.only(), Some(64));
    assert_eq!(&stream.layout.bytes[..14], [2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 0]);
    assert_eq!(stream.layout.bytes[26..34], [198, 18, 0, 2, 198, 18, 1, 2]);
    assert_eq!([0, 1].map(|number| profile.streams[number].value.awaits_gateway), [false, true]);
}

#[test]
fn what_headers_do_not_say_and_ports_do_not_either_is_asked_for() {
    let message = |stream: &str| {
        parse(&format!(
            "ports:\n  - {{tap: {{name: a}}}}\nstreams:\n  - {{from: 0, to: 0{stream}}}\n"
        ))
        .expect_err("must be refused")
    };
    assert!(message("").contains("gateway_mac"));
    let ethernet = r#"ethernet: {dst: "02:00:00:00:00:02"}"#;
    assert!(
        message(&format!(", layers: {{{ethernet}, ip4: {{dst: 10.0.0.1}}}}"))
            .contains("ip4.src is missing")
    );
    assert!(
        message(&format!(", layers: {{{ethernet}, udp: {{}}}}"))
            .contains("udp needs ip4 or ip6 below it")
    );
    assert!(
        message(&format!(", layers: {{{ethernet}, vlan: {{}}}}")).contains("vlan.id is missing")
    );
    assert!(
        message(&format!(", layers: {{{ethernet}, upd: {{}}}}")).contains("`upd` is no header")
    );
    assert!(
        message(&format!(", layers: {{{ethernet}, mpls: {{lable: 5}}}}"))
            .contains("mpls has no field `lable`")
    );
}

#[test]
fn json_is_a_profile_too() {
    let text = r#"{"ports": [{"tap": {"name": "t0"}}], "streams": [{"from": 0, "to": 0,
        "frame": [{"size": 64, "weight": 3}, {"size": 1500, "weight": 1}],
        "layers": {"ethernet": {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}}}]}"#;
    let profile = parse(text).expect("profile");
    assert_eq!(profile.streams[0].value.sizes, Sizes::Cycle(vec![64, 64, 1500, 64]));
}

/// Replace `right` by `wrong` in the good profile; the message must have the line and the words.
fn refused(right: &str, wrong: &str, line: u64, words: &str) {
    assert!(GOOD.contains(right), "{right}");
    let message = parse(&GOOD.replacen(right, wrong, 1)).expect_err("must be refused");
    assert!(message.starts_with(&format!("profile.yaml:{line}: ")), "{message}");
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_would_be_right() {
    refused("version: 1", "version: 2", 2, "it is 1");
    refused("burst: 32", "burst: 257", 4, "1..=256");
    refused("ring_size: 1024", "ring_size: 1000", 6, "power of two");
    refused("ring_size: 1024", "ring_sise: 1024", 6, "ring_sise");
    refused("tap: {name: tap0}", "{}", 9, "exactly one of");
    refused("from: 1", "from: 7", 20, "there are ports 0 to 1");
    refused("frame: 64", "frame: 40", 11, "60 to 9216");
    refused("frame: imix", "frame: imax", 23, "neither a number of bytes nor imix");
    refused("02:00:00:00:00:01", "02:00:00:00:01", 15, "looks like");
    refused("src: 198.18.0.2", "src: 198.18.0.256", 17, "is not an IPv4 address");
    refused("count: 254", "count: 0", 18, "1..=16777216");
    refused("first: 1024, count: 10", "first: 65530, count: 10", 19, "do not fit");
    refused("src_port: 1024", "src_port: 70000", 19, "0 to 65535");
    refused("weight: 0.5", "weight: -1", 20, "not above 0");
}

#[test]
fn no_text_panics() {
    for text in ["", "1", "[]", "a: b", "ports: []\nstreams: []", "\u{0}", "{", "ports: *x"] {
        assert!(parse(text).is_err(), "{text}");
    }
}
