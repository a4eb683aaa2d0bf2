#![doc = include_str!("README.md")]

mod flooding;
mod ports;
mod sweep;
mod word;
mod writer;

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::cpu::Variant;

use crate::exact::{ExactError, ShortTable};

pub use self::flooding::{CORE_GROUP, FarEnd, FloodPlace, FloodRequest, Flooded};
pub use self::ports::{PORTS_MAX, PortWord, Ports};
pub use self::sweep::{Gone, Swept};
pub use self::word::{DomainIndex, MacEntry, MacKey, Seen, StampMinutes};
pub use self::writer::{Configured, DomainCounts, Learned, MacWriter};

/// Entries of the table at most, unless configured otherwise: eight million learned, and some to
/// spare.
pub const MAC_ENTRIES_MAX: usize = 8_500_000;
/// What it can be configured to at most: address space for so many is reserved, memory is taken as
/// needed.
pub const MAC_ENTRIES_CAPACITY: usize = 1 << 24;
/// Bridge domains at most.
pub const DOMAINS_MAX: usize = u16::MAX as usize;

/// Why an entry was refused. The table is as it was.
#[derive(Debug, thiserror::Error)]
pub enum MacError {
    /// The table below.
    #[error(transparent)]
    Exact(#[from] ExactError),
    /// The limit is reached.
    #[error(
        "the MAC table is full at its limit of {0} entries; raise it with `set l2fib entries-max \
         N`, or remove some"
    )]
    Full(usize),
    /// The limit cannot be so high.
    #[error("the MAC table has at most {MAC_ENTRIES_CAPACITY} entries, not {0}")]
    BeyondCapacity(usize),
    /// No bridge domain is free.
    #[error(
        "there are {DOMAINS_MAX} bridge domains, or some that were deleted are not swept yet; try \
         again in a second"
    )]
    NoDomain,
    /// Not a member.
    #[error("interface number {0} is no member of this bridge domain")]
    NotAMember(u32),
}

/// The MAC table as workers read it. Look up inside a pass.
#[derive(Clone)]
pub struct MacTable {
    entries: ShortTable<MacEntry>,
    ports: Arc<Ports>,
}

impl MacTable {
    /// What is known of `keys` ([`MacKey::word`]), into as many of `found`; [`MacEntry::NONE`]
    /// where nothing is.
    #[inline(always)]
    pub fn lookup_slice(&self, variant: Variant, keys: &[u64], found: &mut [MacEntry]) {
        self.entries.lookup_slice(variant, keys, MacEntry::NONE, found);
    }

    /// What is known of one key.
    #[inline]
    pub fn lookup(&self, key: MacKey) -> MacEntry {
        self.entries.lookup(key.word()).unwrap_or(MacEntry::NONE)
    }

    /// A worker has seen the source: note the time, unless the control thread changed the entry
    /// meanwhile.
    #[inline]
    pub fn refresh(&self, key: MacKey, old: MacEntry, seen: Seen) -> bool {
        self.entries.exchange(key.word(), old, old.seen(seen))
    }

    /// The ports.
    #[inline(always)]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// What a known source that came in by `port` looks like at this minute.
    #[inline]
    pub fn expected(&self, port: InterfaceId, now: StampMinutes) -> Seen {
        Seen::of(port, self.ports.word(port), now)
    }
}
