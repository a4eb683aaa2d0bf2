//! `linux-cp-xc`: what Linux sends on a twin leaves by the interface whose twin it is: a frame as
//! it is, an IP packet for a tunnel with the tunnel's headers.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose};
use quiver_tables::GroupId;
use quiver_wire::{EthernetHeader, Header, Ip4Header, Ip6Header};

use crate::twins::{Crossing, Other, Published, Twins};

/// The node's name.
pub(crate) const NAME: &str = "linux-cp-xc";

/// Where tags stand in a frame: behind the two addresses, bytes.
pub(crate) const TAGS_AT: usize = 12;

quiver_core::reasons! {
    /// Why a frame from Linux dies.
    pub enum FromHostDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// No IP packet.
        NotIp = "not-ip", "what Linux sent by the twin of a tunnel is no whole IP packet";
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
    tables: Arc<IpTables>,
}

/// The version of a packet with a whole IP header that says no more bytes than there are.
fn ip_version(packet: &Packet) -> Option<u8> {
    let (bytes, length) = (packet.bytes(), packet.length());
    let version = bytes.first()? >> 4;
    let fits = match version {
        4 => {
            let header = Ip4Header::overlay(bytes)?;
            let (header_bytes, total) = (header.header_len(), header.total_length().into());
            (Ip4Header::LEN..=bytes.len()).contains(&header_bytes)
                && (header_bytes..=length).contains(&total)
        }
        6 => {
            let header = Ip6Header::overlay(bytes)?;
            Ip6Header::LEN + usize::from(header.payload_length()) <= length
        }
        _ => false,
    };
    fits.then_some(version)
}

/// A packet without a link-layer header leaves by one of the groups.
fn cross_packet(
    tables: &IpTables,
    groups: [GroupId; 2],
    packet: &mut Packet,
) -> Result<NodeId, FromHostDrop> {
    let is_ip4 = ip_version(packet).ok_or(FromHostDrop::NotIp)? == 4;
    let [four, six] = groups;
    Ok(match is_ip4 {
        true => choose::<Ip4>(&tables.groups, four, packet),
        false => choose::<Ip6>(&tables.groups, six, packet),
    })
}

fn cross(
    cx: &Context<'_>,
    twins: &Twins,
    tables: &IpTables,
    packet: &mut Packet,
) -> Result<NodeId, FromHostDrop> {
    let Other { interface: id, crossing } = twins.other(packet.rx).ok_or(FromHostDrop::NoPair)?;
    let row = cx.interface(id).filter(|row| row.up).ok_or(FromHostDrop::Down)?;
    if let Crossing::Packets(groups) = crossing {
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        packet.arc_restart();
        return cross_packet(tables, groups, packet);
    }
    if packet.segment_length() < EthernetHeader::LEN {
        return Err(FromHostDrop::Truncated);
    }
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
        let tables = &*self.tables;
        frame.route(|packet| cross(cx, twins, tables, packet));
    }
}

/// The declaration.
pub(crate) fn spec(twins: &Arc<Published>) -> NodeSpec {
    let twins = twins.clone();
    NodeSpec::new(NAME, "Sends what twins in Linux send by the interfaces that they mirror", {
        move |wiring| Box::new(FromHost { twins: twins.clone(), tables: wiring.shared() })
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
