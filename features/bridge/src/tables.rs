//! What workers read beside the MAC table: ports with their switches, and who is in each domain.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::{InterfaceId, NodeId};
use quiver_tables::mac::DomainIndex;
use quiver_wire::MacAddress;

/// What workers see, replaced whole.
pub(crate) type Published = quiver_core::memory::epoch::Published<View>;

/// A port as its frames find it: its own switches and its domain's together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Its domain.
    pub domain: DomainIndex,
    /// Its split-horizon group; 0 is none.
    pub group: u8,
    /// Are sources learned?
    pub learn: bool,
    /// Are frames sent to where their destination is known to be?
    pub forward: bool,
    /// Are frames to groups flooded?
    pub flood: bool,
    /// What becomes of frames to stations that are not known.
    pub unknown: Unknown,
    /// Are questions for addresses answered from the domain's list?
    pub answer: bool,
    /// Do ARP frames to all go to the `uu-fwd` port alone?
    pub arp_to_one: bool,
}

/// What becomes of frames to stations that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are dropped.
    Drop,
    /// Every port gets a copy.
    Flood,
    /// The domain's `uu-fwd` port gets them.
    ToOne,
}

/// Where a flooded frame goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The port.
    pub interface: InterfaceId,
    /// The node that sends by it.
    pub output: NodeId,
    /// Its split-horizon group.
    pub group: u8,
    /// Is it the domain's own routed interface?
    pub is_bvi: bool,
}

/// A bridge domain.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    /// All ports that flooded frames go to.
    pub members: Vec<Member>,
    /// The port for frames to stations that are not known, which gets no flooded frames.
    pub uu_forward: Option<Member>,
    /// Who has which address.
    pub stations: Arc<BTreeMap<IpAddr, MacAddress>>,
}

/// All ports and domains.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// By interface.
    pub ports: Vec<Option<Port>>,
    /// By [`DomainIndex`].
    pub domains: Vec<Option<Arc<Domain>>>,
}

impl View {
    /// The port that an interface is, if it is one.
    #[inline]
    pub fn port(&self, id: InterfaceId) -> Option<&Port> {
        self.ports.get(id.index())?.as_ref()
    }

    /// A domain.
    #[inline]
    pub fn domain(&self, index: DomainIndex) -> Option<&Domain> {
        self.domains.get(usize::from(index.0))?.as_deref()
    }
}
