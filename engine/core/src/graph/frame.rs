//! A vector of packets on its way between two nodes, and the loops that run over it.
#![allow(unsafe_code)]

mod sorting;

use std::mem::MaybeUninit;

use crate::graph::drop_reason::DropReason;
use crate::graph::node::{DROP, Reason};
use crate::graph::visits::Age;
use crate::ids::NodeId;
use crate::memory::packet::{Packet, PacketFlags};

pub(crate) use sorting::{Sorting, block_places_of};

/// Packets in a vector at most.
pub const FRAME_PACKETS_MAX: usize = 256;
/// How many packets ahead the first lines of packets are asked for.
pub const PREFETCH_AHEAD: usize = 8;

/// A set of places in a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks([u64; FRAME_PACKETS_MAX / 64]);

impl Marks {
    /// Mark a place.
    pub(crate) fn set(&mut self, place: usize) {
        self.0[place / 64 % 4] |= 1 << (place % 64);
    }

    /// Mark 64 places, from 64 × `block` on.
    #[inline(always)]
    pub fn set_word(&mut self, block: usize, marks: u64) {
        self.0[block % 4] = marks;
    }

    /// Is any place marked?
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.0 != [0; FRAME_PACKETS_MAX / 64]
    }

    /// The marks of 64 places, from 64 × `block` on.
    #[inline(always)]
    pub fn word(&self, block: usize) -> u64 {
        self.0[block % 4]
    }

    /// The first marked place.
    #[inline(always)]
    fn first(&self) -> Option<usize> {
        let (word, marks) = self.0.iter().enumerate().find(|(_, marks)| **marks != 0)?;
        Some(word * 64 + marks.trailing_zeros() as usize)
    }

    /// Is the place marked?
    pub fn has(&self, place: usize) -> bool {
        self.word(place / 64) >> (place % 64) & 1 != 0
    }
}

/// Up to 256 packets, and for each where it goes next.
#[repr(C, align(64))]
pub struct Frame {
    packets: [MaybeUninit<Packet>; FRAME_PACKETS_MAX],
    next: [NodeId; FRAME_PACKETS_MAX],
    length: usize,
    /// At least one packet may be traced.
    pub(crate) traced: bool,
    /// At least one packet may leave work to the transmitting device ([`OFFLOAD`]).
    ///
    /// [`OFFLOAD`]: crate::memory::packet::PacketFlags::OFFLOAD
    pub(crate) has_offload: bool,
    /// All packets came in by the same interface.
    same_rx: bool,
    /// The visits of the packet that has made most of them.
    pub(crate) age: Age,
    /// The node that it goes to has sent all of its packets there itself.
    pub(crate) again: bool,
    /// Where all packets go, when one decision was made for all; `next` is then not written.
    same_next: Option<NodeId>,
}

impl Frame {
    /// An empty vector.
    pub fn new() -> Box<Frame> {
        Box::new(Frame {
            packets: [const { MaybeUninit::uninit() }; FRAME_PACKETS_MAX],
            next: [NodeId(0); FRAME_PACKETS_MAX],
            length: 0,
            traced: false,
            has_offload: false,
            same_rx: false,
            age: Age::NEW,
            again: false,
            same_next: None,
        })
    }

    /// Packets in it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Nothing in it?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Room for how many more?
    #[inline(always)]
    pub fn room(&self) -> usize {
        FRAME_PACKETS_MAX - self.length
    }

    /// Did all packets come in by the same interface? Then one look at the first is enough.
    #[inline(always)]
    pub fn is_same_rx(&self) -> bool {
        self.same_rx
    }

    /// An input says that all packets it put in came by one interface.
    #[inline(always)]
    pub fn set_same_rx(&mut self, same: bool) {
        self.same_rx = same;
    }

    /// A node has changed where packets are said to come in: look again whether that is one
    /// interface.
    pub fn look_at_rx(&mut self) {
        let Some(first) = self.packets().first().map(|packet| packet.rx) else { return };
        self.same_rx =
            self.packets().iter().fold(0, |differing, packet| differing | packet.rx.0 ^ first.0)
                == 0;
    }

    /// The packets.
    #[inline(always)]
    pub fn packets(&self) -> &[Packet] {
        // SAFETY: the first `length` places are initialised.
        unsafe { std::slice::from_raw_parts(self.packets.as_ptr().cast(), self.length) }
    }

    /// The packets, to change.
    #[inline(always)]
    pub fn packets_mut(&mut self) -> &mut [Packet] {
        // SAFETY: the first `length` places are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.packets.as_mut_ptr().cast(), self.length) }
    }

    /// The packets and the next node of each, for nodes that run loops of their own.
    #[inline(always)]
    pub fn split_mut(&mut self) -> (&mut [Packet], &mut [NodeId]) {
        self.same_next = None;
        // SAFETY: the first `length` places are initialised.
        let packets = unsafe {
            std::slice::from_raw_parts_mut(self.packets.as_mut_ptr().cast(), self.length)
        };
        (packets, &mut self.next[..self.length])
    }

    /// The packets, and the next nodes of a full vector, for the block driver.
    #[inline(always)]
    pub(crate) fn parts_mut(&mut self) -> (&mut [Packet], &mut [NodeId; FRAME_PACKETS_MAX]) {
        self.same_next = None;
        // SAFETY: the first `length` places are initialised.
        let packets = unsafe {
            std::slice::from_raw_parts_mut(self.packets.as_mut_ptr().cast(), self.length)
        };
        (packets, &mut self.next)
    }

    /// Where the packet at `place` goes next.
    #[inline]
    pub fn next_of(&self, place: usize) -> NodeId {
        self.same_next.unwrap_or(self.next[place])
    }

    /// Send all packets to one node.
    #[inline]
    pub fn set_all_next(&mut self, next: NodeId) {
        self.same_next = Some(next);
    }

    /// An input has put in a packet that leaves work to the transmitting device.
    pub fn note_offload(&mut self) {
        self.has_offload = true;
    }

    /// Append a packet; it comes back when the vector is full.
    ///
    /// # Errors
    /// The vector is full; the packet comes back.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.length == FRAME_PACKETS_MAX {
            return Err(packet);
        }
        self.packets[self.length].write(packet);
        self.length += 1;
        Ok(())
    }

    /// Take the last packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: initialised, and not in the vector any more.
        Some(unsafe { self.packets[self.length].assume_init_read() })
    }

    /// Take all packets out, in order. What the iterator does not yield is lost to the balance, so
    /// exhaust it.
    #[inline(always)]
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = Packet> {
        let length = std::mem::take(&mut self.length);
        (self.traced, self.has_offload) = (false, false);
        self.same_next = None;
        // SAFETY: each initialised place is read once; the length is zero already.
        self.packets[..length].iter().map(|p| unsafe { p.assume_init_read() })
    }

    /// Take the first `count` packets out, in order, and move the rest to the front. Exhaust it.
    pub fn take_front(&mut self, count: usize, mut each: impl FnMut(Packet)) {
        let count = count.min(self.length);
        for place in &self.packets[..count] {
            // SAFETY: initialised; the places are overwritten or cut off below.
            each(unsafe { place.assume_init_read() });
        }
        // SAFETY: moves initialised places down inside the array.
        unsafe {
            let base = self.packets.as_mut_ptr();
            std::ptr::copy(base.add(count), base, self.length - count);
        }
        self.length -= count;
    }

    /// Take the marked packets out, with their places and where they go next; the others move up
    /// with where they go.
    pub(crate) fn take_marked(
        &mut self,
        marks: &Marks,
        mut each: impl FnMut(usize, Packet, NodeId),
    ) {
        let length = std::mem::take(&mut self.length);
        let mut kept = 0;
        for place in 0..length {
            // SAFETY: each initialised place is read once: it moves out, or down to a place that
            // was read before (or is the same).
            let packet = unsafe { self.packets[place].assume_init_read() };
            let next = self.next[place];
            if marks.has(place) {
                each(place, packet, next);
            } else {
                self.packets[kept].write(packet);
                self.next[kept] = next;
                kept += 1;
            }
        }
        self.length = kept;
    }

    /// Take out the packets that leave work to the transmitting device.
    #[cold]
    pub(crate) fn take_offloads(&mut self, mut each: impl FnMut(Packet)) {
        let mut marks = Marks::default();
        for (place, packet) in self.packets().iter().enumerate() {
            if packet.has(PacketFlags::OFFLOAD) {
                marks.set(place);
            }
        }
        self.take_marked(&marks, |_, packet, _| each(packet));
        self.has_offload = false;
    }

    /// Put the packets into another order: first the one at the first of these places, which are
    /// all places of the vector, each once.
    pub(crate) fn arrange(&mut self, places: impl ExactSizeIterator<Item = usize>) {
        assert_eq!(places.len(), self.length);
        let mut marks = Marks::default();
        let mut arranged = [const { MaybeUninit::<Packet>::uninit() }; FRAME_PACKETS_MAX];
        for (to, place) in arranged.iter_mut().zip(places) {
            assert!(place < self.length && !marks.has(place));
            marks.set(place);
            // SAFETY: an initialised place, which is read once; all are written below.
            to.write(unsafe { self.packets[place].assume_init_read() });
        }
        self.same_next = None;
        self.packets = arranged;
    }

    /// Move all packets of `other` behind ours. They must fit.
    #[inline]
    pub(crate) fn append(&mut self, other: &mut Frame) {
        assert!(other.length <= self.room());
        // SAFETY: room was checked; the places move and `other` forgets them.
        unsafe {
            let to = self.packets.as_mut_ptr().add(self.length);
            std::ptr::copy_nonoverlapping(other.packets.as_ptr(), to, other.length);
        }
        self.same_rx = self.same_rx
            && other.same_rx
            && self.packets().first().map(|p| p.rx) == other.packets().first().map(|p| p.rx);
        self.length += other.length;
        self.traced |= other.traced;
        self.has_offload |= other.has_offload;
        self.age = self.age.max(other.age);
        self.again &= other.again;
        other.length = 0;
        (other.traced, other.has_offload) = (false, false);
    }

    /// The node that all packets go to, if it is one and the same.
    #[inline]
    pub fn common_next(&self) -> Option<NodeId> {
        if self.same_next.is_some() {
            return self.same_next;
        }
        let next = &self.next[..self.length];
        let first = *next.first()?;
        // Without an early exit, so that the compiler compares many at a time.
        let differing = next.iter().fold(0u16, |all, n| all | (n.0 ^ first.0));
        (differing == 0).then_some(first)
    }

    /// Decide for each packet, in order. An error is a drop; its number goes with the packet.
    #[inline(always)]
    pub fn route<R: Reason>(&mut self, mut decide: impl FnMut(&mut Packet) -> Result<NodeId, R>) {
        let (packets, next) = self.split_mut();
        for (packet, next) in packets.iter_mut().zip(next) {
            *next = next_or_drop(decide(packet), packet);
        }
    }

    /// As [`route`](Self::route), asking for the first line of the packets to come: for the first
    /// node that looks into them.
    #[inline(always)]
    pub fn route_ahead<R: Reason>(
        &mut self,
        mut decide: impl FnMut(&mut Packet) -> Result<NodeId, R>,
    ) {
        let (packets, next) = self.split_mut();
        let length = packets.len();
        packets.iter().take(PREFETCH_AHEAD).for_each(Packet::prefetch);
        // `decide` stands here once: what stands twice is called, not inlined.
        for i in 0..length {
            if let Some(ahead) = packets.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            next[i] = next_or_drop(decide(&mut packets[i]), &mut packets[i]);
        }
    }

    /// Decide for up to `N` packets at a time: for look-ups and sums that gain from several at
    /// once. The closure gets `N` packets, and fewer only in the last group.
    #[inline(always)]
    pub fn route_groups<const N: usize>(
        &mut self,
        mut decide: impl FnMut(&mut [Packet], &mut [NodeId]),
    ) {
        let (packets, next) = self.split_mut();
        let mut groups = packets.chunks_exact_mut(N);
        let mut nexts = next.chunks_exact_mut(N);
        for (group, next) in (&mut groups).zip(&mut nexts) {
            decide(group, next);
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            decide(rest, nexts.into_remainder());
        }
    }
}

/// The next node of a decision: the one it names, or the drop node with the reason's number in the
/// packet.
#[inline(always)]
pub fn next_or_drop<R: Reason>(decision: Result<NodeId, R>, packet: &mut Packet) -> NodeId {
    match decision {
        Ok(next) => next,
        Err(reason) => {
            packet.hand_over(DropReason::new(reason));
            DROP
        }
    }
}
