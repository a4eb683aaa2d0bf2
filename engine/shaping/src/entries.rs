//! Packets that wait: 16 bytes each beside the packet itself. A flow's packets are a ring of
//! links, of which the flow knows the last.

use crate::NONE;

/// Of a packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub since_ns: u64,
    /// The next packet of the flow, or the next free place.
    pub next: u32,
    /// Bytes that it counts.
    pub bytes: u32,
}

/// Places for packets.
#[derive(Debug)]
pub(crate) struct Entries<T> {
    items: Box<[Option<T>]>,
    links: Box<[Link]>,
    free: u32,
}

impl<T> Entries<T> {
    pub fn new(count: usize) -> Entries<T> {
        let next = |place: usize| if place + 1 < count { place as u32 + 1 } else { NONE };
        let link = |place| Link { since_ns: 0, next: next(place), bytes: 0 };
        Entries {
            items: (0..count).map(|_| None).collect(),
            links: (0..count).map(link).collect(),
            free: if count > 0 { 0 } else { NONE },
        }
    }

    /// Put a packet behind the last one of a ring; the ring's new last.
    pub fn push(&mut self, last: u32, item: T, since_ns: u64, bytes: u32) -> Result<u32, T> {
        let place = self.free;
        if place == NONE {
            return Err(item);
        }
        let at = place as usize;
        self.free = self.links[at].next;
        let next = match last {
            NONE => place,
            last => std::mem::replace(&mut self.links[last as usize].next, place),
        };
        self.links[at] = Link { since_ns, next, bytes };
        self.items[at] = Some(item);
        Ok(place)
    }

    /// Take the first packet of a ring out; the ring's new last.
    pub fn pop(&mut self, last: u32) -> Option<(T, Link, u32)> {
        if last == NONE {
            return None;
        }
        let first = self.links[last as usize].next;
        let link = self.links[first as usize];
        let item = self.items[first as usize].take()?;
        let new_last = if first == last { NONE } else { last };
        if new_last != NONE {
            self.links[last as usize].next = link.next;
        }
        self.links[first as usize].next = self.free;
        self.free = first;
        Some((item, link, new_last))
    }
}
