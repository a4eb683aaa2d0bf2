//! Fragments of IPv4 that B4s send: the owner remembers what the first one says of its ports, and
//! notes it of those that follow (RFC 4787 REQ-14). One that comes before the first one dies.

use quiver_core::Packet;
use quiver_wire::upper::Upper;
use quiver_wire::{Header, Ip4Header};

/// Packets whose first fragment is remembered.
const PLACES: usize = 1_024;
/// Seconds for which it is (RFC 4963 §2: identifications come again).
const LIFETIME_S: u32 = 15;
/// An odd number without pattern: the golden ratio as a fraction of 2^64.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the fragments of one packet have in common (RFC 791 §3.2), and their B4 in the place of a
/// table.
type PacketKey = [u64; 2];

fn key(header: &Ip4Header, table: u32) -> PacketKey {
    [
        u64::from(header.source_bits()) << 32 | u64::from(header.destination_bits()),
        u64::from(table) << 32
            | u64::from(header.identification()) << 8
            | u64::from(header.protocol().0),
    ]
}

#[derive(Clone, Copy)]
struct Note {
    key: PacketKey,
    upper: Upper,
    until_s: u32,
}

/// First fragments, by the hash of their packet; the last one has its place.
pub(crate) struct Fragments {
    notes: Box<[Option<Note>]>,
    seed: u64,
}

impl Fragments {
    /// `seed` is a secret.
    pub fn new(seed: u64) -> Fragments {
        Fragments { notes: vec![None; PLACES].into(), seed: seed | 1 }
    }

    fn place(&self, key: &PacketKey) -> usize {
        let fold = |hash: u64, word: u64| {
            let product = u128::from(hash ^ ODD) * u128::from(word ^ self.seed);
            product as u64 ^ (product >> 64) as u64
        };
        let hash = key.iter().fold(self.seed, |hash, word| fold(hash, *word).wrapping_add(ODD));
        hash as usize % PLACES
    }

    /// Note the ports of a fragment from a B4 whose number stands in the place of a table. False
    /// when its first one is not known.
    pub fn note(&mut self, packet: &mut Packet, table: u32, now_s: u32) -> bool {
        let Some(header) = Ip4Header::overlay(packet.bytes()) else { return false };
        let (key, is_first) = (key(header, table), header.fragment_offset() == 0);
        let place = self.place(&key);
        let Some(place) = self.notes.get_mut(place) else { return false };
        if is_first {
            let Ok(upper) = Upper::of_ip4(packet.bytes()) else { return false };
            *place = Some(Note { key, upper, until_s: now_s.saturating_add(LIFETIME_S) });
        }
        let known = place.filter(|note| note.key == key && note.until_s >= now_s);
        let Some(note) = known else { return false };
        packet.set_note(note.upper.to_note());
        true
    }
}
