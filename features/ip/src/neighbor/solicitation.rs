//! `icmp6-neighbor-solicitation`: somebody asks for an address of ours, and says who they are
//! (RFC 4861 §7.2.3, §7.2.4; RFC 4862 §5.4.3).

use std::net::{IpAddr, Ipv6Addr};

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::key;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::FibNodes;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::ip::{Direction, NeighbourMessage, NeighbourProtocol};
use quiver_forwarding::nodes;
use quiver_wire::MacAddress;
use quiver_wire::icmp6::nd::{Message, NeighborFlags};
use quiver_wire::ip6::address;

use crate::neighbor::address_routes::AddressRoutes;
use crate::neighbor::discovery::{NdDrop, become_frame, frame_source, read};
use crate::neighbor::notification_rate::{Notifier, Notify};
use crate::neighbor::own_frames;
use crate::notifications::{Heard, Notification};

struct Solicitation {
    tables: IpTables,
    routes: AddressRoutes,
    done: NodeId,
    notifier: Notifier,
}

impl Solicitation {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, NdDrop> {
        let (header, message) = read(packet)?;
        let Message::NeighborSolicitation { target, options } = message else {
            return Err(NdDrop::BadMessage);
        };
        let received = (NeighbourProtocol::Nd, Direction::Rx, NeighbourMessage::Request);
        self.tables.messages.add(packet.rx, received);
        let (asker, asker_mac) = (header.source(), options.source_mac());
        let own =
            self.tables.interfaces.addresses(packet.rx, cx.pass).ok_or(NdDrop::InterfaceDown)?;
        let probes = address::is_unspecified(asker);
        let is_virtual =
            self.tables.interfaces.virtual_mac(packet.rx, target.into(), cx.pass).is_some();
        let ours = is_virtual || own.has6(target) || self.routes.is_local(packet.rx, target);
        let proxied =
            own.answers_for6(target) && !ours && self.routes.leads_elsewhere(packet.rx, target);
        if !ours && !proxied {
            if probes && own.is_tentative(target) {
                return Err(self.conflict(cx, packet, target));
            }
            cx.count(NdDrop::NotOurs, 1);
            return Ok(self.done);
        }
        if !probes && (own.has6(asker) || own.is_tentative(asker)) {
            return Err(self.conflict(cx, packet, asker));
        }
        if !probes && !own.is_on_link6(asker) && !self.routes.is_attached6(packet.rx, asker) {
            return Err(NdDrop::NotOnLink);
        }
        if asker_mac.is_some_and(|mac| !mac.is_unicast()) {
            return Err(NdDrop::BadMac);
        }
        if let Some(mac) = asker_mac {
            self.notify(cx, packet, asker, mac);
        }
        let to = match (probes, asker_mac) {
            (true, _) => MacAddress::for_ip6_multicast(address::ALL_NODES),
            (false, Some(mac)) => mac,
            (false, None) => frame_source(packet).ok_or(NdDrop::BadMac)?,
        };
        let asker = if probes { address::ALL_NODES } else { asker };
        if proxied {
            cx.count(NdDrop::Proxied, 1);
        }
        let overrides = !proxied && !own.is_tentative(target);
        self.reply(cx, packet, target, overrides, (asker, to))
    }

    /// Somebody else uses an address of ours, or asks whether it is free when we do, too (RFC 4862
    /// §5.4.3).
    fn conflict(&mut self, cx: &mut Context<'_>, packet: &mut Packet, target: Ipv6Addr) -> NdDrop {
        let own = cx.interface(packet.rx).map(|row| MacAddress(row.mac));
        let Some(mac) = frame_source(packet).filter(|mac| Some(*mac) != own) else {
            return NdDrop::Own;
        };
        if self.notifier.may(key(&[u64::from(packet.rx.0), mac.to_u64()]), cx.now_ns) == Notify::Now
        {
            Notification::Conflict { address: IpAddr::V6(target), mac }.send(cx, packet.rx);
        }
        NdDrop::Conflict
    }

    /// Say that `target` is ours; as long as that is not sure (`overrides`), nobody is to forget
    /// whom he knew (RFC 4429 §3.3).
    fn reply(
        &self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        target: Ipv6Addr,
        overrides: bool,
        (to, to_mac): (Ipv6Addr, MacAddress),
    ) -> Result<NodeId, NdDrop> {
        let row = cx.interface(packet.rx).ok_or(NdDrop::InterfaceDown)?;
        // The address of an active virtual router has that one's (RFC 9568 §8.2.2).
        let virtual_mac = self.tables.interfaces.virtual_mac(packet.rx, target.into(), cx.pass);
        let mac = virtual_mac.unwrap_or(MacAddress(row.mac));
        let mut flags = NeighborFlags::ROUTER;
        if overrides {
            flags = flags.with(NeighborFlags::OVERRIDE);
        }
        if !address::is_multicast(to) {
            flags = flags.with(NeighborFlags::SOLICITED);
        }
        let frame = own_frames::Frame::advertisement(mac, to_mac, flags, target, target, to)
            .ok_or(NdDrop::NoReply)?;
        if !become_frame(cx, packet, frame.bytes()) {
            return Err(NdDrop::NoReply);
        }
        packet.tx = packet.rx;
        self.tables.messages.add_sent(packet.rx, frame.bytes());
        cx.count(NdDrop::Replied, 1);
        Ok(row.output)
    }

    fn notify(&mut self, cx: &mut Context<'_>, packet: &Packet, asker: Ipv6Addr, mac: MacAddress) {
        let bits = asker.to_bits();
        let generation = self.tables.neighbours.of(packet.rx, asker.into());
        let words = [
            u64::from(packet.rx.0),
            bits as u64,
            (bits >> 64) as u64,
            mac.to_u64(),
            generation.into(),
        ];
        let counted = match self.notifier.may(key(&words), cx.now_ns) {
            Notify::Now => {
                let notice = Notification::Neighbour {
                    address: IpAddr::V6(asker),
                    mac,
                    heard: Heard::Spoke,
                };
                notice.send(cx, packet.rx);
                NdDrop::Learned
            }
            Notify::KnownAlready => NdDrop::KnownAlready,
            Notify::TooMany => NdDrop::TooMany,
        };
        cx.count(counted, 1);
    }
}

impl Node for Solicitation {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables, nodes: FibNodes) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        nodes::ip6::NEIGHBOR_SOLICITATION,
        "Answers who asks for our addresses",
        move |wiring| {
            Box::new(Solicitation {
                tables: tables.clone(),
                routes: AddressRoutes::new(&tables, nodes),
                done: wiring.node(nodes::IP_DONE),
                notifier: Notifier::new(),
            })
        },
    )
    .reasons::<NdDrop>()
    .describe(|record, names| {
        format!("received on {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}
