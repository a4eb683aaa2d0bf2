//! What workers read of a SID of RFC 8986's behaviours, packed into the words of its line.

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::counted_lines::{CountedLine, LINE_WORDS};
use quiver_wire::csid::Structure;

use crate::local_sids::Flavors;

/// The parts of a line. Tables and groups are named by one number for each family: which of the two it is, is the
/// node's business; 0 is no group, for that one drops.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    pub flavors: Flavors,
    /// For IPv6 packets: the table they are looked up in, or the group of the adjacencies they go to.
    pub six: u32,
    /// For IPv4 packets, likewise.
    pub four: u32,
    /// The interface that frames go to, or are received on.
    pub interface: u32,
    /// The VLAN table (End.DX2V), or bits of the SID that are its argument (End.DT2M).
    pub more: u32,
}

impl Parts {
    /// As the control thread writes them.
    pub fn words(self) -> [u64; LINE_WORDS] {
        let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [two(self.six, self.flavors.bits().into()), two(self.interface, self.four), two(0, self.more), 0]
    }
}

/// A line with those parts.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a>(pub CountedLine<'a>);

impl Line<'_> {
    #[inline(always)]
    pub fn flavors(self) -> Flavors {
        Flavors::from_bits(self.0.word(0) as u8)
    }

    #[inline(always)]
    pub fn six(self) -> u32 {
        (self.0.word(0) >> 32) as u32
    }

    #[inline(always)]
    pub fn four(self) -> u32 {
        self.0.word(1) as u32
    }

    #[inline(always)]
    pub fn group6(self) -> GroupId {
        GroupId(self.six())
    }

    #[inline(always)]
    pub fn group4(self) -> GroupId {
        GroupId(self.four())
    }

    #[inline(always)]
    pub fn interface(self) -> InterfaceId {
        InterfaceId((self.0.word(1) >> 32) as u32)
    }

    #[inline(always)]
    pub fn more(self) -> u32 {
        self.0.word(2) as u32
    }

    /// Of a proxy: at End.AS and End.AD, do packets of another kind than the function takes go past it; at End.AM, are
    /// segments kept?
    #[inline(always)]
    pub fn is_marked(self) -> bool {
        self.0.word(MARK_PLACE) != 0
    }

    /// Lengths of a compressed SID.
    #[inline(always)]
    pub fn structure(self) -> Option<Structure> {
        let [block, csid, ..] = self.0.word(STRUCTURE_PLACE).to_le_bytes();
        Structure::new(block, csid)
    }
}

/// The word that the parts leave free, where the structure of a compressed SID stands, or a proxy's mark.
const STRUCTURE_PLACE: usize = 3;
const MARK_PLACE: usize = STRUCTURE_PLACE;

/// The words of a proxy that has the mark.
pub(crate) fn with_mark(mut words: [u64; LINE_WORDS]) -> [u64; LINE_WORDS] {
    words[MARK_PLACE] = 1;
    words
}

/// The words of a compressed SID, of those of the plain one.
pub(crate) fn with_structure(mut words: [u64; LINE_WORDS], structure: Structure) -> [u64; LINE_WORDS] {
    let lengths = [structure.block_bits(), structure.csid_bits(), 0, 0, 0, 0, 0, 0];
    words[STRUCTURE_PLACE] = u64::from_le_bytes(lengths);
    words
}
