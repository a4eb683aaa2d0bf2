//! What workers read: which node of the tree limits what an interface sends, and which one a
//! subscriber's packets.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_shaping::NONE;
use quiver_tables::lpm::LpmSpace;

/// Subscribers at most.
pub(crate) const SUBSCRIBERS_MAX: usize = 65_536;
/// The bit of an interface's word that says that it leads away from the subscribers.
const UPLOAD: u64 = 1 << 32;

/// Which address of a packet is the subscriber's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Its destination: the packet goes to the subscriber.
    Download,
    /// Its source: it comes from the subscriber.
    Upload,
}

/// How an interface is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shaped {
    /// The node of packets that are no subscriber's.
    pub node: u32,
    pub direction: Direction,
}

/// The tables.
pub(crate) struct Shared {
    attached: Box<[AtomicU64]>,
    /// By subscriber: the node of download in the low half, of upload in the high one.
    subscribers: OnceLock<Box<[AtomicU64]>>,
    pub ip4: OnceLock<Arc<LpmSpace<u32>>>,
    pub ip6: OnceLock<Arc<LpmSpace<u128>>>,
    count: AtomicU32,
}

impl Shared {
    pub fn new() -> Shared {
        Shared {
            attached: (0..INTERFACES_MAX).map(|_| AtomicU64::new(NONE.into())).collect(),
            subscribers: OnceLock::new(),
            ip4: OnceLock::new(),
            ip6: OnceLock::new(),
            count: AtomicU32::new(0),
        }
    }

    /// Let what an interface sends be shaped, or not any more.
    pub fn attach(&self, on: InterfaceId, shaped: Option<Shaped>) {
        let word = shaped.map_or(NONE.into(), |shaped| {
            let upload = if shaped.direction == Direction::Upload { UPLOAD } else { 0 };
            u64::from(shaped.node) | upload
        });
        if let Some(place) = self.attached.get(on.index()) {
            place.store(word, Ordering::Release);
        }
    }

    /// How an interface is shaped.
    #[inline]
    pub fn of(&self, on: InterfaceId) -> Option<Shaped> {
        let word = self.attached.get(on.index())?.load(Ordering::Acquire);
        let node = word as u32;
        let direction = if word & UPLOAD == 0 { Direction::Download } else { Direction::Upload };
        (node != NONE).then_some(Shaped { node, direction })
    }

    /// Let a subscriber's packets have these nodes, or none.
    pub fn set_subscriber(&self, number: u32, download: u32, upload: u32) {
        let none = u64::from(NONE) << 32 | u64::from(NONE);
        let all = self
            .subscribers
            .get_or_init(|| (0..SUBSCRIBERS_MAX).map(|_| AtomicU64::new(none)).collect());
        if let Some(place) = all.get(number as usize) {
            place.store(u64::from(upload) << 32 | u64::from(download), Ordering::Release);
        }
    }

    /// The node of a subscriber's packets in a direction.
    #[inline]
    pub fn node_of(&self, number: u32, direction: Direction) -> Option<u32> {
        let word = self.subscribers.get()?.get(number as usize)?.load(Ordering::Acquire);
        let node = match direction {
            Direction::Download => word as u32,
            Direction::Upload => (word >> 32) as u32,
        };
        (node != NONE).then_some(node)
    }

    /// How many subscribers there are: without any, no address is looked up.
    pub fn set_count(&self, count: usize) {
        self.count.store(count as u32, Ordering::Release);
    }

    #[inline]
    pub fn has_subscribers(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}
