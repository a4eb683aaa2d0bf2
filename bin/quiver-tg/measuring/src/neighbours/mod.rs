//! Who a port plays on its link: answers ARP (RFC 826), neighbour solicitations (RFC 4861) and echo
//! requests (RFC 792, RFC 4443) for its addresses, and listens for its gateway.

mod envelope;
mod gateway;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_wire::icmp6::nd::{HOP_LIMIT, Message as Nd, NeighborFlags};
use quiver_wire::icmp6::{Message, nd};
use quiver_wire::ip6::address;
use quiver_wire::{
    EtherType, Header, Ip6Header, IpProtocol, MacAddress, WireError, arp, icmp4, ip4, ip6,
};

pub use envelope::Envelope;
pub use envelope::Letter;
pub use gateway::{Gateway, GatewayMac};

use quiver_tg_traffic::profile::stateful::hosts::Hosts;
use quiver_tg_traffic::profile::{Addresses, Port};

/// The longest answer: an echo in the longest frame.
pub const ANSWER_BYTES_MAX: usize = quiver_tg_traffic::profile::FRAME_BYTES_MAX + 8;
/// Addresses of a family that are announced; requests for the others are answered.
const ANNOUNCED_MAX: usize = 64;
/// Hops that an answer may take.
const TTL: u8 = 64;

/// The addresses that a port answers for.
#[derive(Clone, Debug)]
pub struct Neighbours {
    envelope: Envelope,
    ip4: Addresses<Ipv4Addr>,
    ip6: Addresses<Ipv6Addr>,
    /// Hosts behind the port: answered for, not announced.
    hosts: Box<[Hosts]>,
    /// The gateway to resolve, and where its MAC address is published.
    gateway: Option<(IpAddr, Arc<GatewayMac>)>,
}

impl Neighbours {
    /// Play the addresses of a port at `mac`; the link-local address of `mac` is played as well
    /// when there is any IPv6 address. The MAC address of its gateway is published in
    /// `gateway_mac`.
    pub fn new(mac: MacAddress, port: &Port, gateway_mac: &Arc<GatewayMac>) -> Neighbours {
        let plays_ip6 =
            !port.ip6.is_empty() || port.gateway.is_some_and(|gateway| gateway.is_ipv6());
        let ip6 = if plays_ip6 { port.ip6.with(mac.link_local()) } else { port.ip6.clone() };
        Neighbours {
            envelope: Envelope::new(mac, &port.vlan),
            ip4: port.ip4.clone(),
            ip6,
            hosts: Box::default(),
            gateway: port.gateway.map(|gateway| (gateway, gateway_mac.clone())),
        }
    }

    /// MAC address and tags of its frames.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Play these hosts as well.
    pub fn with_hosts(self, hosts: Vec<Hosts>) -> Neighbours {
        Neighbours { hosts: hosts.into(), ..self }
    }

    fn plays4(&self, address: Ipv4Addr) -> bool {
        self.ip4.contains(address) || self.hosts.iter().any(|hosts| hosts.contains(address.into()))
    }

    fn plays6(&self, address: Ipv6Addr) -> bool {
        self.ip6.contains(address) || self.hosts.iter().any(|hosts| hosts.contains(address.into()))
    }

    /// Answer a frame, if it asks for something: so many bytes of `out`.
    pub fn answer(&self, frame: &[u8], out: &mut [u8]) -> Option<usize> {
        let letter = self.envelope.open(frame)?;
        match letter.ether_type {
            EtherType::ARP => self.answer_arp(&letter, out),
            EtherType::IPV4 => self.answer_echo4(&letter, out),
            EtherType::IPV6 => self.answer_ip6(&letter, out),
            _ => None,
        }
    }

    /// Somebody said where he is.
    fn learn(&self, who: IpAddr, mac: MacAddress) {
        if let Some((gateway, gateway_mac)) = &self.gateway
            && *gateway == who
            && mac.is_unicast()
        {
            gateway_mac.set(mac);
        }
    }

    fn answer_arp(&self, letter: &Letter<'_>, out: &mut [u8]) -> Option<usize> {
        let (solicitation, _) = arp::Repr::parse(letter.packet).ok()?;
        self.learn(IpAddr::V4(solicitation.sender_ip), solicitation.sender_mac);
        let is_for_us = solicitation.operation == arp::Operation::Request
            && solicitation.sender_mac.is_unicast()
            && self.plays4(solicitation.target_ip);
        if !is_for_us {
            return None;
        }
        let reply = solicitation.reply(self.envelope.mac());
        self.envelope.seal(out, solicitation.sender_mac, EtherType::ARP, |out| reply.emit(out))
    }

    fn answer_echo4(&self, letter: &Letter<'_>, out: &mut [u8]) -> Option<usize> {
        let (header, payload) = ip4::Repr::parse(letter.packet).ok()?;
        let is_whole = !header.more_fragments && header.fragment_offset == 0;
        if header.protocol != IpProtocol::ICMP || !is_whole || !self.plays4(header.destination) {
            return None;
        }
        let solicitation = icmp4::Repr::parse(payload.get(..header.payload_len)?).ok()?;
        let icmp4::Message::EchoRequest { identifier, sequence } = solicitation.message else {
            return None;
        };
        let message = icmp4::Message::EchoReply { identifier, sequence };
        let reply = icmp4::Repr { message, data: solicitation.data };
        let (source, destination) = (header.destination, header.source);
        let ip = ip4::Repr {
            ttl: TTL,
            ..ip4::Repr::new(source, destination, IpProtocol::ICMP, reply.len())
        };
        self.envelope.seal(out, letter.from, EtherType::IPV4, |out| {
            let at = ip.emit(out)?;
            Ok(at + reply.emit(rest(out, at)?)?)
        })
    }

    fn answer_ip6(&self, letter: &Letter<'_>, out: &mut [u8]) -> Option<usize> {
        let (header, message) = ip6::Repr::parse(letter.packet).ok()?;
        if header.next_header != IpProtocol::ICMP6 {
            return None;
        }
        let message = message.get(..header.payload_len)?;
        match Message::parse(header.source, header.destination, message).ok()? {
            Message::Nd(solicitation) => self.answer_nd(&header, solicitation, letter.from, out),
            Message::EchoRequest { identifier, sequence, data } => {
                if !self.plays6(header.destination) || !address::is_unicast(header.source) {
                    return None;
                }
                let reply = Message::EchoReply { identifier, sequence, data };
                self.send_ip6(out, letter.from, (header.destination, header.source), TTL, &reply)
            }
            _ => None,
        }
    }

    fn answer_nd(
        &self,
        header: &ip6::Repr,
        message: Nd<'_>,
        from: MacAddress,
        out: &mut [u8],
    ) -> Option<usize> {
        message.check(header.source, header.destination, header.hop_limit).ok()?;
        match message {
            Nd::NeighborAdvertisement { target, options, .. } => {
                self.learn(IpAddr::V6(target), options.target_mac().unwrap_or(from));
                None
            }
            Nd::NeighborSolicitation { target, options } => {
                let mac = options.source_mac().unwrap_or(from);
                self.learn(IpAddr::V6(header.source), mac);
                if !self.plays6(target) {
                    return None;
                }
                if address::is_unspecified(header.source) {
                    // RFC 4861 §7.2.4: who asks from :: is answered to all nodes.
                    let group = address::ALL_NODES;
                    let to = MacAddress::for_ip6_multicast(group);
                    return self.advertisement(out, to, group, target, false);
                }
                self.advertisement(out, mac, header.source, target, true)
            }
            _ => None,
        }
    }

    /// Announcements, from which neighbours learn or correct our addresses (RFC 5227 §3, RFC
    /// 4861 §7.2.6).
    pub fn announcements(&self) -> Vec<Vec<u8>> {
        let mac = self.envelope.mac();
        let arp = self.ip4.some(ANNOUNCED_MAX).filter_map(|ip| {
            let request = arp::Repr::request(mac, ip, ip);
            self.frame(|out| {
                self.envelope
                    .seal(out, MacAddress::BROADCAST, EtherType::ARP, |out| request.emit(out))
            })
        });
        let group = address::ALL_NODES;
        let to = MacAddress::for_ip6_multicast(group);
        let own = (!self.ip6.is_empty()).then(|| mac.link_local());
        let others = self.ip6.some(ANNOUNCED_MAX).filter(|address| Some(*address) != own);
        let nd = own.into_iter().chain(others);
        let nd = nd.filter_map(|target| {
            self.frame(|out| self.advertisement(out, to, group, target, false))
        });
        arp.chain(nd).collect()
    }

    /// The solicitation for the gateway's MAC address; `None` when there is no gateway, or no
    /// address to ask from.
    pub fn solicitation(&self) -> Option<Vec<u8>> {
        let mac = self.envelope.mac();
        match self.gateway.as_ref()?.0 {
            IpAddr::V4(gateway) => {
                let request = arp::Repr::request(mac, self.ip4.first()?, gateway);
                self.frame(|out| {
                    self.envelope
                        .seal(out, MacAddress::BROADCAST, EtherType::ARP, |out| request.emit(out))
                })
            }
            IpAddr::V6(target) => {
                // From an address of the same scope, so that the answer comes back.
                let own = self.ip6.first().filter(|_| !address::is_link_local(target));
                let source = own.unwrap_or(mac.link_local());
                let option = link_address(1, mac);
                let options = nd::Options::new(&option).ok()?;
                let message = Message::Nd(Nd::NeighborSolicitation { target, options });
                let group = address::solicited_node(target);
                let to = MacAddress::for_ip6_multicast(group);
                self.frame(|out| self.send_ip6(out, to, (source, group), HOP_LIMIT, &message))
            }
        }
    }

    fn frame(&self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<Vec<u8>> {
        let mut out = vec![0; ANSWER_BYTES_MAX];
        let length = write(&mut out)?;
        out.truncate(length);
        Some(out)
    }

    fn advertisement(
        &self,
        out: &mut [u8],
        to: MacAddress,
        destination: Ipv6Addr,
        target: Ipv6Addr,
        is_solicited: bool,
    ) -> Option<usize> {
        let mut flags = NeighborFlags::OVERRIDE;
        if is_solicited {
            flags = flags.with(NeighborFlags::SOLICITED);
        }
        let option = link_address(2, self.envelope.mac());
        let options = nd::Options::new(&option).ok()?;
        let message = Message::Nd(Nd::NeighborAdvertisement { flags, target, options });
        self.send_ip6(out, to, (target, destination), HOP_LIMIT, &message)
    }

    fn send_ip6(
        &self,
        out: &mut [u8],
        to: MacAddress,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        hop_limit: u8,
        message: &Message<'_>,
    ) -> Option<usize> {
        self.envelope.seal(out, to, EtherType::IPV6, |out| {
            let payload_len = message.emit(source, destination, rest(out, Ip6Header::LEN)?)?;
            let header = ip6::Repr {
                traffic_class: 0,
                flow_label: 0,
                next_header: IpProtocol::ICMP6,
                hop_limit,
                source,
                destination,
                payload_len,
            };
            Ok(header.emit(out)? + payload_len)
        })
    }
}

/// A link-layer address option (RFC 4861 §4.6.1): kind, one unit of eight octets, the address.
fn link_address(kind: u8, mac: MacAddress) -> [u8; 8] {
    let mut option = [kind, 1, 0, 0, 0, 0, 0, 0];
    option[2..].copy_from_slice(&mac.0);
    option
}

/// The rest of `out` after so many bytes.
fn rest(out: &mut [u8], at: usize) -> Result<&mut [u8], WireError> {
    let room = out.len();
    out.get_mut(at..).ok_or(WireError::NoRoom { need: at, have: room })
}

#[cfg(test)]
mod tests;
