//! Which adjacency stands for which neighbour or subnet, and who uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_tables::GroupId;
use quiver_tables::memory::MemoryError;
use quiver_wire::{EtherType, MacAddress};

use super::interfaces::Interface;
use super::labels::LabelRoutes;
use super::link::Link;
use super::liveness::Watched;
use super::next_hop_objects::NextHopObjects;
use super::path::Family;
use super::stacks::Stacks;
use super::{FibNodes, InterfaceInfo, LabelNodes};
use crate::adjacency::counts::AdjacencyCounts;
use crate::adjacency::{Adjacency, AdjacencyKind, AdjacencySlots};
use crate::neighbour::{NeighbourState, Neighbours};
use crate::next_hop_group::Hop;
use crate::out_labels::OutLabels;

/// What an adjacency is for: packets of one kind, to a next hop on an interface, or (without) to
/// the neighbours on that interface, behind labels or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdjacencyKey {
    /// The interface that sends.
    pub interface: InterfaceId,
    /// The packets, as they come to it.
    pub payload: Link,
    /// The next hop; of either family.
    pub next_hop: Option<IpAddr>,
    /// The labels that packets get.
    pub labels: OutLabels,
}

impl AdjacencyKey {
    /// Does it need the nodes of labels?
    pub(super) fn is_labelled(&self) -> bool {
        !self.labels.is_empty() || self.payload.family().is_none()
    }
}

struct Record {
    content: Adjacency,
    hop: Hop,
    users: BTreeSet<GroupId>,
    /// Packets and bytes that were counted in other slots before.
    counted: [u64; 2],
}

pub(super) struct AdjacencyBook {
    slots: AdjacencySlots,
    counts: Option<Arc<AdjacencyCounts>>,
    records: BTreeMap<AdjacencyKey, Record>,
}

/// Everything an adjacency's content follows from.
pub(super) struct Surroundings<'a> {
    pub nodes: &'a FibNodes,
    pub label_nodes: Option<&'a LabelNodes>,
    pub label_routes: &'a LabelRoutes,
    pub interfaces: &'a BTreeMap<InterfaceId, Interface>,
    pub neighbours: &'a Neighbours,
    pub stacks: &'a Stacks,
    pub objects: &'a NextHopObjects,
    /// Neighbours through which nothing is forwarded.
    pub dead: &'a BTreeSet<Watched>,
    /// Are packets counted by adjacency?
    pub counts: bool,
}

impl Surroundings<'_> {
    /// What `key` is now, and the node that handles it. `None` if the interface cannot send.
    fn content(&self, key: AdjacencyKey) -> Option<(Adjacency, NodeId)> {
        let info = &self.interfaces.get(&key.interface)?.info;
        if !info.up {
            return None;
        }
        let Some(family) = key.payload.family().filter(|_| !key.is_labelled()) else {
            return self.labelled_content(key, info);
        };
        let nodes = self.nodes.of(family);
        let unspecified = match family {
            Family::Ip4 => IpAddr::from([0; 4]),
            Family::Ip6 => IpAddr::from([0; 16]),
        };
        let next_hop = key.next_hop.unwrap_or(unspecified);
        let make = |kind, rewrite: &[u8]| {
            Adjacency::new(kind, info.id, info.output, info.mtu_of(family), next_hop, rewrite)
        };
        let rewrite_node = if self.counts { nodes.count } else { nodes.rewrite };
        if let Some(stack) = self.stacks.on(key.interface) {
            return Some(match stack.hop(key.next_hop) {
                Some(hop) => {
                    let adjacency = make(AdjacencyKind::Complete, &[]).stacked(hop.entry);
                    (adjacency, hop.nodes[family as usize])
                }
                None => (make(AdjacencyKind::Drop, &[]), nodes.drop),
            });
        }
        let Some(own) = info.mac else {
            return Some((make(AdjacencyKind::Complete, &[]), rewrite_node));
        };
        let Some(address) = key.next_hop else {
            return Some((make(AdjacencyKind::Glean, &[]), nodes.glean));
        };
        if address == IpAddr::from([u8::MAX; 4]) {
            let rewrite = info.header_to(own, MacAddress::BROADCAST, family);
            return Some((make(AdjacencyKind::Complete, &rewrite), rewrite_node));
        }
        if address.is_multicast() {
            let rewrite = info.header_to_group(address);
            return Some((make(AdjacencyKind::Complete, &rewrite), rewrite_node));
        }
        match self.neighbours.get(key.interface, address) {
            Some(neighbour) => {
                let rewrite = info.header_to(own, neighbour.mac, family);
                let is_stale = neighbour.state == NeighbourState::Stale;
                let next = if is_stale { nodes.confirm } else { rewrite_node };
                Some((make(AdjacencyKind::Complete, &rewrite), next))
            }
            None => Some((make(AdjacencyKind::Incomplete, &[]), nodes.incomplete)),
        }
    }

    /// The same where packets get labels, or have them.
    fn labelled_content(
        &self,
        key: AdjacencyKey,
        info: &InterfaceInfo,
    ) -> Option<(Adjacency, NodeId)> {
        let (labels, own, next_hop) = (self.label_nodes?, info.mac?, key.next_hop?);
        if self.stacks.on(key.interface).is_some() {
            return None;
        }
        let is_popped = key.payload == (Link::Label { is_bottom: true }) && key.labels.is_empty();
        let rewrite_node = match key.payload {
            Link::Ip4 => labels.impose[0],
            Link::Ip6 => labels.impose[1],
            Link::Ethernet => labels.impose_ethernet,
            Link::Mpls => labels.output,
            Link::Label { .. } if is_popped => labels.pop,
            Link::Label { .. } => labels.swap,
        };
        let (ether_type, mtu) = match is_popped {
            // The node writes the type of IPv6 there.
            true => (EtherType::IPV4, info.mtu_bytes),
            false => (EtherType::MPLS, info.mtu_of_labelled()),
        };
        let make = |kind, output, rewrite: &[u8]| {
            let plain = Adjacency::new(kind, info.id, output, mtu, next_hop, rewrite);
            plain.labelled(key.payload, &key.labels)
        };
        match self.neighbours.get(key.interface, next_hop) {
            Some(neighbour) => {
                let rewrite = info.header_of_type(own, neighbour.mac, ether_type);
                let next = match neighbour.state == NeighbourState::Stale {
                    true => self.nodes.labelled.confirm,
                    false if self.counts => self.nodes.labelled.count,
                    false => rewrite_node,
                };
                Some((make(AdjacencyKind::Complete, info.output, &rewrite), next))
            }
            // Packets get their labels, and wait with them.
            None => {
                let waits = self.nodes.labelled.incomplete;
                Some((make(AdjacencyKind::Incomplete, waits, &[]), rewrite_node))
            }
        }
    }
}

impl AdjacencyBook {
    pub fn new(epochs: &Arc<Epochs>) -> Result<Self, MemoryError> {
        Ok(AdjacencyBook {
            slots: AdjacencySlots::new(epochs)?,
            counts: None,
            records: BTreeMap::new(),
        })
    }

    /// Are packets counted?
    pub fn counts(&self) -> bool {
        self.counts.is_some()
    }

    /// Count from zero, or no more. The caller refreshes all adjacencies.
    pub fn count(&mut self, counts: Option<Arc<AdjacencyCounts>>) {
        if let Some(old) = std::mem::replace(&mut self.counts, counts) {
            old.set(false);
        }
        let Some(counts) = &self.counts else { return };
        for record in self.records.values_mut() {
            counts.reset(record.hop.index);
            record.counted = [0; 2];
        }
        counts.set(true);
    }

    /// Packets and bytes of an adjacency, when they are counted.
    pub fn counted(&self, key: AdjacencyKey) -> Option<[u64; 2]> {
        let (counts, record) = (self.counts.as_ref()?, self.records.get(&key)?);
        let now = counts.sums(record.hop.index);
        Some([0, 1].map(|place| record.counted[place].wrapping_add(now[place])))
    }

    fn add_slot(&mut self, key: AdjacencyKey, content: Adjacency) -> Option<u32> {
        let index = self.slots.add_labelled(content, &key.labels)?;
        if let Some(counts) = &self.counts {
            counts.reset(index);
        }
        Some(index)
    }

    pub fn slots(&mut self) -> &mut AdjacencySlots {
        &mut self.slots
    }

    pub fn table(&self) -> &Arc<crate::adjacency::Adjacencies> {
        self.slots.table()
    }

    /// The hop for `key`; the adjacency is made if it is not there. `None` if the interface cannot
    /// send, or there is no slot left.
    pub fn hop(&mut self, key: AdjacencyKey, around: &Surroundings) -> Option<Hop> {
        if let Some(record) = self.records.get(&key) {
            return around
                .interfaces
                .get(&key.interface)
                .filter(|on| on.info.up)
                .map(|_| record.hop);
        }
        let (content, next) = around.content(key)?;
        let hop = Hop { next, index: self.add_slot(key, content)? };
        self.records.insert(key, Record { content, hop, users: BTreeSet::new(), counted: [0; 2] });
        Some(hop)
    }

    /// The hop for `key`, if its adjacency is there.
    pub fn known_hop(&self, key: AdjacencyKey) -> Option<Hop> {
        self.records.get(&key).map(|record| record.hop)
    }

    /// The groups that use the adjacency of `key`.
    pub fn users(&self, key: AdjacencyKey) -> impl Iterator<Item = GroupId> {
        self.records.get(&key).into_iter().flat_map(|record| record.users.iter().copied())
    }

    pub fn add_user(&mut self, key: AdjacencyKey, user: GroupId) {
        if let Some(record) = self.records.get_mut(&key) {
            record.users.insert(user);
        }
    }

    pub fn remove_user(&mut self, key: AdjacencyKey, user: GroupId) {
        if let Some(record) = self.records.get_mut(&key) {
            record.users.remove(&user);
        }
        self.drop_unused(key);
    }

    /// Retire the adjacency of `key` if nobody uses it.
    pub fn drop_unused(&mut self, key: AdjacencyKey) {
        if let Some(record) = self.records.get(&key)
            && record.users.is_empty()
        {
            self.slots.retire(record.hop.index);
            self.records.remove(&key);
        }
    }

    /// Keys on `interface`.
    pub fn on(&self, interface: InterfaceId) -> Vec<AdjacencyKey> {
        let labels = OutLabels::NONE;
        let first = AdjacencyKey { interface, payload: Link::Ip4, next_hop: None, labels };
        let all = self.records.range(first..).map(|(key, _)| *key);
        all.take_while(|key| key.interface == interface).collect()
    }

    /// Keys on `interface` with a next hop, or without.
    pub fn towards(&self, interface: InterfaceId, next_hop: Option<IpAddr>) -> Vec<AdjacencyKey> {
        let of_link = |payload| {
            let key = |labels| AdjacencyKey { interface, payload, next_hop, labels };
            self.records.range(key(OutLabels::NONE)..=key(OutLabels::LAST)).map(|(key, _)| *key)
        };
        Link::ALL.into_iter().flat_map(of_link).collect()
    }

    /// If what `key` should be is not what it is, take another slot for it; where only the node
    /// that handles it is another, the slot stays. Returns the slot to retire once the users point
    /// at the new one, and the users.
    pub fn refresh(
        &mut self,
        key: AdjacencyKey,
        around: &Surroundings,
    ) -> Option<(Option<u32>, Vec<GroupId>)> {
        let record = self.records.get_mut(&key)?;
        let (content, next) = around.content(key)?;
        if content == record.content {
            let changed = std::mem::replace(&mut record.hop.next, next) != next;
            return changed.then(|| (None, record.users.iter().copied().collect()));
        }
        // Room was checked. Should there be none all the same, the old content stays.
        let index = self.add_slot(key, content)?;
        let counted = self.counted(key).unwrap_or_default();
        let record = self.records.get_mut(&key)?;
        record.counted = counted;
        let old = std::mem::replace(&mut record.hop, Hop { next, index });
        record.content = content;
        Some((Some(old.index), record.users.iter().copied().collect()))
    }

    /// All, in order of interface.
    pub fn iter(&self) -> impl Iterator<Item = (AdjacencyKey, Hop, &Adjacency)> {
        self.after(None)
    }

    /// Those behind one in order of interface, or from the first.
    pub fn after(
        &self,
        last: Option<AdjacencyKey>,
    ) -> impl Iterator<Item = (AdjacencyKey, Hop, &Adjacency)> {
        let behind =
            self.records.range((last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        behind.map(|(key, record)| (*key, record.hop, &record.content))
    }
}
