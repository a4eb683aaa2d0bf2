//! A stream as the transmitter uses it: writes its frames one after the other.

use std::sync::Arc;

use quiver_core::Packet;
use quiver_core::memory::buffer::BufferCache;

use super::chunk::CHUNK;
use super::program::{FrameLength, PIECE_BYTES, Program, put};
use super::recording::Recording;
use super::replay::Replay;
use super::values::ValuesError;
use crate::profile::Stream;
use crate::stamp::STAMP_BYTES;

/// Makes the frames of one stream.
pub enum Source {
    /// From headers.
    Generated(Box<Generated>),
    /// As they are.
    Replay(Box<Replay>, Option<Arc<[u64]>>),
}

impl Source {
    /// From its description; reads and draws all values and packets. The profile has been checked.
    ///
    /// # Errors
    /// When a file of values or packets cannot be read, or the fields make more flows than there
    /// may be.
    pub fn new(stream: &Stream) -> Result<Source, ValuesError> {
        if let Some(pcap) = &stream.pcap {
            let path = pcap.file.clone();
            let read =
                Recording::read(&path).map_err(|message| ValuesError::Packets { path, message })?;
            let scaled = |at: u64| (at as f64 / pcap.speed) as u64;
            let times =
                pcap.own_times.then(|| read.times_ns.iter().map(|at| scaled(*at)).collect());
            return Ok(Source::Replay(Box::new(Replay::new(stream, read.packets)), times));
        }
        if !stream.packets.is_empty() {
            let packets = stream.packets.iter().map(|packet| packet.0.clone()).collect();
            return Ok(Source::Replay(Box::new(Replay::new(stream, packets)), None));
        }
        Ok(Source::Generated(Box::new(Generated::new(stream)?)))
    }

    /// A frame on average, bytes.
    pub fn frame_bytes_mean(&self) -> f64 {
        match self {
            Source::Generated(made) => made.frame_bytes.1,
            Source::Replay(replay, _) => replay.frame_bytes_mean(),
        }
    }

    /// The longest frame, bytes.
    pub fn frame_bytes_max(&self) -> usize {
        match self {
            Source::Generated(made) => made.frame_bytes.0,
            Source::Replay(replay, _) => replay.frame_bytes_max(),
        }
    }

    /// Packets before they come round, if they do.
    pub fn packets(&self) -> Option<u64> {
        match self {
            Source::Generated(_) => None,
            Source::Replay(replay, _) => Some(replay.packets()),
        }
    }

    /// When they are due by themselves, nanoseconds behind the first.
    pub fn times_ns(&self) -> Option<Arc<[u64]>> {
        match self {
            Source::Generated(_) => None,
            Source::Replay(_, times_ns) => times_ns.clone(),
        }
    }

    /// Write the next frame with `stamp` into an empty packet; false when there is no buffer for
    /// its further segments (then it holds a part).
    #[must_use]
    pub fn write(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        match self {
            Source::Generated(made) => made.write(packet, stamp, data_bytes, cache),
            Source::Replay(replay, _) => replay.write(packet, stamp, data_bytes, cache),
        }
    }

    /// Send all frames to this MAC address from now on. Packets that are sent as they are stay so.
    pub fn set_destination(&mut self, mac: [u8; 6]) {
        if let Source::Generated(made) = self {
            made.set_destination(mac);
        }
    }
}

/// Makes frames from headers.
pub struct Generated {
    program: Program,
    /// The next frame's place in the columns; [`CHUNK`] when they are used up.
    next: usize,
    /// For frames longer than a buffer.
    scratch: Box<[u8]>,
    is_stamped: bool,
    /// The longest, and the mean.
    frame_bytes: (usize, f64),
}

impl Generated {
    fn new(stream: &Stream) -> Result<Generated, ValuesError> {
        let program = Program::new(stream)?;
        let scratch = vec![0; program.template.len()].into_boxed_slice();
        let frame_bytes = (stream.frame_bytes_max(), stream.frame_bytes_mean());
        Ok(Generated { program, next: CHUNK, scratch, is_stamped: stream.stamp, frame_bytes })
    }

    /// The kernel that writes its frames: bytes that are copied, if all have one length, and
    /// windows.
    pub fn kernel(&self) -> (Option<usize>, usize) {
        let is_plain = self.is_stamped && matches!(self.program.length, FrameLength::Fixed(_));
        (is_plain.then_some(self.program.template.len()), self.program.windows.len())
    }

    fn set_destination(&mut self, mac: [u8; 6]) {
        self.program.set_constant(0, &mac);
        self.next = CHUNK;
    }

    /// The next frame's place in the columns.
    #[inline(always)]
    fn next_place(&mut self) -> usize {
        if self.next >= CHUNK {
            self.program.run();
            self.next = 0;
        }
        self.next += 1;
        self.next - 1
    }

    /// Write the next frame with `stamp` into an empty packet; false when there is no buffer for
    /// its further segments (then it holds a part).
    #[inline(always)]
    #[must_use]
    pub fn write(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        let place = self.next_place();
        let length = self.length(place);
        let copied = length.next_multiple_of(PIECE_BYTES).max(self.program.head_bytes());
        if !packet.set_length(copied, data_bytes) {
            return self.write_long(packet, place, stamp, cache);
        }
        let frame = packet.bytes_mut();
        let (to, _) = frame.as_chunks_mut::<PIECE_BYTES>();
        let (from, _) = self.program.template.as_chunks::<PIECE_BYTES>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        self.fill(frame, place);
        if self.is_stamped {
            put(frame, length - STAMP_BYTES, *stamp);
        }
        packet.set_length(length, data_bytes)
    }

    /// As [`write`](Self::write), for frames that are all copied as `BYTES` and have `WINDOWS`
    /// windows ([`kernel`](Self::kernel)): nothing is left to decide per frame.
    #[inline(always)]
    #[must_use]
    pub fn write_fixed<const BYTES: usize, const WINDOWS: usize>(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        let place = if WINDOWS > 0 { self.next_place() } else { 0 };
        let FrameLength::Fixed(length) = self.program.length else { return false };
        if !packet.set_length(BYTES, data_bytes) {
            return self.write_long(packet, place, stamp, cache);
        }
        let Some(frame) = packet.bytes_mut().first_chunk_mut::<BYTES>() else { return false };
        let Some(template) = self.program.template.first_chunk::<BYTES>() else { return false };
        *frame = *template;
        if let (Some(windows), Some(words)) = (
            self.program.windows.first_chunk::<WINDOWS>(),
            self.program.words.first_chunk::<WINDOWS>(),
        ) {
            for (window, words) in windows.iter().zip(words) {
                put(frame, window.at, words[place % CHUNK].to_ne_bytes());
            }
        }
        put(frame, length - STAMP_BYTES, *stamp);
        packet.set_length(length, data_bytes)
    }

    #[inline(always)]
    fn length(&self, place: usize) -> usize {
        match self.program.length {
            FrameLength::Fixed(length) => length,
            FrameLength::Column(column) => {
                self.program.columns.get(column).map_or(0, |sizes| sizes[place % CHUNK] as usize)
            }
        }
    }

    /// Write what varies.
    #[inline(always)]
    fn fill(&self, frame: &mut [u8], place: usize) {
        for (window, words) in self.program.windows.iter().zip(&self.program.words) {
            put(frame, window.at, words[place % CHUNK].to_ne_bytes());
        }
    }

    #[cold]
    fn write_long(
        &mut self,
        packet: &mut Packet,
        place: usize,
        stamp: &[u8; STAMP_BYTES],
        cache: &mut BufferCache,
    ) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let length = self.length(place);
        scratch.copy_from_slice(&self.program.template);
        self.fill(&mut scratch, place);
        if self.is_stamped {
            put(&mut scratch, length - STAMP_BYTES, *stamp);
        }
        let is_whole = packet.append(&scratch[..length], cache);
        self.scratch = scratch;
        is_whole
    }
}
