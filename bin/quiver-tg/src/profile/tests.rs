//! Profiles that are right, and profiles that say what would be.

use super::field::{Order, Run};
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
      ip4: {src: 198.18.0.2, dst: {first: 20.0.0.0, count: 254, order: zipf, seed: 7, exponent: 0.9}}
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
    let run = first.layers.ip4.as_ref().map(|h| h.dst.clone());
    let first_address = Ipv4Addr::new(20, 0, 0, 0);
    let expected = Run { first: first_address, count: 254, order: Order::Zipf, seed: 7, exponent: 0.9 };
    assert_eq!(run, Some(Field::Run(expected)));
    let second = &profile.streams[1].value;
    assert_eq!(second.frame, FrameSizes::Imix);
    assert_eq!(second.layers.ip6.as_ref().map(|h| h.dst.clone()), Some(Field::File("/tmp/list.txt".into())));
    assert_eq!(second.layers.frame_bytes_min(), 78);
}

#[test]
fn json_is_a_profile_too() {
    let text = r#"{"ports": [{"tap": {"name": "t0"}}], "streams": [{"from": 0, "to": 0,
        "frame": [{"size": 64, "weight": 3}, {"size": 1500, "weight": 1}],
        "layers": {"ethernet": {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}}}]}"#;
    let profile = parse(text).expect("profile");
    assert_eq!(profile.streams[0].value.frame.shares(false).len(), 2);
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
    refused("from: 1", "from: 7", 18, "there are ports 0 to 1");
    refused("frame: 64", "frame: 40", 11, "60 to 9216");
    refused("frame: imix", "frame: imax", 21, "neither a number of bytes nor imix");
    refused("02:00:00:00:00:01", "02:00:00:00:01", 15, "looks like");
    refused("src: 198.18.0.2", "src: 198.18.0.256", 16, "is not an IPv4 address");
    refused("count: 254", "count: 0", 16, "1..=16777216");
    refused("first: 1024, count: 10", "first: 65530, count: 10", 17, "do not fit");
    refused("src_port: 1024", "src_port: 70000", 17, "0 to 65535");
    refused("weight: 0.5", "weight: -1", 18, "not above 0");
}

#[test]
fn no_text_panics() {
    for text in ["", "1", "[]", "a: b", "ports: []\nstreams: []", "\u{0}", "{", "ports: *x"] {
        assert!(parse(text).is_err(), "{text}");
    }
}
