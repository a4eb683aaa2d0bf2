//! `l2-input`: is this a frame that a bridge may forward, and what does its domain do with it?

use std::sync::Arc;

use quiver_control::ETHERNET_INPUT;
use quiver_core::graph::node::{DROP, Names, NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::graph::trace::TraceRecord;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::mac::{FloodPlace, FloodRequest};
use quiver_wire::{EtherType, EthernetHeader, Header};

use crate::address::Addresses;
use crate::nodes;
use crate::tables::{Port, Published};

quiver_core::reasons! {
    /// Why `l2-input` drops.
    pub enum L2InputDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// No station's.
        BadSource = "bad-source", "source address that no station can have: a group, or zero";
        /// IEEE 802.1Q §8.6.3.
        LinkLocal = "link-local-group", "destination 01:80:c2:00:00:01 to 0f, which no bridge \
            forwards";
        /// Switched off.
        ForwardOff = "forward-off", "forwarding is off (`set interface l2 forward`, `set \
            bridge-domain forward`)";
        /// Switched off.
        FloodOff = "flood-off", "frame to a group, and flooding is off (`set interface l2 flood`, \
            `set bridge-domain flood`)";
    }
}

/// Protocols between the two ends of a link: LLDP (IEEE 802.1AB §7.1) and PAUSE (IEEE 802.3 annex
/// 31B).
const OF_THE_LINK: [EtherType; 2] = [EtherType::LLDP, EtherType::MAC_CONTROL];

/// The nodes behind learning.
#[derive(Clone, Copy)]
pub(crate) struct NextNodes {
    pub forward: NodeId,
    pub flood: NodeId,
    pub answer: NodeId,
}

/// Where frames of a port go once their source is dealt with; [`DROP`] when the switch is off.
#[derive(Clone, Copy)]
pub struct Onward {
    /// To one station.
    unicast: NodeId,
    /// To a group.
    group: NodeId,
    /// To one station, whether it is known or not, by the node that floods.
    all: NodeId,
}

impl Onward {
    pub(crate) fn of(port: &Port, next_nodes: NextNodes) -> Onward {
        let group = match port {
            Port { answer: true, .. } | Port { arp_to_one: true, .. } => next_nodes.answer,
            Port { flood: true, .. } => next_nodes.flood,
            _ => DROP,
        };
        Onward {
            unicast: if port.forward { next_nodes.forward } else { DROP },
            group,
            all: next_nodes.flood,
        }
    }

    /// Where frames to one station go; `None` when that is switched off.
    #[inline(always)]
    pub(crate) fn to_station(self) -> Option<NodeId> {
        (self.unicast != DROP).then_some(self.unicast)
    }

    /// Where a frame goes; `None` when that is switched off.
    #[inline(always)]
    pub(crate) fn next(self, to_group: bool, packet: &mut Packet) -> Option<NodeId> {
        let next = if to_group {
            packet.hand_over(FloodPlace::START);
            self.group
        } else {
            self.unicast
        };
        (next != DROP).then_some(next)
    }

    /// Where a frame goes that is flooded whatever its destination; `None` when it is to a group,
    /// and that is switched off. Where flooding begins, and whom it leaves out, is told in the
    /// packet already.
    #[inline(always)]
    pub(crate) fn all(self, to_group: bool) -> Option<NodeId> {
        let next = if to_group { self.group } else { self.all };
        (next != DROP).then_some(next)
    }
}

/// `l2-input`, a packet's part of it.
pub struct L2Input {
    published: Arc<Published>,
    learn: NodeId,
    /// As `learn`, of frames that are flooded whatever their destination.
    learn_all: NodeId,
    next_nodes: NextNodes,
    /// Where the port's own frames go.
    own: NodeId,
}

/// What holds for a port.
#[derive(Clone, Copy)]
pub struct InterfaceState {
    /// Is it one?
    bridged: bool,
    /// [`DROP`] when nothing is learned here.
    learn: NodeId,
    onward: Onward,
}

impl L2Input {
    fn new(published: &Arc<Published>, wiring: &Wiring<'_>) -> L2Input {
        L2Input {
            published: published.clone(),
            learn: wiring.node(nodes::LEARN),
            learn_all: wiring.node(nodes::FLOOD_LEARN),
            next_nodes: next_nodes(wiring),
            own: wiring.node(ETHERNET_INPUT),
        }
    }

    /// A frame is flooded whatever its destination, but not to a split-horizon group.
    #[inline(always)]
    fn flood(
        &self,
        addresses: Addresses,
        interface_state: InterfaceState,
        excluded: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, L2InputDrop> {
        packet.hand_over(FloodPlace { excluded, ..FloodPlace::START });
        match interface_state.learn {
            DROP => {
                interface_state.onward.all(addresses.is_to_group()).ok_or(L2InputDrop::FloodOff)
            }
            _ => Ok(self.learn_all),
        }
    }

    /// What no bridge forwards dies, but for what belongs to the port and its link, bridged or not;
    /// and what the port wants flooded is.
    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        addresses: Addresses,
        interface_state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, L2InputDrop> {
        if !interface_state.bridged {
            return Err(L2InputDrop::NotBridged);
        }
        if !addresses.has_station_source() {
            return Err(L2InputDrop::BadSource);
        }
        if let Some(FloodRequest { excluded }) = packet.handed_over_if()
            && !addresses.is_to_link()
        {
            return self.flood(addresses, interface_state, excluded, packet);
        }
        let header = EthernetHeader::overlay(packet.bytes());
        let is_of_the_link =
            header.is_some_and(|header| OF_THE_LINK.contains(&header.ether_type()));
        if is_of_the_link { Ok(self.own) } else { Err(L2InputDrop::LinkLocal) }
    }
}

impl Stage for L2Input {
    const NAME: &'static str = nodes::INPUT;
    const LOOKS_FIRST: bool = true;
    type Reason = L2InputDrop;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        match self.published.read(cx.pass).port(rx) {
            Some(port) => InterfaceState {
                bridged: true,
                learn: if port.learn { self.learn } else { DROP },
                onward: Onward::of(port, self.next_nodes),
            },
            None => InterfaceState {
                bridged: false,
                learn: DROP,
                onward: Onward { unicast: DROP, group: DROP, all: DROP },
            },
        }
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, L2InputDrop> {
        let addresses = Addresses::of(packet).ok_or(L2InputDrop::Truncated)?;
        let plain = packet.handed_over_if::<FloodRequest>().is_none();
        if !(addresses.has_station_source()
            & !addresses.is_to_link()
            & interface_state.bridged
            & plain)
        {
            return self.take_slow_path(addresses, interface_state, packet);
        }
        if interface_state.learn != DROP {
            return Ok(interface_state.learn);
        }
        let to_group = addresses.is_to_group();
        let off = if to_group { L2InputDrop::FloodOff } else { L2InputDrop::ForwardOff };
        interface_state.onward.next(to_group, packet).ok_or(off)
    }
}

/// `l2-flood-input`, a packet's part of it: the entry of frames that are to be flooded, for those
/// who know beforehand that the port is in a domain, and that no feature stands before it. What is
/// not plain goes by the general one.
pub struct L2FloodInput {
    general: L2Input,
    id: NodeId,
}

impl Stage for L2FloodInput {
    const NAME: &'static str = "l2-flood-input";
    type Reason = L2InputDrop;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        self.general.interface_state(cx, rx)
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, L2InputDrop> {
        let plain =
            |addresses: &Addresses| addresses.has_station_source() & !addresses.is_to_link();
        match (Addresses::of(packet).filter(plain), packet.handed_over_if()) {
            (Some(addresses), Some(FloodRequest { excluded })) if interface_state.bridged => {
                self.general.flood(addresses, interface_state, excluded, packet)
            }
            _ => Ok(self.id),
        }
    }
}

/// The declaration of `l2-input`.
pub(crate) fn spec(published: &Arc<Published>) -> NodeSpec {
    let published = published.clone();
    NodeSpec::stage("Checks frames that come into a bridge domain", move |wiring| {
        L2Input::new(&published, wiring)
    })
    .takes_offloads()
    .describe(describe)
}

/// The declaration of `l2-flood-input`.
pub(crate) fn flood_spec(published: &Arc<Published>) -> NodeSpec {
    let published = published.clone();
    NodeSpec::stage(
        "Checks frames that come into a bridge domain to be flooded there",
        move |wiring| L2FloodInput {
            general: L2Input::new(&published, wiring),
            id: wiring.node(nodes::INPUT),
        },
    )
    .takes_offloads()
    .describe(describe)
}

fn describe(record: &TraceRecord, names: &dyn Names) -> String {
    let (bytes, rx) = (record.packet_bytes, names.interface(record.rx));
    format!(
        "{} of {bytes} bytes from {rx}, to {}",
        crate::description::frame(record),
        names.node(record.next)
    )
}

pub(crate) fn next_nodes(wiring: &Wiring<'_>) -> NextNodes {
    NextNodes {
        forward: wiring.node(nodes::FORWARD),
        flood: wiring.node(nodes::FLOOD),
        answer: wiring.node(nodes::ARP_TERMINATION),
    }
}
