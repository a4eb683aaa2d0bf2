//! Which interface is whose twin, as workers see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::memory::epoch::Epochs;

/// What workers see, replaced whole.
pub(crate) type Published = quiver_core::memory::epoch::Published<Twins>;

/// By interface: the other one of its pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twins(Vec<Option<InterfaceId>>);

impl Twins {
    /// Of these pairs.
    pub fn new(pairs: &BTreeMap<InterfaceId, InterfaceId>) -> Twins {
        let both = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let mut twins = Vec::new();
        for (from, to) in both {
            if twins.len() <= from.index() {
                twins.resize(from.index() + 1, None);
            }
            twins[from.index()] = Some(to);
        }
        Twins(twins)
    }

    /// The other one of an interface's pair.
    #[inline]
    pub fn other(&self, interface: InterfaceId) -> Option<InterfaceId> {
        self.0.get(interface.index()).copied().flatten()
    }
}

/// Nothing has a twin.
pub(crate) fn none(epochs: &Arc<Epochs>) -> Arc<Published> {
    Arc::new(Published::new(epochs, Twins::default()))
}
