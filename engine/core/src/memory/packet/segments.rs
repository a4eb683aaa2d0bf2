//! Packets whose bytes lie in more than one buffer: built, walked, cut, copied and taken apart.
#![allow(unsafe_code)]

use super::{Packet, PacketFlags};
use crate::memory::buffer::{Buffer, BufferCache, DATA_OFFSET};
use crate::memory::header_line::line_of;

/// A segment's length, cut to what is left of a packet that may be longer than any segment.
fn at_most(length: u16, left: usize) -> u16 {
    u16::try_from(left).map_or(length, |left| length.min(left))
}

impl Packet {
    /// Cut bytes off the end without giving segments back: padding behind a layer 3 packet. A
    /// chained packet keeps segments that are now empty.
    pub fn trim(&mut self, length: usize) {
        if length >= self.length() {
            return;
        }
        self.cut_offload(self.length() - length);
        if self.is_chained() {
            self.header_line_mut().total_length = length as u32;
            let mut left = length.saturating_sub(self.length as usize);
            let mut next = self.header_line().next;
            while let Some(segment) = next {
                // SAFETY: segments of a packet belong to it, and `&mut self`.
                let line = unsafe { line_of(segment).as_mut() };
                line.length = at_most(line.length, left);
                left -= line.length as usize;
                next = line.next;
            }
        }
        self.length = at_most(self.length, length);
    }

    /// So many bytes go from the end: what is left to the transmitting device is about those in
    /// front.
    fn cut_offload(&mut self, count: usize) {
        if self.has(PacketFlags::OFFLOAD) {
            let (offload, count) = (self.offload_mut(), count.min(u16::MAX.into()) as u16);
            offload.checksum_bytes = offload.checksum_bytes.saturating_sub(count);
            offload.payload_bytes = offload.payload_bytes.saturating_sub(count);
        }
    }

    /// Cut to `length` bytes in all, giving segments that are not needed back to `cache`.
    pub fn truncate(&mut self, length: usize, cache: &mut BufferCache) {
        if length >= self.length() {
            return;
        }
        self.cut_offload(self.length() - length);
        if !self.is_chained() {
            self.length = length as u16;
            return;
        }
        let mut left = length.saturating_sub(self.length as usize);
        self.length = at_most(self.length, length);
        self.header_line_mut().total_length = length as u32;
        let mut segment = self.buffer;
        while left > 0 {
            // SAFETY: segments of a packet belong to it.
            let Some(next) = (unsafe { line_of(segment).as_ref().next }) else { break };
            segment = next;
            // SAFETY: as above, and `&mut self`.
            let line = unsafe { line_of(segment).as_mut() };
            line.length = at_most(line.length, left);
            left -= line.length as usize;
        }
        // SAFETY: as above.
        let mut rest = unsafe { line_of(segment).as_mut().next.take() };
        while let Some(unused) = rest {
            // SAFETY: unlinked just now, so ours alone.
            rest = unsafe { line_of(unused).as_ref().next };
            cache.give(Buffer(unused));
        }
        // SAFETY: as above.
        if self.header_line().next.is_none() {
            self.clear(PacketFlags::CHAINED);
        }
    }

    /// Append bytes, chaining further buffers from `cache` as needed; false when the pool is empty
    /// (the packet then holds the part that fitted).
    #[must_use]
    pub fn append(&mut self, mut bytes: &[u8], cache: &mut BufferCache) -> bool {
        self.append_with(bytes.len(), cache, |piece| {
            let (now, rest) = bytes.split_at(piece.len());
            piece.copy_from_slice(now);
            bytes = rest;
        })
    }

    /// As [`append`](Self::append), for drivers whose bytes are no slice: `fill` is given the room
    /// for `count` bytes piece by piece, in order. The pieces hold what lay in the buffers before.
    #[must_use]
    pub fn append_with(
        &mut self,
        mut count: usize,
        cache: &mut BufferCache,
        mut fill: impl FnMut(&mut [u8]),
    ) -> bool {
        let data_bytes = cache.pool().data_bytes();
        if !self.is_chained() {
            let fits = self.tailroom(data_bytes).min(count);
            let old = self.length as usize;
            self.length += fits as u16;
            fill(&mut self.bytes_mut()[old..]);
            count -= fits;
        }
        while count > 0 {
            let Some(buffer) = cache.take() else { return false };
            let fits = data_bytes.min(count);
            // SAFETY: a fresh buffer of `data_bytes` bytes, ours alone.
            fill(unsafe {
                let data = buffer.0.as_ptr().add(DATA_OFFSET as usize);
                std::slice::from_raw_parts_mut(data, fits)
            });
            self.chain(buffer, DATA_OFFSET, fits as u16);
            count -= fits;
        }
        true
    }

    /// Link one more segment to the end: `length` bytes from `offset` (counted from its first
    /// byte).
    pub fn chain(&mut self, buffer: Buffer, offset: u16, length: u16) {
        if !self.is_chained() {
            let length = self.length as u32;
            let line = self.header_line_mut();
            line.total_length = length;
            line.next = None;
            self.set(PacketFlags::CHAINED);
        }
        self.header_line_mut().total_length += length as u32;
        let mut last = self.buffer;
        // SAFETY: segments of a packet belong to it.
        while let Some(next) = unsafe { line_of(last).as_ref().next } {
            last = next;
        }
        let segment = buffer.0;
        // SAFETY: the new segment is ours, and so is the last one.
        unsafe {
            let line = line_of(segment).as_mut();
            line.next = None;
            line.offset = offset;
            line.length = length;
            line_of(last).as_mut().next = Some(segment);
        }
    }

    /// Link full buffers to the end of a packet of one segment, in order: together they hold
    /// `length` bytes from their first data byte on, each but the last `data_bytes`.
    pub fn chain_all(
        &mut self,
        buffers: impl IntoIterator<Item = Buffer>,
        length: usize,
        data_bytes: usize,
    ) {
        debug_assert!(!self.is_chained());
        let total = self.length as usize + length;
        let line = self.header_line_mut();
        (line.total_length, line.next) = (total as u32, None);
        self.set(PacketFlags::CHAINED);
        let (mut last, mut left) = (self.buffer, length);
        for Buffer(segment) in buffers {
            // SAFETY: the new segment is ours, and so is the last one.
            unsafe {
                let line = line_of(segment).as_mut();
                (line.next, line.offset) = (None, DATA_OFFSET);
                line.length = left.min(data_bytes) as u16;
                line_of(last).as_mut().next = Some(segment);
            }
            left = left.saturating_sub(data_bytes);
            last = segment;
        }
        debug_assert_eq!(left, 0);
    }

    /// Put all segments of `tail` behind ours. Costs a step per segment of ours; none is copied.
    pub fn join(&mut self, tail: Packet) {
        self.join_all([tail]);
    }

    /// As [`join`](Self::join), of several packets, in order. Costs a step per segment of all.
    pub fn join_all(&mut self, tails: impl IntoIterator<Item = Packet>) {
        let mut total = self.length() as u32;
        let mut last = self.buffer;
        if !self.is_chained() {
            self.header_line_mut().next = None;
        }
        for tail in tails {
            total += tail.length() as u32;
            let behind = if tail.is_chained() { tail.header_line().next } else { None };
            let (offset, length) = (tail.offset, tail.length);
            let Buffer(segment) = tail.into_buffer();
            // SAFETY: our segments belong to us, and those of `tail`, which is no more, do now.
            unsafe {
                while let Some(next) = line_of(last).as_ref().next {
                    last = next;
                }
                let line = line_of(segment).as_mut();
                (line.next, line.offset, line.length) = (behind, offset, length);
                line_of(last).as_mut().next = Some(segment);
            }
            self.set(PacketFlags::CHAINED);
        }
        self.header_line_mut().total_length = total;
    }

    /// Buffers that it lies in.
    pub fn buffer_count(&self) -> usize {
        if self.is_chained() { self.segments().count() } else { 1 }
    }

    /// All segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut next = if self.is_chained() { self.header_line().next } else { None };
        std::iter::once(self.bytes()).chain(std::iter::from_fn(move || {
            // SAFETY: segments of a packet belong to it, and `&self` keeps them.
            let line = unsafe { line_of(next?).as_ref() };
            let base = next?.as_ptr();
            next = line.next;
            // SAFETY: offset and length of a segment were checked where it was chained.
            Some(unsafe {
                std::slice::from_raw_parts(base.add(line.offset as usize), line.length as usize)
            })
        }))
    }

    /// Copy all bytes behind `into`.
    pub fn copy_to(&self, into: &mut Vec<u8>) {
        self.segments().for_each(|s| into.extend_from_slice(s));
    }

    /// Another packet with the same bytes and metadata; `None` when the pool is empty.
    #[must_use]
    pub fn duplicate(&self, cache: &mut BufferCache) -> Option<Packet> {
        let mut copy = cache.packet()?;
        for segment in self.segments() {
            if !copy.append(segment, cache) {
                cache.free(copy);
                return None;
            }
        }
        copy.take_facts_of(self);
        if self.has(PacketFlags::OFFLOAD) {
            *copy.offload_mut() = *self.offload();
            copy.set(PacketFlags::OFFLOAD);
        }
        Some(copy)
    }

    /// Of a packet that is a copy of `original`, or a part of it: everything that is known of
    /// `original`, but for its bytes and what is left to do with them.
    pub fn take_facts_of(&mut self, original: &Packet) {
        self.rx = original.rx;
        self.tx = original.tx;
        self.hand_over_as(original);
        self.hash = original.hash;
        self.l2_bytes = original.l2_bytes;
        self.arc_place = original.arc_place;
        self.turns = original.turns & !(super::COUNTED | super::CLASSED);
        let chained = self.is_chained();
        self.flags = original.flags;
        self.clear(PacketFlags::CHAINED.union(PacketFlags::OFFLOAD));
        if chained {
            self.set(PacketFlags::CHAINED);
        }
        if let Some(note) = original.note() {
            self.set_note(*note);
        }
        if let Some(class) = original.class() {
            self.set_class(class);
        }
        if original.has(PacketFlags::TRACED) {
            self.header_line_mut().trace = original.header_line().trace;
        }
        self.descend_from(original);
    }

    /// Take the packet apart: each of its buffers, where its bytes begin and how many they are.
    pub fn into_segments(self, mut each: impl FnMut(Buffer, *const u8, usize)) {
        let mut next = if self.is_chained() { self.header_line().next } else { None };
        each(Buffer(self.buffer), self.data(), self.length as usize);
        while let Some(segment) = next {
            // SAFETY: segments of a packet belong to it, and it is being taken apart.
            let (line, place) = unsafe {
                let line = line_of(segment).as_ref();
                (line, segment.as_ptr().add(line.offset as usize))
            };
            let length = line.length as usize;
            next = line.next;
            each(Buffer(segment), place, length);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::mapping::PageSize;

    fn cache() -> BufferCache {
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache()
    }

    #[test]
    fn a_jumbo_packet_is_chained_and_can_be_cut_at_any_length() {
        let mut cache = cache();
        let bytes: Vec<u8> = (0..9000).map(|i| i as u8).collect();
        for cut in [0, 1, 2047, 2048, 2049, 4096, 8999, 9000] {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(&bytes, &mut cache));
            assert_eq!(packet.length(), 9000);
            let copy = packet.duplicate(&mut cache).expect("copy");
            packet.truncate(cut, &mut cache);
            assert_eq!(packet.length(), cut);
            let mut seen = Vec::new();
            packet.copy_to(&mut seen);
            assert_eq!(seen, bytes[..cut]);
            seen.clear();
            copy.copy_to(&mut seen);
            assert_eq!(seen, bytes);
            cache.free(packet);
            cache.free(copy);
        }
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn a_packet_longer_than_any_segment_is_cut_where_it_is_said() {
        let mut cache = cache();
        let bytes: Vec<u8> = (0..140_000u32).map(|i| (i / 7) as u8).collect();
        for cut in
            [1, 2048, 65_534, 65_535, 65_536, 65_537, 67_584, 70_000, 131_073, 139_999, 140_000]
        {
            for trims in [false, true] {
                let mut packet = cache.packet().expect("buffer");
                assert!(packet.append(&bytes, &mut cache));
                if trims {
                    packet.trim(cut);
                } else {
                    packet.truncate(cut, &mut cache);
                }
                let mut seen = Vec::new();
                packet.copy_to(&mut seen);
                assert!(
                    seen == bytes[..cut] && packet.length() == cut,
                    "{cut}: {} bytes",
                    seen.len()
                );
                cache.free(packet);
            }
        }
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn packets_that_are_joined_are_one_with_all_bytes_in_order() {
        let mut cache = cache();
        let bytes: Vec<u8> = (0..20_000).map(|i| (i / 3) as u8).collect();
        let cuts = [vec![0, 20_000], vec![0, 8, 2048, 9000, 20_000], vec![0, 5000, 5008, 20_000]];
        for (cuts, in_turn) in cuts.iter().flat_map(|cuts| [(cuts, true), (cuts, false)]) {
            let parts: Vec<Packet> = cuts
                .windows(2)
                .map(|ends| {
                    let mut part = cache.packet().expect("buffer");
                    assert!(
                        part.append(b"head", &mut cache)
                            && part.append(&bytes[ends[0]..ends[1]], &mut cache)
                    );
                    assert!(part.pull(4));
                    part
                })
                .collect();
            let buffers: usize = parts.iter().map(Packet::buffer_count).sum();
            let mut parts = parts.into_iter();
            let mut whole = parts.next().expect("parts");
            if in_turn {
                parts.for_each(|part| whole.join(part));
            } else {
                whole.join_all(parts);
            }
            let mut seen = Vec::new();
            whole.copy_to(&mut seen);
            assert!(
                seen == bytes && whole.length() == bytes.len() && whole.buffer_count() == buffers
            );
            cache.free(whole);
        }
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn an_empty_pool_refuses_and_keeps_what_fitted() {
        let mut cache =
            BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(!packet.append(&vec![7; 2048 * 200], &mut cache));
        assert_eq!(packet.length(), 2048 * 128);
        assert!(cache.take().is_none());
        cache.free(packet);
        cache.report();
        assert_eq!(cache.pool().free(), 128);
    }
}
