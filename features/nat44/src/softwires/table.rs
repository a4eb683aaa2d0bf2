//! B4s: objects like sessions, which two keys lead to. The owner of the sessions makes and ends
//! them.
//!
//! | word | content |
//! | --- | --- |
//! | 0, 1 | first key: the address of IPv6 |
//! | 2, 3 | second key: the prefix and the place in it ([`place_in_prefix`]) |
//! | 4 | live sessions (32 bits), second in which one began or ended (32), as in bindings |
//!
//! A B4 is made with its first session. It ends some time after the last one, when its subscriber
//! has neither blocks nor mappings any more. So nothing names its number when another B4 gets it.

use quiver_tables::sessions::SessionError;
use quiver_translation::flow::Key;
use quiver_wire::ip6;

use crate::bindings::{Binding, Bindings, Readers, subscriber_keys};
use crate::session::{Session, Writer};
use crate::softwires::{Aftr, B4, B4Limit, B4Number, b4_of};
use crate::tables::Provider;

/// Seconds for which a B4 without sessions keeps its number: longer than helpers expect a
/// connection.
const IDLE_S: u32 = 120;

/// Why a host of IPv6 is no B4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoB4 {
    /// All numbers are in use.
    Full,
    /// Its prefix has as many as it may have.
    PrefixFull,
}

/// The key of a B4's address.
#[inline(always)]
pub(crate) fn address_key(address: u128) -> Key {
    [(address >> 64) as u64, address as u64]
}

/// The address of a B4.
#[inline(always)]
pub(crate) fn address_of(readers: &Readers, B4Number(number): B4Number) -> u128 {
    let [high, low] = Session(readers.get(number).0).key(crate::session::Direction::InToOut);
    u128::from(high) << 64 | u128::from(low)
}

/// The second key of a B4: it has place `nth` of its prefix. It begins like a group's address,
/// which no B4 has.
fn place_in_prefix(address: u128, length: u8, nth: u16) -> Key {
    let mask = u64::MAX.checked_shl(64 - u32::from(length)).unwrap_or(0);
    let prefix = (address >> 64) as u64 & mask;
    let low = (prefix & 0xff) << 32 | u64::from(length) << 16 | u64::from(nth);
    [0xff << 56 | prefix >> 8, low]
}

/// The owner's B4s.
pub(crate) struct Softwires {
    pub writer: Writer,
    pub read: Readers,
}

impl Softwires {
    pub fn new(writer: Writer) -> Softwires {
        let read = Readers { table: writer.table(), objects: writer.objects().clone() };
        Softwires { writer, read }
    }

    /// The B4 with this address.
    pub fn number(&self, address: u128) -> Option<B4Number> {
        self.writer
            .get(&address_key(address))
            .filter(|(_, way)| *way == 0)
            .map(|(n, _)| B4Number(n))
    }

    /// May a host with this address be a B4 (RFC 6333 §11)?
    pub fn may_be(&self, aftr: &Aftr, address: u128) -> bool {
        aftr.address != 0 && ip6::address::is_unicast(address.into()) && aftr.admits(address)
    }

    /// Make a B4 without sessions.
    pub fn make(&mut self, address: u128, limit: B4Limit, now_s: u32) -> Result<B4Number, NoB4> {
        let key = |nth| place_in_prefix(address, limit.length, nth);
        let free = (0..limit.b4s).map(key).find(|key| self.writer.get(key).is_none());
        let [c, d] = free.ok_or(NoB4::PrefixFull)?;
        let [a, b] = address_key(address);
        let words = [a, b, c, d, u64::from(now_s) << 32, 0, 0, 0];
        match self.writer.insert(words) {
            Ok(number) => Ok(B4Number(number)),
            Err(SessionError::Collides { .. }) => Err(NoB4::PrefixFull),
            Err(_) => Err(NoB4::Full),
        }
    }

    fn b4(&self, table: u32) -> Option<Binding<'_>> {
        b4_of(table).map(|number| self.read.get(number))
    }

    /// A session with these tables begins.
    pub fn begin(&self, tables: [u32; 2], now_s: u32) {
        tables.into_iter().filter_map(|table| self.b4(table)).for_each(|b4| b4.add_user(now_s));
    }

    /// A session with these tables ends.
    pub fn release(&self, tables: [u32; 2], now_s: u32) {
        tables.into_iter().filter_map(|table| self.b4(table)).for_each(|b4| b4.drop_user(now_s));
    }

    /// End a B4 that has made no session.
    pub fn end_unused(&mut self, B4Number(number): B4Number) {
        if self.read.get(number).users() == 0 {
            self.writer.remove(number);
        }
    }

    /// Turn the clock hand over so many places.
    pub fn turn(
        &mut self,
        places: usize,
        now_s: u32,
        (bindings, provider): (Option<&Bindings>, &Provider),
    ) {
        let Softwires { writer, .. } = self;
        writer.collect();
        let idle_s = IDLE_S.max(provider.reuse_s);
        writer.turn(places, |number, words| {
            let (b4, table) = (Binding(words), B4Number(number).table());
            let has_bindings = || {
                let subscriber = subscriber_keys(table, B4)[0];
                bindings.is_some_and(|bindings| bindings.read.find(&subscriber).is_some())
            };
            b4.users() > 0 || now_s.saturating_sub(b4.seen_s()) < idle_s || has_bindings()
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_of_different_prefixes_differ_and_are_no_address_of_a_host(
            a in any::<u128>(), b in any::<u128>(), length in 32u8..=64, nth in any::<u16>()
        ) {
            let mask = u128::MAX << (128 - u32::from(length));
            let same = a & mask == b & mask;
            let (one, other) =
                (place_in_prefix(a, length, nth), place_in_prefix(b, length, nth));
            prop_assert_eq!(one == other, same);
            prop_assert_eq!(one[0] >> 56, 0xff);
            prop_assert_ne!(one, place_in_prefix(a, length, nth ^ 1));
        }
    }
}
