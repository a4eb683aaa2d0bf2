//! What gateways look up for their packets, those of one table together.

use quiver_core::cpu::Variant;
use quiver_forwarding::ip::IpTables;
use quiver_tables::GroupId;

use crate::endpoint::lookup_node::SidKey;

/// Keys that are looked up at a time.
const KEYS_AT_A_TIME: usize = 64;

/// The look-up key of a packet, in IPv4 tables or in IPv6 tables, and the fields that were read for
/// it. The default is a packet that takes the slow path.
#[derive(Clone, Copy, Default)]
pub struct LookupKeys<const FOUR: bool = false> {
    /// The destination that it will have; an IPv4 address in the lowest bits.
    pub address: u128,
    /// Args.Mob.Session.
    pub session: u64,
    /// The table to look it up in.
    pub table: u32,
    /// Offset of the user's packet from the IP header, bytes; 0 for a packet that takes the slow
    /// path.
    pub at: u32,
}

impl<const FOUR: bool> SidKey for LookupKeys<FOUR> {
    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.at == 0
    }

    #[inline(always)]
    fn find(tables: &IpTables, variant: Variant, keys: &[LookupKeys<FOUR>], found: &mut [GroupId]) {
        for (keys, found) in keys.chunks(KEYS_AT_A_TIME).zip(found.chunks_mut(KEYS_AT_A_TIME)) {
            let first = keys.iter().find(|key| !key.is_nothing()).map_or(0, |key| key.table);
            let mut differ = 0;
            for key in keys {
                differ |= if key.is_nothing() { 0 } else { key.table ^ first };
            }
            if differ != 0 {
                find_each(tables, keys, found);
            } else if FOUR {
                let mut addresses = [0; KEYS_AT_A_TIME];
                keys.iter()
                    .zip(&mut addresses)
                    .for_each(|(key, address)| *address = key.address as u32);
                let addresses = addresses.get(..keys.len()).unwrap_or_default();
                tables.ip4.table(first).lookup_slice(variant, addresses, found);
            } else {
                let mut addresses = [0; KEYS_AT_A_TIME];
                keys.iter().zip(&mut addresses).for_each(|(key, address)| *address = key.address);
                let addresses = addresses.get(..keys.len()).unwrap_or_default();
                tables.ip6.table(first).lookup_slice(variant, addresses, found);
            }
        }
    }
}

/// Several tables are asked.
#[inline(never)]
fn find_each<const FOUR: bool>(
    tables: &IpTables,
    keys: &[LookupKeys<FOUR>],
    found: &mut [GroupId],
) {
    for (key, found) in keys.iter().zip(found) {
        *found = match FOUR {
            true => tables.ip4.table(key.table).lookup(key.address as u32),
            false => tables.ip6.table(key.table).lookup(key.address),
        };
    }
}
