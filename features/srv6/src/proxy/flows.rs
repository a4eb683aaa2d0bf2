//! End.AD.Flow: the outer headers of the last packet of each flow that came to the SID. Any worker
//! writes them, any worker reads them, and none waits.
//!
//! A flow has one place in a set of [`WAYS`]. A place is written under a sequence number that is
//! odd meanwhile; a reader copies the place and looks at the number again. The whole flow stands in
//! the place, so headers never go in front of packets of another one.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::cached_header::{CacheWrite, FRONT_WORDS, Unread, WORD_BYTES, WORDS, Word};
use super::outer_header::OuterHeader;

/// Flows of one SID unless the operator says another number.
pub(super) const FLOWS: u32 = 1024;
/// Flows of one SID at most: a kilobyte for three.
pub(super) const FLOWS_MAX: u32 = 1 << 16;
/// Places that a flow may have.
const WAYS: usize = 4;
/// A flow without packets for so long gives its place to another one.
const IDLE_NS: u64 = 30_000_000_000;
/// How often a reader tries to get a place whole.
const TRIES: usize = 64;
/// Words of a flow.
const KEY_WORDS: usize = 5;

/// A flow: addresses, protocol, and ports where there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow([u64; KEY_WORDS]);

impl Flow {
    /// The flow of the packet that begins with `bytes`. Fragments of a packet are a flow without
    /// ports.
    pub fn of(six: bool, bytes: &[u8]) -> Option<Flow> {
        if six {
            let header = Ip6Header::overlay(bytes)?;
            let (from, to) = (header.source_bits(), header.destination_bits());
            let ports =
                ports(header.next_header(), bytes.get(Ip6Header::LEN..).unwrap_or_default());
            let last = u64::from(header.next_header().0) << 32 | u64::from(ports);
            return Some(Flow([
                (from >> 64) as u64,
                from as u64,
                (to >> 64) as u64,
                to as u64,
                last,
            ]));
        }
        let header = Ip4Header::overlay(bytes)?;
        let behind = bytes.get(header.header_len()..).unwrap_or_default();
        let ports = if header.is_fragment() { 0 } else { ports(header.protocol(), behind) };
        let last = 1 << 40 | u64::from(header.protocol().0) << 32 | u64::from(ports);
        Some(Flow([header.source_bits().into(), header.destination_bits().into(), 0, 0, last]))
    }

    /// A number that nobody outside can foresee.
    fn hash(self, seed: [u64; 2]) -> u64 {
        self.0.into_iter().fold(seed[0], |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(seed[1] | 1);
            (product >> 64) as u64 ^ (product as u64).rotate_left(29)
        })
    }
}

/// Both ports, where the protocol has them.
fn ports(protocol: IpProtocol, behind: &[u8]) -> u32 {
    let has_ports =
        protocol == IpProtocol::TCP || protocol == IpProtocol::UDP || protocol == IpProtocol::SCTP;
    let ports = behind.first_chunk::<4>().filter(|_| has_ports);
    ports.map_or(0, |ports| u32::from_be_bytes(*ports))
}

/// What is kept of one flow.
#[derive(Debug)]
struct Place {
    /// Odd while somebody writes; 0: nothing was kept yet.
    sequence: AtomicU64,
    /// When a packet of the flow came last.
    used_ns: AtomicU64,
    length: AtomicU32,
    key: [AtomicU64; KEY_WORDS],
    words: [AtomicU64; WORDS],
}

impl Place {
    fn new() -> Place {
        Place {
            sequence: AtomicU64::new(0),
            used_ns: AtomicU64::new(0),
            length: AtomicU32::new(0),
            key: [const { AtomicU64::new(0) }; KEY_WORDS],
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Is it this flow's? What is read while somebody writes is seen not to be whole later.
    fn is_of(&self, flow: Flow) -> bool {
        let sequence = self.sequence.load(Ordering::Acquire);
        let same = |(kept, word): (&AtomicU64, u64)| kept.load(Ordering::Relaxed) == word;
        sequence != 0 && self.key.iter().zip(flow.0).all(same)
    }

    fn holds(&self, headers: &[Word]) -> bool {
        let same = |(kept, word): (&AtomicU64, &Word)| {
            kept.load(Ordering::Relaxed) == u64::from_ne_bytes(*word)
        };
        self.length.load(Ordering::Relaxed) as usize == headers.len() * WORD_BYTES
            && self.words.iter().zip(headers).all(same)
    }

    /// Write, unless somebody else has written since `sequence` was read, or does.
    fn write(&self, sequence: u64, flow: Flow, headers: &[Word]) -> CacheWrite {
        let odd = sequence | 1;
        let taken = sequence & 1 == 0
            && self
                .sequence
                .compare_exchange(sequence, odd, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !taken {
            return CacheWrite::Busy;
        }
        // A reader that sees one of the words below sees the odd number, too.
        fence(Ordering::Release);
        self.length.store((headers.len() * WORD_BYTES) as u32, Ordering::Relaxed);
        for (kept, word) in self.key.iter().zip(flow.0) {
            kept.store(word, Ordering::Relaxed);
        }
        for (kept, word) in self.words.iter().zip(headers) {
            kept.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        self.sequence.store(odd + 1, Ordering::Release);
        CacheWrite::New
    }
}

/// The headers of all flows of a SID.
pub(super) struct Flows {
    places: Box<[Place]>,
    seed: [u64; 2],
}

impl std::fmt::Debug for Flows {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Flows({})", self.places.len())
    }
}

impl Flows {
    /// Room for at least so many flows; none kept yet.
    pub fn new(flows: u32) -> Flows {
        let sets = (flows.clamp(1, FLOWS_MAX) as usize).div_ceil(WAYS).next_power_of_two();
        let places = (0..sets * WAYS).map(|_| Place::new()).collect();
        let secret = RandomState::new();
        Flows { places, seed: [secret.hash_one(0u64), secret.hash_one(1u64)] }
    }

    fn set(&self, flow: Flow) -> &[Place] {
        let sets = self.places.len() / WAYS;
        let set = flow.hash(self.seed) as usize & (sets - 1);
        self.places.get(set * WAYS..(set + 1) * WAYS).unwrap_or_default()
    }

    /// Keep headers of a flow.
    pub fn keep(
        &self,
        flow: Flow,
        now_ns: u64,
        front: [Word; FRONT_WORDS],
        rest: &[Word],
    ) -> CacheWrite {
        let mut headers = [Word::default(); WORDS];
        let Some(own) = headers.get_mut(..FRONT_WORDS + rest.len()) else {
            return CacheWrite::TooLong;
        };
        let (head, tail) = own.split_at_mut(FRONT_WORDS);
        head.copy_from_slice(&front);
        tail.copy_from_slice(rest);
        let set = self.set(flow);
        let sequence = |place: &Place| place.sequence.load(Ordering::Acquire);
        for place in set {
            let before = sequence(place);
            if place.is_of(flow) {
                place.used_ns.store(now_ns, Ordering::Relaxed);
                return if place.holds(own) {
                    CacheWrite::Same
                } else {
                    place.write(before, flow, own)
                };
            }
        }
        // One that nobody has had, or the one that was not used for longest.
        let used =
            |place: &Place| (sequence(place) != 0).then(|| place.used_ns.load(Ordering::Relaxed));
        let Some(place) = set.iter().min_by_key(|place| used(place)) else {
            return CacheWrite::Full;
        };
        let before = sequence(place);
        if used(place).is_some_and(|used_ns| now_ns.saturating_sub(used_ns) < IDLE_NS) {
            return CacheWrite::Full;
        }
        place.used_ns.store(now_ns, Ordering::Relaxed);
        place.write(before, flow, own)
    }

    /// Copy the headers of a flow.
    pub fn read(&self, flow: Flow, front: &mut OuterHeader) -> Result<(), Unread> {
        let mut seen = false;
        for place in self.set(flow).iter().filter(|place| place.is_of(flow)) {
            seen = true;
            for _ in 0..TRIES {
                let sequence = place.sequence.load(Ordering::Acquire);
                if sequence & 1 == 1 {
                    std::hint::spin_loop();
                    continue;
                }
                let length = place.length.load(Ordering::Relaxed) as usize;
                let mut key = [0; KEY_WORDS];
                for (to, from) in key.iter_mut().zip(&place.key) {
                    *to = from.load(Ordering::Relaxed);
                }
                let Some(header) = front.lay_out(length) else { continue };
                for (to, from) in
                    header.as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(&place.words)
                {
                    *to = from.load(Ordering::Relaxed).to_ne_bytes();
                }
                fence(Ordering::Acquire);
                if place.sequence.load(Ordering::Relaxed) != sequence {
                    continue;
                }
                if Flow(key) == flow {
                    return Ok(());
                }
                break; // another flow has the place now
            }
        }
        Err(if seen { Unread::Changing } else { Unread::Nothing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u64) -> Flow {
        Flow([number, 0, 0, 0, 1])
    }

    /// Keep headers of so many bytes, all alike.
    fn keep(flows: &Flows, number: u64, now_ns: u64, bytes: usize, all: u8) -> CacheWrite {
        flows.keep(
            flow(number),
            now_ns,
            [[all; 8]; FRONT_WORDS],
            &vec![[all; 8]; bytes / 8 - FRONT_WORDS],
        )
    }

    #[test]
    fn each_flow_has_its_own_headers() {
        let (flows, mut front) = (Flows::new(4096), OuterHeader::default());
        for number in 0..200u8 {
            assert_eq!(
                keep(&flows, number.into(), 0, 48 + 8 * usize::from(number % 20), number),
                CacheWrite::New
            );
        }
        for number in 0..200u8 {
            assert_eq!(flows.read(flow(number.into()), &mut front), Ok(()));
            assert_eq!(front.header(), vec![number; 48 + 8 * usize::from(number % 20)]);
            assert_eq!(
                keep(&flows, number.into(), 0, 48 + 8 * usize::from(number % 20), number),
                CacheWrite::Same
            );
        }
        assert_eq!(flows.read(flow(1000), &mut front), Err(Unread::Nothing));
        assert_eq!(
            keep(&flows, 7, 0, 80, 9),
            CacheWrite::New,
            "other headers of a flow that is known"
        );
        assert_eq!((flows.read(flow(7), &mut front), front.header()), (Ok(()), &[9; 80][..]));
        assert_eq!(keep(&flows, 7, 0, 8 * (WORDS + 1), 9), CacheWrite::TooLong);
    }

    #[test]
    fn a_full_set_gives_no_place_away_that_is_in_use() {
        let (flows, mut front) = (Flows::new(4), OuterHeader::default());
        for number in 0..4 {
            assert_eq!(keep(&flows, number, number, 48, number as u8), CacheWrite::New);
        }
        assert_eq!(keep(&flows, 4, IDLE_NS - 1, 48, 4), CacheWrite::Full);
        assert_eq!(keep(&flows, 0, IDLE_NS, 48, 0), CacheWrite::Same);
        assert_eq!(
            keep(&flows, 4, IDLE_NS + 1, 48, 4),
            CacheWrite::New,
            "that of flow 1, idle for longest"
        );
        assert_eq!(flows.read(flow(1), &mut front), Err(Unread::Nothing));
        for number in [0, 2, 3, 4] {
            assert_eq!(flows.read(flow(number), &mut front), Ok(()));
            assert_eq!(front.header(), [number as u8; 48]);
        }
    }

    #[test]
    fn flows_differ_by_addresses_protocol_and_ports_and_fragments_have_none() {
        let mut udp = vec![
            0x45, 0, 0, 32, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9, 0, 0, 0,
            0,
        ];
        let first = Flow::of(false, &udp).expect("whole");
        for place in [9, 15, 19, 21, 23] {
            udp[place] ^= 1;
            assert_ne!(Flow::of(false, &udp), Some(first), "{place}");
            udp[place] ^= 1;
        }
        udp[6] = 0x20; // more fragments
        let fragment = Flow::of(false, &udp);
        udp[21] ^= 1;
        assert_eq!(Flow::of(false, &udp), fragment);
        assert_eq!(Flow::of(true, &udp), None);
    }

    #[test]
    fn a_reader_never_sees_a_mixture_nor_another_flow() {
        let flows = Flows::new(4);
        std::thread::scope(|scope| {
            for writer in 0..2u64 {
                let flows = &flows;
                scope.spawn(move || {
                    for round in 0..20_000u64 {
                        // All flows share one set, whose places go from one to the other.
                        let number = (round % 7) << 8 | writer;
                        keep(flows, number, round * IDLE_NS, 80, (number >> 8) as u8);
                    }
                });
            }
            let mut front = OuterHeader::default();
            for round in 0..40_000u64 {
                let number = ((round % 7) << 8) | (round % 2);
                if flows.read(flow(number), &mut front).is_ok() {
                    assert_eq!(front.header(), [(number >> 8) as u8; 80]);
                }
            }
        });
    }
}
