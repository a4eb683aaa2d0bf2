//! The words of an encapsulation entry as [`EncapOutput`](crate::EncapOutput) reads them.

use quiver_core::WorkerId;
use quiver_tables::GroupId;

use crate::ecn;
use crate::entries::{ENTRY_WORDS, EncapEntries, EncapEntry};

/// Bits of the second word: the place of the next header, flags, and from bit 16 on the path MTU in
/// bytes, the greatest number as long as none is known.
const COPIES_HOP_LIMIT: u32 = 1 << 8;
const FEATURE_FLAG: u32 = 1 << 9;
const COPIES_DSCP: u32 = 1 << 10;
const PATH_MTU_SHIFT: u32 = 16;
const PATH_MTU_WORD: usize = 1;

/// What a feature says about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryWords {
    /// The next-hop group that leads to the outer destination: the underlay's, which the FIB keeps
    /// up to date.
    pub underlay: GroupId,
    /// The small number of the table that has the outer destination.
    pub table: u32,
    /// The offset, from the first byte of the header stack, of the byte that names the inner
    /// protocol.
    pub protocol_offset: u8,
    /// Does the outer header have the hop limit that the inner packet has left?
    pub copies_hop_limit: bool,
    /// Does the outer header have the differentiated services of the inner packet (RFC 2983 §3,
    /// uniform model)? The ECN field is always copied (RFC 6040 §4.1).
    pub copies_dscp: bool,
    /// A flag whose meaning is the feature's.
    pub feature_flag: bool,
}

impl EntryWords {
    /// As [`EncapEntries::add`] takes them, with no path MTU known.
    pub fn words(self) -> [u32; ENTRY_WORDS] {
        let mut flags = u32::from(self.protocol_offset);
        flags |= if self.copies_hop_limit { COPIES_HOP_LIMIT } else { 0 };
        flags |= if self.feature_flag { FEATURE_FLAG } else { 0 };
        flags |= if self.copies_dscp { COPIES_DSCP } else { 0 };
        [self.underlay.0, with_path_mtu(flags, None), self.table]
    }
}

/// A word with another path MTU.
fn with_path_mtu(word: u32, mtu_bytes: Option<u16>) -> u32 {
    let flags = word & ((1 << PATH_MTU_SHIFT) - 1);
    flags | u32::from(mtu_bytes.unwrap_or(u16::MAX)) << PATH_MTU_SHIFT
}

/// Set the longest outer packet of an entry, or take the limit away.
pub fn set_path_mtu(entries: &EncapEntries, index: u32, mtu_bytes: Option<u16>) {
    let word = entries.of(WorkerId(0)).get(index).word(PATH_MTU_WORD);
    entries.set_word(index, PATH_MTU_WORD, with_path_mtu(word, mtu_bytes));
}

/// A view of an entry whose words are [`EntryWords`].
#[derive(Clone, Copy)]
pub struct EntryView<'a>(pub &'a EncapEntry);

impl EntryView<'_> {
    /// The next-hop group of the outer destination.
    #[inline(always)]
    pub fn underlay(self) -> GroupId {
        GroupId(self.0.word(0))
    }

    /// The offset of the byte that names the inner protocol.
    #[inline(always)]
    pub fn protocol_offset(self) -> usize {
        usize::from(self.0.word(1) as u8)
    }

    /// The longest outer packet that the path takes, in bytes.
    #[inline(always)]
    pub fn path_mtu_bytes(self) -> u16 {
        (self.0.word(PATH_MTU_WORD) >> PATH_MTU_SHIFT) as u16
    }

    /// Does the outer header have the hop limit that the inner packet has left?
    #[inline(always)]
    pub fn copies_hop_limit(self) -> bool {
        self.0.word(1) & COPIES_HOP_LIMIT != 0
    }

    /// The traffic class of the outer header, whose template has one, around a packet that has
    /// another.
    #[inline(always)]
    pub fn outer_class(self, template: u8, inner: u8) -> u8 {
        if self.0.word(1) & COPIES_DSCP != 0 {
            inner
        } else {
            template & !ecn::MASK | inner & ecn::MASK
        }
    }

    /// The feature's flag.
    #[inline(always)]
    pub fn feature_flag(self) -> bool {
        self.0.word(1) & FEATURE_FLAG != 0
    }

    /// The table that has the outer destination.
    #[inline(always)]
    pub fn table(self) -> u32 {
        self.0.word(2)
    }
}
