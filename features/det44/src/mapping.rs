//! Which outside address and ports an inside address has (RFC 7422 §2.2): computed, both ways.

use quiver_translation::flow::End;

use crate::slots::SLOTS_PER_ADDRESS;

/// Ports below are nobody's.
pub(crate) const FIRST_PORT: u16 = 1_024;
/// Ports of an outside address that are given to hosts.
pub(crate) const PORTS: u32 = 65_536 - FIRST_PORT as u32;
const _: () = assert!(SLOTS_PER_ADDRESS == PORTS as usize);

/// Inside addresses behind outside addresses, alike many behind each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    inside: u32,
    inside_mask: u32,
    outside: u32,
    outside_mask: u32,
    /// Bits of an inside address that say which part of an outside address's ports it has.
    shared_bits: u32,
    /// Ports of an inside address.
    ports: PortCount,
    /// The first of its slots: those of its outside addresses, in order.
    slots: usize,
}

/// How many ports an inside address has, as what 16-bit numbers are divided by without a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortCount {
    count: u32,
    /// 2^32 divided by the count, rounded up: the quotient of a 16-bit number is exact with it.
    reciprocal: u64,
}

impl PortCount {
    /// At least one, at most [`PORTS`].
    fn new(count: u32) -> PortCount {
        PortCount { count, reciprocal: (1u64 << 32).div_ceil(count.max(1).into()) }
    }

    /// As a number.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.count
    }

    #[inline(always)]
    fn quotient(self, number: u16) -> u32 {
        ((u64::from(number) * self.reciprocal) >> 32) as u32
    }

    /// What is left of a number when the count was taken away as often as it goes.
    #[inline(always)]
    pub fn remainder(self, number: u16) -> u32 {
        u32::from(number) - self.quotient(number) * self.count
    }
}

/// Ports of an outside address that are one inside address's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The outside address.
    pub address: u32,
    /// The first port.
    pub first: u16,
    /// How many.
    pub ports: PortCount,
    /// The slot of the first port.
    pub slot: usize,
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

impl Mapping {
    /// Of prefixes, address and length; nothing where there are more outside than inside addresses,
    /// or more inside ones behind each than ports. Its slots begin at `slots`.
    pub fn new(inside: (u32, u8), outside: (u32, u8), slots: usize) -> Option<Mapping> {
        let shared_bits = u32::from(outside.1).checked_sub(inside.1.into())?;
        let count = PORTS >> shared_bits.min(31);
        if count == 0 || inside.1 > 32 || outside.1 > 32 {
            return None;
        }
        let (inside_mask, outside_mask) = (mask(inside.1), mask(outside.1));
        Some(Mapping {
            inside: inside.0 & inside_mask,
            inside_mask,
            outside: outside.0 & outside_mask,
            outside_mask,
            shared_bits,
            ports: PortCount::new(count),
            slots,
        })
    }

    /// Inside addresses behind each outside address.
    pub fn sharing_ratio(&self) -> u32 {
        1 << self.shared_bits
    }

    /// Ports of each inside address.
    pub fn ports_per_host(&self) -> u32 {
        self.ports.get()
    }

    /// Its outside addresses.
    pub fn outside_addresses(&self) -> usize {
        !self.outside_mask as usize + 1
    }

    /// The slots of all of its ports.
    pub fn slots(&self) -> std::ops::Range<usize> {
        self.slots..self.slots + self.outside_addresses() * SLOTS_PER_ADDRESS
    }

    /// The numbers of its outside addresses among those that have slots.
    pub fn addresses(&self) -> std::ops::Range<usize> {
        let std::ops::Range { start, end } = self.slots();
        start / SLOTS_PER_ADDRESS..end / SLOTS_PER_ADDRESS
    }

    /// Sessions at most: the ports of all hosts that its outside addresses have room for.
    pub fn sessions_max(&self) -> usize {
        self.outside_addresses() * (self.sharing_ratio() * self.ports_per_host()) as usize
    }

    /// Is it an address of a host?
    #[inline(always)]
    pub fn is_inside(&self, address: u32) -> bool {
        address & self.inside_mask == self.inside
    }

    /// Is it one that others see?
    #[inline(always)]
    pub fn is_outside(&self, address: u32) -> bool {
        address & self.outside_mask == self.outside
    }

    /// The ports of an inside address.
    #[inline(always)]
    pub fn block(&self, inside: u32) -> Block {
        let host = inside & !self.inside_mask;
        let address = host >> self.shared_bits;
        let part = host & ((1 << self.shared_bits) - 1);
        let first = part * self.ports.get();
        Block {
            address: self.outside | address,
            first: FIRST_PORT + first as u16,
            ports: self.ports,
            slot: self.slots + address as usize * SLOTS_PER_ADDRESS + first as usize,
        }
    }

    /// The outside address and port of a slot of [`slots`](Self::slots).
    pub fn end_of(&self, slot: usize) -> End {
        let place = slot.saturating_sub(self.slots);
        let (address, port) = (place / SLOTS_PER_ADDRESS, place % SLOTS_PER_ADDRESS);
        End { address: self.outside | address as u32, port: FIRST_PORT + port as u16 }
    }

    /// The inside address that has a port of an outside address, and the port's slot; nothing for
    /// ports that are nobody's.
    #[inline(always)]
    pub fn host(&self, outside: u32, port: u16) -> Option<(u32, usize)> {
        let place = port.checked_sub(FIRST_PORT)?;
        let part = self.ports.quotient(place);
        if part >> self.shared_bits != 0 {
            return None;
        }
        let address = outside & !self.outside_mask;
        let inside = self.inside | address << self.shared_bits | part;
        Some((inside, self.slots + address as usize * SLOTS_PER_ADDRESS + usize::from(place)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> u32 {
        text.parse::<std::net::Ipv4Addr>().unwrap().into()
    }

    #[test]
    fn hosts_share_an_address_by_parts_of_its_ports() {
        let mapping = Mapping::new((address("10.0.0.0"), 8), (address("1.1.0.0"), 18), 0).unwrap();
        assert_eq!((mapping.sharing_ratio(), mapping.ports_per_host()), (1_024, 63));
        assert_eq!(mapping.slots().len(), 16_384 * 64_512);
        let block = mapping.block(address("10.0.4.2"));
        assert_eq!((block.address, block.first), (address("1.1.0.1"), 1_024 + 2 * 63));
        assert_eq!(
            mapping.host(address("1.1.0.1"), 1_024 + 2 * 63 + 62).unwrap().0,
            address("10.0.4.2")
        );
        assert_eq!(mapping.host(address("1.1.0.1"), 1_023), None);
    }

    #[test]
    fn there_is_no_mapping_to_more_addresses_or_to_no_port() {
        assert_eq!(Mapping::new((0, 24), (0, 16), 0), None);
        assert_eq!(Mapping::new((0, 8), (0, 32), 0), None);
        assert!(Mapping::new((0, 16), (0, 31), 0).is_some());
    }

    proptest! {
        #[test]
        fn a_number_is_divided_by_its_reciprocal(number: u16, count in 1..=PORTS) {
            let ports = PortCount::new(count);
            prop_assert_eq!(ports.quotient(number), u32::from(number) / count);
            prop_assert_eq!(ports.remainder(number), u32::from(number) % count);
        }

        #[test]
        fn every_port_is_its_hosts(
            inside: u32, outside: u32, length in 1u8..=32, shared in 0u8..=15, host: u32, at: u32,
        ) {
            let lengths = (length, (length + shared).min(32));
            let Some(mapping) = Mapping::new((inside, lengths.0), (outside, lengths.1), 7) else {
                return Ok(());
            };
            let host = mapping.inside | host & !mapping.inside_mask;
            let block = mapping.block(host);
            prop_assert!(mapping.is_inside(host) && mapping.is_outside(block.address));
            let at = at % block.ports.get();
            let found = mapping.host(block.address, block.first + at as u16);
            prop_assert_eq!(found, Some((host, block.slot + at as usize)));
            let (slot, port) = (block.slot + at as usize, block.first + at as u16);
            prop_assert!(mapping.slots().contains(&slot));
            prop_assert_eq!(mapping.end_of(slot), End { address: block.address, port });
        }
    }
}
