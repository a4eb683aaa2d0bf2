//! Next-hop groups (VPP: load-balance): what a route's look-up finds. Routes with the same paths
//! share a group, so that one store moves all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use quiver_core::NodeId;
use quiver_core::cpu::prefetch;
use quiver_core::memory::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::memory::{MemoryError, Pages, Reserved, Slots};
use quiver_wire::flow::FlowFields;

/// How many groups there can be (32 MB of address space, committed as used).
pub const GROUPS_MAX: usize = 1 << 22;
/// How many buckets all multi-path groups have together (32 MB of address space).
pub const BUCKETS_TOTAL_MAX: usize = 1 << 22;
/// Buckets of one group at most. Each path's share differs from its weight's by less than one
/// bucket, 1/256 of the traffic, unless it would get none: every path has at least one.
pub const BUCKETS_MAX: usize = 256;
/// Paths of one group at most.
pub const PATHS_MAX: usize = 64;

/// Where a packet goes next, and the index (adjacency, table, …) that the node there needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The next node.
    pub next: NodeId,
    /// Its argument, nearly always an adjacency.
    pub index: u32,
}

impl Hop {
    /// The number that says this hop itself, which then needs no place in the table and is not
    /// looked up there: for what leads to the same node for as long as it is there, as routes to
    /// local SIDs do. `None` where the hop has no room in a number.
    pub const fn resolved(self) -> Option<GroupId> {
        GroupId::resolved(self.next.0, self.index)
    }

    /// The hop that a resolved number says.
    #[inline(always)]
    const fn of_resolved(group: GroupId) -> Hop {
        let (next, index) = group.resolved_parts();
        Hop { next: NodeId(next), index }
    }
}

/// A group as one word: index 32 bits, node 16 bits, log2 of the number of buckets 4 bits, and the
/// fields that make a flow 12 bits; the last two are 0 where there is one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct GroupWord(u64);

impl GroupWord {
    #[inline]
    const fn single(hop: Hop) -> GroupWord {
        GroupWord(hop.index as u64 | (hop.next.0 as u64) << 32)
    }

    #[inline]
    const fn multi(base: u32, buckets_log2: u32, fields: FlowFields) -> GroupWord {
        GroupWord(base as u64 | (buckets_log2 as u64) << 48 | (fields.bits() as u64) << 52)
    }

    /// Is there one path? Then no flow hash is needed.
    #[inline(always)]
    pub const fn is_single(self) -> bool {
        self.0 >> 48 == 0
    }

    /// The hop of a single-path group.
    #[inline(always)]
    pub const fn hop(self) -> Hop {
        Hop { next: NodeId((self.0 >> 32) as u16), index: self.0 as u32 }
    }

    /// Which fields make a flow, where there are several paths.
    #[inline(always)]
    pub const fn flow_fields(self) -> FlowFields {
        FlowFields::from_bits((self.0 >> 52) as u16)
    }

    /// How many buckets.
    #[inline(always)]
    pub const fn buckets(self) -> usize {
        1 << (self.0 >> 48 & 0xf)
    }
}

/// The groups as workers read them.
pub struct Groups {
    words: Reserved<AtomicU64>,
    buckets: Reserved<AtomicU64>,
    /// What the flow hash is mixed with in groups whose fields say so.
    seed: AtomicU32,
    /// Are there so many that their words do not stay at hand?
    many: AtomicBool,
}

impl Groups {
    /// The group's word.
    #[inline(always)]
    pub fn word(&self, group: GroupId) -> GroupWord {
        if group.is_resolved() {
            return GroupWord::single(Hop::of_resolved(group));
        }
        GroupWord(self.words.get(group.0 as usize).load(Ordering::Acquire))
    }

    /// Ask for a group's word ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, group: GroupId) {
        if !group.is_resolved() {
            prefetch(self.words.get(group.0 as usize));
        }
    }

    /// Ask for the words of what was found ahead of their use, where there are many and they
    /// differ.
    #[inline(always)]
    pub fn prefetch_found(&self, found: &[GroupId]) {
        if self.many.load(Ordering::Relaxed) && found.first() != found.last() {
            found.iter().for_each(|group| self.prefetch(*group));
        }
    }

    /// The hop of `word` for a flow. The low bits of the hash choose the bucket.
    #[inline(always)]
    pub fn choose(&self, word: GroupWord, flow_hash: u32) -> Hop {
        if word.is_single() {
            return word.hop();
        }
        let bucket = word.0 as u32 as usize + (flow_hash as usize & (word.buckets() - 1));
        GroupWord(self.buckets.get(bucket).load(Ordering::Acquire)).hop()
    }

    /// What the flow hash is mixed with in groups whose fields say [`FlowFields::SEEDED`].
    pub fn seed(&self) -> u32 {
        self.seed.load(Ordering::Relaxed)
    }

    /// The hop of `group` for a flow.
    #[inline(always)]
    pub fn resolve(&self, group: GroupId, flow_hash: u32) -> Hop {
        self.choose(self.word(group), flow_hash)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.words.resident_bytes() + self.buckets.resident_bytes()
    }

    /// The hops of a group, one per bucket.
    pub fn each_hop(&self, group: GroupId) -> impl Iterator<Item = Hop> + '_ {
        let word = self.word(group);
        (0..word.buckets() as u32).map(move |hash| self.choose(word, hash))
    }

    /// All hops of a group, one per bucket; for `show` and tests.
    pub fn hops(&self, group: GroupId) -> Vec<Hop> {
        let word = self.word(group);
        (0..word.buckets() as u32).map(|hash| self.choose(word, hash)).collect()
    }
}

/// From so many groups on (32 KB of words), workers ask for words ahead of their use.
const MANY: usize = 4_096;

/// Why a group could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No slot.
    #[error(
        "the table of next-hop groups is full ({GROUPS_MAX}); remove routes with paths of their own"
    )]
    Full,
    /// No buckets.
    #[error(
        "the buckets of multi-path groups are used up ({BUCKETS_TOTAL_MAX}); remove multi-path \
         routes"
    )]
    BucketsFull,
}

/// The control side of the groups. There is one per table.
pub struct GroupSlots {
    table: Arc<Groups>,
    groups: Slots,
    buckets: Slots,
    epochs: Arc<Epochs>,
    stores: u64,
}

impl GroupSlots {
    /// An empty table. The caller's first [`add`](Self::add) becomes group 0, which workers also
    /// reach with a wrong index: make it a drop.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>) -> Result<Self, MemoryError> {
        let table = Groups {
            words: Reserved::new("next-hop groups", GROUPS_MAX, Pages::Small)?,
            buckets: Reserved::new("next-hop buckets", BUCKETS_TOTAL_MAX, Pages::Small)?,
            seed: AtomicU32::new(0),
            many: AtomicBool::new(false),
        };
        Ok(GroupSlots {
            table: Arc::new(table),
            groups: Slots::new(&[1], GROUPS_MAX, 512, 512),
            buckets: Slots::new(&[2, 4, 8, 16, 32, 64, 128, 256], BUCKETS_TOTAL_MAX, 512, 512),
            epochs: epochs.clone(),
            stores: 0,
        })
    }

    /// The workers' side.
    pub fn table(&self) -> &Arc<Groups> {
        &self.table
    }

    /// A new group of these weighted hops (at least one).
    ///
    /// # Errors
    /// There is no group or bucket left.
    pub fn add(&mut self, hops: &[(Hop, u32)]) -> Result<GroupId, GroupError> {
        self.add_by(FlowFields::DEFAULT, hops)
    }

    /// [`add`](Self::add), where flows are made of these fields.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn add_by(
        &mut self,
        fields: FlowFields,
        hops: &[(Hop, u32)],
    ) -> Result<GroupId, GroupError> {
        if self.groups.headroom() == 0 {
            self.reclaim();
        }
        let word = self.build(fields, hops)?;
        let Some(index) = self.groups.take(1) else {
            self.retire_buckets(word);
            return Err(GroupError::Full);
        };
        self.table.words.get(index as usize).store(word.0, Ordering::Release);
        self.warn_if_many();
        Ok(GroupId(index))
    }

    /// Change what `group` means, for all routes that share it, by one store.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn replace(&mut self, group: GroupId, hops: &[(Hop, u32)]) -> Result<(), GroupError> {
        self.replace_by(FlowFields::DEFAULT, group, hops)
    }

    /// [`replace`](Self::replace), where flows are made of these fields.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn replace_by(
        &mut self,
        fields: FlowFields,
        group: GroupId,
        hops: &[(Hop, u32)],
    ) -> Result<(), GroupError> {
        let word = self.build(fields, hops)?;
        self.publish(group, word);
        Ok(())
    }

    /// Change `group` to a single hop. Unlike [`replace`](Self::replace) it cannot fail.
    pub fn replace_single(&mut self, group: GroupId, hop: Hop) {
        self.publish(group, GroupWord::single(hop));
    }

    /// Let other fields make a flow of `group`, if it has several paths.
    pub fn set_fields(&mut self, group: GroupId, fields: FlowFields) {
        let word = self.table.word(group);
        if !word.is_single() {
            let changed = GroupWord(word.0 << 12 >> 12 | u64::from(fields.bits()) << 52);
            self.table.words.get(group.0 as usize).store(changed.0, Ordering::Release);
            self.stores += 1;
        }
    }

    /// Mix this into flow hashes from now on.
    pub fn set_seed(&mut self, seed: u32) {
        self.table.seed.store(seed, Ordering::Relaxed);
    }

    /// How many stores have changed what a group means.
    pub fn stores(&self) -> u64 {
        self.stores
    }

    fn publish(&mut self, group: GroupId, word: GroupWord) {
        self.stores += 1;
        let old = self.table.words.get(group.0 as usize).swap(word.0, Ordering::AcqRel);
        self.retire_buckets(GroupWord(old));
    }

    /// Take `group` out of use; no route may hold it any more.
    pub fn retire(&mut self, group: GroupId) {
        if group.is_resolved() {
            return;
        }
        self.retire_buckets(self.table.word(group));
        self.groups.retire(group.0, 1);
        self.warn_if_many();
    }

    fn warn_if_many(&self) {
        self.table.many.store(self.groups.used() >= MANY, Ordering::Relaxed);
    }

    fn retire_buckets(&mut self, word: GroupWord) {
        if !word.is_single() {
            self.buckets.retire(word.0 as u32, word.buckets());
        }
    }

    /// Make free what no worker sees any more.
    pub fn reclaim(&mut self) {
        let table = &self.table;
        // word 0 must stay; 8 bytes a group need no return
        self.groups.reclaim(&self.epochs, |_| ());
        self.buckets.reclaim(&self.epochs, |range| table.buckets.release(range));
    }

    /// Groups in use.
    pub fn len(&self) -> usize {
        self.groups.used()
    }

    /// Is there no group?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn build(&mut self, fields: FlowFields, hops: &[(Hop, u32)]) -> Result<GroupWord, GroupError> {
        assert!(!hops.is_empty() && hops.len() <= PATHS_MAX, "a group of {} paths", hops.len());
        if hops.iter().all(|(hop, _)| *hop == hops[0].0) {
            return Ok(GroupWord::single(hops[0].0));
        }
        let weights: Vec<u32> = hops.iter().map(|(_, weight)| (*weight).max(1)).collect();
        let counts = share_buckets(&weights);
        let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
        if self.buckets.headroom() < BUCKETS_MAX {
            self.reclaim();
        }
        let base = self.buckets.take(total).ok_or(GroupError::BucketsFull)?;
        let spread = hops.iter().zip(&counts).flat_map(|((hop, _), count)| {
            std::iter::repeat_n(GroupWord::single(*hop), usize::from(*count))
        });
        for (bucket, word) in spread.enumerate() {
            self.table.buckets.get(base as usize + bucket).store(word.0, Ordering::Relaxed);
        }
        Ok(GroupWord::multi(base, total.trailing_zeros(), fields))
    }
}

/// Share a power of two of buckets by weight (largest remainder): the smallest number that gives
/// every path its exact share, else [`BUCKETS_MAX`].
fn share_buckets(weights: &[u32]) -> Vec<u16> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let mut buckets = weights.len().next_power_of_two().max(2);
    while buckets < BUCKETS_MAX
        && weights.iter().any(|weight| !(u64::from(*weight) * buckets as u64).is_multiple_of(total))
    {
        buckets *= 2;
    }
    let exact = |weight: u32| u64::from(weight) * buckets as u64;
    let mut counts: Vec<u16> =
        weights.iter().map(|weight| (exact(*weight) / total).max(1) as u16).collect();
    let given = |counts: &[u16]| counts.iter().map(|count| usize::from(*count)).sum::<usize>();
    // Signed distance to the exact share, scaled by `total`: positive when a path has too little.
    let owed = |path: usize, counts: &[u16]| {
        exact(weights[path]) as i64 - (u64::from(counts[path]) * total) as i64
    };
    while given(&counts) < buckets {
        let path = (0..counts.len()).rev().max_by_key(|path| owed(*path, &counts)).expect("a path");
        counts[path] += 1;
    }
    while given(&counts) > buckets {
        let rich = (0..counts.len()).filter(|path| counts[*path] > 1);
        let path = rich.min_by_key(|path| owed(*path, &counts)).expect("fewer paths than buckets");
        counts[path] -= 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hop(index: u32) -> Hop {
        Hop { next: NodeId(7), index }
    }

    #[test]
    fn one_path_needs_no_hash_and_no_bucket() {
        let mut groups = GroupSlots::new(&Epochs::new(0)).expect("memory");
        let group = groups.add(&[(hop(5), 1)]).expect("room");
        assert!(groups.table().word(group).is_single());
        assert_eq!(groups.table().resolve(group, 0xdead_beef), hop(5));
    }

    #[test]
    fn a_number_that_is_a_hop_says_it_without_a_place() {
        let groups = GroupSlots::new(&Epochs::new(0)).expect("memory");
        for hop in [(0, 0), (7, 5), (2047, (1 << 18) - 1)]
            .map(|(next, index)| Hop { next: NodeId(next), index })
        {
            let group = hop.resolved().expect("room");
            assert!(group.is_resolved() && group.0 >> 30 == 0, "{group:?} fits into a leaf");
            assert!(groups.table().word(group).is_single());
            assert_eq!(groups.table().resolve(group, 0xdead_beef), hop);
        }
        assert_eq!(groups.len(), 0);
        let wide = [Hop { next: NodeId(2048), index: 0 }, Hop { next: NodeId(1), index: 1 << 18 }];
        assert_eq!(wide.map(Hop::resolved), [None; 2]);
        assert!(!GroupId(GROUPS_MAX as u32 - 1).is_resolved());
    }

    #[test]
    fn equal_weights_of_a_power_of_two_take_one_bucket_each() {
        assert_eq!(share_buckets(&[1, 1, 1, 1]), [1, 1, 1, 1]);
        assert_eq!(share_buckets(&[3, 1]), [3, 1]);
        assert_eq!(share_buckets(&[1, 1, 1]), [86, 85, 85]);
        assert_eq!(share_buckets(&[1, 1_000_000]), [1, 255]);
    }

    #[test]
    fn replacing_a_group_changes_it_for_everybody_and_frees_the_old_buckets() {
        let mut groups = GroupSlots::new(&Epochs::new(0)).expect("memory");
        let group = groups.add(&[(hop(1), 1), (hop(2), 3)]).expect("room");
        assert_eq!(groups.table().hops(group), [hop(1), hop(2), hop(2), hop(2)]);
        groups.replace(group, &[(hop(9), 1)]).expect("room");
        assert_eq!(groups.table().hops(group), [hop(9)]);
        groups.reclaim();
        assert_eq!(groups.buckets.used(), 0);
    }

    proptest! {
        #[test]
        fn every_share_is_within_one_bucket_or_the_minimum(
            weights in prop::collection::vec(1u32..1000, 1..=PATHS_MAX)
        ) {
            let counts = share_buckets(&weights);
            let buckets: u64 = counts.iter().map(|count| u64::from(*count)).sum();
            prop_assert!(buckets.is_power_of_two() && buckets <= BUCKETS_MAX as u64);
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            let poor = weights.iter().filter(|weight| u64::from(**weight) * buckets < total).count()
                as u64;
            for (weight, count) in weights.iter().zip(&counts) {
                let exact = u64::from(*weight) as f64 * buckets as f64 / total as f64;
                prop_assert!(*count >= 1);
                // Paths raised to the minimum take their bucket from the others.
                prop_assert!((f64::from(*count) - exact).abs() < 1.0 + poor as f64);
            }
        }
    }
}
