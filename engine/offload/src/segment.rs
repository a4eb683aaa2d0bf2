//! Super-frames cut into the frames that they stand for: TCP (RFC 9293) and UDP, over IPv4 and
//! IPv6, as a device with segmentation offload would send them.

use std::ops::Range;

use quiver_core::memory::buffer::Offload;
use quiver_wire::IpProtocol;
use quiver_wire::checksum::{self, Sum};

use crate::layers::{Layers, pseudo_header, word};

/// No segments: the packet stays whole. Kinds are numbered as in VIRTIO 1.2 §5.1.6.
pub const SEGMENT_NONE: u8 = 0;
/// TCP over IPv4.
pub const SEGMENT_TCP4: u8 = 1;
/// TCP over IPv6.
pub const SEGMENT_TCP6: u8 = 4;
/// UDP datagrams.
pub const SEGMENT_UDP: u8 = 5;
/// TCP with ECN, beside one of the others.
pub const SEGMENT_ECN: u8 = 0x80;

/// Headers of all layers together, at most; longer ones are refused. Around TCP over IPv6 may stand
/// 29 segments.
pub const HEADERS_BYTES_MAX: usize = 640;

/// The flag of an IPv4 header that forbids fragments.
const DONT_FRAGMENT: u16 = 0x4000;
/// Where the checksum stands in a GRE header that has one.
const GRE_CHECKSUM: usize = 4;
/// Where length and checksum stand in a UDP header.
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
const TCP_CWR: u8 = 0x80;
const TCP_PSH: u8 = 0x08;
const TCP_FIN: u8 = 0x01;

/// Cuts one super-frame.
#[derive(Clone, Copy, Debug)]
pub struct Segmenter {
    layers: Layers,
    headers_bytes: usize,
    segment_bytes: usize,
    payload_bytes: usize,
}

impl Segmenter {
    /// How to cut a frame of `length` bytes that begins with `frame`; `None` when what the header
    /// says of it cannot be.
    pub fn new(frame: &[u8], length: usize, kind: u8, segment_bytes: u16) -> Option<Segmenter> {
        Segmenter::of(Layers::of(frame)?, frame, length, kind, segment_bytes)
    }

    /// As [`new`](Self::new), of a packet that begins with its IP header.
    pub fn of_ip(packet: &[u8], length: usize, kind: u8, segment_bytes: u16) -> Option<Segmenter> {
        Segmenter::of(Layers::of_ip(packet)?, packet, length, kind, segment_bytes)
    }

    fn of(
        layers: Layers,
        frame: &[u8],
        length: usize,
        kind: u8,
        segment_bytes: u16,
    ) -> Option<Segmenter> {
        let (is_ip6, is_tcp) = (layers.inner().is_ip6, layers.protocol == IpProtocol::TCP);
        let fits = match kind & !SEGMENT_ECN {
            SEGMENT_TCP4 => !is_ip6 && is_tcp,
            SEGMENT_TCP6 => is_ip6 && is_tcp,
            SEGMENT_UDP => layers.protocol == IpProtocol::UDP,
            _ => false,
        };
        let upper_bytes = match is_tcp {
            true => usize::from(*frame.get(layers.upper + 12)? >> 4) * 4,
            false => 8,
        };
        let headers_bytes = layers.upper + upper_bytes;
        let enough = upper_bytes >= if is_tcp { 20 } else { 8 };
        let payload_bytes = length.checked_sub(headers_bytes)?;
        let sizes = headers_bytes <= frame.len()
            && enough
            && headers_bytes <= HEADERS_BYTES_MAX
            && segment_bytes > 0
            && payload_bytes > 0;
        (fits && sizes).then_some(Segmenter {
            layers,
            headers_bytes,
            segment_bytes: segment_bytes.into(),
            payload_bytes,
        })
    }

    /// How many frames it becomes.
    pub fn count(&self) -> usize {
        self.payload_bytes.div_ceil(self.segment_bytes)
    }

    /// Bytes of payload in all.
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Where the transport header begins, and its checksum, bytes from the start.
    pub fn checksum_at(&self) -> (usize, usize) {
        let upper = self.layers.upper;
        (upper, upper + if self.layers.protocol == IpProtocol::TCP { 16 } else { 6 })
    }

    /// How many IP headers stand in front of the one that the segments' payload belongs to.
    pub fn encapsulations(&self) -> usize {
        self.layers.ips().len().saturating_sub(1)
    }

    /// What a packet leaves to the device that is to be cut so; `None` when it is too long.
    pub fn offload(&self, segment_kind: u8) -> Option<Offload> {
        let (start, field) = self.checksum_at();
        let length = self.headers_bytes + self.payload_bytes;
        Some(Offload {
            checksum_bytes: u16::try_from(length - start).ok()?,
            checksum_offset: (field - start) as u16,
            segment_bytes: self.segment_bytes as u16,
            payload_bytes: u16::try_from(self.payload_bytes).ok()?,
            segment_kind,
            encapsulations: u8::try_from(self.encapsulations()).ok()?,
        })
    }

    /// Bytes of headers in front of each.
    pub fn headers_bytes(&self) -> usize {
        self.headers_bytes
    }

    /// Where in the super-frame the payload of frame `number` lies.
    pub fn payload_of(&self, number: usize) -> Range<usize> {
        let start = self.headers_bytes + number * self.segment_bytes;
        start..(start + self.segment_bytes).min(self.headers_bytes + self.payload_bytes)
    }

    /// Write the headers of frame `number` into `headers`, checksums and all, for a payload of
    /// `payload_bytes` whose sum is `payload`. `frame` begins with the headers of the super-frame.
    pub fn headers(
        &self,
        frame: &[u8],
        number: usize,
        (payload_bytes, payload): (usize, Sum),
        headers: &mut [u8; HEADERS_BYTES_MAX],
    ) -> Option<()> {
        headers.get_mut(..self.headers_bytes)?.copy_from_slice(frame.get(..self.headers_bytes)?);
        let headers = &mut headers[..self.headers_bytes];
        let (upper, is_tcp) = (self.layers.upper, self.layers.protocol == IpProtocol::TCP);
        let total = self.headers_bytes + payload_bytes;
        for (depth, ip) in self.layers.ips().iter().enumerate() {
            if ip.has_udp {
                put(headers, ip.end + UDP_LENGTH, (total - ip.end) as u16);
            }
            if ip.is_ip6 {
                put(headers, ip.at + 4, (total - ip.at - 40) as u16);
                continue;
            }
            put(headers, ip.at + 2, (total - ip.at) as u16);
            // An outer header whose packet is never fragmented needs no number of its own (RFC 6864
            // §4.1).
            let is_outer = depth < self.encapsulations();
            if !(is_outer && word(headers, ip.at + 6)? & DONT_FRAGMENT != 0) {
                let id = word(headers, ip.at + 4)?.wrapping_add(number as u16);
                put(headers, ip.at + 4, id);
            }
            put(headers, ip.at + 10, 0);
            let sum = checksum::of(headers.get(ip.at..ip.end)?);
            put(headers, ip.at + 10, sum);
        }
        let checksum_at = if is_tcp {
            self.write_tcp(headers, number);
            upper + 16
        } else {
            put(headers, upper + 4, (total - upper) as u16);
            upper + 6
        };
        put(headers, checksum_at, 0);
        let pseudo = self.layers.pseudo_header(headers, total - upper)?;
        let sum = pseudo.bytes(headers.get(upper..)?).then(payload);
        put(headers, checksum_at, if is_tcp { sum.checksum() } else { sum.udp_checksum() });
        self.write_tunnel_checksums(headers, payload)
    }

    /// The checksums of GRE headers (RFC 2784 §2.5) and of UDP headers of tunnels that have one,
    /// each over all that follows it, the innermost first.
    fn write_tunnel_checksums(&self, headers: &mut [u8], payload: Sum) -> Option<()> {
        for ip in self.layers.ips().iter().rev() {
            if ip.has_gre_checksum {
                put(headers, ip.end + GRE_CHECKSUM, 0);
                let sum = Sum::new().bytes(headers.get(ip.end..)?).then(payload);
                put(headers, ip.end + GRE_CHECKSUM, sum.checksum());
            }
            if ip.has_udp && word(headers, ip.end + UDP_CHECKSUM)? != 0 {
                put(headers, ip.end + UDP_CHECKSUM, 0);
                let length = word(headers, ip.end + UDP_LENGTH)?;
                let sum = pseudo_header(headers, *ip, length.into())?;
                let sum = sum.bytes(headers.get(ip.end..)?).then(payload);
                put(headers, ip.end + UDP_CHECKSUM, sum.udp_checksum());
            }
        }
        Some(())
    }

    /// As [`headers`](Self::headers) for a super-frame that lies in one piece; where in it the
    /// payload lies.
    pub fn segment(
        &self,
        frame: &[u8],
        number: usize,
        headers: &mut [u8; HEADERS_BYTES_MAX],
    ) -> Option<Range<usize>> {
        let range = self.payload_of(number);
        let payload = frame.get(range.clone())?;
        let sum = Sum::new().bytes(payload);
        self.headers(frame, number, (payload.len(), sum), headers)?;
        Some(range)
    }

    /// Sequence number and flags: CWR belongs to the first segment, FIN and PSH to the last.
    fn write_tcp(&self, headers: &mut [u8], number: usize) {
        let at = self.layers.upper;
        let sequence = u32::from_be_bytes([
            headers[at + 4],
            headers[at + 5],
            headers[at + 6],
            headers[at + 7],
        ]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_wire::{ip4, ip6, udp};
    use std::net::Ipv6Addr;

    /// An Ethernet frame of IPv4 and TCP, its checksums not filled in.
    fn tcp4(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0, 5, 8, 0]);
        frame.extend([0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([
            0, 80, 4, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0x60, 0x99, 1, 0, 0, 0, 0, 0,
        ]);
        frame.extend([1, 1, 1, 0]);
        frame.extend(payload);
        let total = (frame.len() - 18) as u16;
        frame[20..22].copy_from_slice(&total.to_be_bytes());
        frame
    }

    fn cut(frame: &[u8], kind: u8, segment_bytes: u16) -> Vec<Vec<u8>> {
        let segmenter = Segmenter::new(frame, frame.len(), kind, segment_bytes).expect("cuts");
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
            let sum =
                Sum::pseudo4(header.source, header.destination, IpProtocol::TCP, rest.len() as u16);
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

    const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 0xe);
    const LAST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);

    /// An IPv6 header to `SID` and an SRH with one segment left, in front of `inner`.
    fn behind_segments(protocol: u8, inner: &[u8]) -> Vec<u8> {
        let length = (40 + inner.len()) as u16;
        let mut packet = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[43, 64]].concat();
        packet.extend(HOST.octets());
        packet.extend(SID.octets());
        packet.extend([protocol, 4, 4, 1, 1, 0, 0, 0]);
        packet.extend(LAST.octets());
        packet.extend(SID.octets());
        packet.extend(inner);
        packet
    }

    /// The payloads of TCP segments, whose IP header is so long, in order; all sums are right.
    fn payloads(frames: &[Vec<u8>], ip: usize, from_to: Option<(Ipv6Addr, Ipv6Addr)>) -> Vec<u8> {
        let mut seen = Vec::new();
        for frame in frames {
            let outer = ip6::Repr::parse(&frame[14..]).expect("outer header").0;
            assert_eq!(outer.payload_len, frame.len() - 54);
            let tcp = &frame[ip..];
            let pseudo = match from_to {
                Some((from, to)) => Sum::pseudo6(from, to, IpProtocol::TCP, tcp.len() as u32),
                None => {
                    let (header, rest) = ip4::Repr::parse(&frame[ip - 20..]).expect("inner header");
                    assert_eq!(rest.len(), tcp.len());
                    Sum::pseudo4(
                        header.source,
                        header.destination,
                        IpProtocol::TCP,
                        tcp.len() as u16,
                    )
                }
            };
            assert!(pseudo.bytes(tcp).is_good());
            seen.extend_from_slice(&tcp[24..]);
        }
        seen
    }

    #[test]
    fn a_super_frame_behind_segments_is_cut_with_all_its_headers() {
        let payload: Vec<u8> = (0..2501).map(|i| i as u8).collect();
        let inner = &tcp4(&payload)[18..];
        let mut frame = [&[2; 12][..], &[0x86, 0xdd]].concat();
        frame.extend(behind_segments(4, inner));
        let frames = cut(&frame, SEGMENT_TCP4, 1000);
        let headers = 14 + 40 + 40 + 20 + 24;
        assert_eq!(
            frames.iter().map(Vec::len).collect::<Vec<_>>(),
            [1000, 1000, 501].map(|n| headers + n)
        );
        assert_eq!(payloads(&frames, headers - 24, None), payload);
        // The same in a frame of its own behind the segments.
        let mut frame = [&[2; 12][..], &[0x86, 0xdd]].concat();
        frame.extend(behind_segments(143, &tcp4(&payload)));
        assert_eq!(payloads(&cut(&frame, SEGMENT_TCP4, 900), headers + 18 - 24, None), payload);
    }

    /// An IPv4 header and a GRE header with these flags and optional words in front of `inner`.
    fn behind_gre(forbids_fragments: bool, flags: u8, words: &[u32], inner: &[u8]) -> Vec<u8> {
        let length = (24 + 4 * words.len() + inner.len()) as u16;
        let mut packet = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 9]].concat();
        packet.extend([if forbids_fragments { 0x40 } else { 0 }, 0, 64, 47, 0, 0]);
        packet.extend([192, 0, 2, 1, 203, 0, 113, 2]);
        packet.extend([flags, 0, 8, 0]);
        words.iter().for_each(|word| packet.extend(word.to_be_bytes()));
        packet.extend(inner);
        packet
    }

    #[test]
    fn a_super_frame_behind_gre_is_cut_with_checksums_and_keys() {
        let payload: Vec<u8> = (0..2501).map(|i| i as u8).collect();
        let inner = &tcp4(&payload)[18..];
        for (flags, words) in [(0, &[][..]), (0x20, &[7]), (0x80, &[0]), (0xa0, &[0, 7])] {
            for forbids_fragments in [false, true] {
                let mut frame = [&[2; 12][..], &[8, 0]].concat();
                frame.extend(behind_gre(forbids_fragments, flags, words, inner));
                let frames = cut(&frame, SEGMENT_TCP4, 1000);
                let (gre, at) = (34, 34 + 4 + 4 * words.len());
                let mut seen = Vec::new();
                for (number, frame) in frames.iter().enumerate() {
                    let (outer, rest) = ip4::Repr::parse(&frame[14..]).expect("outer header");
                    assert_eq!(rest.len(), frame.len() - 34, "{outer:?}");
                    let more = if forbids_fragments { 0 } else { number as u16 };
                    assert_eq!(word(frame, 18), Some(9 + more), "identification");
                    if flags & 0x80 != 0 {
                        assert!(Sum::new().bytes(&frame[gre..]).is_good(), "GRE checksum");
                    }
                    let (header, tcp) = ip4::Repr::parse(&frame[at..]).expect("inner header");
                    assert_eq!(word(frame, at + 4), Some(7 + number as u16));
                    let (from, to) = (header.source, header.destination);
                    let sum = Sum::pseudo4(from, to, IpProtocol::TCP, tcp.len() as u16);
                    assert!(sum.bytes(tcp).is_good());
                    seen.extend_from_slice(&tcp[24..]);
                }
                assert_eq!(seen, payload);
            }
        }
        let mut numbered = [&[2; 12][..], &[8, 0]].concat();
        numbered.extend(behind_gre(false, 0x10, &[1], inner));
        assert!(Segmenter::new(&numbered, numbered.len(), SEGMENT_TCP4, 1000).is_none());
    }

    #[test]
    fn the_sum_of_a_packet_with_segments_of_its_own_is_made_for_the_last_one() {
        let payload = vec![7; 3000];
        let tcp = &tcp4(&payload)[38..];
        for left in [1, 0] {
            let mut frame = [&[2; 12][..], &[0x86, 0xdd]].concat();
            frame.extend(behind_segments(6, tcp));
            frame[57] = left;
            let frames = cut(&frame, SEGMENT_TCP6, 1400);
            let to = if left == 0 { SID } else { LAST };
            assert_eq!(payloads(&frames, 94, Some((HOST, to))), payload);
        }
    }

    #[test]
    fn what_the_header_claims_must_fit_the_frame() {
        let frame = tcp4(&[1; 100]);
        assert!(Segmenter::new(&frame, frame.len(), SEGMENT_TCP6, 10).is_none());
        assert!(Segmenter::new(&frame, frame.len(), SEGMENT_UDP, 10).is_none());
        assert!(Segmenter::new(&frame, frame.len(), SEGMENT_TCP4, 0).is_none());
        assert!(Segmenter::new(&frame, frame.len(), 3, 10).is_none());
        assert!(Segmenter::new(&tcp4(&[]), tcp4(&[]).len(), SEGMENT_TCP4, 10).is_none());
        assert!(Segmenter::new(&frame, frame.len(), SEGMENT_TCP4 | SEGMENT_ECN, 10).is_some());
        assert!((0..=62).all(|cut| Segmenter::new(&frame[..cut], cut, SEGMENT_TCP4, 10).is_none()));
    }

    proptest! {
        #[test]
        fn no_frame_panics(
            mut frame in prop::collection::vec(any::<u8>(), 0..200), kind: u8, bytes in 0u16..20,
            v6: bool
        ) {
            if frame.len() > 24 {
                let head: &[u8] = if v6 { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] };
                frame[12..15].copy_from_slice(head);
                frame[if v6 { 20 } else { 23 }] = if kind & 1 == 0 { 17 } else { 6 };
            }
            let mut headers = [0; HEADERS_BYTES_MAX];
            for kind in [SEGMENT_TCP4, SEGMENT_TCP6, SEGMENT_UDP, kind] {
                if let Some(segmenter) = Segmenter::new(&frame, frame.len(), kind, bytes) {
                    for number in 0..segmenter.count() {
                        prop_assert!(segmenter.segment(&frame, number, &mut headers).is_some());
                    }
                    prop_assert!(
                        segmenter
                            .segment(&frame, segmenter.count(), &mut headers)
                            .is_none_or(|r| r.is_empty())
                    );
                }
            }
        }
    }
}
