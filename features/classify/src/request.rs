//! The look-up of a packet's session in its first table, as all nodes ask it.

use quiver_core::cpu::Variant;
use quiver_tables::exact::NOT_FOUND;
use quiver_wire::{EtherType, EthernetHeader, Header};

use crate::tables::{Access, SESSION_KEY_WORDS, SessionKey, Tables};

/// Keys that are looked up in step.
const BATCH: usize = 32;

/// A packet's first table and its key there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request {
    /// Its first word is the number of the table plus one; 0, which no session has, where none
    /// classifies the packet.
    key: SessionKey,
    /// What the packet counts for.
    pub weight: u32,
}

impl Request {
    /// That of a packet whose first table, as its number plus one, is known; and whether the packet
    /// has no link-layer header.
    #[inline(always)]
    pub fn new(
        tables: &Tables,
        (table, is_bare): (u16, bool),
        bytes: &[u8],
        weight: u32,
    ) -> Request {
        match table.checked_sub(1) {
            None => Request::default(),
            Some(number) => Request { key: tables.key(number, bytes, is_bare), weight },
        }
    }

    /// The number of the first table; nothing where none classifies the packet.
    #[inline(always)]
    pub fn table(&self) -> Option<u16> {
        self.key[0].checked_sub(1).map(|number| number as u16)
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Request) -> bool {
        let mut differing = 0;
        for at in 0..SESSION_KEY_WORDS {
            differing |= self.key[at] ^ other.key[at];
        }
        differing == 0
    }
}

/// The table that classifies a packet first, as its number plus one.
#[inline(always)]
pub(crate) fn first_of(access: Access, bytes: &[u8]) -> u16 {
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

/// The sessions that packets have in their first tables, into as many of `found`. `is_uniform`:
/// neighbours are likely to have the same key, which is then looked up once.
#[inline(always)]
pub(crate) fn find(
    tables: &Tables,
    (variant, is_uniform): (Variant, bool),
    requests: &[Request],
    found: &mut [u32],
) {
    let (mut keys, mut sessions) = ([SessionKey::default(); BATCH], [NOT_FOUND; BATCH]);
    // Where the key of a packet stands among those that are looked up.
    let mut places = [0_u8; BATCH];
    for (requests, found) in requests.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
        let (mut count, mut before) = (0, None);
        for (request, place) in requests.iter().zip(&mut places) {
            let is_same = is_uniform && before.is_some_and(|other| request.has_key_of(other));
            if !is_same {
                keys[count % BATCH] = request.key;
                count += 1;
            }
            (*place, before) = ((count - 1) as u8, Some(request));
        }
        tables.sessions().lookup_slice(variant, &keys[..count], &mut sessions[..count]);
        for (found, place) in found.iter_mut().zip(&places) {
            *found = sessions[usize::from(*place) % BATCH];
        }
    }
}
