//! The look-up of a packet's session in its first table, as all nodes ask it.

use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Pass;
use quiver_wire::{EtherType, EthernetHeader, Header};

use crate::key::{Key, load, masked};
use crate::tables::{Access, Tables, session_key};

/// Keys that are masked at once.
const BATCH: usize = 32;

/// A packet's first table, and the bytes that its mask is laid on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request {
    /// Its number plus one; 0: none classifies the packet.
    table: u16,
    /// Bytes of the packet.
    pub length: u32,
    bytes: Key,
}

impl Request {
    /// That of a packet which begins with these bytes, on an interface with these tables.
    #[inline(always)]
    pub fn of_frame(tables: &Tables, access: Access, bytes: &[u8]) -> Request {
        Request::new(tables, (first_of(access, bytes), access.is_bare), bytes)
    }

    /// That of a packet whose first table, as its number plus one, is known; and whether the packet
    /// has no link-layer header.
    #[inline(always)]
    pub fn new(tables: &Tables, (table, is_bare): (u16, bool), bytes: &[u8]) -> Request {
        match table.checked_sub(1) {
            None => Request::default(),
            Some(number) => {
                let bytes = load(tables.form(number), bytes, is_bare);
                Request { table, length: 0, bytes }
            }
        }
    }

    /// The number of the first table; nothing where none classifies the packet.
    #[inline(always)]
    pub fn table(&self) -> Option<u16> {
        self.table.checked_sub(1)
    }
}

/// The table that classifies a packet first, as its number plus one.
#[inline(always)]
fn first_of(access: Access, bytes: &[u8]) -> u16 {
    let (is_ip4, is_ip6) = match access.is_bare {
        true => {
            (bytes.first().is_some_and(|b| b >> 4 == 4), bytes.first().is_some_and(|b| b >> 4 == 6))
        }
        false => {
            let kind = kind_of(bytes);
            (kind == EtherType::IPV4, kind == EtherType::IPV6)
        }
    };
    match (is_ip4 && access.ip4 != 0, is_ip6 && access.ip6 != 0) {
        (true, _) => access.ip4,
        (_, true) => access.ip6,
        _ => access.l2,
    }
}

/// The type of a frame, behind its tags.
#[inline(always)]
fn kind_of(bytes: &[u8]) -> EtherType {
    let kind = EthernetHeader::overlay(bytes).map_or(EtherType(0), EthernetHeader::ether_type);
    if kind.is_vlan() { crate::key::behind_tags(bytes).0 } else { kind }
}

/// The sessions that packets have in their first tables, into as many of `found`.
#[inline(always)]
pub(crate) fn find(
    tables: &Tables,
    (variant, pass): (Variant, Pass<'_>),
    requests: &[Request],
    found: &mut [u32],
) {
    for (requests, found) in requests.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
        let mut sessions = [Default::default(); BATCH];
        let (mut known, mut mask) = (0, Key::default());
        for (request, session) in requests.iter().zip(&mut sessions) {
            if request.table != known {
                let table = request.table().and_then(|number| tables.table(number, pass));
                (known, mask) = (request.table, table.map_or(Key::default(), |table| table.mask));
            }
            // No session has table 0, which is that of packets that none classifies.
            let key = masked(&request.bytes, &mask);
            *session = session_key(request.table.wrapping_sub(1), &key);
        }
        tables.sessions().lookup_slice(variant, &sessions[..requests.len()], found);
    }
}
