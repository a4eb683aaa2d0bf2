//! Where a key's entry is: open addressing with linear probing, a hash's tag and a slot in a
//! bucket.

/// Buckets after which a look-up gives up. Random keys need far fewer; keys chosen to collide are
/// bounded by it.
const PROBES_MAX: usize = 256;

/// No slot.
const EMPTY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    tag: u32,
    slot: u32,
}

const FREE: Bucket = Bucket { tag: 0, slot: EMPTY };

/// The index. The bits of a tag that choose its bucket are in the tag, so that entries move without
/// a look at their keys.
pub struct Index {
    buckets: Box<[Bucket]>,
    mask: u32,
}

impl Index {
    /// For so many slots, half full at most.
    pub fn new(slots: usize) -> Index {
        let count = (slots * 2).next_power_of_two().max(16);
        Index { buckets: vec![FREE; count].into_boxed_slice(), mask: count as u32 - 1 }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Ask for the bucket of a hash, to be looked at soon.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        quiver_core::cpu::prefetch(&raw const self.buckets[(hash as u32 & self.mask) as usize]);
    }

    #[inline(always)]
    fn behind(&self, bucket: u32) -> u32 {
        bucket.wrapping_add(1) & self.mask
    }

    /// The slot whose key has this hash and for which `is_it` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = hash as u32;
        let mut at = tag & self.mask;
        for _ in 0..PROBES_MAX {
            let bucket = self.buckets[at as usize];
            if bucket.slot == EMPTY {
                return None;
            }
            if bucket.tag == tag && is_it(bucket.slot) {
                return Some(bucket.slot);
            }
            at = self.behind(at);
        }
        None
    }

    /// Put a slot in that is not there; false when too many keys fall together.
    pub fn insert(&mut self, hash: u64, slot: u32) -> bool {
        let tag = hash as u32;
        let mut at = tag & self.mask;
        for _ in 0..PROBES_MAX {
            if self.buckets[at as usize].slot == EMPTY {
                self.buckets[at as usize] = Bucket { tag, slot };
                return true;
            }
            at = self.behind(at);
        }
        false
    }

    /// Take a slot out; those behind it that may move to the front do.
    pub fn remove(&mut self, hash: u64, slot: u32) {
        let mut hole = hash as u32 & self.mask;
        while self.buckets[hole as usize].slot != slot {
            if self.buckets[hole as usize].slot == EMPTY {
                return;
            }
            hole = self.behind(hole);
        }
        let mut at = hole;
        loop {
            at = self.behind(at);
            let bucket = self.buckets[at as usize];
            if bucket.slot == EMPTY {
                break;
            }
            // It may fill the hole when its own place is not between the hole and here.
            let from_home = at.wrapping_sub(bucket.tag) & self.mask;
            let from_hole = at.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.buckets[hole as usize] = bucket;
                hole = at;
            }
        }
        self.buckets[hole as usize] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_equals_a_map(
            steps in prop::collection::vec((0u32..64, any::<bool>()), 0..400), spread in 0u32..4
        ) {
            // Hashes that crowd, and wrap at the end of the buckets.
            let hash = |slot: u32| u64::from((slot % 7) << spread).wrapping_sub(3);
            let mut index = Index::new(64);
            let mut model = HashMap::new();
            for (slot, puts) in steps {
                if puts && !model.contains_key(&slot) {
                    prop_assert!(index.insert(hash(slot), slot));
                    model.insert(slot, ());
                } else if !puts {
                    index.remove(hash(slot), slot);
                    model.remove(&slot);
                }
                for slot in 0..64 {
                    let found = index.find(hash(slot), |s| s == slot);
                    prop_assert_eq!(found, model.get(&slot).map(|()| slot));
                }
            }
        }
    }
}
