//! Frames of the router's own about neighbours: who has this address, and that one is ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use quiver_forwarding::ip::Addresses;
use quiver_wire::icmp6::nd::{self, NdOption, NeighborFlags};
use quiver_wire::icmp6::{self, nd::Options};
use quiver_wire::ip6::address;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress, arp};

use crate::state::IpState;

/// Bytes of the two addresses of an Ethernet frame; an interface's tags come behind them.
const ADDRESSES_BYTES: usize = 12;
/// Frames that a worker sends on behalf of one worker call, at most: 500 took it 65 to 131 us.
const FRAMES_PER_WORKER_CALL: usize = 128;
/// Bytes of an Ethernet frame with an ARP packet.
const ARP_FRAME_BYTES: usize = 14 + 28;
/// Bytes of an Ethernet frame with a solicitation or advertisement that tells a MAC address.
pub(crate) const ND_FRAME_BYTES: usize = 14 + 40 + 32;

/// A frame under construction; no allocation, for workers make such frames, too.
pub(crate) struct Frame {
    bytes: [u8; ND_FRAME_BYTES],
    length: usize,
}

impl Frame {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn arp(from: MacAddress, to: MacAddress, arp: &arp::Repr) -> Option<Frame> {
        let mut frame = Frame { bytes: [0; ND_FRAME_BYTES], length: ARP_FRAME_BYTES };
        EthernetHeader::new(to, from, EtherType::ARP).write(&mut frame.bytes).ok()?;
        arp.emit(&mut frame.bytes[14..]).ok()?;
        Some(frame)
    }

    fn nd(
        message: nd::Message<'_>,
        from: MacAddress,
        to: MacAddress,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Option<Frame> {
        let mut bytes = [0; ND_FRAME_BYTES];
        let length = nd_frame(&mut bytes, message, from, to, source, destination)?;
        Some(Frame { bytes, length })
    }

    /// Who has `target`? Asked of `to`, or of all (RFC 826).
    pub fn arp_request(
        mac: MacAddress,
        to: Option<MacAddress>,
        source: Ipv4Addr,
        target: Ipv4Addr,
    ) -> Option<Frame> {
        let arp = arp::Repr::request(mac, source, target);
        Frame::arp(mac, to.unwrap_or(MacAddress::BROADCAST), &arp)
    }

    /// Who has `target`? Asked of `to`, or of its solicited-node group (RFC 4861 §4.3).
    pub fn solicitation(
        mac: MacAddress,
        to: Option<MacAddress>,
        source: Ipv6Addr,
        target: Ipv6Addr,
    ) -> Option<Frame> {
        let mut options = [0; 8];
        NdOption::SourceMac(mac).emit(&mut options).ok()?;
        let message =
            nd::Message::NeighborSolicitation { target, options: Options::new(&options).ok()? };
        let group = address::solicited_node(target);
        match to {
            Some(to) => Frame::nd(message, mac, to, source, target),
            None => Frame::nd(message, mac, MacAddress::for_ip6_multicast(group), source, group),
        }
    }

    /// Who has `target`, which shall become ours? Nothing is said of us (RFC 4862 §5.4.2, RFC 5227
    /// §2.1.1).
    pub fn duplicate_probe(mac: MacAddress, target: IpAddr) -> Option<Frame> {
        match target {
            IpAddr::V4(target) => Frame::arp_request(mac, None, Ipv4Addr::UNSPECIFIED, target),
            IpAddr::V6(target) => {
                let options = Options::new(&[]).ok()?;
                let message = nd::Message::NeighborSolicitation { target, options };
                let group = address::solicited_node(target);
                let to = MacAddress::for_ip6_multicast(group);
                Frame::nd(message, mac, to, Ipv6Addr::UNSPECIFIED, group)
            }
        }
    }

    /// `target` is ours: told to all, unasked (RFC 4861 §7.2.6; RFC 5227 §1.1: an announcement is a
    /// request for one's own address).
    pub fn announcement(mac: MacAddress, target: IpAddr) -> Option<Frame> {
        match target {
            IpAddr::V4(target) => Frame::arp_request(mac, None, target, target),
            IpAddr::V6(target) => {
                let flags = NeighborFlags::ROUTER.with(NeighborFlags::OVERRIDE);
                let to = MacAddress::for_ip6_multicast(address::ALL_NODES);
                Frame::advertisement(mac, to, flags, target, target, address::ALL_NODES)
            }
        }
    }

    /// `target` has this MAC address, told to `destination`.
    pub fn advertisement(
        mac: MacAddress,
        to: MacAddress,
        flags: NeighborFlags,
        target: Ipv6Addr,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Option<Frame> {
        let mut option = [0; 8];
        NdOption::TargetMac(mac).emit(&mut option).ok()?;
        let options = Options::new(&option).ok()?;
        let message = nd::Message::NeighborAdvertisement { flags, target, options };
        Frame::nd(message, mac, to, source, destination)
    }
}

/// A frame with a message of neighbour discovery.
fn nd_frame(
    out: &mut [u8; ND_FRAME_BYTES],
    message: nd::Message<'_>,
    from: MacAddress,
    to: MacAddress,
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Option<usize> {
    let length = icmp6::Message::Nd(message).emit(source, destination, &mut out[54..]).ok()?;
    EthernetHeader::new(to, from, EtherType::IPV6).write(out).ok()?;
    let header =
        Ip6Header::new(source, destination, IpProtocol::ICMP6, nd::HOP_LIMIT, length as u16);
    header.write(&mut out[14..]).ok()?;
    Some(54 + length)
}

/// A question for `target` by an interface with these addresses; `None` without one to ask with.
pub(crate) fn ask(
    own: &Addresses,
    mac: MacAddress,
    to: Option<MacAddress>,
    target: IpAddr,
) -> Option<Frame> {
    match target {
        IpAddr::V4(target) => Frame::arp_request(mac, to, own.source4(target)?, target),
        IpAddr::V6(target) => Frame::solicitation(mac, to, own.source6(target)?, target),
    }
}

/// Frames that the control thread has ready, and where they leave.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// With the tags of their interfaces.
    frames: Vec<(Box<[u8]>, InterfaceId, NodeId)>,
    /// The same without tags, to be counted.
    counted: Vec<(InterfaceId, Frame)>,
}

impl Outgoing {
    /// How many.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Another one; left out when the interface is down or gone.
    pub fn add(
        &mut self,
        engine: &Engine,
        on: InterfaceId,
        make: impl FnOnce(MacAddress) -> Option<Frame>,
    ) {
        let Some(row) = engine.interface(on).map(|interface| interface.row()).filter(|row| row.up)
        else {
            return;
        };
        let mac = MacAddress(row.mac);
        if mac != MacAddress::ZERO
            && let Some(frame) = make(mac)
        {
            let (addresses, rest) = frame.bytes().split_at(ADDRESSES_BYTES);
            let bytes = [addresses, row.encapsulation.bytes(), rest].concat();
            self.frames.push((bytes.into(), on, row.output));
            self.counted.push((on, frame));
        }
    }

    /// A question for `target`, to `to` or to all.
    pub fn ask(
        &mut self,
        engine: &Engine,
        ip: &IpState,
        on: InterfaceId,
        to: Option<MacAddress>,
        target: IpAddr,
    ) {
        let own = ip.addresses(on);
        self.add(engine, on, |mac| ask(&own, mac, to, target));
    }

    /// Send them all.
    pub fn send(mut self, engine: &mut Engine) {
        if let Some(ip) = engine.get::<IpState>() {
            let messages = &ip.tables().messages;
            self.counted.iter().for_each(|(on, frame)| messages.add_sent(*on, frame.bytes()));
        }
        while !self.frames.is_empty() {
            let rest = self.frames.split_off(self.frames.len().min(FRAMES_PER_WORKER_CALL));
            let frames = std::mem::replace(&mut self.frames, rest);
            engine.post(WorkerId(0), move |worker: &mut Worker| {
                for (frame, tx, output) in &frames {
                    // Without a buffer it is not sent: `show buffers` counts it.
                    worker.inject(frame, *output, InterfaceId::NONE, *tx);
                }
            });
        }
    }
}
