//! A vector whose packets go to several nodes, taken apart node by node.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::{FRAME_PACKETS_MAX, Frame, Marks};
use crate::block::{BLOCK_PACKETS, Mask};
use crate::graph::order::Order;
use crate::ids::NodeId;
use crate::memory::packet::Packet;

/// The packets of a vector on their way into others, those that go to one node together.
pub(crate) struct Sorting<'f> {
    packets: &'f [MaybeUninit<Packet>; FRAME_PACKETS_MAX],
    next: &'f [NodeId; FRAME_PACKETS_MAX],
    /// The packets that have not been given out.
    left: Marks,
    /// Packets that were in the vector.
    count: usize,
}

/// Packets of a vector that go to one node, and have not been moved there yet.
pub(crate) struct Group<'s, 'f> {
    sorting: &'s Sorting<'f>,
    /// The node.
    pub(crate) next: NodeId,
    marks: Marks,
}

impl<'f> Sorting<'f> {
    /// Take all packets out of a vector that has decided for each. What is not taken from here is
    /// lost to the balance.
    pub(crate) fn new(frame: &'f mut Frame) -> Sorting<'f> {
        debug_assert!(frame.same_next.is_none());
        let length = std::mem::take(&mut frame.length);
        (frame.traced, frame.has_offload) = (false, false);
        let first = |count: usize| if count >= 64 { u64::MAX } else { (1 << count) - 1 };
        let word = |word: usize| first(length.saturating_sub(word * 64));
        let left = Marks(std::array::from_fn(word));
        Sorting { packets: &frame.packets, next: &frame.next, left, count: length }
    }

    /// The packets that go where the first one goes.
    #[inline]
    pub(crate) fn next_group(&mut self) -> Option<Group<'_, 'f>> {
        let first = self.left.first()?;
        let next = self.next[first];
        let mut marks = Marks::default();
        let (words, _) = self.next.as_chunks::<64>();
        for ((left, marks), nodes) in self.left.0.iter_mut().zip(&mut marks.0).zip(words) {
            if *left != 0 {
                *marks = places_of(next, nodes) & *left;
                *left &= !*marks;
            }
        }
        Some(Group { sorting: self, next, marks })
    }
}

impl Group<'_, '_> {
    /// Note the places of all packets of the vector, those that have been given out as well.
    #[cold]
    pub(crate) fn note_order(&self, order: &mut Order) {
        let Sorting { packets, count, .. } = self.sorting;
        // SAFETY: these places were initialised when the vector was taken apart, and nothing writes
        // to them while it is lent. The buffers of packets that were given out are no longer owned
        // here: `note` reads the handles alone.
        order.note(unsafe { std::slice::from_raw_parts(packets.as_ptr().cast(), *count) });
    }

    /// Are all of them moved?
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        !self.marks.any()
    }

    /// Move packets to the end of `to`, until none is left or it is full; `look` at each before.
    #[inline]
    pub(crate) fn move_to(&mut self, to: &mut Frame, mut look: impl FnMut(&mut Packet)) {
        for (base, word) in (0..FRAME_PACKETS_MAX).step_by(64).zip(&mut self.marks.0) {
            while *word != 0 && to.length < FRAME_PACKETS_MAX {
                let place = base + word.trailing_zeros() as usize;
                *word &= *word - 1;
                // SAFETY: the place was initialised when the vector was taken apart, and is read
                // once: its mark was in one group alone, and is gone now.
                let mut packet = unsafe { self.sorting.packets[place].assume_init_read() };
                look(&mut packet);
                to.packets[to.length].write(packet);
                to.length += 1;
            }
        }
    }

    /// Take the packets that are left, one by one.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Packet)) {
        for place in (0..FRAME_PACKETS_MAX).filter(|place| self.marks.has(*place)) {
            // SAFETY: as in `move_to`; the marks are gone below.
            each(unsafe { self.sorting.packets[place].assume_init_read() });
        }
        self.marks = Marks::default();
    }
}

/// Which of a block's nodes are `wanted`.
#[inline(always)]
pub(crate) fn block_places_of(wanted: NodeId, nodes: &[NodeId; BLOCK_PACKETS]) -> Mask {
    let (words, _) = nodes.as_chunks::<64>();
    words.iter().rev().fold(0, |all, nodes| all << 64 | Mask::from(places_of(wanted, nodes)))
}

/// Which of the nodes are `wanted`.
#[inline(always)]
fn places_of(wanted: NodeId, nodes: &[NodeId; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let mut places = 0;
        for (at, nodes) in nodes.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: every x86-64 has SSE2; the loads are of 16 bytes inside of 32, of any
            // alignment.
            let found = unsafe {
                let wanted = _mm_set1_epi16(wanted.0.cast_signed());
                let low = _mm_loadu_si128(nodes.as_ptr().cast());
                let high = _mm_loadu_si128(nodes.as_ptr().add(8).cast());
                let equal =
                    _mm_packs_epi16(_mm_cmpeq_epi16(low, wanted), _mm_cmpeq_epi16(high, wanted));
                _mm_movemask_epi8(equal)
            };
            places |= (found as u64 & 0xffff) << (at * 16);
        }
        places
    }
    #[cfg(not(target_arch = "x86_64"))]
    nodes.iter().enumerate().fold(0, |places, (at, node)| places | u64::from(*node == wanted) << at)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::{BufferCache, BufferPool};
    use crate::memory::mapping::PageSize;
    use crate::memory::packet::handover::Label;

    /// A vector whose packets are numbered in their index, and go where `nexts` say.
    fn frame(cache: &mut BufferCache, nexts: &[u16]) -> Box<Frame> {
        let mut frame = Frame::new();
        for index in 0..nexts.len() as u32 {
            let mut packet = cache.packet().expect("a buffer");
            packet.hand_over(Label(index));
            frame.push(packet).expect("room");
        }
        let (_, next) = frame.split_mut();
        next.iter_mut().zip(nexts).for_each(|(next, wanted)| *next = NodeId(*wanted));
        frame
    }

    #[test]
    fn every_packet_goes_where_it_was_sent_and_in_its_order() {
        let pool = BufferPool::new(2048, 2048, PageSize::Small).expect("memory");
        let mut cache = pool.cache();
        for (length, nodes) in [(1, 1), (63, 2), (64, 3), (65, 7), (200, 255), (256, 2), (256, 256)]
        {
            let nexts: Vec<u16> = (0..length)
                .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 7) as u16 % nodes)
                .collect();
            let mut whole = frame(&mut cache, &nexts);
            let mut sorting = Sorting::new(&mut whole);
            let (mut seen, mut groups) = (0, 0);
            while let Some(mut group) = sorting.next_group() {
                let mut to = Frame::new();
                let next = group.next;
                group.move_to(&mut to, |_| {});
                assert!(group.is_empty());
                let wanted: Vec<u32> =
                    (0..length).filter(|n| nexts[*n as usize] == next.0).collect();
                assert_eq!(
                    to.packets().iter().map(|packet| packet.index()).collect::<Vec<_>>(),
                    wanted
                );
                seen += to.len();
                groups += 1;
                to.drain().for_each(|packet| cache.free(packet));
            }
            let distinct: std::collections::BTreeSet<u16> = nexts.iter().copied().collect();
            assert_eq!((seen, groups), (length as usize, distinct.len()));
        }
    }

    #[test]
    fn what_does_not_fit_is_left_in_the_group() {
        let pool = BufferPool::new(2048, 2048, PageSize::Small).expect("memory");
        let mut cache = pool.cache();
        let mut nearly_full = frame(&mut cache, &[7; 250]);
        let mut whole = frame(&mut cache, &[7; 20]);
        let mut sorting = Sorting::new(&mut whole);
        let mut group = sorting.next_group().expect("a group");
        group.move_to(&mut nearly_full, |_| {});
        assert_eq!((nearly_full.len(), group.is_empty()), (256, false));
        let mut left = Vec::new();
        group.drain(|packet| {
            left.push(packet.index());
            cache.free(packet);
        });
        assert_eq!(left, (6..20).collect::<Vec<u32>>());
        assert!(group.is_empty());
        nearly_full.drain().for_each(|packet| cache.free(packet));
    }
}
