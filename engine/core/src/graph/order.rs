//! The order of a flow of which some packets take a slow path ([`NodeSpec::slow_path`]).
//!
//! A slow path takes packets out of the middle of their flow, and what it sends on comes back
//! behind the rest. When a vector is divided so, the places of all its packets are noted by their
//! buffers. From then on vectors for devices wait until nothing else is left to run, and are sorted
//! by these places before they go.
//!
//! A vector that is not divided pays one test of a bool when it is taken from the queue.
//!
//! [`NodeSpec::slow_path`]: crate::graph::node::NodeSpec::slow_path

use crate::graph::frame::{FRAME_PACKETS_MAX, Frame};
use crate::memory::buffer::CACHE_LINE_BYTES;
use crate::memory::packet::Packet;

/// Packets whose places are noted at most: four vectors. Further ones are sent where they stand.
const PACKETS_MAX: u16 = 4 * FRAME_PACKETS_MAX as u16;
/// Entries of the table, of which half are free at least.
const ENTRIES: usize = 2 * PACKETS_MAX as usize;

/// A packet's place.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Where its first buffer begins; 0 = never used.
    buffer: usize,
    /// Entries of other generations are free.
    generation: u32,
    place: u16,
    /// Of a copy or a fragment. A buffer may have been freed and taken again since it was noted.
    is_copy: bool,
}

/// Places of packets in the order in which they came in: a hash table by the addresses of buffers.
pub(crate) struct Order {
    entries: Box<[Entry; ENTRIES]>,
    generation: u32,
    /// Entries of this generation.
    count: u16,
    /// The place that the next packet gets.
    next: u16,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order { entries: Box::new([Entry::default(); ENTRIES]), generation: 1, count: 0, next: 0 }
    }

    /// Forget all places.
    pub(crate) fn clear(&mut self) {
        if self.count == 0 {
            return;
        }
        (self.count, self.next) = (0, 0);
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.entries.fill(Entry::default());
            self.generation = 1;
        }
    }

    /// Packets come in this order. Those that have a place keep it.
    pub(crate) fn note(&mut self, packets: &[Packet]) {
        for packet in packets {
            let place = self.next;
            if self.find(packet).is_none() && self.put(packet, place) {
                self.next += 1;
            }
        }
    }

    /// `made` is a fragment of `original`, and has its place.
    pub(crate) fn follow(&mut self, made: &Packet, original: &Packet) {
        if let Some(place) = self.find(original) {
            self.put(made, place);
        }
    }

    /// Sort packets by their places. One without a place stays behind the one that it came behind.
    pub(crate) fn restore(&self, frame: &mut Frame) {
        let mut keys = [0; FRAME_PACKETS_MAX];
        let (mut place, mut is_sorted) = (0, true);
        for (index, (key, packet)) in keys.iter_mut().zip(frame.packets()).enumerate() {
            let noted = self.find(packet).unwrap_or(place);
            is_sorted &= noted >= place;
            place = noted;
            *key = u32::from(place) << 16 | index as u32;
        }
        if !is_sorted {
            let keys = &mut keys[..frame.len()];
            keys.sort_unstable();
            frame.arrange(keys.iter().map(|key| (key & 0xffff) as usize));
        }
    }

    /// A packet's place. A packet that was made meanwhile in the buffer of one that died has that
    /// one's.
    fn find(&self, packet: &Packet) -> Option<u16> {
        if self.count == 0 {
            return None;
        }
        let entry = &self.entries[self.entry_of(packet)?];
        (entry.generation == self.generation && entry.is_copy == packet.is_copy())
            .then_some(entry.place)
    }

    /// Note a place; false when there is no room.
    fn put(&mut self, packet: &Packet, place: u16) -> bool {
        let Some(at) = self.entry_of(packet).filter(|_| self.count < PACKETS_MAX) else {
            return false;
        };
        let entry = &mut self.entries[at];
        self.count += u16::from(entry.generation != self.generation);
        *entry = Entry {
            buffer: packet.buffer_address(),
            generation: self.generation,
            place,
            is_copy: packet.is_copy(),
        };
        true
    }

    /// The packet's entry, or the one that it would get.
    fn entry_of(&self, packet: &Packet) -> Option<usize> {
        const SHIFT: u32 = usize::BITS - ENTRIES.trailing_zeros();
        const GOLDEN_RATIO: usize = 0x9e37_79b9_7f4a_7c15;
        let buffer = packet.buffer_address();
        let first = (buffer / CACHE_LINE_BYTES).wrapping_mul(GOLDEN_RATIO) >> SHIFT;
        let mut places = (first..ENTRIES).chain(0..first);
        places.find(|at| {
            let entry = &self.entries[*at];
            entry.generation != self.generation || entry.buffer == buffer
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::BufferPool;
    use crate::memory::mapping::PageSize;
    use crate::memory::packet::handover::Label;

    fn indices(frame: &Frame) -> Vec<u32> {
        frame.packets().iter().map(|packet| packet.index()).collect()
    }

    #[test]
    fn packets_return_to_their_places_and_fragments_to_those_of_what_they_were_made_of() {
        let pool = BufferPool::new(2048, 2048, PageSize::Small).expect("memory");
        let mut cache = pool.cache();
        let mut frame = Frame::new();
        for index in 0..200 {
            let mut packet = cache.packet().expect("a buffer");
            packet.hand_over(Label(index));
            frame.push(packet).expect("room");
        }
        let mut order = Order::new();
        for _ in 0..3 {
            order.note(frame.packets());
            frame.arrange((0..200).rev().collect::<Vec<_>>().into_iter());
            assert_eq!(indices(&frame), (0..200).rev().collect::<Vec<_>>());
            order.note(frame.packets());
            order.restore(&mut frame);
            assert_eq!(indices(&frame), (0..200).collect::<Vec<_>>());
            order.clear();
            order.restore(&mut frame);
        }
        order.note(frame.packets());
        for at in [150, 7] {
            let mut fragment = frame.packets()[at].duplicate(&mut cache).expect("a buffer");
            fragment.hand_over(Label(1000 + at as u32));
            order.follow(&fragment, &frame.packets()[at]);
            frame.push(fragment).expect("room");
        }
        order.restore(&mut frame);
        let wanted = (0..=7).chain([1007]).chain(8..=150).chain([1150]).chain(151..200);
        assert_eq!(indices(&frame), wanted.collect::<Vec<_>>());
        frame.drain().for_each(|packet| cache.free(packet));
    }

    #[test]
    fn more_packets_than_have_room_stand_where_they_came() {
        let pool = BufferPool::new(4096, 2048, PageSize::Small).expect("memory");
        let mut cache = pool.cache();
        let packets: Vec<_> = (0..2000).map(|_| cache.packet().expect("a buffer")).collect();
        let mut order = Order::new();
        order.note(&packets);
        assert_eq!(
            (order.count, order.find(&packets[0]), order.find(&packets[1999])),
            (1024, Some(0), None)
        );
        packets.into_iter().for_each(|packet| cache.free(packet));
    }
}
