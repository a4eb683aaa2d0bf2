//! What a leaf of a prefix match holds: the number of a next-hop group.

/// A next-hop group, by its place in the table of groups, or one hop that is said by the number
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct GroupId(pub u32);

/// The bit of a number that is no place in the table, but says the hop itself. A leaf has room for
/// 30.
const RESOLVED: u32 = 1 << 29;
/// How many bits of such a number are the hop's index; those above them, up to the mark, are its
/// node.
const RESOLVED_INDEX_BITS: u32 = 18;

impl GroupId {
    /// The number that says the hop to `node` with `index` itself. `None` where they have no room
    /// in a number: 11 bits of node, 18 bits of index.
    pub const fn resolved(node: u16, index: u32) -> Option<GroupId> {
        let node = node as u32;
        if index >> RESOLVED_INDEX_BITS != 0 || node >= RESOLVED >> RESOLVED_INDEX_BITS {
            return None;
        }
        Some(GroupId(RESOLVED | node << RESOLVED_INDEX_BITS | index))
    }

    /// Does the number say the hop itself?
    #[inline(always)]
    pub const fn is_resolved(self) -> bool {
        self.0 & RESOLVED != 0
    }

    /// Its place in the table, if it has one.
    pub fn place(self) -> Option<u32> {
        (!self.is_resolved()).then_some(self.0)
    }

    /// Node and index of the hop that a resolved number says.
    #[inline(always)]
    pub const fn resolved_parts(self) -> (u16, u32) {
        let node =
            (self.0 >> RESOLVED_INDEX_BITS) as u16 & ((RESOLVED >> RESOLVED_INDEX_BITS) - 1) as u16;
        (node, self.0 & ((1 << RESOLVED_INDEX_BITS) - 1))
    }
}
