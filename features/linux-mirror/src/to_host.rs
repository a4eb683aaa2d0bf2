//! `linux-cp-punt`: frames and packets that Linux deals with go to the twin of the interface that
//! received them, without tags, with the Ethernet header that they came with.

use std::sync::Arc;

use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

use crate::classes::{Class, Limits, Policers};
use crate::from_host::TAGS_AT;
use crate::twins::{Published, Twins};

/// The node's name.
pub(crate) const NAME: &str = "linux-cp-punt";

quiver_core::reasons! {
    /// What becomes of packets for Linux.
    pub enum ToHostDrop {
        /// Deleted meanwhile.
        NoPair = "no-pair", "the pair was deleted while the packet was under way";
        /// Neither IP nor a frame.
        NoHeader = "no-header", "the packet has no Ethernet header, and is no IP packet that one \
            could be made for";
        /// See [`Class::Bfd`].
        BfdPoliced = "bfd-policed", "more BFD packets than `lcp punt class bfd` lets pass";
        /// See [`Class::Link`].
        LinkPoliced = "link-policed", "more LACP, LLDP and other link protocol packets than `lcp \
            punt class link` lets pass";
        /// See [`Class::Igp`].
        IgpPoliced = "igp-policed", "more OSPF, IS-IS, PIM, IGMP and MLD packets than `lcp punt \
            class igp` lets pass";
        /// See [`Class::Vrrp`].
        VrrpPoliced = "vrrp-policed", "more VRRP packets than `lcp punt class vrrp` lets pass";
        /// See [`Class::Bgp`].
        BgpPoliced = "bgp-policed", "more BGP and LDP packets than `lcp punt class bgp` lets pass";
        /// See [`Class::Neighbor`].
        NeighborPoliced = "neighbor-policed", "more ARP and neighbour discovery packets than `lcp \
            punt class neighbor` lets pass";
        /// See [`Class::Dhcp`].
        DhcpPoliced = "dhcp-policed", "more DHCP packets than `lcp punt class dhcp` lets pass";
        /// See [`Class::Icmp`].
        IcmpPoliced = "icmp-policed", "more ICMP packets than `lcp punt class icmp` lets pass";
        /// See [`Class::Other`].
        OtherPoliced = "other-policed", "more other packets than `lcp punt class other` lets pass";
        /// Sent.
        Bfd = info "bfd", "BFD packets for Linux";
        /// Sent.
        Link = info "link", "LACP, LLDP and other link protocol packets for Linux";
        /// Sent.
        Igp = info "igp", "OSPF, IS-IS, PIM, IGMP and MLD packets for Linux";
        /// Sent.
        Vrrp = info "vrrp", "VRRP packets for Linux";
        /// Sent.
        Bgp = info "bgp", "BGP and LDP packets for Linux";
        /// Sent.
        Neighbor = info "neighbor", "ARP and neighbour discovery packets for Linux";
        /// Sent.
        Dhcp = info "dhcp", "DHCP packets for Linux";
        /// Sent.
        Icmp = info "icmp", "ICMP packets for Linux";
        /// Sent.
        Other = info "other", "other packets for Linux";
    }
}

/// What is counted of a class that passes, and of one that does not.
pub(crate) const fn events_of(class: Class) -> [ToHostDrop; 2] {
    match class {
        Class::Bfd => [ToHostDrop::Bfd, ToHostDrop::BfdPoliced],
        Class::Link => [ToHostDrop::Link, ToHostDrop::LinkPoliced],
        Class::Igp => [ToHostDrop::Igp, ToHostDrop::IgpPoliced],
        Class::Vrrp => [ToHostDrop::Vrrp, ToHostDrop::VrrpPoliced],
        Class::Bgp => [ToHostDrop::Bgp, ToHostDrop::BgpPoliced],
        Class::Neighbor => [ToHostDrop::Neighbor, ToHostDrop::NeighborPoliced],
        Class::Dhcp => [ToHostDrop::Dhcp, ToHostDrop::DhcpPoliced],
        Class::Icmp => [ToHostDrop::Icmp, ToHostDrop::IcmpPoliced],
        Class::Other => [ToHostDrop::Other, ToHostDrop::OtherPoliced],
    }
}

struct ToHost {
    twins: Arc<Published>,
    limits: Arc<Limits>,
    policers: Policers,
}

/// The protocol of a packet that begins with its IP header.
fn ip_type(packet: &Packet) -> Option<EtherType> {
    match packet.bytes().first()? >> 4 {
        4 => Some(EtherType::IPV4),
        6 => Some(EtherType::IPV6),
        _ => None,
    }
}

/// Has the frame, whose header of `header_bytes` stands in front of it again, addresses with which
/// it came by this interface?
fn is_addressed(packet: &Packet, row: &InterfaceRow) -> bool {
    let to = packet.bytes().first_chunk::<6>();
    to.is_some_and(|to| {
        to[0] & 1 == 1 || *to == row.mac || row.promiscuous || row.virtual_macs.contains(to)
    })
}

/// The packet gets the header back that it came with, without tags; false when that is not there
/// any more: the packet was put together of fragments, or came in another packet.
fn take_header_back(packet: &mut Packet, row: &InterfaceRow) -> bool {
    let header_bytes = usize::from(packet.l2_bytes);
    if header_bytes < EthernetHeader::LEN || !packet.push(header_bytes) {
        return false;
    }
    let tag_bytes = header_bytes - EthernetHeader::LEN;
    let is_whole = is_addressed(packet, row);
    // What was just put in front can be taken away again.
    let taken =
        if is_whole { packet.remove(TAGS_AT, tag_bytes) } else { packet.pull(header_bytes) };
    is_whole && taken
}

/// A header to the interface's own address, from nobody.
fn make_header(packet: &mut Packet, row: &InterfaceRow) -> Result<(), ToHostDrop> {
    let ether_type = ip_type(packet).ok_or(ToHostDrop::NoHeader)?;
    let header = EthernetHeader::new(MacAddress(row.mac), MacAddress::ZERO, ether_type);
    let is_written = packet.push(EthernetHeader::LEN) && header.write(packet.bytes_mut()).is_ok();
    if is_written { Ok(()) } else { Err(ToHostDrop::NoHeader) }
}

/// The packet becomes the frame that it came as; the node that sends it to the twin.
fn frame_for(cx: &Context<'_>, twins: &Twins, packet: &mut Packet) -> Result<NodeId, ToHostDrop> {
    let twin = twins.other(packet.rx).ok_or(ToHostDrop::NoPair)?;
    let row = cx.interface(packet.rx).ok_or(ToHostDrop::NoPair)?;
    let output = cx.interface(twin).ok_or(ToHostDrop::NoPair)?.output;
    if !take_header_back(packet, row) {
        make_header(packet, row)?;
    }
    packet.l2_bytes = 0;
    packet.tx = twin;
    packet.arc_restart();
    Ok(output)
}

impl Node for ToHost {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let twins = self.twins.read(cx.pass);
        let cx = &*cx;
        frame.route(|packet| {
            let output = frame_for(cx, twins, packet)?;
            let class = Class::of(packet.bytes());
            let [passed, policed] = events_of(class);
            if !self.policers.passes(class, &self.limits, cx.now_ns) {
                return Err(policed);
            }
            cx.count(passed, 1);
            Ok(output)
        });
    }
}

/// The declaration.
pub(crate) fn spec(twins: &Arc<Published>, limits: &Arc<Limits>) -> NodeSpec {
    let (twins, limits) = (twins.clone(), limits.clone());
    NodeSpec::new(NAME, "Sends what Linux deals with to the twin of its interface", move |_| {
        let policers = Policers::new(&limits);
        Box::new(ToHost { twins: twins.clone(), limits: limits.clone(), policers })
    })
    .reasons::<ToHostDrop>()
    .takes_offloads()
    .describe(|record, names| {
        format!(
            "{} bytes received on {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
