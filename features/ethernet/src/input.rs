//! `ethernet-input`: whose frame is it, and which protocol is in it (IEEE 802.3 clause 3).

use quiver_core::node::{DROP, NodeSpec};
use quiver_core::packet::PacketFlags;
use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
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

/// `ethernet-input`, a packet's part of it.
pub struct EthernetInput {
    ip4: NodeId,
    ip6: NodeId,
    /// Nodes that claim other ethertypes.
    claimed: Vec<(EtherType, NodeId)>,
}

/// What one look at the receiving interface tells.
#[derive(Clone, Copy)]
pub struct Port {
    /// The interface's address as [`destination`] reads one.
    mac: u64,
    promiscuous: bool,
}

/// A frame's destination address as a number, from its first eight bytes.
#[inline(always)]
fn destination(first: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*first) << 16
}

impl EthernetInput {
    #[cold]
    fn unusual(&self, ether_type: EtherType) -> Result<NodeId, EthernetDrop> {
        if let Some((_, node)) = self.claimed.iter().find(|(claimed, _)| *claimed == ether_type) {
            return Ok(*node);
        }
        match ether_type {
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

impl Stage for EthernetInput {
    const NAME: &'static str = "ethernet-input";
    const LOOKS_FIRST: bool = true;
    type Reason = EthernetDrop;
    type Common = Port;

    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Port {
        // A row that is gone meanwhile: no address is ours, so only groups pass, and die further on.
        let Some(row) = cx.interface(rx) else { return Port { mac: 0, promiscuous: false } };
        let [a, b, c, d, e, f] = row.mac;
        Port { mac: destination(&[a, b, c, d, e, f, 0, 0]), promiscuous: row.promiscuous }
    }

    #[inline(always)]
    fn decide(&self, _: Tally<'_>, port: Port, packet: &mut Packet) -> Result<NodeId, EthernetDrop> {
        let bytes = packet.bytes();
        let (Some(header), Some(first)) = (EthernetHeader::overlay(bytes), bytes.first_chunk()) else {
            return Err(EthernetDrop::Truncated);
        };
        let (ours, ether_type) = (destination(first) == port.mac, header.ether_type());
        let next = if ether_type == EtherType::IPV4 {
            self.ip4
        } else if ether_type == EtherType::IPV6 {
            self.ip6
        } else {
            self.unusual(ether_type)?
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
}

fn claimed_ethertype((number, node): (u32, NodeId)) -> (EtherType, NodeId) {
    (EtherType(number as u16), node)
}

pub(crate) fn spec() -> NodeSpec {
    NodeSpec::stage("Sorts Ethernet frames by destination and protocol", |wiring| EthernetInput {
        ip4: wiring.node_if_built("ip4-input").unwrap_or(DROP),
        ip6: wiring.node_if_built("ip6-input").unwrap_or(DROP),
        claimed: wiring.claims("ethertype").into_iter().map(claimed_ethertype).collect(),
    })
    .describe(|record, names| {
        format!(
            "{} bytes behind the Ethernet header received on {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
