//! Records of flows in front of a translator have the ends behind it.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_testkit::Router;
use quiver_testkit::frames::{self, Fragment};

use crate::reader::{Collector, Record};

/// Numbers of the registry of information elements.
const SOURCE: u16 = 8;
const POST_SOURCE: u16 = 225;
const POST_DESTINATION: u16 = 226;
const POST_SOURCE_PORT: u16 = 227;
const POST_DESTINATION_PORT: u16 = 228;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const POOL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// e0 is inside, e1 outside.
fn router(collector: &Collector) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_export::register,
        quiver_reassembly::register,
        quiver_nat44::register,
        quiver_flowprobe::register,
    ]);
    quiver_testkit::sources::ports(&mut router, 2);
    let port = collector.port();
    for line in [
        "nat44 plugin enable sessions 1000",
        &format!("nat44 add address {POOL}"),
        "set interface nat44 in e0 out e1",
        &format!("set ipfix exporter collector 127.0.0.1 src 127.0.0.1 port {port} path-mtu 1500"),
        "flowprobe feature add-del e0 ip4",
        "flowprobe feature add-del e1 ip4",
    ] {
        router.cli(line);
    }
    router
}

/// A datagram to the interface of this number.
fn datagram(to: u8, ends: (Ipv4Addr, Ipv4Addr), ports: (u16, u16)) -> Vec<u8> {
    let mut udp: Vec<u8> = [ports.0, ports.1, 8, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
    udp.truncate(8);
    frames::ip4(to, ends, frames::UDP, Fragment::default(), &udp)
}

fn ends(record: &Record) -> [u128; 4] {
    [POST_SOURCE, POST_DESTINATION, POST_SOURCE_PORT, POST_DESTINATION_PORT]
        .map(|field| record.get(field))
}

#[test]
fn records_say_where_packets_leave_behind_the_translation() {
    let mut collector = Collector::new();
    let mut router = router(&collector);
    router.send("e0", &datagram(0, (HOST, REMOTE), (5_000, 80)));
    let sent = router.sent("e1").pop().expect("it leaves");
    let port = u16::from_be_bytes([sent[34], sent[35]]);
    router.send("e1", &datagram(1, (REMOTE, POOL), (80, port)));
    assert_eq!(router.sent("e0").len(), 1);
    // What has no session: an error that comes from outside, and a flow of the router's own.
    router.send("e0", &datagram(0, (HOST, Ipv4Addr::new(10, 0, 0, 1)), (5_001, 9)));
    for wait_ms in [1_000, 0, 12_000] {
        if wait_ms == 0 {
            router.cli("flowprobe flush");
        }
        for _ in 0..wait_ms / 250 {
            router.advance(Duration::from_millis(250));
            router.run();
        }
    }
    let number = |address: Ipv4Addr| u128::from(address.to_bits());
    let records = collector.records();
    let of = |source: Ipv4Addr, port: u16| {
        let is_it = |record: &&Record| {
            (record.get(SOURCE), record.get(7)) == (number(source), u128::from(port))
        };
        ends(records.iter().find(is_it).expect("a record"))
    };
    assert_eq!(of(HOST, 5_000), [number(POOL), number(REMOTE), port.into(), 80]);
    assert_eq!(of(REMOTE, 80), [number(REMOTE), number(HOST), 80, 5_000]);
    let own = number(Ipv4Addr::new(10, 0, 0, 1));
    assert_eq!(of(HOST, 5_001), [number(HOST), own, 5_001, 9], "not translated");
}
