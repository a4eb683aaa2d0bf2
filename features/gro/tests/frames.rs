//! A router whose e1 takes super-frames, and frames of TCP for it.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_offload::segment::{HEADERS_BYTES_MAX, Segmenter};
use quiver_testkit::Router;
use quiver_wire::IpProtocol;
use quiver_wire::checksum::{self, Sum};

/// A router that connects e0 with e1, which takes super-frames.
pub fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_gso::register, quiver_gro::register]);
    router.interface("e0");
    router.cli("create test interface e1 takes-offloads");
    router.cli("set interface state e1 up");
    router.cli("set interface l2 xconnect e0 e1");
    router
}

/// A TCP segment, to be changed.
#[derive(Clone, Debug)]
pub struct Tcp {
    pub is_ip6: bool,
    pub tags: Vec<u16>,
    pub host: u8,
    pub port: u16,
    pub identification: u16,
    pub may_fragment: bool,
    pub traffic_class: u8,
    pub hops: u8,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
    pub padding: usize,
    pub is_wrong: bool,
}

/// NOP, NOP, time stamps.
const TIME_STAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            is_ip6: false,
            tags: Vec::new(),
            host: 1,
            port: 80,
            identification: 7,
            may_fragment: false,
            traffic_class: 0,
            hops: 64,
            sequence: 0xffff_ff00,
            acknowledgement: 5,
            flags: 0x10,
            window: 500,
            options: TIME_STAMPS.to_vec(),
            payload: vec![0x5a; 1000],
            padding: 0,
            is_wrong: false,
        }
    }
}

impl Tcp {
    /// The next segment of the same size.
    pub fn next(&self) -> Tcp {
        let payload: Vec<u8> = self.payload.iter().map(|byte| byte.wrapping_mul(3) ^ 1).collect();
        Tcp {
            sequence: self.sequence.wrapping_add(payload.len() as u32),
            identification: self.identification.wrapping_add(1),
            payload,
            ..self.clone()
        }
    }

    /// The first of these and those behind it.
    pub fn flow(self, count: usize) -> Vec<Tcp> {
        std::iter::successors(Some(self), |before| Some(before.next())).take(count).collect()
    }

    /// The TCP header and what is behind it.
    fn segment(&self) -> Vec<u8> {
        let mut tcp = [&self.port.to_be_bytes()[..], &[0, 99]].concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        tcp.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        tcp
    }

    /// The frame.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
        for tag in &self.tags {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        let mut tcp = self.segment();
        let length = tcp.len();
        let sum = if self.is_ip6 {
            let (from, to) = (Ipv6Addr::from([self.host; 16]), Ipv6Addr::LOCALHOST);
            frame.extend([
                0x86,
                0xdd,
                0x60 | self.traffic_class >> 4,
                self.traffic_class << 4,
                0,
                0,
            ]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([6, self.hops]);
            frame.extend(from.octets());
            frame.extend(to.octets());
            Sum::pseudo6(from, to, IpProtocol::TCP, length as u32)
        } else {
            let (from, to) = (Ipv4Addr::from([10, 0, 0, self.host]), Ipv4Addr::new(10, 0, 1, 1));
            let mut header = vec![0x45, self.traffic_class];
            header.extend((length as u16 + 20).to_be_bytes());
            header.extend(self.identification.to_be_bytes());
            header.extend([u8::from(!self.may_fragment) << 6, 0, self.hops, 6, 0, 0]);
            header.extend(from.octets());
            header.extend(to.octets());
            let sum = checksum::of(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend([8, 0]);
            frame.extend(header);
            Sum::pseudo4(from, to, IpProtocol::TCP, length as u16)
        };
        let sum = sum.bytes(&tcp).checksum() ^ u16::from(self.is_wrong);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        frame.extend(tcp);
        frame.resize(frame.len() + self.padding, 0);
        frame
    }
}

/// What e1 sends of frames that come in together: how many packets to the device, and the frames
/// that these stand for.
pub fn pass(router: &mut Router, frames: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
    let sent = router.sent_unfinished("e1");
    let mut on_wire = Vec::new();
    let count = sent.len();
    for (bytes, offload) in sent {
        let Some(offload) = offload else {
            on_wire.push(bytes);
            continue;
        };
        let (kind, size) = (offload.segment_kind, offload.segment_bytes);
        let segmenter = Segmenter::new(&bytes, bytes.len(), kind, size).expect("can be cut");
        assert_eq!(segmenter.checksum_at().0, bytes.len() - usize::from(offload.checksum_bytes));
        assert_eq!(segmenter.payload_bytes(), usize::from(offload.payload_bytes));
        let mut headers = [0; HEADERS_BYTES_MAX];
        for number in 0..segmenter.count() {
            let payload = segmenter.segment(&bytes, number, &mut headers).expect("segment");
            on_wire.push([&headers[..segmenter.headers_bytes()], &bytes[payload]].concat());
        }
    }
    (count, on_wire)
}

/// Packets to the device of these segments; what they stand for must be the segments.
pub fn sizes(router: &mut Router, segments: &[Tcp]) -> usize {
    let frames: Vec<Vec<u8>> = segments.iter().map(Tcp::frame).collect();
    let (count, on_wire) = pass(router, &frames);
    assert!(on_wire == frames, "what leaves is not what came in: {segments:?}");
    count
}
