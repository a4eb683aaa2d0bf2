//! Which sub-interface takes a frame: by port, then direct by the outer VLAN identifier, then, for
//! two tags, by the inner one. The control thread changes entries in place; a worker sees each
//! before or after.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;

use super::frame::{FrameTags, TagType};
use super::map::VidMap;
use super::matching::{Matching, Vid};

/// Marks an entry that takes frames with no more tags than it names.
const EXACT: u32 = 1 << 31;

/// A sub-interface's number and 1, perhaps [`EXACT`]; 0 when there is none.
#[derive(Default)]
struct Entry(AtomicU32);

impl Entry {
    fn set(&self, taker: Option<(InterfaceId, bool)>) {
        let word = taker.map_or(0, |(id, exact)| (id.0 + 1) | if exact { EXACT } else { 0 });
        self.0.store(word, Ordering::Release);
    }

    /// The sub-interface, if it takes frames that have (`more`) or have not more tags than it
    /// names.
    #[inline(always)]
    fn taker(&self, more: bool) -> Option<InterfaceId> {
        let word = self.0.load(Ordering::Acquire);
        if word == 0 || more && word & EXACT != 0 {
            return None;
        }
        Some(InterfaceId((word & !EXACT) - 1))
    }
}

/// What is known of one outer identifier.
#[derive(Default)]
struct Outer {
    /// Named without a second tag.
    alone: Entry,
    /// By second tag.
    inner: OnceLock<Box<VidMap<Entry>>>,
    /// With any second tag.
    any_inner: Entry,
}

impl Outer {
    /// The more is said of the tags, the earlier it is asked.
    #[inline]
    fn taker(&self, tags: &FrameTags) -> Option<InterfaceId> {
        if let Some(inner) = tags.inner {
            let exactly = self.inner.get().and_then(|map| map.get(inner));
            let by_inner = exactly.and_then(|entry| entry.taker(tags.deeper));
            if let Some(taker) = by_inner.or_else(|| self.any_inner.taker(tags.deeper)) {
                return Some(taker);
            }
        }
        self.alone.taker(tags.inner.is_some())
    }

    fn entry(&self, inner: Option<Vid>) -> &Entry {
        match inner {
            None => &self.alone,
            Some(Vid::Any) => &self.any_inner,
            Some(Vid::Exactly(vlan)) => self.inner.get_or_init(Box::default).get_or_make(vlan),
        }
    }
}

/// What is known of one kind of outer tag.
#[derive(Default)]
struct Kind {
    by_outer: VidMap<Outer>,
    any_outer: Outer,
}

/// What is known of a port.
#[derive(Default)]
struct Port {
    dot1q: Kind,
    dot1ad: Kind,
    untagged: Entry,
    default: Entry,
}

impl Port {
    fn kind(&self, kind: TagType) -> &Kind {
        match kind {
            TagType::Dot1q => &self.dot1q,
            TagType::Dot1ad => &self.dot1ad,
        }
    }

    #[inline]
    fn taker(&self, tags: &FrameTags) -> Option<InterfaceId> {
        let special = match tags.outer {
            None => self.untagged.taker(false),
            Some((kind, outer)) => {
                let kind = self.kind(kind);
                let by_outer = kind.by_outer.get(outer).and_then(|outer| outer.taker(tags));
                by_outer.or_else(|| kind.any_outer.taker(tags))
            }
        };
        special.or_else(|| self.default.taker(true))
    }

    fn entry(&self, matching: Matching) -> &Entry {
        match matching {
            Matching::Untagged => &self.untagged,
            Matching::Default => &self.default,
            Matching::Tagged { kind, outer: Vid::Any, inner, .. } => {
                self.kind(kind).any_outer.entry(inner)
            }
            Matching::Tagged { kind, outer: Vid::Exactly(outer), inner, .. } => {
                self.kind(kind).by_outer.get_or_make(outer).entry(inner)
            }
        }
    }
}

/// All ports. What a port once needed stays for the interface that gets its number next.
pub struct VlanTable {
    ports: Box<[OnceLock<Box<Port>>]>,
}

impl VlanTable {
    pub fn new() -> VlanTable {
        VlanTable { ports: (0..INTERFACES_MAX).map(|_| OnceLock::new()).collect() }
    }

    /// The sub-interface of `port` that takes a frame with these tags.
    #[inline]
    pub fn taker(&self, port: InterfaceId, tags: &FrameTags) -> Option<InterfaceId> {
        self.ports.get(port.index())?.get()?.taker(tags)
    }

    /// Let `taker` have, or nobody, what `matching` says (control thread).
    pub fn set(&self, port: InterfaceId, matching: Matching, taker: Option<InterfaceId>) {
        let exact = matches!(matching, Matching::Tagged { exact: true, .. });
        if let Some(port) = self.ports.get(port.index()) {
            let port = port.get_or_init(Box::default);
            port.entry(matching).set(taker.map(|id| (id, exact)));
        }
    }
}
