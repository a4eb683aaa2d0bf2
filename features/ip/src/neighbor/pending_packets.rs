//! Where packets wait for a neighbour's MAC address: on the worker that met them, whole, the latest
//! few for each neighbour, in memory that was made beforehand.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use quiver_core::InterfaceId;

/// Packets that wait for one neighbour (RFC 4861 §7.2.2, RFC 1122 §2.3.2.2: at least the latest):
/// all fragments of 4,000 bytes. The oldest makes room.
pub const HELD_PER_NEIGHBOUR_MAX: usize = 3;
/// Neighbours that packets wait for in one node of one worker. The one waited for longest makes
/// room.
pub const HELD_NEIGHBOURS_MAX: usize = SETS * WAYS;
/// Buffers that all packets that wait lie in, to within a packet of each worker. Those waited for
/// longest make room.
pub const HELD_BUFFERS_MAX: usize = 1024;
/// What has waited so long goes on no more: its sender has sent another.
pub const HELD_FOR_NS: u64 = 4_000_000_000;

/// Sets of neighbours; which one is a neighbour's follows from its address.
const SETS: usize = 64;
/// Neighbours in a set.
const WAYS: usize = 8;

/// What all rooms hold together.
#[derive(Debug, Default)]
pub(crate) struct HeldCounts {
    packets: AtomicUsize,
    buffers: AtomicUsize,
    forgotten: AtomicU64,
}

impl HeldCounts {
    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.packets.load(Ordering::Relaxed)
    }

    /// Buffers that they lie in.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }

    /// Packets whose neighbour did not answer in time, or that had to make room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// Another one does not go on.
    pub fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, buffers: usize) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.buffers.fetch_add(buffers, Ordering::Relaxed);
    }

    fn leave(&self, buffers: usize) {
        self.packets.fetch_sub(1, Ordering::Relaxed);
        self.buffers.fetch_sub(buffers, Ordering::Relaxed);
    }
}

/// Whom a packet waits for: a neighbour's address on an interface.
pub(crate) type Awaited = (InterfaceId, IpAddr);

struct Waiting<P> {
    packet: P,
    buffers: usize,
}

/// What waits for one neighbour, the oldest first.
struct Place<P> {
    awaited: Awaited,
    since_ns: u64,
    waiting: [Option<Waiting<P>>; HELD_PER_NEIGHBOUR_MAX],
}

impl<P> Place<P> {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= HELD_FOR_NS
    }
}

/// What waited for a neighbour.
pub(crate) struct Taken<P> {
    /// The packets, in the order in which they came.
    pub packets: [Option<P>; HELD_PER_NEIGHBOUR_MAX],
    /// They have waited too long to go on.
    pub is_late: bool,
}

/// The packets that wait in one node of one worker.
pub(crate) struct PendingQueue<P> {
    places: Box<[Option<Place<P>>]>,
    /// Where the next one is looked for that makes room for others' packets.
    hand: usize,
    counts: Arc<HeldCounts>,
}

impl<P> PendingQueue<P> {
    /// An empty room (control thread).
    pub fn new(counts: &Arc<HeldCounts>) -> PendingQueue<P> {
        PendingQueue {
            places: (0..HELD_NEIGHBOURS_MAX).map(|_| None).collect(),
            hand: 0,
            counts: counts.clone(),
        }
    }

    fn set(hash: u64) -> std::ops::Range<usize> {
        let set = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SETS;
        set * WAYS..(set + 1) * WAYS
    }

    fn find(&self, awaited: Awaited, hash: u64) -> Option<usize> {
        let mut set = Self::set(hash);
        set.find(|place| self.places[*place].as_ref().is_some_and(|known| known.awaited == awaited))
    }

    /// Do packets wait for this neighbour, who will hear of it or be given up? `hash` is of
    /// `awaited`.
    pub fn waits_for(&self, awaited: Awaited, hash: u64, now_ns: u64) -> bool {
        let place = self.find(awaited, hash).and_then(|place| self.places[place].as_ref());
        place.is_some_and(|place| !place.is_over(now_ns))
    }

    /// Keep a packet of so many buffers. Those that make room go to `unlucky`; the packet itself
    /// comes back when there is no room for it.
    pub fn keep(
        &mut self,
        awaited: Awaited,
        hash: u64,
        now_ns: u64,
        (packet, buffers): (P, usize),
        mut unlucky: impl FnMut(P),
    ) -> Result<(), P> {
        let at = self.find(awaited, hash).unwrap_or_else(|| self.least_wanted(hash));
        let stays = self.places[at]
            .as_ref()
            .is_some_and(|old| old.awaited == awaited && !old.is_over(now_ns));
        if !stays {
            self.empty(at, &mut unlucky);
        }
        if self.places[at].as_ref().is_some_and(|place| place.waiting.iter().all(Option::is_some)) {
            self.drop_oldest(at, &mut unlucky);
        }
        if !self.make_room(at, buffers, &mut unlucky) {
            return Err(packet);
        }
        let place = self.places[at].get_or_insert_with(|| Place {
            awaited,
            since_ns: now_ns,
            waiting: [const { None }; HELD_PER_NEIGHBOUR_MAX],
        });
        let Some(free) = place.waiting.iter_mut().find(|waiting| waiting.is_none()) else {
            return Err(packet);
        };
        *free = Some(Waiting { packet, buffers });
        self.counts.enter(buffers);
        Ok(())
    }

    /// The place of a set for another neighbour: a free one, or the one waited for longest.
    fn least_wanted(&self, hash: u64) -> usize {
        let set = Self::set(hash);
        let first = set.start;
        set.min_by_key(|place| self.places[*place].as_ref().map_or(0, |place| place.since_ns + 1))
            .unwrap_or(first)
    }

    /// See that `buffers` more are not too many, for the neighbour at `at`: its own packets go
    /// first, then others', in the order in which the hand finds them.
    fn make_room(&mut self, at: usize, buffers: usize, unlucky: &mut impl FnMut(P)) -> bool {
        let is_full = |counts: &HeldCounts| counts.buffers() + buffers > HELD_BUFFERS_MAX;
        while is_full(&self.counts) && self.drop_oldest(at, unlucky) {}
        for _ in 0..HELD_NEIGHBOURS_MAX {
            if !is_full(&self.counts) {
                break;
            }
            self.empty(self.hand, unlucky);
            self.hand = (self.hand + 1) % HELD_NEIGHBOURS_MAX;
        }
        !is_full(&self.counts)
    }

    /// The oldest packet for a neighbour goes; false when there is none.
    fn drop_oldest(&mut self, at: usize, unlucky: &mut impl FnMut(P)) -> bool {
        let Some(place) = &mut self.places[at] else { return false };
        place.waiting.rotate_left(1);
        let Some(oldest) = place.waiting.last_mut().and_then(Option::take) else { return false };
        self.counts.leave(oldest.buffers);
        self.counts.forget();
        unlucky(oldest.packet);
        true
    }

    /// All packets for a neighbour go.
    fn empty(&mut self, at: usize, unlucky: &mut impl FnMut(P)) {
        while self.drop_oldest(at, unlucky) {}
        self.places[at] = None;
    }

    /// Take out what waits for a neighbour.
    pub fn take(&mut self, awaited: Awaited, hash: u64, now_ns: u64) -> Taken<P> {
        let place = self.find(awaited, hash).and_then(|at| self.places[at].take());
        let is_late = place.as_ref().is_some_and(|place| place.is_over(now_ns));
        let packets = place.map_or([const { None }; HELD_PER_NEIGHBOUR_MAX], |place| place.waiting);
        let packets = packets.map(|waiting| {
            let waiting = waiting?;
            self.counts.leave(waiting.buffers);
            Some(waiting.packet)
        });
        Taken { packets, is_late }
    }

    /// Forget what waits on an interface, and packets that are so.
    pub fn forget(
        &mut self,
        on: InterfaceId,
        is_so: impl Fn(&P) -> bool,
        mut unlucky: impl FnMut(P),
    ) {
        for place in &mut self.places {
            let Some(known) = place else { continue };
            let goes = known.awaited.0 == on;
            for waiting in &mut known.waiting {
                if let Some(gone) = waiting.take_if(|waiting| goes || is_so(&waiting.packet)) {
                    self.counts.leave(gone.buffers);
                    self.counts.forget();
                    unlucky(gone.packet);
                }
            }
            let mut kept = 0;
            for at in 0..HELD_PER_NEIGHBOUR_MAX {
                if known.waiting[at].is_some() {
                    known.waiting.swap(kept, at);
                    kept += 1;
                }
            }
            if kept == 0 {
                *place = None;
            }
        }
    }

    /// Take out all that waits: the node is being removed.
    pub fn drain(&mut self) -> impl Iterator<Item = P> {
        let counts = &self.counts;
        let places = self.places.iter_mut().filter_map(Option::take);
        places.flat_map(|place| place.waiting.into_iter().flatten()).map(|waiting| {
            counts.leave(waiting.buffers);
            waiting.packet
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const E1: InterfaceId = InterfaceId(1);

    fn host(number: u32) -> Awaited {
        (E1, IpAddr::V4(number.into()))
    }

    /// A room, and what became of the packets that had to go.
    struct Stand {
        room: PendingQueue<u32>,
        gone: Vec<u32>,
    }

    impl Stand {
        fn new() -> Stand {
            Stand { room: PendingQueue::new(&Arc::default()), gone: Vec::new() }
        }

        fn keep(&mut self, number: u32, now_ns: u64, name: u32, buffers: usize) -> Result<(), u32> {
            let gone = &mut self.gone;
            self.room.keep(host(number), number.into(), now_ns, (name, buffers), |packet| {
                gone.push(packet)
            })
        }

        fn take(&mut self, number: u32, now_ns: u64) -> Vec<u32> {
            let taken = self.room.take(host(number), number.into(), now_ns);
            taken.packets.into_iter().flatten().filter(|_| !taken.is_late).collect()
        }

        fn counts(&self) -> (usize, usize, u64) {
            let counts = &self.room.counts;
            (counts.packets(), counts.buffers(), counts.forgotten())
        }
    }

    #[test]
    fn the_latest_three_packets_wait_for_one_neighbour() {
        let mut stand = Stand::new();
        stand.keep(9, 0, 99, 1).unwrap();
        (0..5).for_each(|name| stand.keep(7, 0, name, 2).unwrap());
        assert_eq!((stand.gone.as_slice(), stand.counts()), (&[0, 1][..], (4, 7, 2)));
        assert_eq!(stand.take(7, 1), [2, 3, 4]);
        assert_eq!((stand.take(9, 1), stand.take(9, 1)), (vec![99], vec![]));
        assert_eq!(stand.counts(), (0, 0, 2));
    }

    #[test]
    fn there_is_an_end_to_neighbours_that_packets_wait_for_and_the_latest_is_one() {
        let mut stand = Stand::new();
        for number in 0..5000 {
            stand.keep(number, number.into(), number, 1).unwrap();
            assert!(stand.room.waits_for(host(number), number.into(), number.into()));
        }
        let (packets, buffers, forgotten) = stand.counts();
        assert!(packets <= HELD_NEIGHBOURS_MAX && packets > HELD_NEIGHBOURS_MAX / 2, "{packets}");
        assert_eq!(
            (buffers, forgotten, stand.gone.len()),
            (packets, 5000 - packets as u64, 5000 - packets)
        );
        assert_eq!(stand.take(4999, 5000), [4999]);
    }

    #[test]
    fn long_packets_fill_the_room_sooner() {
        let mut stand = Stand::new();
        for number in 0..20 {
            stand.keep(number, 0, number, HELD_BUFFERS_MAX / 8).unwrap();
        }
        assert_eq!((stand.counts().0, stand.counts().1), (8, HELD_BUFFERS_MAX));
        assert_eq!(stand.keep(30, 0, 30, HELD_BUFFERS_MAX + 1), Err(30));
        assert!(stand.take(30, 0).is_empty());
    }

    #[test]
    fn others_packets_leave_room_for_nothing_in_another_worker() {
        let mut stand = Stand::new();
        let mut other = PendingQueue::new(&stand.room.counts.clone());
        stand.keep(1, 0, 1, HELD_BUFFERS_MAX).unwrap();
        assert_eq!(other.keep(host(2), 2, 0, (2, 1), |_| panic!("it holds none")), Err(2));
        assert_eq!(stand.take(1, 0), [1]);
        assert_eq!(other.keep(host(2), 2, 0, (2, 1), |_| panic!("there is room")), Ok(()));
    }

    #[test]
    fn what_waits_too_long_is_forgotten_even_when_the_answer_comes() {
        let mut stand = Stand::new();
        stand.keep(7, 0, 0, 1).unwrap();
        assert!(stand.room.waits_for(host(7), 7, HELD_FOR_NS - 1));
        assert!(!stand.room.waits_for(host(7), 7, HELD_FOR_NS));
        assert!(stand.take(7, HELD_FOR_NS).is_empty());
        stand.keep(8, 0, 1, 1).unwrap();
        stand.keep(8, HELD_FOR_NS, 2, 1).unwrap();
        assert_eq!(stand.take(8, HELD_FOR_NS), [2]);
        assert_eq!((stand.gone.as_slice(), stand.counts()), (&[1][..], (0, 0, 1)));
    }

    #[test]
    fn an_interface_that_goes_takes_what_waits_with_it() {
        let mut stand = Stand::new();
        (0..3).for_each(|name| stand.keep(7, 0, name, 1).unwrap());
        let mut gone = Vec::new();
        stand.room.forget(InterfaceId(2), |name| *name == 0, |packet| gone.push(packet));
        assert_eq!((gone.as_slice(), stand.counts()), (&[0][..], (2, 2, 1)));
        stand.keep(7, 0, 3, 1).unwrap();
        stand.room.forget(InterfaceId(2), |name| *name == 2, |_| {});
        assert_eq!(stand.take(7, 0), [1, 3]);
        stand.keep(7, 0, 4, 1).unwrap();
        stand.room.forget(E1, |_| false, |_| {});
        assert_eq!((stand.take(7, 0), stand.counts()), (vec![], (0, 0, 3)));
    }

    #[test]
    fn all_is_taken_out_at_the_end() {
        let mut stand = Stand::new();
        (0..9).for_each(|number| stand.keep(number, 0, number, 1).unwrap());
        assert_eq!(stand.room.drain().count(), 9);
        assert_eq!(stand.counts(), (0, 0, 0));
    }
}
