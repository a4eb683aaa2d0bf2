//! Which lanes of a batch are on their way down a trie, and how far each has come.
#![allow(unsafe_code)]

use super::kernel::{Kernel, LANES, Lane, byte_at};
use crate::prefix::Address;

/// A set of lanes, to be walked.
#[derive(Clone, Copy)]
pub(super) struct Lanes(pub u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

impl Lanes {
    /// Are these the first `count` lanes, 1 or more?
    #[inline(always)]
    pub(super) fn are_first(self, count: usize) -> bool {
        self.0 == u64::MAX >> (LANES - count)
    }
}

/// How many bytes of their addresses the lanes have below what they stand at: all the same, as long
/// as none has gone past a skip of its own.
pub(super) struct Depths {
    /// What holds for all lanes.
    all: Option<u8>,
    /// What holds for each, when they differ.
    pub each: [u8; LANES],
}

impl Depths {
    #[inline(always)]
    pub(super) fn at(depth: u8) -> Depths {
        Depths { all: Some(depth), each: [depth; LANES] }
    }

    /// From here on each lane has its own.
    ///
    /// # Safety
    /// The processor has what `K` needs.
    #[inline(always)]
    pub(super) unsafe fn part<K: Kernel>(&mut self) {
        if let Some(depth) = self.all.take() {
            // SAFETY: as the caller promises.
            unsafe { K::set_bytes(&mut self.each, depth, u64::MAX) };
        }
    }

    /// `lanes` have gone past one skip, and `others` have not.
    ///
    /// # Safety
    /// As for [`part`](Self::part).
    #[inline(always)]
    pub(super) unsafe fn skip_all<K: Kernel>(&mut self, depth: u8, lanes: Lanes, others: u64) {
        if others == 0 && self.all.is_some() {
            self.all = Some(depth);
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            self.part::<K>();
            K::set_bytes(&mut self.each, depth, lanes.0);
        }
    }

    /// The next byte of each lane's address; the lanes go one byte down. Of other lanes any may be
    /// written.
    ///
    /// # Safety
    /// As for [`part`](Self::part); lanes lie below the number of addresses.
    #[inline(always)]
    pub(super) unsafe fn all_slots<A: Address, K: Kernel>(
        &mut self,
        lanes: Lanes,
        addresses: &[A],
        slots: &mut Lane<u32>,
    ) {
        // SAFETY: as the caller promises; the byte's number is below those of an address.
        unsafe {
            match &mut self.all {
                Some(depth) => {
                    *depth = below::<A>(*depth);
                    K::bytes_at(addresses, (*depth).into(), slots);
                }
                None => self.slots(lanes, addresses, slots),
            }
        }
    }

    /// The same, one by one.
    ///
    /// # Safety
    /// Lanes lie below the number of addresses.
    #[inline(always)]
    pub(super) unsafe fn slots<A: Address>(
        &mut self,
        lanes: Lanes,
        addresses: &[A],
        slots: &mut Lane<u32>,
    ) {
        if let Some(depth) = &mut self.all {
            *depth = below::<A>(*depth);
            for lane in lanes {
                // SAFETY: as the caller promises; the byte's number is below those of an address.
                unsafe { slots.set(lane, byte_at(addresses, lane, (*depth).into())) };
            }
            return;
        }
        for lane in lanes {
            // SAFETY: as above.
            unsafe {
                let depth = self.each.get_unchecked_mut(lane);
                *depth = below::<A>(*depth);
                slots.set(lane, byte_at(addresses, lane, (*depth).into()));
            }
        }
    }
}

/// One byte down; only a late reader wraps around.
#[inline(always)]
fn below<A: Address>(depth: u8) -> u8 {
    depth.wrapping_sub(1) & (A::BITS / 8 - 1) as u8
}
