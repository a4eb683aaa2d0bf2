//! `linux-cp-xc`: what Linux sends on a twin leaves by the interface whose twin it is, as it is.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::{EthernetHeader, Header};

use crate::twins::{Published, Twins};

/// The node's name.
pub(crate) const NAME: &str = "linux-cp-xc";

/// Where tags stand in a frame: behind the two addresses, bytes.
pub(crate) const TAGS_AT: usize = 12;

quiver_core::reasons! {
    /// Why a frame from Linux dies.
    pub enum FromHostDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// Deleted meanwhile.
        NoPair = "no-pair", "the pair was deleted while the frame was under way";
        /// The interface is down.
        Down = "interface-down", "the interface whose twin sent the frame is down (`set interface \
            state IF up`)";
        /// Nowhere to put tags.
        NoRoom = "no-room", "no room in front of the frame for the tags of its sub-interface";
    }
}

struct FromHost {
    twins: Arc<Published>,
}

fn cross(cx: &Context<'_>, twins: &Twins, packet: &mut Packet) -> Result<NodeId, FromHostDrop> {
    if packet.segment_length() < EthernetHeader::LEN {
        return Err(FromHostDrop::Truncated);
    }
    let id = twins.other(packet.rx).ok_or(FromHostDrop::NoPair)?;
    let row = cx.interface(id).filter(|row| row.up).ok_or(FromHostDrop::Down)?;
    let tags = row.encapsulation.bytes();
    if !tags.is_empty() && !packet.insert(TAGS_AT, tags) {
        return Err(FromHostDrop::NoRoom);
    }
    packet.tx = id;
    packet.set(PacketFlags::LOCALLY_ORIGINATED);
    packet.arc_restart();
    Ok(row.output)
}

impl Node for FromHost {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let twins = self.twins.read(cx.pass);
        let cx = &*cx;
        frame.route(|packet| cross(cx, twins, packet));
    }
}

/// The declaration.
pub(crate) fn spec(twins: &Arc<Published>) -> NodeSpec {
    let twins = twins.clone();
    NodeSpec::new(NAME, "Sends frames of twins in Linux by the interfaces that they mirror", {
        move |_| Box::new(FromHost { twins: twins.clone() })
    })
    .reasons::<FromHostDrop>()
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
