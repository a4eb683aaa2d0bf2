//! Which tunnel an outer packet belongs to: an exact match by its ends, its table and its key.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::InterfaceId;
use quiver_core::cpu::Variant;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::Epochs;
use quiver_tables::exact::{
    ExactError, LongTable, LongWriter, NOT_FOUND, Objects, ObjectsWriter, Seed,
};
use quiver_tables::lpm::TABLES_MAX;
use quiver_tables::memory::MemoryError;

use super::protocol::EndWords;

/// Words of a key, and of an object: the key, the interface with the kind and the encapsulation
/// entry, and what the protocol keeps.
pub(super) const KEY_WORDS: usize = 5;
const OBJECT_WORDS: usize = 8;
const INTERFACE_WORD: usize = 5;
const PROTOCOL_WORDS: [usize; 2] = [6, 7];
/// In the word of the interface, which is a number below [`INTERFACES_MAX`]: the protocol's flags,
/// the entry, and whether the tunnel carries frames.
const FLAGS_SHIFT: u32 = 16;
const ENTRY_SHIFT: u32 = 32;
const CARRIES_FRAMES: u64 = 1 << 63;
const _: () = assert!(INTERFACES_MAX <= 1 << FLAGS_SHIFT);
/// In the space of numbers of a protocol without UDP: the key is of what the tunnel sends.
pub(super) const SENT: u16 = 1 << 15;
/// Ends of tunnels at most, in all tunnels of a protocol.
pub const TUNNEL_ENDS_MAX: usize = 1 << 16;

// A table, a port and a key have a word of a key together.
const _: () = assert!(TABLES_MAX <= 1 << 15);

/// How an outer packet is matched.
pub(super) type Key = [u64; KEY_WORDS];

/// The key of packets from `remote` to `local`. 0 as `remote` stands for every sender. `port` is
/// the UDP port that they are for, or without UDP the space of numbers that the key is of.
#[inline(always)]
pub(super) fn key(remote: u128, local: u128, table: u32, port: u16, key: Option<u32>) -> Key {
    let key = key.map_or(0, |key| 1 << 32 | u64::from(key)) | u64::from(port) << 48;
    [
        (remote >> 64) as u64,
        remote as u64,
        (local >> 64) as u64,
        local as u64,
        u64::from(table) << 33 | key,
    ]
}

/// The key of packets to the same end from any sender.
#[inline(always)]
fn from_any([_, _, high, low, rest]: &Key) -> Key {
    [0, 0, *high, *low, *rest]
}

/// The key of what is sent from `local` to `remote`, one of the far ends of ports, at its UDP port
/// `port`, whatever network it is of: what is received has a network's number.
pub(super) fn far_key(remote: u128, local: u128, table: u32, port: u16) -> Key {
    key(remote, local, table, port, None)
}

/// An address as a number, an IPv4 address mapped (RFC 4291 §2.5.5.2).
pub(super) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub interface: InterfaceId,
    pub carries_frames: bool,
    /// The entry for what goes the other way; 0 where there is none.
    pub entry: u32,
    /// What the protocol keeps.
    pub words: EndWords,
}

/// What workers read.
#[derive(Clone)]
pub(super) struct TunnelTable(LongTable<Objects<OBJECT_WORDS>, KEY_WORDS>);

impl TunnelTable {
    /// The end of the tunnel that an outer packet belongs to.
    #[inline(always)]
    pub fn find(&self, key: &Key) -> Option<End> {
        self.0.lookup(key).map(|index| self.end(index))
    }

    /// The places of many, of which many are likely to be alike. A tunnel that takes packets from
    /// any sender is found where there is none from the packet's.
    #[inline(always)]
    pub fn find_all(&self, variant: Variant, keys: &[Key], found: &mut [u32]) {
        let Some(first) = keys.first() else { return };
        if keys.iter().all(|key| key == first) {
            return found.fill(self.find_place(first));
        }
        self.0.lookup_slice(variant, keys, found);
        for (key, found) in keys.iter().zip(found) {
            if *found == NOT_FOUND {
                *found = self.0.lookup(&from_any(key)).unwrap_or(NOT_FOUND);
            }
        }
    }

    /// The place of one.
    #[inline(always)]
    fn find_place(&self, key: &Key) -> u32 {
        let exact = self.0.lookup(key);
        exact.or_else(|| self.0.lookup(&from_any(key))).unwrap_or(NOT_FOUND)
    }

    /// The end of the tunnel that takes an outer packet, from its sender or from any.
    #[inline(always)]
    pub fn find_or_any(&self, key: &Key) -> Option<End> {
        let place = self.find_place(key);
        (place != NOT_FOUND).then(|| self.end(place))
    }

    /// The end at a place that was found.
    #[inline(always)]
    pub fn end(&self, index: u32) -> End {
        let object = self.0.keys().get(index);
        let word = object[INTERFACE_WORD].load(Ordering::Relaxed);
        End {
            interface: InterfaceId(u32::from(word as u16)),
            carries_frames: word & CARRIES_FRAMES != 0,
            entry: ((word & !CARRIES_FRAMES) >> ENTRY_SHIFT) as u32,
            words: EndWords {
                flags: (word >> FLAGS_SHIFT) as u16,
                words: PROTOCOL_WORDS.map(|place| object[place].load(Ordering::Relaxed)),
            },
        }
    }
}

/// The control thread's side.
pub(super) struct TunnelTableWriter {
    objects: ObjectsWriter<OBJECT_WORDS>,
    table: LongWriter<Objects<OBJECT_WORDS>, KEY_WORDS>,
}

impl TunnelTableWriter {
    pub fn new(epochs: &Arc<Epochs>) -> Result<TunnelTableWriter, MemoryError> {
        let limits = quiver_tables::exact::Limits {
            what: "table of tunnel ends",
            entries_max: TUNNEL_ENDS_MAX,
            remedy: "delete tunnels that are not used",
        };
        let objects = ObjectsWriter::new(epochs, limits)?;
        let table = LongWriter::new(epochs, limits, Seed::random(), objects.objects().clone())?;
        Ok(TunnelTableWriter { objects, table })
    }

    pub fn table(&self) -> TunnelTable {
        TunnelTable(self.table.table())
    }

    pub fn has(&self, key: &Key) -> bool {
        self.table.get(key).is_some()
    }

    pub fn insert(&mut self, key: Key, end: End) -> Result<(), ExactError> {
        self.objects.collect();
        self.table.collect();
        let mut object = [0; OBJECT_WORDS];
        object[..KEY_WORDS].copy_from_slice(&key);
        object[INTERFACE_WORD] = u64::from(end.entry) << ENTRY_SHIFT
            | u64::from(end.words.flags) << FLAGS_SHIFT
            | u64::from(end.interface.0)
            | if end.carries_frames { CARRIES_FRAMES } else { 0 };
        for (place, word) in PROTOCOL_WORDS.into_iter().zip(end.words.words) {
            object[place] = word;
        }
        let index = self.objects.take(object)?;
        match self.table.insert(index) {
            Ok(old) => {
                old.into_iter().for_each(|old| self.objects.retire(old));
                Ok(())
            }
            Err(error) => {
                self.objects.retire(index);
                Err(error)
            }
        }
    }

    pub fn remove(&mut self, key: &Key) {
        if let Some(index) = self.table.remove(key) {
            self.objects.retire(index);
        }
    }
}
