//! How long packets may be on the paths of segment lists, as routers on the way have told (RFC 2473 §7, RFC 8201), on
//! the control thread.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_core::Engine;
use quiver_core::event::Event;
use quiver_wire::{Header, Ip6Header};

use super::policies::Policies;
use super::policy::List;
use super::quote::{Told, is_moved_up};

/// What was told is believed for so long (RFC 8201 §4: 10 minutes), and then tried anew.
pub const PATH_MTU_AGE_NS: u64 = 600 * 1_000_000_000;
/// How often what is old is looked for.
const SWEEP_NS: u64 = 1_000_000_000;
/// Bits in which a container of C-SIDs and what is left of it do not differ.
const BLOCK_BITS: u32 = 16;

/// What is known of a list's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathMtu {
    /// The longest packet, with all its headers, in bytes.
    pub mtu_bytes: u16,
    /// When it is forgotten.
    pub until_ns: u64,
}

/// A list: the policy's binding SID, and its number there.
type ListId = (Ipv6Addr, u32);

/// What is known of all lists: at most one entry for each.
#[derive(Debug, Default)]
pub(super) struct PathMtus {
    by_row: BTreeMap<u32, PathMtu>,
    /// Lists by their last segment; made anew when it is asked for and policies have changed.
    by_last: Option<BTreeMap<Ipv6Addr, Vec<ListId>>>,
}

impl PathMtus {
    /// What is known of the list with this row.
    pub fn get(&self, row: u32) -> Option<PathMtu> {
        self.by_row.get(&row).copied()
    }

    /// Lists have come, or gone.
    pub fn lists_changed(&mut self) {
        self.by_last = None;
    }

    /// A row is used no more.
    pub fn forget(&mut self, row: u32) {
        self.by_row.remove(&row);
    }

    /// Rows about which something is known that is over by then.
    fn take_old(&mut self, now_ns: u64) -> Vec<u32> {
        let old: Vec<u32> =
            self.by_row.iter().filter(|(_, path)| path.until_ns <= now_ns).map(|(row, _)| *row).collect();
        old.iter().for_each(|row| self.forget(*row));
        old
    }
}

/// All lists by their last segment.
fn by_last(policies: &Policies) -> BTreeMap<Ipv6Addr, Vec<ListId>> {
    let mut lists: BTreeMap<Ipv6Addr, Vec<ListId>> = BTreeMap::new();
    for (bsid, policy) in policies.iter() {
        for (number, list) in &policy.lists {
            let last = list.path.last().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
            lists.entry(last).or_default().push((bsid, *number));
        }
    }
    lists
}

/// Lists that may have a last segment that is now `last`: a container loses C-SIDs on its way.
fn candidates(lists: &BTreeMap<Ipv6Addr, Vec<ListId>>, last: Ipv6Addr, moves: bool) -> Vec<ListId> {
    let mut found = lists.get(&last).cloned().unwrap_or_default();
    if moves {
        let behind = u128::MAX >> BLOCK_BITS;
        let block = Ipv6Addr::from(last.to_bits() & !behind)..=Ipv6Addr::from(last.to_bits() | behind);
        let moved = lists.range(block).filter(|(sent, _)| is_moved_up(**sent, last));
        found.extend(moved.flat_map(|(_, ids)| ids));
    }
    found
}

impl Policies {
    /// A router says how long packets with some segments may be: the lists that have them go by it.
    fn learn(&mut self, told: &Told, now_ns: u64) {
        let lists = self.path_mtus.by_last.take().unwrap_or_else(|| by_last(self));
        let ids = candidates(&lists, told.segments.last(), told.segments.list.is_none());
        self.path_mtus.by_last = Some(lists);
        for (bsid, number) in ids {
            let Some(List { made, .. }) = self.get(bsid).and_then(|policy| policy.lists.get(&number)) else {
                continue;
            };
            let row = made.row;
            let rows = self.worker_rows();
            let Some(own) = rows.first().map(|rows| rows.get(row)) else { continue };
            let source = Ip6Header::overlay(own.header()).map(Ip6Header::source);
            if source != Some(told.source) || !told.segments.are_of(own) {
                continue;
            }
            let mtu_bytes = told.longest(own.header_len());
            let known = self.path_mtus.get(row);
            if known.is_none_or(|known| mtu_bytes < known.mtu_bytes) {
                let until_ns = now_ns + PATH_MTU_AGE_NS;
                self.path_mtus.by_row.insert(row, PathMtu { mtu_bytes, until_ns });
                self.set_path_mtu(row, Some(mtu_bytes));
            }
        }
    }

    /// Forget what is known of all paths, or what is old.
    pub fn forget_path_mtus(&mut self, until_ns: u64) {
        for row in self.path_mtus.take_old(until_ns) {
            self.set_path_mtu(row, None);
        }
    }
}

/// Hear what workers are told.
pub(super) fn start(engine: &mut Engine) {
    engine.on_event(super::errors::NODE, |engine: &mut Engine, event: &Event| {
        let now_ns = engine.now_ns();
        if let (Some(told), Some(policies)) = (Told::read(event.bytes()), engine.get_mut::<Policies>()) {
            policies.learn(&told, now_ns);
        }
    });
    engine.every(SWEEP_NS, |engine| {
        let now_ns = engine.now_ns();
        if let Some(policies) = engine.get_mut::<Policies>() {
            policies.forget_path_mtus(now_ns);
        }
    });
}
