//! Packets that are not finished cross the router, and leave it as a wire would carry them.

use std::net::Ipv4Addr;

use quiver_core::memory::buffer::Offload;
use quiver_testkit::Router;
use quiver_testkit::frames::{self, Fragment};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::Sum;

const TCP: u8 = 6;
const TCP_BYTES: usize = 20;
const HEADERS_BYTES: usize = 14 + 20 + TCP_BYTES;
const CHECKSUM_OFFSET: u16 = 16;
/// virtio-net's number of TCP over IPv4.
const TCP4: u8 = 1;
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_gso::register]);
    set_up(&mut router);
    router
}

fn set_up(router: &mut Router) {
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
    }
}

/// A frame to e0 with TCP, FIN, PSH and CWR set; its checksum is that of the pseudo header.
pub fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut data =
        vec![0, 80, 4, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0x50, 0x99, 1, 0, 0, 0, 0, 0];
    data.extend(payload);
    let pseudo = Sum::pseudo4(HERE, THERE, IpProtocol::TCP, data.len() as u16);
    data[16..18].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
    frames::ip4(0, (HERE, THERE), TCP, Fragment { identification: 7, ..Default::default() }, &data)
}

pub fn offload(payload: usize, segment_bytes: u16) -> Offload {
    Offload {
        checksum_bytes: (TCP_BYTES + payload) as u16,
        checksum_offset: CHECKSUM_OFFSET,
        segment_bytes,
        payload_bytes: if segment_bytes == 0 { 0 } else { payload as u16 },
        segment_kind: TCP4,
        encapsulations: 0,
    }
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 / 3) as u8).collect()
}

/// The payload of a segment whose checksum is right.
fn checked(frame: &[u8]) -> &[u8] {
    let upper = &frame[34..];
    let sum = Sum::pseudo4(HERE, THERE, IpProtocol::TCP, upper.len() as u16).bytes(upper);
    assert!(sum.is_good(), "{frame:02x?}");
    assert!(quiver_wire::ip4::validate(&frame[14..], frame.len() - 14).is_ok());
    &upper[TCP_BYTES..]
}

#[test]
fn a_super_frame_is_routed_as_one_and_leaves_as_its_segments() {
    let mut router = router();
    let bytes = payload(20_000);
    router.send_unfinished("e0", &tcp(&bytes), offload(bytes.len(), 1448));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 20_000_usize.div_ceil(1448));
    let mut seen = Vec::new();
    for (number, frame) in sent.iter().enumerate() {
        seen.extend_from_slice(checked(frame));
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        assert_eq!(word(18), 7 + number as u16, "identifications count on");
        let sequence = u32::from(word(38)) << 16 | u32::from(word(40));
        assert_eq!(sequence, 0xffff_fff0_u32.wrapping_add(number as u32 * 1448));
        let (first, last) = (number == 0, number + 1 == sent.len());
        assert_eq!(frame[47], 0x10 + 0x80 * u8::from(first) + 0x09 * u8::from(last));
        assert_eq!(frame[22], 63, "one hop each");
    }
    assert_eq!(seen, bytes);
    assert_eq!(router.count("gso", "segmented"), 1);
    let (rx, tx) = (router.totals("e0"), router.totals("e1"));
    let wire_bytes = (bytes.len() + sent.len() * HEADERS_BYTES) as u64;
    assert_eq!((rx.rx_packets, rx.rx_bytes), (sent.len() as u64, wire_bytes));
    assert_eq!((tx.tx_packets, tx.tx_bytes), (sent.len() as u64, wire_bytes));
}

#[test]
fn an_open_checksum_is_completed_in_front_of_a_device_that_does_not_do_it() {
    let mut router = router();
    let bytes = payload(999);
    router.send_unfinished("e0", &tcp(&bytes), offload(bytes.len(), 0));
    let sent = router.sent("e1");
    assert_eq!(checked(&sent[0]), bytes);
    assert_eq!(router.count("gso", "checksum-completed"), 1);
}

#[test]
fn segments_longer_than_the_link_are_told_to_the_sender() {
    let mut router = router();
    router.cli("set interface mtu packet 1000 e1");
    let bytes = payload(5000);
    let mut frame = tcp(&bytes);
    frame[20] = 0x40; // do not fragment
    let sum = u16::from_be_bytes([frame[24], frame[25]]);
    let sum = quiver_wire::checksum::update16(sum, 0, 0x4000);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    router.send_unfinished("e0", &frame, offload(bytes.len(), 1448));
    assert!(router.sent("e1").is_empty());
    let told = router.sent("e0");
    assert_eq!((told[0][34], told[0][35]), (3, 4), "fragmentation needed");
    assert_eq!(u16::from_be_bytes([told[0][40], told[0][41]]), 1000);
    router.send_unfinished("e0", &frame, offload(bytes.len(), 900));
    assert_eq!(router.sent("e1").len(), 6);
}

#[test]
fn segments_that_may_be_fragmented_are() {
    let mut router = router();
    router.cli("set interface mtu packet 1000 e1");
    let bytes = payload(2896);
    router.send_unfinished("e0", &tcp(&bytes), offload(bytes.len(), 1448));
    assert_eq!(router.sent("e1").len(), 4, "two fragments of each");
}

#[test]
fn what_does_not_fit_the_headers_is_dropped_and_counted() {
    let bytes = payload(3000);
    let good = offload(bytes.len(), 1000);
    let lies = [
        Offload { segment_kind: 4, ..good },
        Offload { segment_kind: 77, ..good },
        Offload { checksum_bytes: good.checksum_bytes + 1, ..good },
        Offload { checksum_bytes: u16::MAX, ..good },
        Offload { checksum_bytes: 0, ..good },
        Offload { segment_bytes: 0, checksum_bytes: u16::MAX, ..good },
        Offload { segment_bytes: 0, checksum_bytes: 3, checksum_offset: 2, ..good },
    ];
    for offload in lies {
        let mut router = router();
        router.send_unfinished("e0", &tcp(&bytes), offload);
        assert!(router.sent("e1").is_empty(), "{offload:?}");
        assert_eq!(router.count("gso", "bad-offload"), 1, "{offload:?}");
    }
    let mut router = router();
    router.send_unfinished("e0", &tcp(&bytes)[..100], Offload { payload_bytes: u16::MAX, ..good });
    assert!(router.sent("e1").is_empty());
}

#[test]
fn without_a_node_that_finishes_them_packets_die_in_front_of_nodes_that_do_not_take_them() {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    set_up(&mut router);
    let bytes = payload(3000);
    router.send_unfinished("e0", &tcp(&bytes), offload(bytes.len(), 1000));
    assert!(router.sent("e1").is_empty());
    assert_eq!(router.count("null-node", "unfinished"), 1);
    router.send("e0", &tcp(&payload(100)));
    assert_eq!(router.sent("e1").len(), 1);
}
