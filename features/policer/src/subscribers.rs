//! What workers read of subscribers: whose an address is, and the policers of what it sends and
//! receives.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_tables::lpm::LpmSpace;
use quiver_tables::memory::{MemoryError, Pages, Reserved};
use quiver_tables::prefix::Address;

use crate::subscriber_meters::Meters;
use crate::tables::Direction;

/// Bits of a subscriber's number.
pub(crate) const NUMBER_BITS: u8 = 20;
/// Subscribers at most, and prefixes of them.
pub(crate) const SUBSCRIBERS_MAX: usize = 1 << NUMBER_BITS;

/// Of an interface: its packets are metered by their subscribers.
const ATTACHED: u8 = 1;
/// Its packets begin with the IP header.
const BARE: u8 = 2;

/// Where the meters of a prefix's subscribers are, and which policers they have. One word, so that
/// a change is one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the first subscriber.
    pub first: u32,
    /// There are so many, as a power of two.
    pub width: u8,
    /// Bits of an address behind those that tell subscribers apart.
    pub shift: u8,
    /// By direction: what they send comes in, what they receive goes out.
    pub policers: [u16; 2],
}

impl Place {
    // first: 20 bits, width: 5, shift: 7, then the policers, so that no bit set is no policer.
    const WIDTH_AT: u32 = NUMBER_BITS as u32;
    const SHIFT_AT: u32 = Self::WIDTH_AT + 5;
    const POLICERS_AT: u32 = Self::SHIFT_AT + 7;

    pub const fn bits(self) -> u64 {
        let [input, output] = self.policers;
        self.first as u64
            | (self.width as u64) << Self::WIDTH_AT
            | (self.shift as u64) << Self::SHIFT_AT
            | (!input as u64) << Self::POLICERS_AT
            | (!output as u64) << (Self::POLICERS_AT + u16::BITS)
    }

    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Place {
        Place {
            first: bits as u32 & (SUBSCRIBERS_MAX as u32 - 1),
            width: (bits >> Self::WIDTH_AT) as u8 & 0x1f,
            shift: (bits >> Self::SHIFT_AT) as u8 & 0x7f,
            policers: [
                !((bits >> Self::POLICERS_AT) as u16),
                !((bits >> (Self::POLICERS_AT + u16::BITS)) as u16),
            ],
        }
    }

    /// The number of the subscriber who has an address of the prefix.
    #[inline(always)]
    pub fn number<A: Address>(self, address: A) -> u32 {
        let in_prefix = (address >> u32::from(self.shift)).low() as u32;
        self.first + (in_prefix & ((1 << self.width) - 1))
    }
}

/// All that workers read.
pub(crate) struct SubscriberTables {
    /// By number of a prefix.
    places: Reserved<AtomicU64>,
    /// By direction.
    pub meters: [Meters; 2],
    /// What is found is the number of the prefix plus one.
    pub ip4: OnceLock<Arc<LpmSpace<u32>>>,
    pub ip6: OnceLock<Arc<LpmSpace<u128>>>,
    /// By direction and interface.
    attached: [Box<[AtomicU8]>; 2],
}

impl SubscriberTables {
    /// No subscribers; so many workers meter.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(workers: usize) -> Result<SubscriberTables, MemoryError> {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU8::new(0)).collect();
        Ok(SubscriberTables {
            places: Reserved::new("subscribers' prefixes", SUBSCRIBERS_MAX, Pages::Small)?,
            meters: [Meters::new(workers)?, Meters::new(workers)?],
            ip4: OnceLock::new(),
            ip6: OnceLock::new(),
            attached: [none(), none()],
        })
    }

    /// Let a prefix have its subscribers in this place, or none.
    pub fn set_place(&self, prefix: u32, place: Option<Place>) {
        let bits = place.map_or(0, Place::bits);
        self.places.get(prefix as usize).store(bits, Ordering::Release);
    }

    /// Where the subscribers of a prefix are.
    #[inline(always)]
    pub fn place(&self, prefix: u32) -> Place {
        Place::from_bits(self.places.get(prefix as usize).load(Ordering::Acquire))
    }

    /// Let an interface's packets be metered by their subscribers, or not any more. `is_bare`: they
    /// begin with the IP header.
    pub fn attach(&self, on: InterfaceId, direction: Direction, is_bare: Option<bool>) {
        let word = is_bare.map_or(0, |is_bare| ATTACHED | if is_bare { BARE } else { 0 });
        if let Some(place) = self.attached[direction as usize].get(on.index()) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Are an interface's packets metered, and do they begin with the IP header?
    #[inline(always)]
    pub fn is_bare(&self, on: InterfaceId, direction: Direction) -> Option<bool> {
        let word = self.attached[direction as usize].get(on.index())?.load(Ordering::Relaxed);
        (word & ATTACHED != 0).then_some(word & BARE != 0)
    }
}

impl Direction {
    /// Which subscribers' packets an interface has in this direction, as shapers call it.
    pub(crate) const fn of_subscriber(self) -> &'static str {
        match self {
            Direction::Input => "upload",
            Direction::Output => "download",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quiver_policing::NO_POLICER;

    use super::*;

    proptest! {
        #[test]
        fn a_place_is_one_word(
            first in 0..SUBSCRIBERS_MAX as u32,
            width in 0..=NUMBER_BITS,
            shift in 0u8..128,
            policers in any::<[u16; 2]>(),
        ) {
            let place = Place { first, width, shift, policers };
            prop_assert_eq!(Place::from_bits(place.bits()), place);
        }
    }

    #[test]
    fn no_bit_set_is_no_policer() {
        assert_eq!(Place::from_bits(0).policers, [NO_POLICER; 2]);
    }

    #[test]
    fn addresses_of_a_prefix_have_numbers_one_after_another() {
        let place = Place { first: 256, width: 8, shift: 0, policers: [0, 0] };
        assert_eq!(place.number(0x0a00_0000_u32), 256);
        assert_eq!(place.number(0x0a00_00ff_u32), 511);
        // Each /64 of 2001:db8::/56.
        let place = Place { first: 0, width: 8, shift: 64, policers: [0, 0] };
        assert_eq!(place.number(0x2001_0db8_0000_0003_ffff_ffff_ffff_ffff_u128), 3);
        let whole = Place { first: 7, width: 0, shift: 127, policers: [0, 0] };
        assert_eq!(whole.number(u128::MAX), 7);
    }
}
