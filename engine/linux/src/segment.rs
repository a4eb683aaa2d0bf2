//! Super-frames cut into the frames that they stand for: TCP (RFC 9293) and UDP, over IPv4 and
//! IPv6, as a device with segmentation offload would send them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use quiver_wire::IpProtocol;
use quiver_wire::checksum::{self, Sum};

use crate::virtio_net::{SEGMENT_ECN, SEGMENT_TCP4, SEGMENT_TCP6, SEGMENT_UDP};

/// Headers of all layers together, at most; longer ones are refused.
pub const HEADERS_BYTES_MAX: usize = 256;
/// VLAN tags that are looked through.
const TAGS_MAX: usize = 2;
/// IPv6 extension headers that are looked through.
const EXTENSIONS_MAX: usize = 8;

const TCP_CWR: u8 = 0x80;
const TCP_PSH: u8 = 0x08;
const TCP_FIN: u8 = 0x01;

/// Where the headers of a frame lie, bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    ip: usize,
    is_ip6: bool,
    upper: usize,
    protocol: u8,
}

/// Cuts one super-frame.
#[derive(Clone, Copy, Debug)]
pub struct Segmenter {
    place: Place,
    headers_bytes: usize,
    segment_bytes: usize,
    payload_bytes: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Find IP and what it carries behind Ethernet and VLAN tags.
fn locate(frame: &[u8]) -> Option<Place> {
    let mut at = 12;
    let mut ether_type = word(frame, at)?;
    for _ in 0..TAGS_MAX {
        if !matches!(ether_type, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        at += 4;
        ether_type = word(frame, at)?;
    }
    let ip = at + 2;
    match ether_type {
        0x0800 => {
            let first = *frame.get(ip)?;
            let header_bytes = usize::from(first & 15) * 4;
            let protocol = *frame.get(ip + 9)?;
            (first >> 4 == 4 && header_bytes >= 20).then_some(Place {
                ip,
                is_ip6: false,
                upper: ip + header_bytes,
                protocol,
            })
        }
        0x86dd => {
            let mut protocol = *frame.get(ip + 6)?;
            let mut upper = ip + 40;
            for _ in 0..EXTENSIONS_MAX {
                if !matches!(protocol, 0 | 43 | 60) {
                    break;
                }
                protocol = *frame.get(upper)?;
                upper += (usize::from(*frame.get(upper + 1)?) + 1) * 8;
            }
            (frame.get(ip)? >> 4 == 6).then_some(Place { ip, is_ip6: true, upper, protocol })
        }
        _ => None,
    }
}

impl Segmenter {
    /// How to cut `frame`; `None` when what the header says of it cannot be.
    pub fn new(frame: &[u8], kind: u8, segment_bytes: u16) -> Option<Segmenter> {
        let place = locate(frame)?;
        let fits = match kind & !SEGMENT_ECN {
            SEGMENT_TCP4 => !place.is_ip6 && place.protocol == IpProtocol::TCP.0,
            SEGMENT_TCP6 => place.is_ip6 && place.protocol == IpProtocol::TCP.0,
            SEGMENT_UDP => place.protocol == IpProtocol::UDP.0,
            _ => false,
        };
        let upper_bytes = match place.protocol {
            6 => usize::from(*frame.get(place.upper + 12)? >> 4) * 4,
            _ => 8,
        };
        let headers_bytes = place.upper + upper_bytes;
        let enough = upper_bytes >= if place.protocol == 6 { 20 } else { 8 };
        let payload_bytes = frame.len().checked_sub(headers_bytes)?;
        let sizes = enough && headers_bytes <= HEADERS_BYTES_MAX && segment_bytes > 0 && payload_bytes > 0;
        (fits && sizes).then_some(Segmenter {
            place,
            headers_bytes,
            segment_bytes: segment_bytes.into(),
            payload_bytes,
        })
    }

    /// How many frames it becomes.
    pub fn count(&self) -> usize {
        self.payload_bytes.div_ceil(self.segment_bytes)
    }

    /// Bytes of headers in front of each.
    pub fn headers_bytes(&self) -> usize {
        self.headers_bytes
    }

    /// Write the headers of frame `number` into `headers`, checksums and all; where in the
    /// super-frame its payload lies.
    pub fn segment(
        &self,
        frame: &[u8],
        number: usize,
        headers: &mut [u8; HEADERS_BYTES_MAX],
    ) -> Option<Range<usize>> {
        let start = self.headers_bytes + number * self.segment_bytes;
        let end = (start + self.segment_bytes).min(self.headers_bytes + self.payload_bytes);
        let payload = frame.get(start..end)?;
        headers.get_mut(..self.headers_bytes)?.copy_from_slice(frame.get(..self.headers_bytes)?);
        let headers = &mut headers[..self.headers_bytes];
        let Place { ip, is_ip6, upper, protocol } = self.place;
        let total = self.headers_bytes + payload.len();
        if is_ip6 {
            put(headers, ip + 4, (total - ip - 40) as u16);
        } else {
            put(headers, ip + 2, (total - ip) as u16);
            let id = word(headers, ip + 4)?.wrapping_add(number as u16);
            put(headers, ip + 4, id);
            put(headers, ip + 10, 0);
            let sum = checksum::of(&headers[ip..upper]);
            put(headers, ip + 10, sum);
        }
        let checksum_at = if protocol == 6 {
            self.write_tcp(headers, number);
            upper + 16
        } else {
            put(headers, upper + 4, (total - upper) as u16);
            upper + 6
        };
        put(headers, checksum_at, 0);
        let sum = pseudo_header(headers, self.place, total - upper)?.bytes(&headers[upper..]).bytes(payload);
        put(headers, checksum_at, if protocol == 6 { sum.checksum() } else { sum.udp_checksum() });
        Some(start..end)
    }

    /// Sequence number and flags: CWR belongs to the first segment, FIN and PSH to the last.
    fn write_tcp(&self, headers: &mut [u8], number: usize) {
        let at = self.place.upper;
        let sequence =
            u32::from_be_bytes([headers[at + 4], headers[at + 5], headers[at + 6], headers[at + 7]]);
        let sequence = sequence.wrapping_add((number * self.segment_bytes) as u32);
        headers[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        if number > 0 {
            headers[at + 13] &= !TCP_CWR;
        }
        if number + 1 < self.count() {
            headers[at + 13] &= !(TCP_FIN | TCP_PSH);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn pseudo_header(headers: &[u8], place: Place, length: usize) -> Option<Sum> {
    let protocol = IpProtocol(place.protocol);
    if place.is_ip6 {
        let address = |at: usize| <[u8; 16]>::try_from(headers.get(at..at + 16)?).ok().map(Ipv6Addr::from);
        return Some(Sum::pseudo6(address(place.ip + 8)?, address(place.ip + 24)?, protocol, length as u32));
    }
    let address = |at: usize| <[u8; 4]>::try_from(headers.get(at..at + 4)?).ok().map(Ipv4Addr::from);
    Some(Sum::pseudo4(address(place.ip + 12)?, address(place.ip + 16)?, protocol, length as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_wire::{ip4, ip6, udp};

    /// An Ethernet frame of IPv4 and TCP, its checksums not filled in.
    fn tcp4(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0, 5, 8, 0]);
        frame.extend([0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 80, 4, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0x60, 0x99, 1, 0, 0, 0, 0, 0]);
        frame.extend([1, 1, 1, 0]);
        frame.extend(payload);
        let total = (frame.len() - 18) as u16;
        frame[20..22].copy_from_slice(&total.to_be_bytes());
        frame
    }

    fn cut(frame: &[u8], kind: u8, segment_bytes: u16) -> Vec<Vec<u8>> {
        let segmenter = Segmenter::new(frame, kind, segment_bytes).expect("cuts");
        let mut headers = [0; HEADERS_BYTES_MAX];
        (0..segmenter.count())
            .map(|number| {
                let payload = segmenter.segment(frame, number, &mut headers).expect("segment");
                [&headers[..segmenter.headers_bytes()], &frame[payload]].concat()
            })
            .collect()
    }

    #[test]
    fn a_tcp_super_frame_becomes_its_segments() {
        let payload: Vec<u8> = (0..3001).map(|i| i as u8).collect();
        let frames = cut(&tcp4(&payload), SEGMENT_TCP4, 1000);
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1062, 1062, 1062, 63]);
        let mut seen = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            let (header, rest) = ip4::Repr::parse(&frame[18..]).expect("ip");
            assert_eq!(rest.len(), frame.len() - 38);
            assert_eq!(word(frame, 22), Some(7 + number as u16));
            let sum = Sum::pseudo4(header.source, header.destination, IpProtocol::TCP, rest.len() as u16);
            assert!(sum.bytes(rest).is_good());
            let sequence = u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]);
            assert_eq!(sequence, 0xffff_fff0u32.wrapping_add(number as u32 * 1000));
            // CWR, FIN, PSH and ACK were set.
            assert_eq!(rest[13], [0x90, 0x10, 0x10, 0x19][number]);
            seen.extend_from_slice(&rest[24..]);
        }
        assert_eq!(seen, payload);
    }

    #[test]
    fn a_udp_super_frame_over_ipv6_with_an_extension_header_becomes_datagrams() {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 16 + 25, 60, 64]);
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend(Ipv6Addr::UNSPECIFIED.octets());
        frame.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        frame.extend([0, 53, 0, 53, 0, 33, 0, 0]);
        frame.extend([9; 25]);
        let frames = cut(&frame, SEGMENT_UDP, 10);
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [80, 80, 75]);
        for frame in frames {
            let (header, rest) = ip6::Repr::parse(&frame[14..]).expect("ip");
            assert!(udp::is_good_over_ip6(header.source, header.destination, &rest[8..]));
        }
    }

    #[test]
    fn what_the_header_claims_must_fit_the_frame() {
        let frame = tcp4(&[1; 100]);
        assert!(Segmenter::new(&frame, SEGMENT_TCP6, 10).is_none());
        assert!(Segmenter::new(&frame, SEGMENT_UDP, 10).is_none());
        assert!(Segmenter::new(&frame, SEGMENT_TCP4, 0).is_none());
        assert!(Segmenter::new(&frame, 3, 10).is_none());
        assert!(Segmenter::new(&tcp4(&[]), SEGMENT_TCP4, 10).is_none());
        assert!(Segmenter::new(&frame, SEGMENT_TCP4 | SEGMENT_ECN, 10).is_some());
        assert!((0..=62).all(|cut| Segmenter::new(&frame[..cut], SEGMENT_TCP4, 10).is_none()));
    }

    proptest! {
        #[test]
        fn no_frame_panics(mut frame in prop::collection::vec(any::<u8>(), 0..200), kind: u8, bytes in 0u16..20, v6: bool) {
            if frame.len() > 24 {
                let head: &[u8] = if v6 { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] };
                frame[12..15].copy_from_slice(head);
                frame[if v6 { 20 } else { 23 }] = if kind & 1 == 0 { 17 } else { 6 };
            }
            let mut headers = [0; HEADERS_BYTES_MAX];
            for kind in [SEGMENT_TCP4, SEGMENT_TCP6, SEGMENT_UDP, kind] {
                if let Some(segmenter) = Segmenter::new(&frame, kind, bytes) {
                    for number in 0..segmenter.count() {
                        prop_assert!(segmenter.segment(&frame, number, &mut headers).is_some());
                    }
                    prop_assert!(segmenter.segment(&frame, segmenter.count(), &mut headers).is_none_or(|r| r.is_empty()));
                }
            }
        }
    }
}
