//! Adjacencies: what a frame to a neighbour begins with, and where it leaves. One cache line each,
//! never changed once published: a change takes another slot, so a worker never sees half of one.
#![allow(unsafe_code)]

pub mod counts;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId, Packet};
use quiver_tables::memory::{MemoryError, Pages, Reserved, Slots, ZeroValid};

use crate::fib::Link;
use crate::handover::AdjacencyIndex;
use crate::out_labels::{LabelMode, OUT_LABELS_MAX, OutLabels};

/// How many adjacencies there can be: 64 MB of address space, committed as used.
pub const ADJACENCIES_MAX: usize = 1 << 20;
/// Bytes of the rewrite field: Ethernet, two VLAN tags, and room for an MPLS stack of two.
pub const REWRITE_BYTES_MAX: usize = 32;
/// Label stacks without room in the rewrite that there can be at a time.
pub const LONG_STACKS_MAX: usize = 1 << 18;
/// Bytes of such a stack, right-aligned.
pub const LONG_STACK_BYTES: usize = 64;
const _: () = assert!(OUT_LABELS_MAX * 4 <= LONG_STACK_BYTES);

/// Bits of an adjacency's form: the next hop is an IPv6 address, the labels tell of what is behind
/// them, and they stand in a stack of their own. Above them is the number of the kind of packets.
const SIX: u8 = 1;
const UNIFORM: u8 = 2;
const LONG: u8 = 4;
const LINK_SHIFT: u32 = 3;

/// What stands in an adjacency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AdjacencyKind {
    /// Nothing: packets are dropped here. The value of a slot never written.
    Drop = 0,
    /// The neighbour's address is known; the rewrite is whole.
    Complete = 1,
    /// The neighbour must be asked first (ARP, ND).
    Incomplete = 2,
    /// A connected subnet: whom to ask stands in the packet.
    Glean = 3,
}

/// An adjacency, one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct Adjacency {
    rewrite: [u8; REWRITE_BYTES_MAX],
    next_hop: [u8; 16],
    /// The interface that sends.
    pub tx: InterfaceId,
    /// That interface's output node.
    pub output: NodeId,
    /// Longest IP packet that may leave here, in bytes (the L3 MTU).
    pub mtu_bytes: u16,
    rewrite_len: u8,
    /// What this is.
    pub kind: AdjacencyKind,
    form: u8,
    labels: u8,
    /// Of a stacked adjacency: the encapsulation entry with the header stack that goes in front.
    /// Of one with a long label stack: the place of that. 0 otherwise.
    pub entry: u32,
}

const _: () = assert!(size_of::<Adjacency>() == 64);
// SAFETY: zeroes are a drop adjacency; every field is a plain number.
unsafe impl ZeroValid for Adjacency {}

impl Adjacency {
    /// The adjacency that drops.
    pub const DROP: Adjacency = Adjacency {
        rewrite: [0; REWRITE_BYTES_MAX],
        next_hop: [0; 16],
        tx: InterfaceId::NONE,
        output: NodeId(0),
        mtu_bytes: 0,
        rewrite_len: 0,
        kind: AdjacencyKind::Drop,
        form: 0,
        labels: 0,
        entry: 0,
    };

    /// An adjacency of `kind` with these first bytes of the frame (at most
    /// [`REWRITE_BYTES_MAX`]; what is longer is cut at the front).
    pub fn new(
        kind: AdjacencyKind,
        tx: InterfaceId,
        output: NodeId,
        mtu_bytes: u16,
        next_hop: IpAddr,
        rewrite: &[u8],
    ) -> Adjacency {
        let rewrite = &rewrite[rewrite.len().saturating_sub(REWRITE_BYTES_MAX)..];
        let mut adjacency = Adjacency {
            kind,
            tx,
            output,
            mtu_bytes,
            rewrite_len: rewrite.len() as u8,
            ..Adjacency::DROP
        };
        adjacency.rewrite[REWRITE_BYTES_MAX - rewrite.len()..].copy_from_slice(rewrite);
        match next_hop {
            IpAddr::V4(address) => adjacency.next_hop[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => adjacency.next_hop = address.octets(),
        }
        adjacency.form = if next_hop.is_ipv6() { SIX } else { 0 };
        adjacency
    }

    /// The same for packets of a kind that get these labels behind the rewrite, or none. The MTU is
    /// that of labelled packets; it becomes that of what is behind the labels.
    pub(crate) fn labelled(mut self, link: Link, labels: &OutLabels) -> Adjacency {
        let stack = labels.bytes();
        let is_long = self.rewrite_len() + stack.len() > REWRITE_BYTES_MAX;
        self.form |= link.number() << LINK_SHIFT;
        self.form |= if labels.mode() == LabelMode::Uniform { UNIFORM } else { 0 };
        self.form |= if is_long { LONG } else { 0 };
        self.labels = labels.len() as u8;
        self.mtu_bytes = self.mtu_bytes.saturating_sub(stack.len() as u16);
        if !is_long {
            let header = self.rewrite().to_vec();
            let all = [&header[..], &stack[..]].concat();
            self.rewrite = [0; REWRITE_BYTES_MAX];
            self.rewrite[REWRITE_BYTES_MAX - all.len()..].copy_from_slice(&all);
            self.rewrite_len = all.len() as u8;
        }
        self
    }

    /// How many labels stand in front of packets.
    #[inline(always)]
    pub fn label_count(&self) -> usize {
        usize::from(self.labels)
    }

    /// Do the labels have the TTL and the traffic class of what is behind them (RFC 3443 §2.2)?
    #[inline(always)]
    pub fn is_uniform(&self) -> bool {
        self.form & UNIFORM != 0
    }

    /// Do the labels stand in a stack of their own ([`Adjacencies::long_stack`]), and not in the
    /// rewrite?
    #[inline(always)]
    pub fn has_long_stack(&self) -> bool {
        self.form & LONG != 0
    }

    /// Is it one for labelled packets, or one that puts labels on packets?
    #[inline(always)]
    pub fn is_labelled(&self) -> bool {
        (self.labels != 0) | (self.form >> LINK_SHIFT > Link::Ethernet.number())
    }

    /// The kind of packets of an adjacency with labels, or for labelled packets.
    pub fn link(&self) -> Link {
        let number = usize::from(self.form >> LINK_SHIFT);
        Link::ALL.get(number).copied().unwrap_or(Link::Mpls)
    }

    /// The same on the interface of a tunnel: packets get the header stack of an encapsulation
    /// entry.
    pub fn stacked(self, entry: u32) -> Adjacency {
        Adjacency { entry, ..self }
    }

    /// The rewrite, right-aligned: byte 31 is the last one before the IP header. A data plane
    /// copies the last 16 bytes or all 32, ending where the IP header starts.
    #[inline(always)]
    pub fn rewrite_field(&self) -> &[u8; REWRITE_BYTES_MAX] {
        &self.rewrite
    }

    /// The rewrite without the padding before it.
    #[inline]
    pub fn rewrite(&self) -> &[u8] {
        &self.rewrite[REWRITE_BYTES_MAX - usize::from(self.rewrite_len).min(REWRITE_BYTES_MAX)..]
    }

    /// Length of the rewrite in bytes.
    #[inline(always)]
    pub fn rewrite_len(&self) -> usize {
        usize::from(self.rewrite_len)
    }

    /// The next hop as 16 bytes; an IPv4 address in the first four.
    #[inline(always)]
    pub fn next_hop_bytes(&self) -> &[u8; 16] {
        &self.next_hop
    }

    /// The next hop's address.
    pub fn next_hop(&self) -> IpAddr {
        let [a, b, c, d, ..] = self.next_hop;
        if self.form & SIX != 0 {
            IpAddr::V6(Ipv6Addr::from(self.next_hop))
        } else {
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
    }
}

/// The table of adjacencies as workers read it. Index 0 drops.
pub struct Adjacencies {
    slots: Reserved<Adjacency>,
    long_stacks: Reserved<[u8; LONG_STACK_BYTES]>,
}

impl Adjacencies {
    /// The adjacency at `index`, as found in a next-hop group during this pass. It stays as it is
    /// until every worker has finished a pass after it was unpublished.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &Adjacency {
        self.slots.get(index as usize)
    }

    /// The adjacency that a packet's route has handed over.
    #[inline(always)]
    #[track_caller]
    pub fn of(&self, packet: &Packet) -> &Adjacency {
        self.get(packet.handed_over::<AdjacencyIndex>().0)
    }

    /// The label stack of an adjacency that has a long one, right-aligned.
    pub fn long_stack(&self, adjacency: &Adjacency) -> &[u8; LONG_STACK_BYTES] {
        self.long_stacks.get(adjacency.entry as usize)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.slots.resident_bytes() + self.long_stacks.resident_bytes()
    }
}

/// The control side: which slots are in use. There is one per table.
pub struct AdjacencySlots {
    table: Arc<Adjacencies>,
    slots: Slots,
    long_stacks: Slots,
    limit: usize,
    epochs: Arc<Epochs>,
}

impl AdjacencySlots {
    /// An empty table with the drop adjacency at index 0.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>) -> Result<Self, MemoryError> {
        let memory = Reserved::new("adjacencies", ADJACENCIES_MAX, Pages::Small)?;
        let mut slots = Slots::new(&[1], ADJACENCIES_MAX, 64, 64);
        assert_eq!(slots.take(1), Some(0), "slot 0 is the drop adjacency");
        let long_stacks = Reserved::new("label stacks", LONG_STACKS_MAX, Pages::Small)?;
        let mut table = AdjacencySlots {
            table: Arc::new(Adjacencies { slots: memory, long_stacks }),
            slots,
            long_stacks: Slots::new(&[1], LONG_STACKS_MAX, 64, 64),
            limit: ADJACENCIES_MAX,
            epochs: epochs.clone(),
        };
        table.write(0, Adjacency::DROP);
        Ok(table)
    }

    /// The workers' side.
    pub fn table(&self) -> &Arc<Adjacencies> {
        &self.table
    }

    fn write(&mut self, index: u32, adjacency: Adjacency) {
        // SAFETY: the slot is not published (fresh, or past its grace period), so nobody reads it.
        unsafe { self.table.slots.slot(index as usize).write(adjacency) };
    }

    /// Write `adjacency` to a free slot. Workers see it when its index is published in a next-hop
    /// group. `None` when the table is full.
    pub fn add(&mut self, adjacency: Adjacency) -> Option<u32> {
        if self.slots.headroom() == 0 {
            self.reclaim();
        }
        let index = self.slots.take(1)?;
        self.write(index, adjacency);
        Some(index)
    }

    /// As [`add`](Self::add), where the adjacency may have a long label stack: these labels.
    pub(crate) fn add_labelled(&mut self, adjacency: Adjacency, labels: &OutLabels) -> Option<u32> {
        if !adjacency.has_long_stack() {
            return self.add(adjacency);
        }
        if self.long_stacks.headroom() == 0 {
            self.reclaim();
        }
        let place = self.long_stacks.take(1)?;
        let (mut block, bytes) = ([0; LONG_STACK_BYTES], labels.bytes());
        block[LONG_STACK_BYTES - bytes.len()..].copy_from_slice(&bytes);
        // SAFETY: the slot is not published (fresh, or past its grace period), so nobody reads it.
        unsafe { self.table.long_stacks.slot(place as usize).write(block) };
        let index = self.add(Adjacency { entry: place, ..adjacency });
        if index.is_none() {
            self.long_stacks.retire(place, 1);
        }
        index
    }

    /// Take `index` out of use; it must be published no more.
    pub fn retire(&mut self, index: u32) {
        debug_assert_ne!(index, 0, "the drop adjacency stays");
        let adjacency = self.table.get(index);
        if adjacency.has_long_stack() {
            self.long_stacks.retire(adjacency.entry, 1);
        }
        self.slots.retire(index, 1);
    }

    /// Make free what no worker sees any more.
    pub fn reclaim(&mut self) {
        let memory = &self.table.slots;
        self.slots.reclaim(&self.epochs, |range| {
            if range.start > 0 {
                memory.release(range);
            }
        });
        self.long_stacks.reclaim(&self.epochs, |_| ());
    }

    /// At most `limit` adjacencies from now on; those that are there stay.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(ADJACENCIES_MAX);
    }

    /// Is there surely room for `count` more?
    pub fn has_room(&mut self, count: usize) -> bool {
        if self.len() + count > self.limit {
            return false;
        }
        if self.slots.headroom() < count {
            self.reclaim();
        }
        self.slots.headroom() >= count
    }

    /// Adjacencies in use, without the drop adjacency.
    pub fn len(&self) -> usize {
        self.slots.used() - 1
    }

    /// Is only the drop adjacency there?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_ends_where_the_ip_header_starts() {
        let bytes: Vec<u8> = (1..=14).collect();
        let next_hop = IpAddr::from([10, 0, 0, 1]);
        let adjacency = Adjacency::new(
            AdjacencyKind::Complete,
            InterfaceId(3),
            NodeId(9),
            1500,
            next_hop,
            &bytes,
        );
        assert_eq!(adjacency.rewrite(), bytes);
        assert_eq!(adjacency.rewrite_field()[31], 14);
        assert_eq!(adjacency.rewrite_field()[17], 0);
        assert_eq!(adjacency.next_hop(), next_hop);
    }

    #[test]
    fn a_published_adjacency_is_not_overwritten_while_a_worker_may_read_it() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let mut table = AdjacencySlots::new(&epochs).expect("memory");
        let next_hop = IpAddr::from([10, 0, 0, 1]);
        let make = |mtu| {
            Adjacency::new(AdjacencyKind::Glean, InterfaceId(0), NodeId(0), mtu, next_hop, &[])
        };
        let first = table.add(make(1)).expect("room");
        table.retire(first);
        table.reclaim();
        let second = table.add(make(2)).expect("room");
        assert_ne!(first, second);
        assert_eq!(table.table().get(first).mtu_bytes, 1);
        assert_eq!(table.table().get(0).kind, AdjacencyKind::Drop);
    }
}
