//! The packets of a stream, laid out in whole cache lines so that sending one is a wide copy.

use quiver_core::Packet;
use quiver_core::memory::buffer::{BufferCache, CACHE_LINE_BYTES, DATA_OFFSET};

/// Longest packet of a stream, bytes.
pub const PACKET_BYTES_MAX: usize = 65_535;
/// Memory that the packets of one stream may take, bytes.
pub const STREAM_BYTES_MAX: usize = 512 << 20;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; CACHE_LINE_BYTES]);

/// The packets of a stream.
pub(crate) struct Templates {
    lines: Vec<Line>,
    places: Vec<Place>,
    /// All packets fit in one line each, so that packet `i` is line `i`.
    single_lines: bool,
}

#[derive(Clone, Copy)]
struct Place {
    first_line: u32,
    bytes: u16,
}

impl Templates {
    /// Lay out `packets`. They are not empty, and neither is their list.
    pub(crate) fn new<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Templates {
        let mut templates = Templates { lines: Vec::new(), places: Vec::new(), single_lines: true };
        for packet in packets {
            let first_line = templates.lines.len() as u32;
            for chunk in packet.chunks(CACHE_LINE_BYTES) {
                let mut line = Line([0; CACHE_LINE_BYTES]);
                line.0[..chunk.len()].copy_from_slice(chunk);
                templates.lines.push(line);
            }
            templates.single_lines &= packet.len() <= CACHE_LINE_BYTES;
            templates.places.push(Place { first_line, bytes: packet.len() as u16 });
        }
        templates
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The shortest and the longest, bytes.
    pub(crate) fn sizes(&self) -> (u16, u16) {
        let sizes = self.places.iter().map(|p| p.bytes);
        (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
    }

    /// Are all so short that [`short`](Self::short) may be used?
    pub(crate) fn all_short(&self) -> bool {
        self.single_lines
    }

    /// Make a packet of number `index`, all of which fit in one line.
    #[inline(always)]
    pub(crate) fn short(&self, index: usize, buffers: &mut BufferCache) -> Option<Packet> {
        let mut packet = buffers.packet()?;
        // One line always fits behind the headroom of a buffer.
        let _ = packet.set_span(DATA_OFFSET, CACHE_LINE_BYTES as u16, CACHE_LINE_BYTES);
        if let Ok(bytes) = <&mut [u8; CACHE_LINE_BYTES]>::try_from(packet.bytes_mut()) {
            *bytes = self.lines[index].0;
        }
        let _ = packet.set_length(usize::from(self.places[index].bytes), CACHE_LINE_BYTES);
        Some(packet)
    }

    /// Make a packet of number `index`; `None` when the pool is empty.
    #[inline]
    pub(crate) fn any(&self, index: usize, buffers: &mut BufferCache) -> Option<Packet> {
        let place = self.places[index];
        let length = usize::from(place.bytes);
        let lines = length.div_ceil(CACHE_LINE_BYTES);
        let first = place.first_line as usize;
        let source = &self.lines[first..first + lines];
        let data_bytes = buffers.pool().data_bytes();
        let mut packet = buffers.packet()?;
        if packet.set_span(
            DATA_OFFSET,
            (lines * CACHE_LINE_BYTES).min(u16::MAX.into()) as u16,
            data_bytes,
        ) {
            let (targets, _) = packet.bytes_mut().as_chunks_mut::<CACHE_LINE_BYTES>();
            for (target, line) in targets.iter_mut().zip(source) {
                *target = line.0;
            }
            let _ = packet.set_length(length, data_bytes);
            return Some(packet);
        }
        self.chained(packet, source, length, buffers)
    }

    /// A packet longer than a buffer.
    #[cold]
    fn chained(
        &self,
        mut packet: Packet,
        source: &[Line],
        mut length: usize,
        buffers: &mut BufferCache,
    ) -> Option<Packet> {
        for line in source {
            let part = length.min(CACHE_LINE_BYTES);
            if !packet.append(&line.0[..part], buffers) {
                buffers.free(packet);
                return None;
            }
            length -= part;
        }
        Some(packet)
    }
}
