//! Nodes of one IP family each that stand behind one another on an arc that packets of both walk.
//!
//! What one of them has seen to be of its family has nothing to do at the other. A block of packets
//! that are all of another protocol goes on whole.

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpFamily;
use quiver_wire::{EtherType, EthernetHeader, Header};

/// A node of a family on an arc, and that of the other family.
#[derive(Clone, Copy, Debug)]
pub struct Twins {
    /// The arc.
    pub arc: ArcId,
    /// The node that asks.
    pub own: NodeId,
    /// The node that only the other family's packets must visit.
    pub other: NodeId,
}

impl Twins {
    /// Those of a node of family `F`; `name` says what a family's node is called.
    pub fn new<F: IpFamily>(
        wiring: &Wiring<'_>,
        arc: ArcId,
        name: impl Fn(Family) -> &'static str,
    ) -> Twins {
        let other = match F::FAMILY {
            Family::Ip4 => Family::Ip6,
            Family::Ip6 => Family::Ip4,
        };
        // Without the other node no packet goes there: none goes to its own node twice.
        let other = wiring.number(name(other)).unwrap_or(wiring.id);
        Twins { arc, own: wiring.id, other }
    }

    /// Where packets of the node's own family go on, on an interface whose arc ends at `end`.
    pub fn behind(self, cx: &Context<'_>, on: InterfaceId, end: NodeId) -> Behind {
        let behind = cx.behind(self.arc, on, self.own, end);
        match behind.next == self.other {
            true => cx.behind(self.arc, on, self.other, end),
            false => behind,
        }
    }

    /// The same, of one packet that has come to the node.
    #[inline(always)]
    pub fn next(
        self,
        context: StageContext<'_>,
        on: InterfaceId,
        packet: &mut Packet,
        end: NodeId,
    ) -> NodeId {
        let next = context.next_in_arc(self.arc, on, packet, end);
        match next == self.other {
            true => context.next_in_arc(self.arc, on, packet, end),
            false => next,
        }
    }

    /// Where all packets of a block go on that are none of the node's family ([`none_is`]).
    #[inline(always)]
    pub fn pass(
        self,
        context: StageContext<'_>,
        on: InterfaceId,
        packets: &mut [Packet],
        end: NodeId,
    ) -> NodeId {
        let mut next = end;
        for packet in packets {
            next = context.next_in_arc(self.arc, on, packet, end);
        }
        next
    }
}

/// What stands at the front of a packet: the type of a frame, or the version of a packet without
/// link-layer header as the type that a frame would have.
#[inline(always)]
fn kind(packet: &Packet, is_bare: bool) -> EtherType {
    if is_bare {
        return match packet.bytes().first().map(|first| first >> 4) {
            Some(4) => EtherType::IPV4,
            Some(6) => EtherType::IPV6,
            _ => EtherType(0),
        };
    }
    EthernetHeader::overlay(packet.bytes()).map_or(EtherType(0), EthernetHeader::ether_type)
}

/// Is no packet of a block of family `F`, and are all of one protocol, interface and next hop, so
/// that the block may go on whole? False where tags hide what a packet is. `is_bare`: the
/// interface's packets begin with the IP header.
#[inline(always)]
pub fn none_is<F: IpFamily>(packets: &[Packet], is_bare: bool) -> bool {
    let Some(first) = packets.first() else { return false };
    let own = match F::FAMILY {
        Family::Ip4 => EtherType::IPV4,
        Family::Ip6 => EtherType::IPV6,
    };
    let front = kind(first, is_bare);
    if front == own || front.is_vlan() {
        return false;
    }
    let (rx, tx) = (first.rx, first.tx);
    packets.iter().all(|packet| {
        (packet.rx == rx)
            & (packet.tx == tx)
            & packet.hands_over_same(first)
            & (kind(packet, is_bare) == front)
    })
}
