//! A packet: an owned handle of 32 bytes that travels in the vector. Its buffer's own header line
//! is touched only off the plain path (chains, traces, offloads).
#![allow(unsafe_code)]

mod segments;

use std::ptr::NonNull;

use crate::buffer::{Buffer, BufferHeader, DATA_OFFSET, Offload};
pub use crate::header_line::NOTE_BYTES;
use crate::header_line::line_of;
use crate::ids::InterfaceId;

/// Recirculations a packet survives: look-ups in further tables, tunnels in tunnels.
pub const TURNS_MAX: u8 = 16;

/// The bit of [`Packet::turns`](Packet::turn) that says that it came in another packet.
const CARRIED: u8 = 0x80;

/// Facts about a packet, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct PacketFlags(u8);

impl PacketFlags {
    /// Every node that it passes writes down what it saw and decided.
    pub const TRACED: PacketFlags = PacketFlags(1);
    /// Its bytes lie in more than one buffer.
    pub const CHAINED: PacketFlags = PacketFlags(2);
    /// [`Offload`] in the header line says what is left to do before transmission.
    pub const OFFLOAD: PacketFlags = PacketFlags(4);
    /// The router made it; it did not come in.
    pub const OWN: PacketFlags = PacketFlags(8);
    /// The device has checked the layer 4 checksum.
    pub const L4_CHECKSUM_GOOD: PacketFlags = PacketFlags(16);
    /// It came to the router's own layer 2 address or was broadcast or multicast on layer 2.
    pub const L2_GROUP: PacketFlags = PacketFlags(32);
    /// A copy that a mirror made: it is not mirrored again.
    pub const MIRRORED: PacketFlags = PacketFlags(64);
    /// The header line holds a note ([`Packet::note`]): what cannot be read from the bytes.
    pub const NOTED: PacketFlags = PacketFlags(128);

    /// These and `other`.
    #[inline(always)]
    pub const fn and(self, other: PacketFlags) -> PacketFlags {
        PacketFlags(self.0 | other.0)
    }

    /// Are all of `other` set?
    #[inline(always)]
    pub fn has(self, other: PacketFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A packet, owned. Used twice, it does not compile; lost, the buffer balance shows it.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Packet {
    /// Where its first buffer begins.
    buffer: NonNull<u8>,
    /// Where the bytes of the first segment begin, counted from there.
    offset: u16,
    /// Bytes in the first segment.
    length: u16,
    flags: PacketFlags,
    /// Place in the feature arc that it walks.
    pub(crate) arc_place: u8,
    turns: u8,
    /// Bytes of layer 2 header that were in front of the bytes when it was received.
    pub l2_bytes: u8,
    /// Where it came in.
    pub rx: InterfaceId,
    /// Where it goes out, for the features of `interface-output`.
    pub tx: InterfaceId,
    /// An index whose meaning the node before and the node behind agree on (adjacency, next-hop
    /// group, drop reason, FIB).
    pub index: u32,
    /// The flow hash once computed, or a feature's own word.
    pub hash: u32,
}

const _: () = assert!(size_of::<Packet>() == 32);

// SAFETY: a packet owns its buffers.
unsafe impl Send for Packet {}

impl Packet {
    /// An empty packet in a fresh buffer.
    #[inline]
    pub fn new(buffer: Buffer) -> Packet {
        Packet {
            buffer: buffer.0,
            offset: DATA_OFFSET,
            length: 0,
            flags: PacketFlags(0),
            arc_place: 0,
            turns: 0,
            l2_bytes: 0,
            rx: InterfaceId::NONE,
            tx: InterfaceId::NONE,
            index: 0,
            hash: 0,
        }
    }

    /// Give up the packet for its first buffer. Further segments must have been taken care of.
    #[inline]
    pub(crate) fn into_buffer(self) -> Buffer {
        Buffer(self.buffer)
    }

    #[inline(always)]
    fn data(&self) -> *mut u8 {
        // SAFETY: `offset` stays inside the buffer: it begins at DATA_OFFSET, `push` never goes
        // below zero and `pull` never beyond `length`.
        unsafe { self.buffer.as_ptr().add(self.offset as usize) }
    }

    /// The address of the first byte, for prefetching and for drivers.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const u8 {
        self.data()
    }

    /// Ask for the first cache line of the bytes.
    #[inline(always)]
    pub fn prefetch(&self) {
        crate::cpu::prefetch(self.data());
    }

    /// Ask for the second cache line of the bytes: for those who look behind the first headers.
    #[inline(always)]
    pub fn prefetch_second(&self) {
        crate::cpu::prefetch(self.data().wrapping_add(crate::buffer::CACHE_LINE_BYTES));
    }

    /// The bytes of the first segment.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `data` are in the buffer, and the packet owns it.
        unsafe { std::slice::from_raw_parts(self.data(), self.length as usize) }
    }

    /// The bytes of the first segment, to change.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.data(), self.length as usize) }
    }

    /// Bytes of the first segment.
    #[inline(always)]
    pub fn segment_length(&self) -> usize {
        self.length as usize
    }

    /// Bytes of all segments.
    #[inline(always)]
    pub fn length(&self) -> usize {
        if self.is_chained() { self.header_line().total_length as usize } else { self.length as usize }
    }

    /// Bytes that can still be put in front.
    #[inline(always)]
    pub fn headroom(&self) -> usize {
        self.offset as usize
    }

    /// Take `count` bytes off the front; false (and nothing changes) when the first segment is
    /// shorter.
    #[inline(always)]
    #[must_use]
    pub fn pull(&mut self, count: usize) -> bool {
        if count > self.length as usize {
            return false;
        }
        self.offset += count as u16;
        self.length -= count as u16;
        if self.is_chained() {
            self.header_line_mut().total_length -= count as u32;
        }
        true
    }

    /// Put `count` bytes in front, as they lie there (what was pulled comes back unchanged); false
    /// (and nothing changes) without headroom.
    #[inline(always)]
    #[must_use]
    pub fn push(&mut self, count: usize) -> bool {
        if count > self.headroom() {
            return false;
        }
        self.grow_front(count);
        true
    }

    /// Put `bytes` behind the first `at` bytes, which move to the front; false (and nothing changes) when
    /// the first segment is shorter, or without headroom.
    #[inline]
    #[must_use]
    pub fn insert(&mut self, at: usize, bytes: &[u8]) -> bool {
        let count = bytes.len();
        if at > self.segment_length() || !self.push(count) {
            return false;
        }
        let all = self.bytes_mut();
        all.copy_within(count..count + at, 0);
        all[at..at + count].copy_from_slice(bytes);
        true
    }

    /// Take the `count` bytes behind the first `at` bytes out; false (and nothing changes) when the first
    /// segment is shorter.
    #[inline]
    #[must_use]
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        if at + count > self.segment_length() {
            return false;
        }
        self.bytes_mut().copy_within(..at, count);
        self.pull(count)
    }

    /// Put a header of at most 16 bytes in front: `block` holds it right-aligned, and all 16 bytes
    /// are written ending where the packet begins (what stood there is headroom). Two instructions
    /// on the plain path. False without headroom.
    #[inline(always)]
    #[must_use]
    pub fn push_block16(&mut self, block: &[u8; 16], count: usize) -> bool {
        debug_assert!(count <= 16);
        if self.headroom() < 16 {
            return false;
        }
        // SAFETY: at least 16 bytes of headroom lie in front of the data.
        unsafe { self.data().sub(16).cast::<[u8; 16]>().write_unaligned(*block) };
        self.grow_front(count);
        true
    }

    /// `count` bytes more in front, of a headroom that has them. The length cannot overflow: offset
    /// and length together stay inside a buffer, whose size fits.
    #[inline(always)]
    fn grow_front(&mut self, count: usize) {
        debug_assert!(count <= self.headroom());
        self.offset -= count as u16;
        self.length += count as u16;
        if self.is_chained() {
            self.header_line_mut().total_length += count as u32;
        }
    }

    /// As [`push_block16`](Self::push_block16), for up to 32 bytes.
    #[inline(always)]
    #[must_use]
    pub fn push_block32(&mut self, block: &[u8; 32], count: usize) -> bool {
        debug_assert!(count <= 32);
        if self.headroom() < 32 {
            return false;
        }
        // SAFETY: at least 32 bytes of headroom lie in front of the data.
        unsafe { self.data().sub(32).cast::<[u8; 32]>().write_unaligned(*block) };
        self.grow_front(count);
        true
    }

    /// Put a header of `count` bytes in front that `blocks` hold right-aligned: all of them are written, ending
    /// where the packet begins (what stood before the header is headroom). Two to seven blocks, which the
    /// headers of tunnels fill, are moved without a loop. False (and nothing changes) without headroom for all
    /// blocks.
    #[inline(always)]
    #[must_use]
    pub fn push_blocks(&mut self, blocks: &[[u8; 32]], count: usize) -> bool {
        debug_assert!(count <= size_of_val(blocks));
        if self.headroom() < size_of_val(blocks) {
            return false;
        }
        // SAFETY: so many bytes of headroom lie in front of the data.
        let to = unsafe { self.data().sub(size_of_val(blocks)) };
        macro_rules! moved {
            ($($blocks:literal)+) => {
                match blocks.len() {
                    $($blocks => if let Some(whole) = blocks.first_chunk::<$blocks>() {
                        // SAFETY: as above, and these are all the blocks.
                        unsafe { to.cast::<[[u8; 32]; $blocks]>().write_unaligned(*whole) };
                    })+
                    _ => for (place, block) in blocks.iter().enumerate() {
                        // SAFETY: as above; `place` is below the number of blocks.
                        unsafe { to.cast::<[u8; 32]>().add(place).write_unaligned(*block) };
                    },
                }
            };
        }
        moved!(2 3 4 5 6 7);
        self.grow_front(count);
        true
    }

    /// Put two headers in front: one of `count` bytes that `blocks` hold right-aligned, and before it one of
    /// `outer_count` bytes that `outer` holds right-aligned. Bytes before them that are headroom may be written.
    /// False (and nothing changes) without headroom, or where a header is longer than what holds it.
    #[inline(always)]
    #[must_use]
    pub fn push_two<const BLOCKS: usize>(
        &mut self,
        blocks: &[[u8; 32]; BLOCKS],
        count: usize,
        outer: &[u8; 32],
        outer_count: usize,
    ) -> bool {
        let is_whole = (count <= size_of_val(blocks)) & (outer_count <= outer.len());
        if !is_whole | (self.headroom() < size_of_val(blocks) + outer.len()) {
            return self.push_two_exactly(blocks.as_flattened(), count, outer, outer_count);
        }
        // SAFETY: so many bytes of headroom lie in front of the data.
        unsafe {
            self.data().sub(size_of_val(blocks)).cast::<[[u8; 32]; BLOCKS]>().write_unaligned(*blocks);
        }
        // SAFETY: as above: the first header is at most as long as its blocks, which was asked.
        unsafe { self.data().sub(count + outer.len()).cast::<[u8; 32]>().write_unaligned(*outer) };
        self.grow_front(count + outer_count);
        true
    }

    /// As [`push_two`](Self::push_two), where there is little headroom or a header cannot be.
    #[cold]
    #[inline(never)]
    fn push_two_exactly(&mut self, inner: &[u8], count: usize, outer: &[u8; 32], outer_count: usize) -> bool {
        let (Some(inner_from), Some(outer_from)) =
            (inner.len().checked_sub(count), outer.len().checked_sub(outer_count))
        else {
            return false;
        };
        let both = count + outer_count;
        if !self.push(both) {
            return false;
        }
        let (first, second) = self.bytes_mut()[..both].split_at_mut(outer_count);
        first.copy_from_slice(&outer[outer_from..]);
        second.copy_from_slice(&inner[inner_from..]);
        true
    }

    /// Room behind the bytes of an unchained packet.
    #[inline]
    pub fn tailroom(&self, data_bytes: usize) -> usize {
        (DATA_OFFSET as usize + data_bytes) - (self.offset as usize + self.length as usize)
    }

    /// Set the length of an unchained packet; the new bytes are as they lie in the buffer. False
    /// when the buffer (of `data_bytes`) is too short or the packet is chained.
    #[inline]
    #[must_use]
    pub fn set_length(&mut self, length: usize, data_bytes: usize) -> bool {
        if self.is_chained() || self.offset as usize + length > DATA_OFFSET as usize + data_bytes {
            return false;
        }
        self.length = length as u16;
        true
    }

    /// Begin to walk an arc.
    #[inline(always)]
    pub fn arc_restart(&mut self) {
        self.arc_place = 0;
    }

    /// Is `flag` set?
    #[inline(always)]
    pub fn has(&self, flag: PacketFlags) -> bool {
        self.flags.has(flag)
    }

    /// Is none of `flags` set? One test for everything that makes a packet unusual.
    #[inline(always)]
    pub fn has_none(&self, flags: PacketFlags) -> bool {
        self.flags.0 & flags.0 == 0
    }

    /// Set `flag`.
    #[inline(always)]
    pub fn set(&mut self, flag: PacketFlags) {
        self.flags.0 |= flag.0;
    }

    /// Clear `flag`.
    #[inline(always)]
    pub fn clear(&mut self, flag: PacketFlags) {
        self.flags.0 &= !flag.0;
    }

    /// Do its bytes lie in more than one buffer?
    #[inline(always)]
    pub fn is_chained(&self) -> bool {
        self.has(PacketFlags::CHAINED)
    }

    /// Count one more turn through the graph; false when it went round too often.
    #[inline(always)]
    #[must_use]
    pub fn turn(&mut self) -> bool {
        self.turns += 1;
        self.turns & !CARRIED <= TURNS_MAX
    }

    /// It came in another packet, which the router has taken off: who sent it is not known behind the interface where
    /// that one came in.
    #[inline(always)]
    pub fn set_carried(&mut self) {
        self.turns |= CARRIED;
    }

    /// Did it come in another packet? It is not said a second time.
    #[must_use]
    pub fn take_carried(&mut self) -> bool {
        let carried = self.turns & CARRIED != 0;
        self.turns &= !CARRIED;
        carried
    }

    /// A packet made in place out of this one (a reply, an error) starts afresh.
    pub fn become_own(&mut self) {
        self.turns = 0;
        self.arc_place = 0;
        self.hash = 0;
        self.clear(PacketFlags(PacketFlags::L2_GROUP.0 | PacketFlags::OFFLOAD.0 | PacketFlags::NOTED.0));
        self.set(PacketFlags::OWN);
    }

    #[inline(always)]
    pub(crate) fn header_line(&self) -> &BufferHeader {
        // SAFETY: the packet owns its buffer.
        unsafe { line_of(self.buffer).as_ref() }
    }

    #[inline(always)]
    pub(crate) fn header_line_mut(&mut self) -> &mut BufferHeader {
        // SAFETY: the packet owns its buffer, and `&mut self`.
        unsafe { line_of(self.buffer).as_mut() }
    }

    /// What is left to whoever transmits; meaningful with [`PacketFlags::OFFLOAD`].
    pub fn offload(&self) -> &Offload {
        &self.header_line().offload
    }

    /// Set what is left to whoever transmits, and set [`PacketFlags::OFFLOAD`] too.
    pub fn offload_mut(&mut self) -> &mut Offload {
        &mut self.header_line_mut().offload
    }

    /// What a node before has found out about the packet that its bytes do not say (a later fragment's
    /// ports). What it means is between who writes and who reads.
    pub fn note(&self) -> Option<&[u8; NOTE_BYTES]> {
        self.has(PacketFlags::NOTED).then(|| &self.header_line().note)
    }

    /// Write such a note.
    pub fn set_note(&mut self, note: [u8; NOTE_BYTES]) {
        self.header_line_mut().note = note;
        self.set(PacketFlags::NOTED);
    }

    /// Where the bytes begin inside `memory` and how many are in the first segment, for a driver
    /// that shares the pool's memory with a peer.
    pub fn place_in(&self, memory: &crate::memory::SharedMemory) -> (usize, usize) {
        (self.data() as usize - memory.base().as_ptr() as usize, self.length as usize)
    }

    /// For drivers: set where the bytes of a fresh, unchained packet begin (counted from the
    /// buffer's first byte) and how many there are; false when that is outside a buffer of
    /// `data_bytes`.
    #[must_use]
    pub fn set_span(&mut self, offset: u16, length: u16, data_bytes: usize) -> bool {
        let end = offset as usize + length as usize;
        if end > DATA_OFFSET as usize + data_bytes {
            return false;
        }
        self.offset = offset;
        self.length = length;
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::PageSize;

    fn cache() -> BufferCache {
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache()
    }

    #[test]
    fn what_is_pulled_comes_back_when_pushed() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(b"ethernet+ip", &mut cache));
        assert!(packet.pull(9));
        assert_eq!(packet.bytes(), b"ip");
        assert!(packet.push(9));
        assert_eq!(packet.bytes(), b"ethernet+ip");
        assert!(!packet.pull(12));
        assert!(!packet.push(1000));
        cache.free(packet);
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn a_header_in_blocks_ends_where_the_packet_begins() {
        let mut cache = cache();
        for count in [0usize, 1, 31, 32, 40, 80, 129, 224, 256] {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(b"behind", &mut cache));
            let header: Vec<u8> = (0..count).map(|at| at as u8).collect();
            let mut blocks = vec![[0xaa; 32]; count.div_ceil(32)];
            let pad = blocks.len() * 32 - count;
            blocks.as_flattened_mut()[pad..].copy_from_slice(&header);
            assert!(packet.push_blocks(&blocks, count));
            assert_eq!(packet.bytes(), [&header[..], b"behind"].concat());
            assert!(!packet.push_blocks(&[[0; 32]; 9], 257));
            cache.free(packet);
        }
    }

    #[test]
    fn two_headers_go_in_front_at_once_with_much_headroom_and_with_little() {
        let mut cache = cache();
        let outer: [u8; 32] = std::array::from_fn(|at| at as u8);
        let counts = [40, 80, 96].into_iter();
        for (count, room) in counts.flat_map(|count| [0, 140, 250 - count].map(|room| (count, room))) {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(b"behind", &mut cache) && packet.push(room));
            packet.bytes_mut()[..room].fill(7);
            let before = packet.bytes().to_vec();
            let header: Vec<u8> = (0..count as u8).collect();
            let mut blocks = [[0; 32]; 3];
            blocks.as_flattened_mut()[96 - count..].copy_from_slice(&header);
            for outer_count in [14, 18] {
                let fits = packet.headroom() >= count + outer_count;
                assert_eq!(packet.push_two(&blocks, count, &outer, outer_count), fits);
                let expected = [&outer[32 - outer_count..], &header, &before].concat();
                assert_eq!(packet.bytes(), if fits { &expected } else { &before });
                assert!(!fits || packet.pull(count + outer_count));
            }
            assert!(
                !packet.push_two(&blocks, 97, &outer, 14) && !packet.push_two(&blocks, count, &outer, 33)
            );
            assert_eq!(packet.bytes(), before);
            cache.free(packet);
        }
    }

    #[test]
    fn what_is_inserted_behind_the_first_bytes_is_removed_again() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(b"addresses+type", &mut cache));
        assert!(packet.insert(9, b"tag"));
        assert_eq!(packet.bytes(), b"addressestag+type");
        assert!(packet.remove(9, 3));
        assert_eq!(packet.bytes(), b"addresses+type");
        assert!(!packet.remove(9, 6) && !packet.insert(15, b"tag") && !packet.insert(0, &[0; 1000]));
        assert_eq!(packet.bytes(), b"addresses+type");
        cache.free(packet);
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
    fn packets_that_are_joined_are_one_with_all_bytes_in_order() {
        let mut cache = cache();
        let bytes: Vec<u8> = (0..20_000).map(|i| (i / 3) as u8).collect();
        for cuts in [vec![0, 20_000], vec![0, 8, 2048, 9000, 20_000], vec![0, 5000, 5008, 20_000]] {
            let parts: Vec<Packet> = cuts
                .windows(2)
                .map(|ends| {
                    let mut part = cache.packet().expect("buffer");
                    assert!(
                        part.append(b"head", &mut cache) && part.append(&bytes[ends[0]..ends[1]], &mut cache)
                    );
                    assert!(part.pull(4));
                    part
                })
                .collect();
            let buffers: usize = parts.iter().map(Packet::buffer_count).sum();
            let whole = parts.into_iter().rev().reduce(|tail, mut part| {
                part.join(tail);
                part
            });
            let whole = whole.expect("parts");
            let mut seen = Vec::new();
            whole.copy_to(&mut seen);
            assert!(seen == bytes && whole.length() == bytes.len() && whole.buffer_count() == buffers);
            cache.free(whole);
        }
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn a_note_goes_with_copies_and_ends_when_the_packet_becomes_another() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert_eq!(packet.note(), None);
        packet.set_note([7; NOTE_BYTES]);
        let copy = packet.duplicate(&mut cache).expect("copy");
        packet.become_own();
        assert_eq!((packet.note(), copy.note()), (None, Some(&[7; NOTE_BYTES])));
        cache.free(packet);
        cache.free(copy);
    }

    #[test]
    fn an_empty_pool_refuses_and_keeps_what_fitted() {
        let mut cache = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(!packet.append(&vec![7; 2048 * 200], &mut cache));
        assert_eq!(packet.length(), 2048 * 128);
        assert!(cache.take().is_none());
        cache.free(packet);
        cache.report();
        assert_eq!(cache.pool().free(), 128);
    }
}
