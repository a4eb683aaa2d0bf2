//! `arp-input`: who has this address, and who says so (RFC 826, RFC 5227).

use std::net::{IpAddr, Ipv4Addr};

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::key;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::FibNodes;
use quiver_forwarding::ip::{Addresses, IpTables};
use quiver_forwarding::ip::{Direction, NeighbourMessage, NeighbourProtocol};
use quiver_forwarding::nodes;
use quiver_wire::arp::{ArpHeader, Operation, Repr};
use quiver_wire::ip4::address::is_unicast;
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

use crate::neighbor::address_routes::AddressRoutes;
use crate::neighbor::discovery::{become_frame, frame_source};
use crate::neighbor::notification_rate::{Notifier, Notify};
use crate::notifications::{Heard, Notification};

/// Bytes of an Ethernet frame with an ARP packet.
const ARP_FRAME_BYTES: usize = EthernetHeader::LEN + ArpHeader::LEN;

quiver_core::reasons! {
    /// What becomes of ARP packets.
    pub enum ArpDrop {
        /// Not a whole packet.
        Truncated = "truncated", "fewer bytes than an ARP packet";
        /// Not ours to understand.
        NotIp4OverEthernet = "bad-type", "ARP for something else than IPv4 over Ethernet";
        /// RARP and the like.
        BadOperation = "bad-operation", "ARP that is neither request nor reply";
        /// Not a station's.
        BadSenderMac = "bad-sender-mac", "the sender's MAC address is one that no station can have";
        /// Not a host's.
        BadSender = "bad-sender", "the sender's IP address is one that no host can have";
        /// From elsewhere.
        NotOnSubnet = "not-on-subnet", "the sender's IP address is on no subnet of the interface";
        /// Not configured.
        NoAddress = "no-address", "ARP on an interface without an IPv4 address (`set interface ip \
            address IF ADDR/LEN`)";
        /// Somebody uses our address.
        Conflict = "address-conflict", "another station uses one of our addresses";
        /// A loop on layer 2.
        Own = "own", "ARP of the router's own came back";
        /// Gone.
        InterfaceDown = "interface-down", "the interface is down or gone";
        /// Cannot be.
        NoReply = "no-reply", "no room for the answer";
        /// Answered.
        Replied = info "replied", "replies sent";
        /// RFC 1027.
        Proxied = info "proxied", "of these, replies for addresses that the router is a proxy for";
        /// Received.
        Request = info "requests-received", "requests received";
        /// Received.
        Reply = info "replies-received", "replies received";
        /// RFC 826 asks for no comparison; virtual routers answer so (RFC 9568 §8.1.2).
        OtherSender = info "other-sender", "received with another MAC address than the frame's, \
            as of virtual routers";
        /// RFC 5227 §3.
        Gratuitous = info "gratuitous", "announcements received: sender and target are the same";
        /// Told.
        Learned = info "learned", "neighbours told to the control thread";
        /// Told before.
        KnownAlready = info "known-already", "neighbours that were told a moment ago";
        /// A storm.
        TooMany = info "too-many", "neighbours not told to the control thread: too many at a time";
    }
}

struct ArpInput {
    tables: IpTables,
    routes: AddressRoutes,
    done: NodeId,
    notifier: Notifier,
}

impl ArpInput {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, ArpDrop> {
        let header = *ArpHeader::overlay(packet.bytes()).ok_or(ArpDrop::Truncated)?;
        if !header.is_ip4_over_ethernet() {
            return Err(ArpDrop::NotIp4OverEthernet);
        }
        let (arp, _) = Repr::parse(packet.bytes()).map_err(|_| ArpDrop::BadOperation)?;
        if frame_source(packet).is_some_and(|source| source != arp.sender_mac) {
            cx.count(ArpDrop::OtherSender, 1);
        }
        if !arp.sender_mac.is_unicast() {
            return Err(ArpDrop::BadSenderMac);
        }
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass);
        let own = own.filter(|own| !own.ip4.is_empty() || !own.tentative.is_empty());
        let own = own.ok_or(ArpDrop::NoAddress)?;
        let counted =
            if arp.operation == Operation::Request { ArpDrop::Request } else { ArpDrop::Reply };
        cx.count(counted, 1);
        let message = match arp.operation {
            _ if arp.sender_ip == arp.target_ip => NeighbourMessage::Gratuitous,
            Operation::Request => NeighbourMessage::Request,
            Operation::Reply => NeighbourMessage::Reply,
        };
        self.tables.messages.add(packet.rx, (NeighbourProtocol::Arp, Direction::Rx, message));
        let probes = arp.sender_ip.is_unspecified() && arp.operation == Operation::Request;
        if probes && own.is_tentative(arp.target_ip) && !own.has4(arp.target_ip) {
            // Somebody else asks for it at the same time (RFC 5227 §2.1.1).
            return self.conflict(cx, packet, arp.target_ip, arp.sender_mac).map(|()| self.done);
        }
        if !probes {
            let heard = self.hear(cx, packet, own, &arp);
            // A host asks for neighbours in the router's name, and waits for their answers.
            match (arp.operation, cx.interface(packet.rx).and_then(|row| row.host)) {
                (Operation::Reply, Some(host)) => return Ok(host),
                _ => heard?,
            }
        }
        if arp.operation != Operation::Request {
            return Ok(self.done);
        }
        if let Some(mac) = self.virtual_mac(cx, packet, arp.target_ip) {
            return self.reply(cx, packet, &arp, Some(mac));
        }
        if self.has(packet.rx, own, arp.target_ip) {
            return self.reply(cx, packet, &arp, None);
        }
        if self.answers_for(packet, own, &arp) {
            cx.count(ArpDrop::Proxied, 1);
            return self.reply(cx, packet, &arp, None);
        }
        Ok(self.done)
    }

    /// The MAC address of an active virtual router with this address (RFC 9568 §8.1.2).
    fn virtual_mac(
        &self,
        cx: &Context<'_>,
        packet: &Packet,
        address: Ipv4Addr,
    ) -> Option<MacAddress> {
        self.tables.interfaces.virtual_mac(packet.rx, address.into(), cx.pass)
    }

    /// Is this an address of the interface, or one that a route makes the router's own?
    fn has(&self, rx: InterfaceId, own: &Addresses, address: Ipv4Addr) -> bool {
        own.has4(address) || self.routes.is_local(rx, address)
    }

    /// Is the target somebody for whom the router answers, elsewhere (RFC 1027)? Never for who
    /// announces itself.
    fn answers_for(&self, packet: &Packet, own: &Addresses, arp: &Repr) -> bool {
        own.answers_for4(arp.target_ip)
            && arp.sender_ip != arp.target_ip
            && self.routes.leads_elsewhere(packet.rx, arp.target_ip)
    }

    /// Check the sender, and notify the control thread of it.
    fn hear(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        own: &Addresses,
        arp: &Repr,
    ) -> Result<(), ArpDrop> {
        let address = arp.sender_ip;
        if !is_unicast(address) {
            return Err(ArpDrop::BadSender);
        }
        if own.has4(address) || own.is_tentative(address) {
            return self.conflict(cx, packet, address, arp.sender_mac);
        }
        let ours = self.has(packet.rx, own, arp.target_ip)
            || self.virtual_mac(cx, packet, arp.target_ip).is_some();
        let is_near =
            own.on_link4(address).is_some() || self.routes.is_attached4(packet.rx, address);
        // Somebody else may be asked for, too: for a route of another table, or a next hop.
        let is_answer = ours && arp.operation == Operation::Reply;
        if !is_near && !is_answer {
            return Err(ArpDrop::NotOnSubnet);
        }
        if address == arp.target_ip {
            cx.count(ArpDrop::Gratuitous, 1);
        }
        // RFC 826: a known entry is updated whatever the target; what is new is learned only from
        // who speaks to us.
        let ours =
            ours || arp.operation == Operation::Request && self.answers_for(packet, own, arp);
        let heard = match ours {
            _ if !is_near => Heard::Answered,
            true => Heard::Spoke,
            false => Heard::Overheard,
        };
        let key = self.key(packet, address, arp.sender_mac) ^ heard as u64;
        let counted = match self.notifier.may(key, cx.now_ns) {
            Notify::Now => {
                let (address, mac) = (IpAddr::V4(address), arp.sender_mac);
                Notification::Neighbour { address, mac, heard }.send(cx, packet.rx);
                ArpDrop::Learned
            }
            Notify::KnownAlready => ArpDrop::KnownAlready,
            Notify::TooMany => ArpDrop::TooMany,
        };
        cx.count(counted, 1);
        Ok(())
    }

    /// Tell that somebody else uses an address of ours, unless it was ourselves.
    fn conflict(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        address: Ipv4Addr,
        mac: MacAddress,
    ) -> Result<(), ArpDrop> {
        if cx.interface(packet.rx).is_some_and(|row| MacAddress(row.mac) == mac) {
            return Err(ArpDrop::Own);
        }
        let key = self.key(packet, address, mac);
        if self.notifier.may(key, cx.now_ns) == Notify::Now {
            Notification::Conflict { address: IpAddr::V4(address), mac }.send(cx, packet.rx);
        }
        Err(ArpDrop::Conflict)
    }

    /// What the same message about the same neighbour has in common, until the neighbour is
    /// forgotten.
    fn key(&self, packet: &Packet, address: Ipv4Addr, mac: MacAddress) -> u64 {
        let generation = self.tables.neighbours.of(packet.rx, address.into());
        key(&[u64::from(packet.rx.0), address.to_bits().into(), mac.to_u64(), generation.into()])
    }

    /// The request becomes the reply where it lies: with this MAC address, or the interface's.
    fn reply(
        &self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        arp: &Repr,
        mac: Option<MacAddress>,
    ) -> Result<NodeId, ArpDrop> {
        let row = cx.interface(packet.rx).ok_or(ArpDrop::InterfaceDown)?;
        let mac = mac.unwrap_or(MacAddress(row.mac));
        let mut frame = [0; ARP_FRAME_BYTES];
        let ethernet = EthernetHeader::new(arp.sender_mac, mac, EtherType::ARP);
        ethernet.write(&mut frame).map_err(|_| ArpDrop::NoReply)?;
        let body = frame.get_mut(EthernetHeader::LEN..).unwrap_or_default();
        arp.reply(mac).emit(body).map_err(|_| ArpDrop::NoReply)?;
        if !become_frame(cx, packet, &frame) {
            return Err(ArpDrop::NoReply);
        }
        packet.tx = packet.rx;
        let sent = (NeighbourProtocol::Arp, Direction::Tx, NeighbourMessage::Reply);
        self.tables.messages.add(packet.rx, sent);
        cx.count(ArpDrop::Replied, 1);
        Ok(row.output)
    }
}

impl Node for ArpInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// A frame or packet with ARP in it, in words.
fn words(bytes: &[u8]) -> String {
    let behind = bytes.get(EthernetHeader::LEN..).unwrap_or_default();
    let Ok((arp, _)) = Repr::parse(bytes).or_else(|_| Repr::parse(behind)) else {
        return "no ARP for IPv4 over Ethernet".to_owned();
    };
    match arp.operation {
        Operation::Request => {
            format!("who has {}? tell {} at {}", arp.target_ip, arp.sender_ip, arp.sender_mac)
        }
        Operation::Reply => format!("{} is at {}", arp.sender_ip, arp.sender_mac),
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables, nodes: FibNodes) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        nodes::ARP_INPUT,
        "Answers who asks for our addresses, and learns who neighbours are",
        move |wiring| {
            Box::new(ArpInput {
                tables: tables.clone(),
                routes: AddressRoutes::new(&tables, nodes),
                done: wiring.node(nodes::IP_DONE),
                notifier: Notifier::new(),
            })
        },
    )
    .reasons::<ArpDrop>()
    .describe(|record, names| format!("{}, to {}", words(record.bytes()), names.node(record.next)))
}
