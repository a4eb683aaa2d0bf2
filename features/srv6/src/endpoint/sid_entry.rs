//! The entry of a local SID of RFC 8986's behaviors, as the control thread writes it and workers
//! read it.

use std::mem::offset_of;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::counted_lines::{CountedLine, LINE_WORDS};
use quiver_wire::csid::Structure;
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute};

use crate::local_sids::Flavors;

/// The entry of a local SID: four words of a counted line. A table or a group is named by one
/// number for each family; the node of the behavior knows which of the two it is.
#[derive(Clone, Copy, Debug, Default, IntoBytes, FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct SidEntry {
    /// Bits of [`Flavors`].
    pub flavors: u32,
    /// For IPv6 packets: the table of the look-up, or the group of the adjacencies. Group 0: none,
    /// packets die.
    pub six: u32,
    /// For IPv4 packets, likewise.
    pub four: u32,
    /// The interface that frames leave by, or are received on.
    pub interface: u32,
    /// The VLAN table (End.DX2V), the argument's place in the SID (End.DT2M), the return interface
    /// (proxies).
    pub argument: u32,
    /// 1 where a proxy has its option: End.AS and End.AD pass other packets by, End.AM caches
    /// segments.
    pub proxy_option: u32,
    /// Lengths of a compressed SID's locator block and of its C-SIDs, bits.
    pub structure: [u8; 8],
}

impl SidEntry {
    /// From words of a counted line.
    pub fn of(words: [u64; LINE_WORDS]) -> SidEntry {
        transmute!(words)
    }

    /// As words of a counted line.
    pub fn words(self) -> [u64; LINE_WORDS] {
        transmute!(self)
    }

    /// The entry of a compressed SID with this structure.
    pub fn with_structure(self, structure: Structure) -> SidEntry {
        SidEntry {
            structure: [structure.block_bits(), structure.csid_bits(), 0, 0, 0, 0, 0, 0],
            ..self
        }
    }
}

/// A worker's view of a [`SidEntry`], beside its counters.
#[derive(Clone, Copy)]
pub(crate) struct SidEntryRef<'a>(pub CountedLine<'a>);

impl SidEntryRef<'_> {
    /// The 32-bit field at this offset of [`SidEntry`].
    #[inline(always)]
    fn field(self, offset: usize) -> u32 {
        (self.0.word(offset / 8) >> (offset % 8 * 8)) as u32
    }

    #[inline(always)]
    pub fn flavors(self) -> Flavors {
        Flavors::from_bits(self.field(offset_of!(SidEntry, flavors)) as u8)
    }

    #[inline(always)]
    pub fn six(self) -> u32 {
        self.field(offset_of!(SidEntry, six))
    }

    #[inline(always)]
    pub fn four(self) -> u32 {
        self.field(offset_of!(SidEntry, four))
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
        InterfaceId(self.field(offset_of!(SidEntry, interface)))
    }

    #[inline(always)]
    pub fn argument(self) -> u32 {
        self.field(offset_of!(SidEntry, argument))
    }

    #[inline(always)]
    pub fn has_proxy_option(self) -> bool {
        self.field(offset_of!(SidEntry, proxy_option)) != 0
    }

    /// Lengths of a compressed SID.
    #[inline(always)]
    pub fn structure(self) -> Option<Structure> {
        let [block, csid, ..] = self.0.word(offset_of!(SidEntry, structure) / 8).to_le_bytes();
        Structure::new(block, csid)
    }
}

#[cfg(test)]
mod tests {
    use quiver_core::WorkerId;
    use quiver_tables::counted_lines::CountedLines;

    use super::*;

    #[test]
    fn a_worker_reads_what_the_control_thread_wrote() {
        let lines = CountedLines::new("test", 8, 1).expect("address space");
        let entry = SidEntry {
            flavors: Flavors::PSP.bits().into(),
            six: 1,
            four: u32::MAX,
            interface: 3,
            argument: 4,
            proxy_option: 1,
            structure: [0; 8],
        };
        let structure = Structure::new(32, 16).expect("a structure");
        lines.write(5, entry.with_structure(structure).words());
        let own = lines.of(WorkerId(0));
        let read = SidEntryRef(own.line(5));
        assert!(read.flavors().has(Flavors::PSP));
        assert_eq!((read.six(), read.four(), read.interface()), (1, u32::MAX, InterfaceId(3)));
        assert_eq!((read.argument(), read.has_proxy_option()), (4, true));
        assert_eq!(read.structure(), Some(structure));
    }
}
