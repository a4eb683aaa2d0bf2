//! Which interface is whose twin, as workers see it.

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::memory::epoch::Epochs;
use quiver_linux::TapKind;
use quiver_tables::GroupId;

/// What workers see, replaced whole.
pub(crate) type Published = quiver_core::memory::epoch::Published<Twins>;

/// How packets cross between an interface and its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// As Ethernet frames.
    Frames,
    /// As Ethernet frames with the tags of the sub-interface, by the twin of its port.
    Tagged,
    /// As IP packets without a link-layer header. The groups lead out by the interface: for IPv4
    /// and for IPv6.
    Packets([GroupId; 2]),
}

impl Crossing {
    /// The kind of the twin, as `show lcp` lists it.
    pub fn word(self) -> &'static str {
        match self {
            Crossing::Frames => TapKind::Tap.word(),
            Crossing::Tagged => "vlan",
            Crossing::Packets(_) => TapKind::Tun.word(),
        }
    }
}

/// The other one of an interface's pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub interface: InterfaceId,
    pub crossing: Crossing,
}

/// By interface: the other one of its pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twins(Vec<Option<Other>>);

impl Twins {
    /// Of these pairs.
    pub fn new(pairs: impl Iterator<Item = (InterfaceId, InterfaceId, Crossing)>) -> Twins {
        let mut twins = Vec::new();
        let both = |(a, b, how): (InterfaceId, InterfaceId, Crossing)| {
            // What comes by the twin of a port is the port's, with the tags that it has.
            let back = (how != Crossing::Tagged).then_some((b, a, how));
            [Some((a, b, how)), back].into_iter().flatten()
        };
        for (from, to, crossing) in pairs.flat_map(both) {
            if twins.len() <= from.index() {
                twins.resize(from.index() + 1, None);
            }
            twins[from.index()] = Some(Other { interface: to, crossing });
        }
        Twins(twins)
    }

    /// The other one of an interface's pair.
    #[inline]
    pub fn other(&self, interface: InterfaceId) -> Option<Other> {
        self.0.get(interface.index()).copied().flatten()
    }
}

/// Nothing has a twin.
pub(crate) fn none(epochs: &Arc<Epochs>) -> Arc<Published> {
    Arc::new(Published::new(epochs, Twins::default()))
}
