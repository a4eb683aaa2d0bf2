//! `udp4-decap`, `udp6-decap`: packets behind a UDP header to a port that says what they are. They
//! are forwarded as if the interface that received the datagram had received them.

use std::sync::Arc;

use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::epoch::{Epochs, Published};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::OuterHeader;
use quiver_encap::decapsulated::{self, InnerBad, take_off};
use quiver_encap::tunnel::OuterEnds;
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables};
use quiver_wire::{Header, UdpHeader};

/// Ports at most.
pub const PORTS_MAX: usize = 256;
/// The node for what has labels.
const MPLS_INPUT: &str = "mpls-input";

quiver_core::reasons! {
    /// Why packets behind a UDP header die.
    pub enum UdpDecapDrop {
        /// Cannot be behind the nodes before.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// Deleted meanwhile.
        NoPort = "no-port", "no contents are known for the UDP port";
        /// An inner packet.
        InnerWrong = "inner-packet-wrong", "the inner packet's header is wrong or cut off";
        /// RFC 6040 §4.2.
        Congestion = "congestion-not-carried",
            "the outer header says congestion, and the inner packet cannot carry it on";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
    }
}

impl From<InnerBad> for UdpDecapDrop {
    fn from(bad: InnerBad) -> UdpDecapDrop {
        match bad {
            InnerBad::Truncated => UdpDecapDrop::Truncated,
            InnerBad::Wrong => UdpDecapDrop::InnerWrong,
            InnerBad::Congestion => UdpDecapDrop::Congestion,
        }
    }
}

/// What is behind a UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contents {
    /// An IPv4 packet.
    Ip4,
    /// An IPv6 packet.
    Ip6,
    /// A label stack (RFC 7510).
    Mpls,
}

impl Contents {
    /// All.
    pub const ALL: [Contents; 3] = [Contents::Ip4, Contents::Ip6, Contents::Mpls];

    /// The word of commands.
    pub fn word(self) -> &'static str {
        match self {
            Contents::Ip4 => "ip4",
            Contents::Ip6 => "ip6",
            Contents::Mpls => "mpls",
        }
    }
}

/// The ports of both families, in order: what workers read.
pub(crate) struct Ports([Published<Vec<(u16, Contents)>>; 2]);

impl Ports {
    pub fn new(epochs: &Arc<Epochs>) -> Arc<Ports> {
        Arc::new(Ports([(); 2].map(|()| Published::new(epochs, Vec::new()))))
    }

    /// Replace those of a family; `ports` are in order.
    pub fn set(&self, family: Family, ports: Vec<(u16, Contents)>) {
        self.0[family as usize].publish(ports);
    }
}

/// The node of a family.
pub(crate) const fn node(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "udp4-decap",
        Family::Ip6 => "udp6-decap",
    }
}

struct UdpDecap<O> {
    ports: Arc<Ports>,
    tables: Arc<IpTables>,
    look_up: [NodeId; 2],
    labels: Option<NodeId>,
    outer: std::marker::PhantomData<fn() -> O>,
}

impl<O: OuterEnds> Stage for UdpDecap<O> {
    const NAME: &'static str = node(O::FAMILY);
    type Reason = UdpDecapDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, UdpDecapDrop> {
        let bytes = packet.bytes();
        let at = O::ends(bytes).ok_or(UdpDecapDrop::Truncated)?.header_len;
        let udp = bytes.get(at..).and_then(UdpHeader::overlay).ok_or(UdpDecapDrop::Truncated)?;
        let (port, length) = (udp.destination_port(), usize::from(udp.length()));
        let ports = self.ports.0[O::FAMILY as usize].read(context.pass());
        let found = ports.binary_search_by_key(&port, |(port, _)| *port);
        let contents = found.ok().and_then(|place| ports.get(place)).map(|(_, contents)| *contents);
        let contents = contents.ok_or(UdpDecapDrop::NoPort)?;
        // What lies behind the datagram is not of it.
        if at + length < packet.length() {
            packet.trim(at + length);
        }
        let behind = at + UdpHeader::LEN;
        // A device of this host may have left the checksum of the datagram open.
        if packet.has(PacketFlags::OFFLOAD) {
            packet.clear(PacketFlags::OFFLOAD);
        }
        let family = match contents {
            Contents::Ip4 => {
                if decapsulated::ip4_fast::<O>(packet, behind).is_none() {
                    decapsulated::ip4::<O>(packet, behind)?;
                }
                Family::Ip4
            }
            Contents::Ip6 => {
                if decapsulated::ip6_fast::<O>(packet, behind).is_none() {
                    decapsulated::ip6::<O>(packet, behind)?;
                }
                Family::Ip6
            }
            Contents::Mpls => {
                take_off(packet, behind)?;
                if !packet.turn() {
                    return Err(UdpDecapDrop::Loop);
                }
                packet.hand_over_nothing();
                return self.labels.ok_or(UdpDecapDrop::NoPort);
            }
        };
        if !packet.turn() {
            return Err(UdpDecapDrop::Loop);
        }
        packet.set_carried();
        packet.clear(PacketFlags::NOTED);
        let table = match family {
            Family::Ip4 => Ip4::table_of(&self.tables.interfaces, packet.rx),
            Family::Ip6 => Ip6::table_of(&self.tables.interfaces, packet.rx),
        };
        packet.hand_over(TableIndex(table));
        Ok(self.look_up[family as usize])
    }
}

/// The declaration.
pub(crate) fn spec<O: OuterEnds>(ports: &Arc<Ports>) -> NodeSpec {
    let ports = ports.clone();
    let help = "Takes an IP and a UDP header off, by the port";
    NodeSpec::stage(help, move |wiring: &Wiring<'_>| UdpDecap::<O> {
        ports: ports.clone(),
        tables: wiring.shared(),
        look_up: [Ip4::LOOK_UP, Ip6::LOOK_UP].map(|name| wiring.node(name)),
        labels: wiring.node_if_built(MPLS_INPUT),
        outer: std::marker::PhantomData,
    })
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
