//! `mpls-tunnel`: what a tunnel's interface sends goes by the tunnel's paths, which put labels on
//! it.

use std::sync::Arc;

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::epoch::{Epochs, PublishedSlots};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::flow::kept_frame_hash;
use quiver_encap::inner::InnerPacket;
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, flow_hash};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;

use crate::stack::version;

/// The node.
pub(super) const NODE: &str = "mpls-tunnel";
/// Bytes of a control word that says nothing (RFC 4448 §4.6, without sequence numbers).
pub(crate) const CONTROL_WORD_BYTES: usize = 4;

quiver_core::reasons! {
    /// Why a tunnel sends nothing.
    pub enum MplsTunnelDrop {
        /// It has none.
        NoPath = "no-path", "no path of the MPLS tunnel can be used (`show mpls tunnel`)";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the control word";
        /// Longer than the link takes.
        TooBig = "too-big", "longer with its labels than the outgoing MTU, and not to be \
            fragmented";
    }
}

/// A tunnel as workers read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The group of its paths, for frames.
    pub group: GroupId,
    /// Does it carry frames?
    pub is_l2: bool,
    /// Is there a control word between labels and frames?
    pub control_word: bool,
}

/// All tunnels, by interface.
pub(crate) type PublishedEnds = PublishedSlots<Ends>;

/// No tunnels.
pub(super) fn ends(epochs: &Arc<Epochs>) -> PublishedEnds {
    PublishedSlots::new(epochs, INTERFACES_MAX)
}

/// `mpls-tunnel`, a packet's part of it.
struct Tunnel {
    ends: Arc<PublishedEnds>,
    tables: Arc<IpTables>,
    sends: [NodeId; 3],
    too_big4: NodeId,
    error6: NodeId,
}

impl Tunnel {
    /// An IP packet that is too long with its labels: it is fragmented, or its sender is told.
    #[cold]
    fn too_long(&self, mtu_bytes: u16, packet: &mut Packet) -> Result<NodeId, MplsTunnelDrop> {
        if version(packet.bytes()) == 4 {
            return Ok(self.too_big4);
        }
        let request = Ip6::too_big(packet, mtu_bytes.into()).ok_or(MplsTunnelDrop::TooBig)?;
        packet.hand_over(request);
        Ok(self.error6)
    }
}

impl Stage for Tunnel {
    const NAME: &'static str = NODE;
    type Reason = MplsTunnelDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, MplsTunnelDrop> {
        let ends = self.ends.read(packet.tx.index(), context.pass());
        let Ends { group, is_l2, control_word } = *ends.ok_or(MplsTunnelDrop::NoPath)?;
        let word = self.tables.groups.word(group);
        let hop = match word.is_single() {
            true => word.hop(),
            false => {
                let hash = match (is_l2, version(packet.bytes())) {
                    (true, _) => kept_frame_hash(packet),
                    (false, 4) => flow_hash::<Ip4>(packet),
                    (false, _) => flow_hash::<Ip6>(packet),
                };
                self.tables.groups.choose(word, hash)
            }
        };
        if !self.sends.contains(&hop.next) {
            return Err(MplsTunnelDrop::NoPath);
        }
        let mtu_bytes = self.tables.adjacencies.get(hop.index).mtu_bytes;
        hop.route(packet);
        if !is_l2 && packet.length() > usize::from(mtu_bytes) {
            return self.too_long(mtu_bytes, packet);
        }
        if control_word {
            if !packet.push(CONTROL_WORD_BYTES) {
                return Err(MplsTunnelDrop::NoHeadroom);
            }
            if let Some(word) = packet.bytes_mut().first_chunk_mut::<CONTROL_WORD_BYTES>() {
                *word = [0; CONTROL_WORD_BYTES];
            }
        }
        Ok(hop.next)
    }
}

/// The declaration.
pub(super) fn spec() -> NodeSpec {
    let help = "Finds the path by which the interface of an MPLS tunnel sends";
    NodeSpec::stage(help, |wiring: &Wiring<'_>| Tunnel {
        ends: wiring.shared(),
        tables: wiring.shared(),
        sends: [
            wiring.node(nodes::mpls::IMPOSE_ETHERNET),
            wiring.node(nodes::mpls::CONFIRM_NEIGHBOR),
            wiring.node(nodes::mpls::ADJACENCY_COUNTER),
        ],
        too_big4: wiring.node(nodes::ip4::TOO_BIG),
        error6: wiring.node(Ip6::ERROR_NODE),
    })
    .describe(|record, names| {
        let (tunnel, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes by {tunnel}, to {}", names.node(record.next))
    })
}
