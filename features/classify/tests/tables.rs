//! What operators type, and what becomes of packets.

use quiver_core::pcap_file::PcapReader;
use quiver_testkit::{Register, Router};

fn router() -> Router {
    router_of(&[quiver_ethernet::register, quiver_ip::register, quiver_classify::register])
}

/// A router with these features, and hosts behind `e0` and `e1`.
pub fn router_of(features: &[Register]) -> Router {
    let mut router = Router::new(features);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{net}::1/64"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
    }
    router
}

/// A UDP datagram from a host behind `e0` to a port of one behind `e1`.
pub fn ip4(host: u8, port: u16) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend([10, 0, 0, host, 10, 0, 1, 2]);
    let words = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    header[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let [high, low] = port.to_be_bytes();
    let ethernet = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0];
    [&ethernet[..], &header, &[0, 1, high, low, 0, 8, 0, 0]].concat()
}

pub fn ip6(port: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    bytes.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    for net in [0, 1] {
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
    let [high, low] = port.to_be_bytes();
    bytes.extend([0, 1, high, low, 0, 8, 0, 0]);
    bytes
}

/// How many of these leave.
pub fn passed(router: &mut Router, frames: &[Vec<u8>]) -> usize {
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
    router.sent("e1").len()
}

#[test]
fn sessions_and_the_end_of_a_chain_say_what_may_pass() {
    for direction in ["input", "output"] {
        let on = if direction == "input" { "e0" } else { "e1" };
        let mut router = router();
        for line in [
            "classify table table 7 acl-miss-next deny mask l3 ip4 src",
            "classify session acl-hit-next permit table-index 7 match l3 ip4 src 10.0.0.5",
            "classify table table 2 next-table 7 mask l3 ip4 proto l4 dst_port",
            "classify session acl-hit-next permit table-index 2 match l3 ip4 proto 17 l4 \
             dst_port 53",
            "classify session acl-hit-next deny table-index 2 match l3 ip4 proto 17 l4 dst_port 25",
            &format!("set interface {direction} acl intfc {on} ip4-table 2"),
        ] {
            router.cli(line);
        }
        // DNS from anybody, mail from nobody, anything else from .5 alone; IPv6 is not asked for.
        assert_eq!(passed(&mut router, &[ip4(2, 53), ip4(5, 53)]), 2, "{direction}");
        assert_eq!(passed(&mut router, &[ip4(2, 25), ip4(5, 25)]), 0);
        assert_eq!(passed(&mut router, &[ip4(5, 80), ip4(6, 80), ip4(5, 81)]), 2);
        assert_eq!(passed(&mut router, &[ip6(25)]), 1);
        assert_eq!(router.count(&format!("classify-{direction}-acl"), "denied"), 3);
        let tables = router.json("show classify tables");
        assert_eq!((tables[0]["hits"].as_u64(), tables[0]["misses"].as_u64()), (Some(4), Some(3)));
        assert_eq!((tables[1]["hits"].as_u64(), tables[1]["misses"].as_u64()), (Some(2), Some(1)));
        let sessions = router.json("show classify tables index 7 verbose");
        assert_eq!(sessions[0]["match"], "l3 ip4 src 10.0.0.5");
        assert_eq!(sessions[0]["hits"], 2);
        // Another action, then none.
        router.cli("classify session acl-hit-next deny table-index 7 match l3 ip4 src 10.0.0.5");
        assert_eq!(passed(&mut router, &[ip4(5, 80)]), 0);
        router.cli("classify session del table-index 2 match \"l3 ip4 proto 17 l4 dst_port 53\"");
        assert_eq!(passed(&mut router, &[ip4(2, 53)]), 0);
        router.cli(&format!("set interface {direction} acl intfc {on} del"));
        assert_eq!(passed(&mut router, &[ip4(2, 25)]), 1);
    }
}

#[test]
fn many_sessions_of_several_tables_are_kept_apart() {
    let mut router = router();
    router.cli("classify table table 0 acl-miss-next deny mask l3 ip4 l4 dst_port");
    router.cli("classify table table 1 acl-miss-next deny mask l3 ip6 l4 dst_port");
    for port in 0..600 {
        let (ip4, ip6) = if port % 3 == 0 { ("permit", "deny") } else { ("deny", "permit") };
        for (table, action, family) in [(0, ip4, "ip4"), (1, ip6, "ip6")] {
            router.cli(&format!(
                "classify session acl-hit-next {action} table-index {table} match l3 {family} l4 \
                 dst_port {port}"
            ));
        }
    }
    router.cli("set interface input acl intfc e0 ip4-table 0 ip6-table 1");
    let both: Vec<Vec<u8>> = (0..600).flat_map(|port| [ip4(2, port), ip6(port)]).collect();
    let mut all = 0;
    for some in both.chunks(100) {
        all += passed(&mut router, some);
    }
    assert_eq!(all, 200 + 400);
    let config = router.cli("show running-config");
    router.cli("set interface input acl intfc e0 del");
    router.cli("classify table del table 1");
    router.cli("classify table del table 0");
    assert_eq!(router.json("show classify tables").as_array().map(Vec::len), Some(0));
    // What was printed can be typed again.
    for line in config.lines().filter(|line| line.contains("acl") || line.contains("classify")) {
        router.cli(line);
    }
    assert_eq!(router.cli("show running-config"), config);
}

#[test]
fn other_frames_are_classified_by_the_table_of_layer_2() {
    let mut router = router();
    router.cli("classify table mask hex 000000000000ffffffffffff");
    let source = "hex 000000000000020000000000";
    router.cli(&format!("classify session acl-hit-next deny table-index 0 match {source}"));
    router.cli("set interface input acl intfc e0 l2-table 0");
    assert_eq!(passed(&mut router, &[ip4(2, 1), ip6(1)]), 0, "their source is 02:00:00:00:00:00");
    let mut frame = ip4(2, 1);
    frame[11] = 9;
    assert_eq!(passed(&mut router, &[frame]), 1);
}

#[test]
fn filters_choose_what_is_traced() {
    let mut router = router();
    assert!(router.refused("trace add test-input 5 filter").contains("no filter of traces"));
    assert!(router.refused("pcap trace rx filter").contains("no filter of captures"));
    router.cli("classify filter trace mask l3 ip4 l4 dst_port match l3 ip4 l4 dst_port 53");
    router.cli("classify filter trace mask l3 ip6 l4 dst_port match l3 ip6 l4 dst_port 53");
    router.cli("trace add test-input 5 filter");
    let frames = [ip4(2, 1), ip4(2, 53), ip6(7), ip6(53), ip4(3, 53)];
    assert_eq!(passed(&mut router, &frames), 5);
    let traced = router.cli("show trace");
    assert_eq!(traced.matches("Packet ").count(), 3, "{traced}");
    assert_eq!(router.json("show classify filter").as_array().map(Vec::len), Some(2));
    router.cli("clear trace");
    router.cli("classify filter del trace");
    assert!(router.refused("trace add test-input 5 filter").contains("classify filter trace"));
}

/// What frames a capture writes down while others pass.
fn captured(router: &mut Router, point: &str, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let name = format!("quiver-classify-{point}-{}.pcap", std::process::id());
    let file = std::env::temp_dir().join(name);
    router.cli(&format!("pcap trace {point} file {}", file.display()));
    passed(router, frames);
    router.cli("pcap trace off");
    let reader = PcapReader::open(&file).expect("a pcap file");
    let written = reader.map(|record| record.expect("a record").bytes).collect();
    std::fs::remove_file(&file).expect("it was there");
    written
}

#[test]
fn a_frame_that_dies_at_its_output_is_captured_as_it_would_have_left() {
    let (mut router, frames) = (router(), [ip4(2, 53), ip6(53)]);
    let left = captured(&mut router, "tx", &frames);
    for line in [
        "classify table table 4 acl-miss-next deny mask l3 ip4 dst",
        "classify table table 6 acl-miss-next deny mask l3 ip6 dst",
        "set interface output acl intfc e1 ip4-table 4 ip6-table 6",
    ] {
        router.cli(line);
    }
    assert_eq!(captured(&mut router, "drop", &frames), left);
    assert_eq!(router.count("classify-output-acl", "denied"), 2);
    // One that dies behind its input is shown as it came in.
    router.cli("set interface input acl intfc e0 ip4-table 4 ip6-table 6");
    assert_eq!(captured(&mut router, "drop", &frames), frames);
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let mut router = router();
    for line in [
        "classify table table 0 mask l3 ip4 src",
        "classify table table 1 next-table 0 mask l3 ip4 dst",
        "classify session acl-hit-next deny table-index 0 match l3 ip4 src 10.0.0.9",
        "set interface input acl intfc e0 ip4-table 1",
    ] {
        router.cli(line);
    }
    for table in 2..8 {
        let next = table - 1;
        router.cli(&format!("classify table table {table} next-table {next} mask l3 ip4 tos"));
    }
    let config = router.cli("show running-config");
    for (line, why) in [
        ("classify table table 0 mask l3 ip4 dst", "is there, and is another one"),
        ("classify table table 9 next-table 7 mask l3 ip4 src", "at most 8"),
        ("classify table table 9 next-table 99 mask l3 ip4 src", "no classifier table 99"),
        ("classify table table 256 mask l3 ip4 src", "from 0 to 255"),
        ("classify table mask l3 ip4 nothing", "nothing is no field"),
        ("classify table del table 0", "is behind table 1"),
        ("classify table del table 9", "no classifier table 9"),
        ("classify session acl-hit-next deny table-index 9 match hex 00", "no classifier table 9"),
        ("classify session acl-hit-next deny table-index 0 match l3 ip4 dst 1.2.3.4", "has no dst"),
        ("classify session del table-index 0 match l3 ip4 src 10.0.0.8", "no such session"),
        ("set interface input acl intfc e0 ip4-table 99", "no classifier table 99"),
        ("set interface input acl intfc e1", "by which tables"),
        ("classify filter pcap mask l3 ip4 src", "not followed by match"),
        ("show classify tables index 99", "no classifier table 99"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    router.cli("set interface input acl intfc e0 del");
    for table in (0..8).rev() {
        router.cli(&format!("classify table del table {table}"));
    }
    let mut rules = (0..32).map(|port| format!("mask l3 ip4 tos match l3 ip4 tos {port}"));
    rules.all(|rule| {
        router.cli(&format!("classify filter pcap {rule}"));
        true
    });
    let refused = router.refused("classify filter pcap mask l3 ip4 tos match l3 ip4 tos 99");
    assert!(refused.contains("at most 32 rules"), "{refused}");
}
