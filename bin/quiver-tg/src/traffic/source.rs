//! A stream as the transmitter uses it: makes its frames one after the other.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use quiver_core::Packet;
use quiver_core::buffer::BufferCache;
use quiver_wire::MacAddress;

use super::template::{Headers, IP_OFFSET, Ip, PIECE_BYTES, Template, checksum_of};
use super::values::{Prepared, Values, ValuesError, prepare};
use crate::profile::{FrameSizes, Stream};
use crate::stamp::STAMP_BYTES;

/// What must be written into each frame besides the stamp. Absent values do not vary.
enum Patch {
    /// Nothing.
    None,
    /// UDP ports only, in IPv4.
    Ports4,
    /// IPv4 addresses (and ports, if they vary).
    Ip4 { source: Option<Values<Ipv4Addr>>, destination: Option<Values<Ipv4Addr>> },
    /// IPv6 addresses and ports; with a checksum to keep right when there is UDP.
    Ip6 { source: Option<Values<Ipv6Addr>>, destination: Option<Values<Ipv6Addr>> },
}

/// MAC addresses that vary; no checksum is over them.
struct Macs {
    source: Option<Values<MacAddress>>,
    destination: Option<Values<MacAddress>>,
}

/// A template and what its checksum starts from.
struct Shape {
    template: Template,
    /// Sum of everything under the checksum that does not vary.
    base: u16,
}

/// Makes the frames of one stream.
pub struct Source {
    shapes: Box<[Shape]>,
    /// One turn of the mix.
    turn: Box<[u8]>,
    next: usize,
    macs: Option<Box<Macs>>,
    patch: Patch,
    source_port: Option<Values<u16>>,
    destination_port: Option<Values<u16>>,
    ports_at: usize,
    has_udp: bool,
    /// For frames longer than a buffer.
    scratch: Box<[u8]>,
}

const IP4_CHECKSUM: usize = IP_OFFSET + 10;
const IP4_SOURCE: Range<usize> = IP_OFFSET + 12..IP_OFFSET + 16;
const IP4_DESTINATION: Range<usize> = IP_OFFSET + 16..IP_OFFSET + 20;
const IP6_SOURCE: Range<usize> = IP_OFFSET + 8..IP_OFFSET + 24;
const IP6_DESTINATION: Range<usize> = IP_OFFSET + 24..IP_OFFSET + 40;
const UDP_CHECKSUM: usize = 6;

impl Source {
    /// From its description; reads and draws all values. The profile has been checked.
    pub fn new(stream: &Stream) -> Result<Source, ValuesError> {
        let layers = &stream.layers;
        let (source_mac, destination_mac) = (prepare(&layers.ethernet.src)?, prepare(&layers.ethernet.dst)?);
        let ethernet = (source_mac.first, destination_mac.first);
        let macs = Macs { source: source_mac.varying, destination: destination_mac.varying };
        let (ip, mut patch) = if let Some(header) = &layers.ip4 {
            let (source, destination) = (prepare(&header.src)?, prepare(&header.dst)?);
            let ip = Ip::V4(source.first, destination.first, header.ttl);
            (ip, Patch::Ip4 { source: source.varying, destination: destination.varying })
        } else if let Some(header) = &layers.ip6 {
            let (source, destination) = (prepare(&header.src)?, prepare(&header.dst)?);
            let ip = Ip::V6(source.first, destination.first, header.hop_limit);
            (ip, Patch::Ip6 { source: source.varying, destination: destination.varying })
        } else {
            (Ip::None, Patch::None)
        };
        let (source_port, destination_port) = match &layers.udp {
            Some(header) => (prepare(&header.src_port)?, prepare(&header.dst_port)?),
            None => (no_port(), no_port()),
        };
        let udp = layers.udp.is_some().then_some((source_port.first, destination_port.first));
        let (source_port, destination_port) = (source_port.varying, destination_port.varying);
        let ports_vary = source_port.is_some() || destination_port.is_some();
        patch = match patch {
            Patch::Ip4 { source: None, destination: None } if ports_vary => Patch::Ports4,
            Patch::Ip4 { source: None, destination: None } => Patch::None,
            Patch::Ip6 { source: None, destination: None } if !ports_vary => Patch::None,
            patch => patch,
        };
        let ports_at = layers.header_bytes() - 8 * usize::from(layers.udp.is_some());
        let shares = stream.frame.shares(layers.ip6.is_some());
        let headers = Headers { ethernet, ip, udp };
        let mut source = Source {
            shapes: Box::default(),
            turn: FrameSizes::turn(&shares).into_boxed_slice(),
            next: 0,
            macs: (macs.source.is_some() || macs.destination.is_some()).then(|| Box::new(macs)),
            patch,
            source_port,
            destination_port,
            ports_at,
            has_udp: udp.is_some(),
            scratch: Box::default(),
        };
        let longest = shares.iter().map(|s| s.size).max().unwrap_or(0);
        source.scratch = vec![0; longest.next_multiple_of(PIECE_BYTES)].into_boxed_slice();
        source.shapes = shares
            .iter()
            .map(|share| {
                let template = Template::new(&headers, share.size).expect("the profile's sizes are checked");
                let base = source.base_of(&template);
                Shape { template, base }
            })
            .collect();
        Ok(source)
    }

    /// What a checksum that must be made anew starts from.
    fn base_of(&self, template: &Template) -> u16 {
        let source_port = self.ports_at..self.ports_at + 2;
        let destination_port = self.ports_at + 2..self.ports_at + 4;
        let mut varying = Vec::new();
        let mut add = |is_varying: bool, field: Range<usize>| {
            if is_varying {
                varying.push(field);
            }
        };
        match &self.patch {
            Patch::None | Patch::Ports4 => 0,
            Patch::Ip4 { source, destination } => {
                add(source.is_some(), IP4_SOURCE);
                add(destination.is_some(), IP4_DESTINATION);
                template.sum_without(IP4_CHECKSUM, &varying)
            }
            Patch::Ip6 { .. } if !self.has_udp => 0,
            Patch::Ip6 { source, destination } => {
                add(source.is_some(), IP6_SOURCE);
                add(destination.is_some(), IP6_DESTINATION);
                add(self.source_port.is_some(), source_port);
                add(self.destination_port.is_some(), destination_port);
                template.sum_without(self.ports_at + UDP_CHECKSUM, &varying)
            }
        }
    }

    /// Write the next frame with `stamp` into an empty packet; false when there is no buffer for its
    /// further segments (then it holds a part).
    #[inline(always)]
    #[must_use]
    pub fn write(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        let index = usize::from(self.turn[self.next]);
        self.next = if self.next + 1 == self.turn.len() { 0 } else { self.next + 1 };
        let shape = &self.shapes[index];
        let length = shape.template.length;
        if !packet.set_length(shape.template.bytes.len(), data_bytes) {
            return self.write_long(packet, index, stamp, cache);
        }
        let (to, _) = packet.bytes_mut().as_chunks_mut::<PIECE_BYTES>();
        let (from, _) = shape.template.bytes.as_chunks::<PIECE_BYTES>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        let base = shape.base;
        let frame = packet.bytes_mut();
        self.patch(frame, base);
        put(frame, length - STAMP_BYTES, *stamp);
        packet.set_length(length, data_bytes)
    }

    /// How long all frames are when they are copied, if they are all of one length.
    pub fn copied_bytes(&self) -> Option<usize> {
        match &*self.shapes {
            [shape] => Some(shape.template.bytes.len()),
            _ => None,
        }
    }

    /// As [`write`](Self::write), for frames that are all copied as `BYTES` ([`copied_bytes`]
    /// (Self::copied_bytes)): nothing is left to decide per frame.
    #[inline(always)]
    #[must_use]
    pub fn write_fixed<const BYTES: usize>(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        let Some(shape) = self.shapes.first() else { return false };
        let (length, base) = (shape.template.length, shape.base);
        if !packet.set_length(BYTES, data_bytes) {
            return self.write_long(packet, 0, stamp, cache);
        }
        let Some(frame) = packet.bytes_mut().first_chunk_mut::<BYTES>() else { return false };
        let Some(template) = shape.template.bytes.first_chunk::<BYTES>() else { return false };
        *frame = *template;
        self.patch(frame, base);
        put(frame, length - STAMP_BYTES, *stamp);
        packet.set_length(length, data_bytes)
    }

    #[cold]
    fn write_long(
        &mut self,
        packet: &mut Packet,
        index: usize,
        stamp: &[u8; STAMP_BYTES],
        cache: &mut BufferCache,
    ) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let template = &self.shapes[index].template;
        let (length, base) = (template.length, self.shapes[index].base);
        scratch[..template.bytes.len()].copy_from_slice(&template.bytes);
        self.patch(&mut scratch, base);
        put(&mut scratch, length - STAMP_BYTES, *stamp);
        let is_whole = packet.append(&scratch[..length], cache);
        self.scratch = scratch;
        is_whole
    }

    /// Write the fields that vary, and the checksums over them.
    #[inline(always)]
    fn patch(&mut self, frame: &mut [u8], base: u16) {
        if let Some(macs) = &mut self.macs {
            macs.write(frame);
        }
        match &mut self.patch {
            Patch::None => {}
            Patch::Ports4 => {
                self.write_ports(frame);
            }
            Patch::Ip4 { source, destination } => {
                let mut sum = u64::from(base);
                if let Some(values) = source {
                    let word = values.next_word();
                    sum += u64::from(word);
                    put(frame, IP4_SOURCE.start, word.to_ne_bytes());
                }
                if let Some(values) = destination {
                    let word = values.next_word();
                    sum += u64::from(word);
                    put(frame, IP4_DESTINATION.start, word.to_ne_bytes());
                }
                put(frame, IP4_CHECKSUM, checksum_of(sum).to_ne_bytes());
                self.write_ports(frame);
            }
            Patch::Ip6 { source, destination } => {
                let mut sum = u64::from(base);
                if let Some(values) = source {
                    let word = values.next_word();
                    sum += halves(word);
                    put(frame, IP6_SOURCE.start, word.to_ne_bytes());
                }
                if let Some(values) = destination {
                    let word = values.next_word();
                    sum += halves(word);
                    put(frame, IP6_DESTINATION.start, word.to_ne_bytes());
                }
                sum += self.write_ports(frame);
                if self.has_udp {
                    let checksum = match checksum_of(sum) {
                        0 => 0xffff,
                        checksum => checksum,
                    };
                    put(frame, self.ports_at + UDP_CHECKSUM, checksum.to_ne_bytes());
                }
            }
        }
    }

    /// Write the ports that vary; their sum.
    #[inline(always)]
    fn write_ports(&mut self, frame: &mut [u8]) -> u64 {
        let mut sum = 0;
        if let Some(values) = &mut self.source_port {
            let word = values.next_word();
            sum += u64::from(word);
            put(frame, self.ports_at, word.to_ne_bytes());
        }
        if let Some(values) = &mut self.destination_port {
            let word = values.next_word();
            sum += u64::from(word);
            put(frame, self.ports_at + 2, word.to_ne_bytes());
        }
        sum
    }
}

impl Macs {
    #[inline(always)]
    fn write(&mut self, frame: &mut [u8]) {
        if let Some(values) = &mut self.destination {
            put(frame, 0, values.next_word());
        }
        if let Some(values) = &mut self.source {
            put(frame, 6, values.next_word());
        }
    }
}

fn no_port() -> Prepared<u16> {
    Prepared { first: 0, varying: None }
}

/// An address as four 32-bit words added up: below 2^34, the same one's complement sum.
#[inline(always)]
fn halves(word: u128) -> u64 {
    let (low, high) = (word as u64, (word >> 64) as u64);
    (low & 0xffff_ffff) + (low >> 32) + (high & 0xffff_ffff) + (high >> 32)
}

/// Write bytes at a place that is inside: sizes are checked before a source is made.
#[inline(always)]
fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = frame.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}
