//! `ethernet-input`: whose frame is it, and which protocol is in it (IEEE 802.3 clause 3).

use quiver_core::node::{DROP, Node, NodeSpec};
use quiver_core::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_wire::ethernet::EthernetHeader;
use quiver_wire::{EtherType, Header};

/// Bytes of an Ethernet header without tags.
const HEADER_BYTES: usize = 14;

quiver_core::reasons! {
    /// Why `ethernet-input` drops.
    pub enum EthernetDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// Somebody else's.
        NotForUs = "mac-mismatch", "destination MAC is neither ours nor a group (`set interface promiscuous on IF` accepts it)";
        /// A length where the type should be.
        Llc = "llc", "802.3 length field instead of a protocol (LLC is not routed)";
        /// Tagged.
        UnknownVlan = "unknown-vlan", "VLAN tag, and no sub-interface for it";
        /// Nothing in the router handles it.
        UnknownType = "unknown-ethertype", "no handler for this ethertype";
    }
}

struct EthernetInput {
    ip4: NodeId,
    ip6: NodeId,
    arp: NodeId,
}

/// What one look at the receiving interface tells.
#[derive(Clone, Copy)]
struct Port {
    mac: [u8; 6],
    promiscuous: bool,
}

impl EthernetInput {
    #[inline(always)]
    fn decide(&self, packet: &mut Packet, port: Port) -> Result<NodeId, EthernetDrop> {
        let header = EthernetHeader::overlay(packet.bytes()).ok_or(EthernetDrop::Truncated)?;
        let (ours, ether_type) = (header.destination.0 == port.mac, header.ether_type());
        let next = match ether_type {
            EtherType::IPV4 => self.ip4,
            EtherType::IPV6 => self.ip6,
            _ => self.unusual(ether_type)?,
        };
        if !ours {
            self.not_ours(packet, port)?;
        }
        // The header was there a moment ago.
        if !packet.pull(HEADER_BYTES) {
            return Err(EthernetDrop::Truncated);
        }
        packet.l2_bytes = HEADER_BYTES as u8;
        if next == DROP { Err(EthernetDrop::UnknownType) } else { Ok(next) }
    }

    #[cold]
    fn unusual(&self, ether_type: EtherType) -> Result<NodeId, EthernetDrop> {
        match ether_type {
            EtherType::ARP => Ok(self.arp),
            EtherType::VLAN | EtherType::SERVICE_VLAN => Err(EthernetDrop::UnknownVlan),
            EtherType(value) if value < 1536 => Err(EthernetDrop::Llc),
            _ => Err(EthernetDrop::UnknownType),
        }
    }

    #[cold]
    fn not_ours(&self, packet: &mut Packet, port: Port) -> Result<(), EthernetDrop> {
        if packet.bytes()[0] & 1 == 1 {
            packet.set(PacketFlags::L2_GROUP);
            Ok(())
        } else if port.promiscuous {
            Ok(())
        } else {
            Err(EthernetDrop::NotForUs)
        }
    }
}

fn port(cx: &Context<'_>, interface: InterfaceId) -> Port {
    // A row that is gone meanwhile: no address is ours, so only groups pass, and die further on.
    cx.interface(interface).map_or(Port { mac: [0; 6], promiscuous: false }, |row| Port {
        mac: row.mac,
        promiscuous: row.promiscuous,
    })
}

impl Node for EthernetInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        if frame.is_same_rx()
            && let Some(first) = frame.packets().first()
        {
            let port = port(cx, first.rx);
            frame.route_ahead(|packet| self.decide(packet, port));
        } else {
            frame.route_ahead(|packet| self.decide(packet, port(cx, packet.rx)));
        }
    }
}

pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new("ethernet-input", "Sorts Ethernet frames by destination and protocol", |wiring| {
        Box::new(EthernetInput {
            ip4: wiring.node_if_built("ip4-input").unwrap_or(DROP),
            ip6: wiring.node_if_built("ip6-input").unwrap_or(DROP),
            arp: wiring.node_if_built("arp-input").unwrap_or(DROP),
        })
    })
    .reasons::<EthernetDrop>()
    .describe(|record, names| {
        format!(
            "{} bytes behind the Ethernet header received on {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
