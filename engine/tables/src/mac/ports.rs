//! The ports of all bridge domains: a word each that workers read beside the entries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::{InterfaceId, NodeId};

use super::DOMAINS_MAX;
use super::word::DomainIndex;

/// Interfaces that can be ports.
pub const PORTS_MAX: usize = INTERFACES_MAX;

/// Where in words the stay in a domain is counted, and the flushes.
const TENURE_SHIFT: u32 = 32;
pub(super) const FLUSH_SHIFT: u32 = 40;
/// Both.
pub(super) const EPOCHS: u64 = 0xffff << TENURE_SHIFT;
const DOMAIN_SHIFT: u32 = 16;
const GROUP_SHIFT: u32 = 48;

/// What workers need to know of the port that an address is behind.
///
/// ```text
///  63      56 55      48 47    40 39     32 31      16 15       0
/// ┌──────────┬──────────┬────────┬─────────┬──────────┬──────────┐
/// │          │ group    │ flush  │ tenure  │ domain   │ output   │
/// └──────────┴──────────┴────────┴─────────┴──────────┴──────────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortWord(u64);

impl PortWord {
    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// The node that sends by the port.
    #[inline(always)]
    pub fn output(self) -> NodeId {
        NodeId(self.0 as u16)
    }

    /// The domain that it is in; 0 when it is in none.
    #[inline(always)]
    pub fn domain(self) -> DomainIndex {
        DomainIndex((self.0 >> DOMAIN_SHIFT) as u16)
    }

    /// Its split-horizon group; 0 when it is in none.
    #[inline(always)]
    pub fn group(self) -> u8 {
        (self.0 >> GROUP_SHIFT) as u8
    }

    fn tenure(self) -> u8 {
        (self.0 >> TENURE_SHIFT) as u8
    }

    fn flush(self) -> u8 {
        (self.0 >> FLUSH_SHIFT) as u8
    }

    /// The same stay counts, in a domain.
    pub(super) fn with(self, domain: DomainIndex, output: NodeId, group: u8) -> PortWord {
        let place = u64::from(output.0) | u64::from(domain.0) << DOMAIN_SHIFT;
        PortWord(self.0 & EPOCHS | place | u64::from(group) << GROUP_SHIFT)
    }

    /// In no domain, and what was learned on it does not hold.
    pub(super) fn next_tenure(self) -> PortWord {
        PortWord(
            u64::from(self.flush()) << FLUSH_SHIFT
                | u64::from(self.tenure().wrapping_add(1)) << TENURE_SHIFT,
        )
    }

    /// What was learned on it does not hold; what was configured does.
    pub(super) fn next_flush(self) -> PortWord {
        let flush = u64::from(self.flush().wrapping_add(1)) << FLUSH_SHIFT;
        PortWord(self.0 & !(0xff << FLUSH_SHIFT) | flush)
    }
}

/// All ports, and which domains learn no more.
pub struct Ports {
    words: Box<[AtomicU64]>,
    full: Box<[AtomicBool]>,
}

impl Ports {
    pub(super) fn new() -> Ports {
        Ports {
            words: (0..PORTS_MAX).map(|_| AtomicU64::new(0)).collect(),
            full: (0..=DOMAINS_MAX).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// What is to be known of a port; of what cannot be a port, nothing.
    #[inline(always)]
    pub fn word(&self, port: InterfaceId) -> PortWord {
        PortWord(self.words.get(port.index()).map_or(0, |word| word.load(Ordering::Acquire)))
    }

    pub(super) fn set(&self, port: InterfaceId, word: PortWord) {
        if let Some(place) = self.words.get(port.index()) {
            place.store(word.0, Ordering::Release);
        }
    }

    /// Does a domain learn no more addresses, because it has as many as it may or the table is
    /// full?
    #[inline]
    pub fn is_full(&self, domain: DomainIndex) -> bool {
        let full =
            |index: usize| self.full.get(index).is_some_and(|full| full.load(Ordering::Relaxed));
        full(0) || full(usize::from(domain.0))
    }

    /// Domain 0 stands for the whole table. Stored only when it changes: workers read the line for
    /// every source that they do not know.
    pub(super) fn set_full(&self, domain: DomainIndex, full: bool) {
        let place = self.full.get(usize::from(domain.0));
        if let Some(place) = place.filter(|place| place.load(Ordering::Relaxed) != full) {
            place.store(full, Ordering::Relaxed);
        }
    }
}
