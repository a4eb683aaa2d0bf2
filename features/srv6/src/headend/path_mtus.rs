//! Which segment lists go by a path whose MTU a router reports (RFC 2473 §7, RFC 8201), on the
//! control thread.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_core::Engine;
use quiver_core::worker::event::Event;
use quiver_encap::path_mtu::SWEEP_NS;
use quiver_wire::{Header, Ip6Header};

use super::policies::Policies;
use super::policy::List;
use super::quote::{PathMtuReport, is_moved_up};

/// Bits in which a container of C-SIDs and what is left of it do not differ.
const BLOCK_BITS: u32 = 16;

/// A list: the policy's binding SID, and its number there.
type ListId = (Ipv6Addr, u32);

/// Lists by their last segment.
pub(super) type ListsByLast = BTreeMap<Ipv6Addr, Vec<ListId>>;

/// All lists by their last segment.
fn by_last(policies: &Policies) -> ListsByLast {
    let mut lists = ListsByLast::new();
    for (bsid, policy) in policies.iter() {
        for (number, list) in &policy.lists {
            let last = list.path.last().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
            lists.entry(last).or_default().push((bsid, *number));
        }
    }
    lists
}

/// Lists that may have a last segment that is now `last`: a container loses C-SIDs on its way.
fn candidates(lists: &ListsByLast, last: Ipv6Addr, moves: bool) -> Vec<ListId> {
    let mut found = lists.get(&last).cloned().unwrap_or_default();
    if moves {
        let behind = u128::MAX >> BLOCK_BITS;
        let block =
            Ipv6Addr::from(last.to_bits() & !behind)..=Ipv6Addr::from(last.to_bits() | behind);
        let moved = lists.range(block).filter(|(sent, _)| is_moved_up(**sent, last));
        found.extend(moved.flat_map(|(_, ids)| ids));
    }
    found
}

impl Policies {
    /// A router says how long packets with some segments may be: the lists that have them go by it.
    fn learn(&mut self, report: &PathMtuReport, now_ns: u64) {
        let lists = self.lists_by_last.take().unwrap_or_else(|| by_last(self));
        let ids = candidates(&lists, report.segments.last(), report.segments.list.is_none());
        self.lists_by_last = Some(lists);
        for (bsid, number) in ids {
            let Some(List { made, .. }) =
                self.get(bsid).and_then(|policy| policy.lists.get(&number))
            else {
                continue;
            };
            let entry = made.entry;
            let entries = self.worker_entries();
            let Some(own) = entries.first().map(|entries| entries.get(entry)) else { continue };
            let source = Ip6Header::overlay(own.header()).map(Ip6Header::source);
            if source == Some(report.source) && report.segments.are_of(own) {
                let mtu_bytes = report.longest(own.header_len());
                self.learn_path_mtu(entry, mtu_bytes, now_ns);
            }
        }
    }
}

/// Follow the reports of workers.
pub(super) fn start(engine: &mut Engine) {
    engine.on_event(super::errors::NODE, |engine: &mut Engine, event: &Event| {
        let now_ns = engine.now_ns();
        if let (Some(report), Some(policies)) =
            (PathMtuReport::read(event.bytes()), engine.get_mut::<Policies>())
        {
            policies.learn(&report, now_ns);
        }
    });
    engine.every(SWEEP_NS, |engine| {
        let now_ns = engine.now_ns();
        if let Some(policies) = engine.get_mut::<Policies>() {
            policies.forget_path_mtus(now_ns);
        }
    });
}
