//! What workers read: which members a bond sends by, and which bond a member belongs to.

use quiver_control::aggregates::WatchedAddresses;
use quiver_core::InterfaceId;

use crate::mode::{Balance, Mode};

/// Members of one bond.
pub const BOND_MEMBERS_MAX: usize = 32;

/// Replaced whole by the control thread.
pub type Published = quiver_core::memory::epoch::Published<BondTable>;

/// How a bond sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondRow {
    /// Which members send.
    pub mode: Mode,
    /// What of a frame chooses the member.
    pub balance: Balance,
    /// Those that may send, in the order in which they are preferred. At most [`BOND_MEMBERS_MAX`].
    pub active: Vec<InterfaceId>,
}

/// What a bond takes from a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Everything.
    All,
    /// What is addressed to the bond itself: the others come by the active member, too.
    Own,
    /// Nothing: LACP has not agreed that the partner may send here.
    Nothing,
}

/// A member as its receiving side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// Its bond.
    pub bond: InterfaceId,
    /// What the bond takes from it.
    pub takes: Takes,
    /// Does it speak LACP?
    pub lacp: bool,
    /// Where a protocol that watches members receives, when one does.
    pub watched: Option<WatchedAddresses>,
}

/// All bonds and members, by interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BondTable {
    bonds: Vec<Option<BondRow>>,
    members: Vec<Option<MemberRow>>,
}

fn put<T>(list: &mut Vec<Option<T>>, id: InterfaceId, row: T) {
    while list.len() <= id.index() {
        list.push(None);
    }
    list[id.index()] = Some(row);
}

impl BondTable {
    /// Add a bond.
    pub fn set_bond(&mut self, id: InterfaceId, row: BondRow) {
        debug_assert!(row.active.len() <= BOND_MEMBERS_MAX);
        put(&mut self.bonds, id, row);
    }

    /// Add a member.
    pub fn set_member(&mut self, id: InterfaceId, row: MemberRow) {
        put(&mut self.members, id, row);
    }

    /// How a bond sends.
    #[inline]
    pub fn bond(&self, id: InterfaceId) -> Option<&BondRow> {
        self.bonds.get(id.index())?.as_ref()
    }

    /// Whose member an interface is.
    #[inline]
    pub fn member(&self, id: InterfaceId) -> Option<MemberRow> {
        *self.members.get(id.index())?
    }
}
