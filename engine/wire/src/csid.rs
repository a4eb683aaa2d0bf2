//! Compressed SIDs: several of them in one IPv6 address, a container (RFC 9800 §4).
//!
//! ```text
//! bit 0                block               block + csid                 128
//! +---------------------+------------------+---------------------------+
//! |    Locator-Block    | C-SID: node, fun |         Argument          |
//! +---------------------+------------------+---------------------------+
//! ```
//!
//! With NEXT-C-SID the argument is the C-SIDs that follow, the next one first, zero behind the
//! last. With REPLACE-C-SID its lowest bits are the place of the active C-SID in the active
//! container, an element of the segment list that has nothing but C-SIDs.

/// Lengths of a compressed SID, bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    block: u8,
    csid: u8,
}

impl Structure {
    /// A SID whose locator block has `block` bits and whose C-SID, locator node and function
    /// together, has `csid` (RFC 9800: LBL and LNFL). `None` when one is zero, or nothing is left
    /// for an argument.
    pub const fn new(block: u8, csid: u8) -> Option<Structure> {
        if block == 0 || csid == 0 || block as u16 + csid as u16 >= 128 {
            return None;
        }
        Some(Structure { block, csid })
    }

    /// Bits of the locator block.
    #[inline(always)]
    pub const fn block_bits(self) -> u8 {
        self.block
    }

    /// Bits of a C-SID.
    #[inline(always)]
    pub const fn csid_bits(self) -> u8 {
        self.csid
    }

    /// Bits of an address in front of the argument: the length of the SID's prefix.
    #[inline(always)]
    pub const fn prefix_bits(self) -> u8 {
        self.block + self.csid
    }

    /// The bits of the locator block.
    #[inline(always)]
    const fn block_mask(self) -> u128 {
        !(u128::MAX >> self.block)
    }

    /// The argument of an address.
    #[inline(always)]
    pub const fn argument(self, address: u128) -> u128 {
        address & (u128::MAX >> self.prefix_bits())
    }

    /// The address with the next C-SID as the active one: the argument moves up to the block, zeros
    /// come behind it (RFC 9800 §4.1.1, S05 and S06). `None` when the argument is zero: then there
    /// is none.
    #[inline(always)]
    pub const fn next(self, address: u128) -> Option<u128> {
        if self.block >= 64 || self.csid >= 64 {
            return self.next_of_any(address);
        }
        // As nearly always, the block ends in the address's first half, and half a word at most
        // moves over.
        let (high, low) = ((address >> 64) as u64, address as u64);
        let behind = u64::MAX >> self.block;
        let moved = (high << self.csid | low >> (64 - self.csid)) & behind;
        let low = low << self.csid;
        if moved | low == 0 {
            None
        } else {
            Some((((high & !behind) | moved) as u128) << 64 | low as u128)
        }
    }

    /// As [`next`](Self::next), of any lengths.
    const fn next_of_any(self, address: u128) -> Option<u128> {
        // What was in front of the argument goes up into the block, and is not looked at there.
        let (block, moved) = (self.block_mask(), address << self.csid);
        if moved & !block == 0 { None } else { Some((address & block) | (moved & !block)) }
    }

    /// The address with another C-SID as the active one.
    #[inline(always)]
    pub const fn replace(self, address: u128, csid: u128) -> u128 {
        let room = 128 - self.prefix_bits() as u32;
        let mask = (u128::MAX >> (128 - self.csid as u32)) << room;
        (address & !mask) | ((csid << room) & mask)
    }
}

/// A length of C-SIDs with which containers are filled for REPLACE-C-SID (RFC 9800 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Eight of 16 bits.
    Eight,
    /// Four of 32 bits.
    Four,
}

impl Packing {
    /// For C-SIDs of so many bits; RFC 9800 has 16 and 32.
    pub const fn of(csid_bits: u8) -> Option<Packing> {
        match csid_bits {
            16 => Some(Packing::Eight),
            32 => Some(Packing::Four),
            _ => None,
        }
    }

    /// C-SIDs in a container.
    #[inline(always)]
    pub const fn count(self) -> u8 {
        match self {
            Packing::Eight => 8,
            Packing::Four => 4,
        }
    }

    /// Bits of a C-SID.
    #[inline(always)]
    pub const fn csid_bits(self) -> u8 {
        128 / self.count()
    }

    /// The place of the active C-SID in its container: the lowest bits of the address (RFC 9800
    /// §4.2.1, DA.Arg.Index).
    #[inline(always)]
    pub const fn index(self, address: u128) -> u8 {
        address as u8 & (self.count() - 1)
    }

    /// The address with another place in its lowest bits.
    #[inline(always)]
    pub const fn with_index(self, address: u128, index: u8) -> u128 {
        let mask = self.count() - 1;
        (address & !(mask as u128)) | (index & mask) as u128
    }

    /// The C-SID at a place of a container, the first one in its highest bits.
    #[inline(always)]
    pub const fn csid(self, container: u128, index: u8) -> u128 {
        let bits = self.csid_bits() as u32;
        let behind = (self.count() - 1 - (index & (self.count() - 1))) as u32 * bits;
        (container >> behind) & (u128::MAX >> (128 - bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;
    use proptest::prelude::*;

    fn bits(address: &str) -> u128 {
        address.parse::<Ipv6Addr>().unwrap().to_bits()
    }

    #[test]
    fn the_argument_moves_up_and_zeros_come_behind_it() {
        let node = Structure::new(32, 16).unwrap();
        assert_eq!(node.next(bits("fcbb:bbbb:1:2:3::")), Some(bits("fcbb:bbbb:2:3::")));
        assert_eq!(node.next(bits("fcbb:bbbb:1::")), None);
        assert_eq!(node.argument(bits("fcbb:bbbb:1::")), 0);
        assert_eq!(node.argument(bits("fcbb:bbbb:1:2:3::")), bits("0:0:0:2:3::"));
        let both = Structure::new(32, 32).unwrap();
        assert_eq!(both.next(bits("fcbb:bbbb:1:f001:2:3::")), Some(bits("fcbb:bbbb:2:3::")));
    }

    #[test]
    fn a_csid_is_written_behind_the_block_and_its_place_into_the_lowest_bits() {
        let sid = Structure::new(48, 32).unwrap();
        let (four, container) = (Packing::of(32).unwrap(), bits("a:b:c:d:e:f:1:2"));
        assert_eq!(
            [0, 1, 2, 3].map(|at| four.csid(container, at)),
            [0xa_000b, 0xc_000d, 0xe_000f, 0x1_0002]
        );
        assert_eq!(sid.replace(bits("2001:db8:b:1:2::3"), 0x20_0001), bits("2001:db8:b:20:1::3"));
        assert_eq!(four.with_index(bits("2001:db8:b:20:1::7"), 2), bits("2001:db8:b:20:1::6"));
        assert_eq!((four.index(7), Packing::Eight.index(7)), (3, 7));
    }

    #[test]
    fn a_structure_leaves_room_for_an_argument() {
        assert!(Structure::new(0, 16).is_none() && Structure::new(32, 0).is_none());
        assert!(Structure::new(112, 16).is_none() && Structure::new(255, 255).is_none());
        assert!(Structure::new(111, 16).is_some());
        assert!(Packing::of(24).is_none());
    }

    proptest! {
        #[test]
        fn halves_of_an_address_move_as_the_whole_does(
            block in 1u8..127, csid in 1u8..127, address: u128, zeros in 0u32..128
        ) {
            if let Some(structure) = Structure::new(block, csid) {
                let address = (address >> zeros) << zeros;
                prop_assert_eq!(structure.next(address), structure.next_of_any(address));
            }
        }

        #[test]
        fn every_csid_of_a_container_has_its_turn(block in 16u8..=64, csids: [u16; 3]) {
            let structure = Structure::new(block, 16).unwrap();
            let mut address =
                csids.iter().enumerate().fold(u128::MAX << (128 - block), |all, (at, csid)| {
                    all | u128::from(*csid) << (112 - u32::from(block) - 16 * at as u32)
                });
            for csid in csids {
                let active = address << block >> 112;
                prop_assert_eq!(active, u128::from(csid));
                address = structure.next(address).unwrap_or(u128::MAX << (128 - block));
            }
            prop_assert_eq!(address, u128::MAX << (128 - block));
        }

        #[test]
        fn what_is_replaced_is_the_csid_alone(block in 1u8..=90, address: u128, csid: u32) {
            let structure = Structure::new(block, 32).unwrap();
            let replaced = structure.replace(address, csid.into());
            prop_assert_eq!(replaced << block >> 96, u128::from(csid));
            prop_assert_eq!(structure.argument(replaced), structure.argument(address));
            prop_assert_eq!(structure.replace(replaced, address << block >> 96), address);
        }
    }
}
