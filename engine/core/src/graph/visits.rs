//! The limit of visits: a packet that has visited so many nodes dies, whatever sends it round.
//!
//! Every vector has an age: the visits of the packet in it that has made most of them, plus what
//! that packet's copies count. A young vector costs one addition a visit. Only in an old one is
//! each packet counted by itself, in its buffer's private line, so that a packet that shares a
//! vector with one that circulates does not die of it.
//!
//! Ages are in parts of a visit, because a node may send packets to itself to go on with them later
//! (a frame to a thousand ports): such a turn counts as a part, so that it is bounded as well, and
//! long ones are possible.

use crate::graph::frame::Frame;
use crate::memory::header_line::BufferHeader;
use crate::memory::packet::Packet;

/// Visits of nodes after which a packet dies. The longest ways that a configuration makes on
/// purpose have about sixty.
pub const VISITS_MAX: u16 = 256;
/// Visits that a copy of a copy counts beside its own, so that packets that double on every round
/// end soon.
pub const VISITS_PER_COPY: u16 = 64;
/// Visits of a vector's oldest packet from which on each of its packets is counted by itself.
const VISITS_OLD: u16 = 64;
/// Parts of one visit. A node that sends a packet to itself adds one part.
const PARTS: u16 = 64;

/// Visits of nodes, in parts of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Age(u16);

impl Age {
    /// Of what has just come in.
    pub const NEW: Age = Age(0);
    const OLD: Age = Age(VISITS_OLD * PARTS);
    const MAX: Age = Age(VISITS_MAX * PARTS);

    /// One visit more; `again` when the node sent the packets to itself.
    #[inline(always)]
    pub fn after_visit(self, again: bool) -> Age {
        Age(self.0.saturating_add(if again { 1 } else { PARTS }))
    }

    /// Are packets counted one by one?
    #[inline(always)]
    pub fn is_old(self) -> bool {
        self > Age::OLD
    }

    /// Whole visits.
    #[cfg(test)]
    fn visits(self) -> u16 {
        self.0 / PARTS
    }
}

impl BufferHeader {
    /// The age of the packet that begins in this buffer, meaningful when the packet says so.
    fn age(&self) -> Age {
        Age(self.age_parts)
    }
}

impl Packet {
    /// The packet's own age, if it was ever noted.
    #[inline(always)]
    pub(crate) fn noted_age(&self) -> Age {
        if self.is_counted() { self.age_in_line() } else { Age::NEW }
    }

    #[cold]
    #[inline(never)]
    fn age_in_line(&self) -> Age {
        self.header_line().age()
    }

    /// Note that the packet is so old at least.
    #[cold]
    pub(crate) fn note_age(&mut self, age: Age) {
        let age = age.max(self.noted_age());
        self.header_line_mut().age_parts = age.0;
        self.set_counted();
    }

    /// It was made of this packet: a copy, or a fragment. Copies of copies grow old.
    #[inline]
    pub fn descend_from(&mut self, original: &Packet) {
        if original.is_copy() {
            self.note_age(Age(original.noted_age().0.saturating_add(VISITS_PER_COPY * PARTS)));
        } else if original.is_counted() {
            self.note_age(original.noted_age());
        }
        self.set_copy();
    }
}

impl Frame {
    /// Count a visit of a vector that is old, packet by packet; `each` gets those that have made
    /// too many. The vector is as old as the oldest of those that are left.
    #[cold]
    #[inline(never)]
    pub(crate) fn count_visits(&mut self, each: impl FnMut(Packet)) {
        let (mut oldest, mut dead, again) =
            (Age::NEW, crate::graph::frame::Marks::default(), self.again);
        for (place, packet) in self.packets_mut().iter_mut().enumerate() {
            let age = packet.noted_age().max(Age::OLD).after_visit(again);
            packet.note_age(age);
            if age > Age::MAX {
                dead.set(place);
            } else {
                oldest = oldest.max(age);
            }
        }
        self.age = oldest;
        if dead.any() {
            let mut each = each;
            self.take_marked(&dead, |_, packet, _| each(packet));
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
    fn a_packet_dies_after_its_own_visits_and_not_after_those_of_a_companion() {
        let mut cache = cache();
        let mut frame = Frame::new();
        assert!(frame.push(cache.packet().expect("buffer")).is_ok());
        let mut deaths = Vec::new();
        for visit in 1..=VISITS_MAX + VISITS_OLD {
            if visit == 200 {
                assert!(frame.push(cache.packet().expect("buffer")).is_ok());
            }
            frame.age = frame.age.after_visit(frame.again);
            if frame.age.is_old() {
                frame.count_visits(|packet| {
                    deaths.push(visit);
                    cache.free(packet);
                });
            }
        }
        // The young one counts as having made as many visits as a vector may make before anybody
        // looks.
        assert_eq!((deaths, frame.len()), (vec![VISITS_MAX + 1], 1));
        assert_eq!(frame.age.visits(), VISITS_OLD + VISITS_MAX + VISITS_OLD - 199);
        frame.drain().for_each(|packet| cache.free(packet));
    }

    #[test]
    fn a_turn_that_a_node_sends_to_itself_counts_as_a_part_of_a_visit() {
        let (mut age, mut turns) = (Age::NEW, 0u32);
        while age <= Age::MAX {
            age = age.after_visit(true);
            turns += 1;
        }
        assert_eq!(turns, u32::from(VISITS_MAX) * u32::from(PARTS) + 1);
        assert_eq!(Age(u16::MAX).after_visit(false), Age(u16::MAX), "it never begins anew");
    }

    #[test]
    fn copies_of_copies_grow_old() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        let mut generations = 0;
        while packet.noted_age() <= Age::MAX {
            let copy = packet.duplicate(&mut cache).expect("copy");
            cache.free(std::mem::replace(&mut packet, copy));
            generations += 1;
        }
        assert_eq!(generations, u32::from(VISITS_MAX / VISITS_PER_COPY) + 2);
        cache.free(packet);
    }

    #[test]
    fn what_a_packet_becomes_is_as_old_as_it_was() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        packet.note_age(Age(77));
        packet.become_own();
        assert_eq!(packet.noted_age(), Age(77));
        packet.note_age(Age(5));
        assert_eq!(packet.noted_age(), Age(77), "nobody grows younger");
        cache.free(packet);
    }
}
