//! `icmp6-neighbor-advertisement`: a neighbour says which MAC address it has (RFC 4861 §7.2.5).

use std::net::IpAddr;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::key;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::FibNodes;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::ip::{Direction, NeighbourMessage, NeighbourProtocol};
use quiver_forwarding::nodes;
use quiver_wire::MacAddress;
use quiver_wire::icmp6::nd::{Message, NeighborFlags};

use crate::neighbor::address_routes::AddressRoutes;
use crate::neighbor::discovery::{NdDrop, read};
use crate::neighbor::notification_rate::{Notifier, Notify};
use crate::notifications::{AS_KNOWN, Heard, Notification};

struct Advertisement {
    tables: IpTables,
    routes: AddressRoutes,
    done: NodeId,
    notifier: Notifier,
}

impl Advertisement {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, NdDrop> {
        let heard = self.hear(cx, packet);
        // A host asks for neighbours in the router's name, and waits for their answers.
        match cx.interface(packet.rx).and_then(|row| row.host) {
            Some(host) if matches!(heard, Ok(()) | Err(NdDrop::NotOnLink)) => Ok(host),
            _ => heard.map(|()| self.done),
        }
    }

    fn hear(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Result<(), NdDrop> {
        let (_, message) = read(packet)?;
        let Message::NeighborAdvertisement { flags, target, options } = message else {
            return Err(NdDrop::BadMessage);
        };
        let message = match flags.contains(NeighborFlags::SOLICITED) {
            true => NeighbourMessage::Reply,
            false => NeighbourMessage::Gratuitous,
        };
        self.tables.messages.add(packet.rx, (NeighbourProtocol::Nd, Direction::Rx, message));
        let own =
            self.tables.interfaces.addresses(packet.rx, cx.pass).ok_or(NdDrop::InterfaceDown)?;
        // Who is asked at its own MAC address need not say it (RFC 4861 §7.2.4).
        let is_ours = own.has6(target) || own.is_tentative(target);
        let is_answer = flags.contains(NeighborFlags::SOLICITED) && !is_ours;
        let mac = match options.target_mac() {
            Some(mac) if !mac.is_unicast() => return Err(NdDrop::BadMac),
            Some(mac) => mac,
            None if is_answer => AS_KNOWN,
            None => {
                cx.count(NdDrop::NoMac, 1);
                return Ok(());
            }
        };
        let address = IpAddr::V6(target);
        if is_ours {
            if cx.interface(packet.rx).is_some_and(|row| MacAddress(row.mac) != mac) {
                if self.notifier.may(key(&[u64::from(packet.rx.0), mac.to_u64()]), cx.now_ns)
                    == Notify::Now
                {
                    Notification::Conflict { address, mac }.send(cx, packet.rx);
                }
                return Err(NdDrop::Conflict);
            }
            return Ok(());
        }
        // An answer may be about a host of another table's route: the control thread knows who was
        // asked for.
        let is_near = || own.is_on_link6(target) || self.routes.is_attached6(packet.rx, target);
        if !flags.contains(NeighborFlags::SOLICITED) && !is_near() {
            return Err(NdDrop::NotOnLink);
        }
        let heard = match (
            flags.contains(NeighborFlags::SOLICITED),
            flags.contains(NeighborFlags::OVERRIDE),
        ) {
            (true, true) => Heard::Answered,
            (false, true) => Heard::Overheard,
            (true, false) => Heard::Confirmed,
            (false, false) => Heard::Hinted,
        };
        let bits = target.to_bits();
        let generation = self.tables.neighbours.of(packet.rx, address);
        let told = u64::from(generation) << 8 | heard as u64;
        let words = [u64::from(packet.rx.0), bits as u64, (bits >> 64) as u64, mac.to_u64(), told];
        let counted = match self.notifier.may(key(&words), cx.now_ns) {
            Notify::Now => {
                Notification::Neighbour { address, mac, heard }.send(cx, packet.rx);
                NdDrop::Learned
            }
            Notify::KnownAlready => NdDrop::KnownAlready,
            Notify::TooMany => NdDrop::TooMany,
        };
        cx.count(counted, 1);
        Ok(())
    }
}

impl Node for Advertisement {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables, nodes: FibNodes) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        nodes::ip6::NEIGHBOR_ADVERTISEMENT,
        "Learns which MAC addresses neighbours have",
        move |wiring| {
            Box::new(Advertisement {
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
