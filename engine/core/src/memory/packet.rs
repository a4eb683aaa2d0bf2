//! A packet: an owned handle of 32 bytes that travels in the vector. Its buffer's own header line
//! is touched only off the plain path (chains, traces, offloads).
#![allow(unsafe_code)]

mod front;
pub mod handover;
mod segments;

use std::ptr::NonNull;

use crate::ids::InterfaceId;
use crate::memory::buffer::{Buffer, BufferHeader, DATA_OFFSET, Offload};
pub use crate::memory::header_line::NOTE_BYTES;
use crate::memory::header_line::line_of;

/// Recirculations a packet survives: look-ups in further tables, tunnels in tunnels.
pub const TURNS_MAX: u8 = 15;

/// The bits of [`Packet::turns`](Packet::turn) that hold the count.
const TURNS: u8 = 0x0f;
/// The bit that says that it came in another packet.
const CARRIED: u8 = 0x80;
/// The bit that says that the header line holds the packet's age ([`crate::graph::visits`]).
const COUNTED: u8 = 0x40;
/// The bit that says that the packet is a copy.
const COPY: u8 = 0x20;
/// The bit that says that the header line holds the packet's class ([`Packet::class`]).
const CLASSED: u8 = 0x10;

const _: () = assert!(TURNS_MAX <= TURNS);

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
    pub const LOCALLY_ORIGINATED: PacketFlags = PacketFlags(8);
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
    pub const fn union(self, other: PacketFlags) -> PacketFlags {
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
    /// Recirculations, and how the packet came about.
    turns: u8,
    /// Bytes of layer 2 header that were in front of the bytes when it was received.
    pub l2_bytes: u8,
    /// Where it came in.
    pub rx: InterfaceId,
    /// Where it goes out, for the features of `interface-output`.
    pub tx: InterfaceId,
    /// What the node before hands over to the node behind ([`Handover`](handover::Handover)).
    index: u32,
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
        let mut packet = Packet {
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
        };
        packet.note_kind(None);
        packet
    }

    /// Give up the packet for its first buffer. Further segments must have been taken care of.
    #[inline]
    pub(crate) fn into_buffer(self) -> Buffer {
        Buffer(self.buffer)
    }

    /// Where its first buffer begins.
    #[inline(always)]
    pub(crate) fn buffer_address(&self) -> usize {
        self.buffer.as_ptr() as usize
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
        crate::cpu::prefetch(self.data().wrapping_add(crate::memory::buffer::CACHE_LINE_BYTES));
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
        if self.is_chained() {
            self.header_line().total_length as usize
        } else {
            self.length as usize
        }
    }

    /// Bytes that can still be put in front.
    #[inline(always)]
    pub fn headroom(&self) -> usize {
        self.offset as usize
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

    /// May it go round once more?
    #[inline(always)]
    pub fn may_turn(&self) -> bool {
        self.turns & TURNS < TURNS_MAX
    }

    /// Count one more turn through the graph; false when it went round too often.
    #[inline(always)]
    #[must_use]
    pub fn turn(&mut self) -> bool {
        let may = self.may_turn();
        self.turns += u8::from(may);
        may
    }

    /// Does the header line hold its age?
    #[inline(always)]
    pub(crate) fn is_counted(&self) -> bool {
        self.turns & COUNTED != 0
    }

    /// It does from now on.
    #[inline(always)]
    pub(crate) fn set_counted(&mut self) {
        self.turns |= COUNTED;
    }

    /// Is it a copy of another packet?
    #[inline(always)]
    pub(crate) fn is_copy(&self) -> bool {
        self.turns & COPY != 0
    }

    /// It is.
    #[inline(always)]
    pub(crate) fn set_copy(&mut self) {
        self.turns |= COPY;
    }

    /// It came in another packet, which the router has taken off: who sent it is not known behind
    /// the interface where that one came in.
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

    /// A packet made in place out of this one (a reply, an error) starts afresh, but it is as old
    /// as this one.
    pub fn become_own(&mut self) {
        self.turns &= COUNTED | COPY;
        self.arc_place = 0;
        self.hash = 0;
        self.clear(PacketFlags(
            PacketFlags::L2_GROUP.0 | PacketFlags::OFFLOAD.0 | PacketFlags::NOTED.0,
        ));
        self.set(PacketFlags::LOCALLY_ORIGINATED);
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

    /// Work left to the transmitting device; meaningful with [`PacketFlags::OFFLOAD`].
    pub fn offload(&self) -> &Offload {
        &self.header_line().offload
    }

    /// Set the work left to the transmitting device, and set [`PacketFlags::OFFLOAD`] too.
    pub fn offload_mut(&mut self) -> &mut Offload {
        &mut self.header_line_mut().offload
    }

    /// It got an IP header of a tunnel in front.
    #[inline(always)]
    pub fn note_encapsulated(&mut self) {
        if self.has(PacketFlags::OFFLOAD) {
            self.add_encapsulations(1);
        }
    }

    /// It lost an IP header of a tunnel.
    #[inline(always)]
    pub fn note_decapsulated(&mut self) {
        if self.has(PacketFlags::OFFLOAD) {
            self.add_encapsulations(-1);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_encapsulations(&mut self, more: i8) {
        let offload = self.offload_mut();
        offload.encapsulations = offload.encapsulations.saturating_add_signed(more);
    }

    /// Does it stand for several packets in packets?
    pub(crate) fn is_nested_super_frame(&self) -> bool {
        self.has(PacketFlags::OFFLOAD)
            && self.offload().segment_bytes != 0
            && self.offload().encapsulations != 0
    }

    /// How many packets on a wire it stands for, and their bytes in all.
    #[inline(always)]
    pub fn on_wire(&self) -> (u64, u64) {
        let length = self.length() as u64;
        if !self.has(PacketFlags::OFFLOAD) || self.offload().segment_bytes == 0 {
            return (1, length);
        }
        self.segments_on_wire(length)
    }

    #[cold]
    fn segments_on_wire(&self, length: u64) -> (u64, u64) {
        let Offload { segment_bytes, payload_bytes, .. } = *self.offload();
        let packets = u64::from(payload_bytes.div_ceil(segment_bytes)).max(1);
        let headers = length.saturating_sub(payload_bytes.into());
        (packets, length + (packets - 1) * headers)
    }

    /// Bytes of the longest packet on a wire that it stands for.
    pub fn longest_on_wire(&self) -> usize {
        let length = self.length();
        if !self.has(PacketFlags::OFFLOAD) || self.offload().segment_bytes == 0 {
            return length;
        }
        let Offload { segment_bytes, payload_bytes, .. } = *self.offload();
        length.saturating_sub(payload_bytes.saturating_sub(segment_bytes).into())
    }

    /// What a node before has found out about the packet that its bytes do not say (a later
    /// fragment's ports). What it means is between who writes and who reads.
    pub fn note(&self) -> Option<&[u8; NOTE_BYTES]> {
        self.has(PacketFlags::NOTED).then(|| &self.header_line().note)
    }

    /// Write such a note.
    pub fn set_note(&mut self, note: [u8; NOTE_BYTES]) {
        self.header_line_mut().note = note;
        self.set(PacketFlags::NOTED);
    }

    /// The class of service that was recorded for the packet, wherever its header has been since.
    /// What the number means is between the node that records it and the one that reads it.
    #[inline]
    pub fn class(&self) -> Option<u16> {
        (self.turns & CLASSED != 0).then(|| self.header_line().class)
    }

    /// Record such a class.
    #[inline]
    pub fn set_class(&mut self, class: u16) {
        self.header_line_mut().class = class;
        self.turns |= CLASSED;
    }

    /// Where the bytes begin inside `memory` and how many are in the first segment, for a driver
    /// that shares the pool's memory with a peer.
    pub fn place_in(&self, memory: &crate::memory::mapping::SharedMemory) -> (usize, usize) {
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
    use crate::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::mapping::PageSize;

    fn cache() -> BufferCache {
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache()
    }

    #[test]
    fn a_class_goes_with_copies_and_ends_when_the_packet_becomes_another() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert_eq!(packet.class(), None);
        packet.set_class(0x32e);
        assert!(
            (0..TURNS_MAX).all(|_| packet.turn()) && !packet.turn(),
            "turns are counted beside"
        );
        let copy = packet.duplicate(&mut cache).expect("copy");
        packet.become_own();
        assert_eq!((packet.class(), copy.class()), (None, Some(0x32e)));
        cache.free(packet);
        cache.free(copy);
        let fresh = cache.packet().expect("buffer");
        assert_eq!(fresh.class(), None, "the next packet in the buffer has none");
        cache.free(fresh);
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
}
