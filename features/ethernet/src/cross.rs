//! `l2-patch` and `l2-xconnect`: every frame of one interface goes out of another, as it is.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext, Steer};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use crate::state::{CrossConnects, Published};

/// A frame shorter than this has no Ethernet header.
const FRAME_BYTES_MIN: usize = 14;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `test l2patch`: a feature at `device-input`, in front of everything.
    Patch,
    /// `set interface l2 xconnect`: takes the place of `ethernet-input`.
    Xconnect,
}

impl Kind {
    /// The node's name.
    pub const fn node(self) -> &'static str {
        match self {
            Kind::Patch => "l2-patch",
            Kind::Xconnect => "l2-xconnect",
        }
    }
}

quiver_core::reasons! {
    /// Why a crossed frame dies.
    pub enum CrossDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// Taken down meanwhile.
        NotConnected = "not-connected", "the connection was taken down while the frame was under \
            way";
    }
}

/// `l2-patch` (`PATCH`) or `l2-xconnect`, a packet's part of it.
pub struct Cross<const PATCH: bool> {
    ports: Arc<Published>,
}

impl<const PATCH: bool> Cross<PATCH> {
    const KIND: Kind = if PATCH { Kind::Patch } else { Kind::Xconnect };
}

impl<const PATCH: bool> Stage for Cross<PATCH> {
    const NAME: &'static str = Self::KIND.node();
    type Reason = CrossDrop;
    /// The other interface and its output; nothing once the connection is gone.
    type InterfaceState = Option<(NodeId, InterfaceId)>;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::InterfaceState {
        let to = self.ports.read(cx.pass).peer(Self::KIND, rx)?;
        Some((cx.interface(to)?.output, to))
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, CrossDrop> {
        if !Self::takes(packet) {
            return Err(CrossDrop::Truncated);
        }
        let (output, to) = interface_state.ok_or(CrossDrop::NotConnected)?;
        packet.tx = to;
        Ok(output)
    }
}

impl<const PATCH: bool> Steer for Cross<PATCH> {
    fn way(interface_state: Self::InterfaceState) -> Option<(NodeId, InterfaceId)> {
        interface_state
    }

    #[inline(always)]
    fn takes(packet: &Packet) -> bool {
        packet.segment_length() >= FRAME_BYTES_MIN
    }
}

pub(crate) fn spec<const PATCH: bool>(crosses: &CrossConnects) -> NodeSpec {
    let ports = crosses.published().clone();
    NodeSpec::steer("Sends every frame of one interface out of another", move |_| Cross::<PATCH> {
        ports: ports.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!(
            "{} bytes from {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
