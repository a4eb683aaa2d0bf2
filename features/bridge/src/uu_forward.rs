//! `l2-uu-fwd`: frames to stations that are not known leave by the one port of the domain that is
//! for them, and so do ARP frames to all where `arp-ufwd` is on.

use std::sync::Arc;

use quiver_core::graph::node::{DROP, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_tables::mac::{FloodPlace, Flooded};

use crate::tables::{Published, View};

quiver_core::reasons! {
    /// Why `l2-uu-fwd` drops.
    pub enum UuForwardDrop {
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// The `uu-fwd` port left the domain.
        NoPort = "no-port", "the uu-fwd port left the bridge domain while the frame was under way";
        /// The frame came in by the `uu-fwd` port.
        OwnPort = "own-port", "the frame came in by the uu-fwd port, and no other port is known \
            to lead to its destination";
        /// Both ports are in one group.
        SplitHorizon = "split-horizon", "the uu-fwd port is in the split-horizon group of the \
            port that the frame came in by";
        /// The `uu-fwd` port is down.
        Down = "interface-down", "the uu-fwd port is down";
        /// Sent.
        Sent = info "sent", "frames sent by the uu-fwd port";
    }
}

/// The name of the node.
pub(crate) const NODE: &str = "l2-uu-fwd";

struct UuForward {
    published: Arc<Published>,
}

impl UuForward {
    /// The packet's index names a split-horizon group that gets none, as for the nodes that flood
    /// ([`FloodPlace`]).
    fn decide(cx: &Context<'_>, view: &View, packet: &mut Packet) -> Result<NodeId, UuForwardDrop> {
        let port = view.port(packet.rx).ok_or(UuForwardDrop::NotBridged)?;
        let domain = view.domain(port.domain).ok_or(UuForwardDrop::NotBridged)?;
        let member = domain.uu_forward.ok_or(UuForwardDrop::NoPort)?;
        if member.interface == packet.rx {
            return Err(UuForwardDrop::OwnPort);
        }
        let FloodPlace { excluded, .. } = packet.handed_over();
        if member.group != 0 && (member.group == port.group || member.group == excluded) {
            return Err(UuForwardDrop::SplitHorizon);
        }
        if !cx.interface(member.interface).is_some_and(|row| row.up) {
            return Err(UuForwardDrop::Down);
        }
        packet.tx = member.interface;
        packet.hand_over(Flooded { from_group: port.group });
        Ok(member.output)
    }
}

impl Node for UuForward {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let (view, mut sent) = (self.published.read(cx.pass), 0);
        frame.route(|packet| {
            let next = Self::decide(cx, view, packet);
            sent += u64::from(next.is_ok());
            next
        });
        cx.count(UuForwardDrop::Sent, sent);
    }
}

pub(crate) fn spec(published: &Arc<Published>) -> NodeSpec {
    let published = published.clone();
    NodeSpec::new(
        NODE,
        "Sends frames to unknown stations by the uu-fwd port of the domain",
        move |_| Box::new(UuForward { published: published.clone() }),
    )
    .takes_offloads()
    .reasons::<UuForwardDrop>()
    .describe(|record, names| {
        let frame = crate::description::frame(record);
        match record.next {
            DROP => format!("{frame}: dropped"),
            _ => format!("{frame}: to {}, the uu-fwd port", names.interface(record.tx)),
        }
    })
}
