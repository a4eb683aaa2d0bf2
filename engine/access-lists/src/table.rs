//! What workers read: the lists that are used, by slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_classifier::{Key, NONE, field};
use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::fields::Keyed;

/// Lists that other features use at once, at most.
pub const LISTS_MAX: usize = 4096;
/// What is found has this bit when the list does not take the packet.
pub const DENY: u32 = 1;

/// A compiled list.
pub trait CompiledList: Send + Sync {
    /// What is found for `keys` of IPv4, into as many of `found`: see [`is_permitted`].
    /// `is_uniform`: neighbours are likely to be the same.
    fn find_ip4(&self, variant: Variant, is_uniform: bool, keys: &[Key<u32>], found: &mut [u32]);

    /// The same, of IPv6.
    fn find_ip6(&self, variant: Variant, is_uniform: bool, keys: &[Key<u128>], found: &mut [u32]);
}

/// Does the list take the packet for which this was found?
#[inline(always)]
pub fn is_permitted(found: u32) -> bool {
    found & DENY == 0
}

/// Where a list stands in [`ListTable`], as long as somebody uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSlot(pub(crate) u16);

/// Lists by slot, replaced one by one.
pub struct ListTable {
    slots: PublishedSlots<Arc<dyn CompiledList>>,
    /// Fields of fragments after the first.
    later: AtomicU32,
}

impl ListTable {
    /// No list in use.
    pub fn new(epochs: &Arc<Epochs>) -> ListTable {
        ListTable {
            slots: PublishedSlots::new(epochs, LISTS_MAX),
            later: AtomicU32::new(field::UPPER | field::ANY_UPPER),
        }
    }

    /// What a list says of packets, into as many of `found`; a slot without a list takes none.
    #[inline]
    pub fn find<F: Keyed>(
        &self,
        slot: ListSlot,
        (variant, is_uniform): (Variant, bool),
        pass: Pass<'_>,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        match self.slots.read(slot.0.into(), pass) {
            Some(list) => F::ask(&**list, variant, is_uniform, keys, found),
            None => found.fill(NONE),
        }
    }

    /// [`Keyed::key`]'s fields of fragments after the first.
    #[inline(always)]
    pub fn later_fragments(&self) -> u32 {
        self.later.load(Ordering::Relaxed)
    }

    /// Say whether rules that look at ports match fragments after the first.
    pub fn match_later_fragments(&self, matches: bool) {
        let fields = if matches { field::UPPER | field::ANY_UPPER } else { 0 };
        self.later.store(fields, Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, slot: ListSlot, list: Option<Arc<dyn CompiledList>>) {
        self.slots.publish(slot.0.into(), list);
    }
}
