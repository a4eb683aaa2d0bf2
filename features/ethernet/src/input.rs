//! `ethernet-input`: whose frame is it, and which protocol is in it (IEEE 802.3 clause 3).

use quiver_control::ETHERNET_INPUT;
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{DROP, NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
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
        NotForUs = "mac-mismatch", "destination MAC is neither ours nor a group (`set interface \
            promiscuous on IF` accepts it)";
        /// A length where the type should be.
        Llc = "llc", "802.3 length field instead of a protocol (LLC is not routed)";
        /// Nothing in the router handles it.
        UnknownType = "unknown-ethertype", "no handler for this ethertype";
    }
}

/// The nodes of the protocols that frames carry.
pub(crate) struct Protocols {
    ip4: NodeId,
    ip6: NodeId,
    mpls: NodeId,
    /// Nodes that claim other ethertypes.
    claimed: Vec<(EtherType, NodeId)>,
}

impl Protocols {
    /// Those that are built in.
    pub fn new(wiring: &Wiring<'_>) -> Protocols {
        Protocols {
            ip4: wiring.node_if_built("ip4-input").unwrap_or(DROP),
            ip6: wiring.node_if_built("ip6-input").unwrap_or(DROP),
            mpls: wiring.node_if_built("mpls-input").unwrap_or(DROP),
            claimed: wiring.claims("ethertype").into_iter().map(claimed_ethertype).collect(),
        }
    }

    /// The node for what follows; `None` when nothing handles it.
    #[inline]
    pub fn of(&self, ether_type: EtherType) -> Option<NodeId> {
        let next = match ether_type {
            EtherType::IPV4 => self.ip4,
            EtherType::IPV6 => self.ip6,
            EtherType::MPLS if self.mpls != DROP => self.mpls,
            _ => return self.claimed(ether_type),
        };
        (next != DROP).then_some(next)
    }

    #[cold]
    fn claimed(&self, ether_type: EtherType) -> Option<NodeId> {
        self.claimed.iter().find(|(claimed, _)| *claimed == ether_type).map(|(_, node)| *node)
    }
}

fn claimed_ethertype((number, node): (u32, NodeId)) -> (EtherType, NodeId) {
    (EtherType(number as u16), node)
}

/// `ethernet-input`, a packet's part of it.
pub struct EthernetInput {
    protocols: Protocols,
    vlan: NodeId,
}

/// What one look at the receiving interface tells.
#[derive(Clone, Copy)]
pub struct Port {
    /// The interface's address as [`destination`] reads one.
    mac: u64,
    promiscuous: bool,
    /// Has it further addresses?
    has_virtual: bool,
}

/// A frame's destination address as a number, from its first eight bytes.
#[inline(always)]
fn destination(first: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*first) << 16
}

impl Port {
    /// What its row tells.
    #[inline(always)]
    pub(crate) fn of(row: &InterfaceRow) -> Port {
        let [a, b, c, d, e, f] = row.mac;
        Port {
            mac: destination(&[a, b, c, d, e, f, 0, 0]),
            promiscuous: row.promiscuous,
            has_virtual: !row.virtual_macs.is_empty(),
        }
    }

    /// Is a frame for the interface that the packet names: its own, a group's, or anybody's when it
    /// is promiscuous?
    #[inline]
    pub(crate) fn takes(self, context: StageContext<'_>, packet: &mut Packet) -> bool {
        let first = packet.bytes().first_chunk();
        first.is_some_and(|first| destination(first) == self.mac)
            || self.takes_others(context, packet)
    }

    #[cold]
    fn takes_others(self, context: StageContext<'_>, packet: &mut Packet) -> bool {
        let is_group = packet.bytes().first().is_some_and(|byte| byte & 1 == 1);
        if is_group {
            packet.set(PacketFlags::L2_GROUP);
        }
        is_group || self.promiscuous || self.has_virtual && is_to_virtual(context, packet)
    }
}

/// Is a frame for a further address of the interface that the packet names?
fn is_to_virtual(context: StageContext<'_>, packet: &Packet) -> bool {
    let row = context.interface(packet.rx);
    let to = packet.bytes().first_chunk::<6>();
    to.is_some_and(|to| row.is_some_and(|row| row.virtual_macs.contains(to)))
}

impl EthernetInput {
    /// Neither IPv4 nor IPv6.
    #[cold]
    #[inline(never)]
    fn unusual(
        &self,
        context: StageContext<'_>,
        ether_type: EtherType,
        port: Port,
        packet: &mut Packet,
    ) -> Result<NodeId, EthernetDrop> {
        let host = || context.interface(packet.rx).and_then(|row| row.host);
        let next = match self.protocols.claimed(ether_type) {
            Some(next) => Ok(next),
            None if ether_type.is_vlan() => return Ok(self.vlan),
            None => host().ok_or(match ether_type.is_length() {
                true => EthernetDrop::Llc,
                false => EthernetDrop::UnknownType,
            }),
        }?;
        if !port.takes(context, packet) {
            return Err(EthernetDrop::NotForUs);
        }
        behind_header(packet, next)
    }
}

/// The packet goes on without its header, which was there a moment ago.
#[inline(always)]
fn behind_header(packet: &mut Packet, next: NodeId) -> Result<NodeId, EthernetDrop> {
    if !packet.pull(HEADER_BYTES) {
        return Err(EthernetDrop::Truncated);
    }
    packet.l2_bytes = HEADER_BYTES as u8;
    if next == DROP { Err(EthernetDrop::UnknownType) } else { Ok(next) }
}

impl Stage for EthernetInput {
    const NAME: &'static str = ETHERNET_INPUT;
    const LOOKS_FIRST: bool = true;
    type Reason = EthernetDrop;
    type InterfaceState = Port;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Port {
        // A row that is gone meanwhile: no address is ours, so only groups pass, and die further
        // on.
        let nobody = Port { mac: 0, promiscuous: false, has_virtual: false };
        cx.interface(rx).map_or(nobody, Port::of)
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        port: Port,
        packet: &mut Packet,
    ) -> Result<NodeId, EthernetDrop> {
        let bytes = packet.bytes();
        let (Some(header), Some(first)) = (EthernetHeader::overlay(bytes), bytes.first_chunk())
        else {
            return Err(EthernetDrop::Truncated);
        };
        let (ours, ether_type) = (destination(first) == port.mac, header.ether_type());
        let next = if ether_type == EtherType::IPV4 {
            self.protocols.ip4
        } else if ether_type == EtherType::IPV6 {
            self.protocols.ip6
        } else if (ether_type == EtherType::MPLS) & (self.protocols.mpls != DROP) {
            self.protocols.mpls
        } else {
            return self.unusual(context, ether_type, port, packet);
        };
        if !ours && !port.takes_others(context, packet) {
            return Err(EthernetDrop::NotForUs);
        }
        behind_header(packet, next)
    }
}

pub(crate) fn spec() -> NodeSpec {
    NodeSpec::stage("Sorts Ethernet frames by destination and protocol", |wiring| EthernetInput {
        protocols: Protocols::new(wiring),
        vlan: wiring.node(crate::vlan::INPUT),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!(
            "{} bytes behind the Ethernet header received on {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
