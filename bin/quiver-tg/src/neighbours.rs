//! Answers for the addresses that a port plays: ARP (RFC 826) and neighbour discovery (RFC 4861).

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::icmp6::nd::{HOP_LIMIT, Message as Nd, NeighborFlags};
use quiver_wire::icmp6::{Message, nd};
use quiver_wire::ip6::address;
use quiver_wire::{EtherType, IpProtocol, MacAddress, arp, ethernet, ip6};

use crate::stateful::hosts::Hosts;

/// Bytes of the longest answer: Ethernet, IPv6, an advertisement with one option.
const ANSWER_BYTES: usize = 14 + 40 + 8 + 16 + 8;
/// The shortest frame on a wire, without FCS.
const FRAME_BYTES_MIN: usize = 60;

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    bytes: [u8; ANSWER_BYTES],
    length: usize,
}

impl Answer {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Whom a port plays.
#[derive(Clone, Debug)]
pub struct Neighbours {
    mac: MacAddress,
    ip4: Box<[Ipv4Addr]>,
    ip6: Box<[Ipv6Addr]>,
    /// Hosts behind the port: answered for, not announced.
    hosts: Box<[Hosts]>,
}

impl Neighbours {
    /// Play these addresses at `mac`; the link-local address of `mac` is played as well when there
    /// is any IPv6 address.
    pub fn new(mac: MacAddress, ip4: &[Ipv4Addr], ip6: &[Ipv6Addr]) -> Neighbours {
        let mut ip6 = ip6.to_vec();
        if !ip6.is_empty() && !ip6.contains(&mac.link_local()) {
            ip6.push(mac.link_local());
        }
        Neighbours { mac, ip4: ip4.into(), ip6: ip6.into(), hosts: Box::default() }
    }

    /// Play these hosts as well.
    pub fn with_hosts(self, hosts: Vec<Hosts>) -> Neighbours {
        Neighbours { hosts: hosts.into(), ..self }
    }

    fn plays4(&self, address: Ipv4Addr) -> bool {
        self.ip4.contains(&address) || self.hosts.iter().any(|hosts| hosts.contains(address.into()))
    }

    fn plays6(&self, address: Ipv6Addr) -> bool {
        self.ip6.contains(&address) || self.hosts.iter().any(|hosts| hosts.contains(address.into()))
    }

    /// What to answer to a frame, if anything.
    pub fn answer(&self, frame: &[u8]) -> Option<Answer> {
        let (header, packet) = ethernet::Repr::parse(frame).ok()?;
        match header.ether_type {
            EtherType::ARP => self.answer_arp(packet),
            EtherType::IPV6 => self.answer_solicitation(header.source, packet),
            _ => None,
        }
    }

    fn answer_arp(&self, packet: &[u8]) -> Option<Answer> {
        let (question, _) = arp::Repr::parse(packet).ok()?;
        let is_for_us = question.operation == arp::Operation::Request
            && question.sender_mac.is_unicast()
            && self.plays4(question.target_ip);
        is_for_us.then(|| self.arp_frame(question.sender_mac, &question.reply(self.mac)))?
    }

    fn answer_solicitation(&self, from: MacAddress, packet: &[u8]) -> Option<Answer> {
        let (header, message) = ip6::Repr::parse(packet).ok()?;
        if header.next_header != IpProtocol::ICMP6 {
            return None;
        }
        let message = message.get(..header.payload_len)?;
        let Ok(Message::Nd(question)) = Message::parse(header.source, header.destination, message) else {
            return None;
        };
        question.check(header.source, header.destination, header.hop_limit).ok()?;
        let Nd::NeighborSolicitation { target, options } = question else { return None };
        if !self.plays6(target) {
            return None;
        }
        if address::is_unspecified(header.source) {
            // RFC 4861 §7.2.4: who asks from :: is answered to all nodes.
            let group = address::ALL_NODES;
            return self.advertisement(MacAddress::for_ip6_multicast(group), group, target, false);
        }
        let mac = options.source_mac().unwrap_or(from);
        self.advertisement(mac, header.source, target, true)
    }

    /// What to say unasked, so that neighbours learn or correct our addresses (RFC 5227 §3, RFC 4861
    /// §7.2.6).
    pub fn announcements(&self) -> Vec<Answer> {
        let arp = self.ip4.iter().filter_map(|&ip| {
            let request = arp::Repr::request(self.mac, ip, ip);
            self.arp_frame(MacAddress::BROADCAST, &request)
        });
        let group = address::ALL_NODES;
        let to = MacAddress::for_ip6_multicast(group);
        let nd = self.ip6.iter().filter_map(|&target| self.advertisement(to, group, target, false));
        arp.chain(nd).collect()
    }

    fn arp_frame(&self, to: MacAddress, message: &arp::Repr) -> Option<Answer> {
        let mut bytes = [0; ANSWER_BYTES];
        let header = ethernet::Repr { destination: to, source: self.mac, ether_type: EtherType::ARP };
        let at = header.emit(&mut bytes).ok()?;
        message.emit(&mut bytes[at..]).ok()?;
        Some(Answer { bytes, length: FRAME_BYTES_MIN })
    }

    fn advertisement(
        &self,
        to: MacAddress,
        destination: Ipv6Addr,
        target: Ipv6Addr,
        is_solicited: bool,
    ) -> Option<Answer> {
        let mut flags = NeighborFlags::OVERRIDE;
        if is_solicited {
            flags = flags.with(NeighborFlags::SOLICITED);
        }
        // RFC 4861 §4.6.1: target link-layer address, one unit of eight octets.
        let mut option = [0; 8];
        option[..2].copy_from_slice(&[2, 1]);
        option[2..].copy_from_slice(&self.mac.0);
        let options = nd::Options::new(&option).ok()?;
        let message = Message::Nd(Nd::NeighborAdvertisement { flags, target, options });
        let mut bytes = [0; ANSWER_BYTES];
        let header = ethernet::Repr { destination: to, source: self.mac, ether_type: EtherType::IPV6 };
        let at = header.emit(&mut bytes).ok()?;
        let length = message.emit(target, destination, &mut bytes[at + 40..]).ok()?;
        let header = ip6::Repr {
            traffic_class: 0,
            flow_label: 0,
            next_header: IpProtocol::ICMP6,
            hop_limit: HOP_LIMIT,
            source: target,
            destination,
            payload_len: length,
        };
        header.emit(&mut bytes[at..]).ok()?;
        Some(Answer { bytes, length: at + 40 + length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const ROUTER: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

    fn neighbours() -> Neighbours {
        Neighbours::new(OURS, &[Ipv4Addr::new(198, 18, 0, 2)], &["2001:2::2".parse().expect("address")])
    }

    fn router() -> Neighbours {
        Neighbours::new(ROUTER, &[Ipv4Addr::new(198, 18, 0, 1)], &["2001:2::1".parse().expect("address")])
    }

    #[test]
    fn a_question_for_an_address_that_is_played_is_answered_with_its_mac() {
        let ask = |target| {
            let question = arp::Repr::request(ROUTER, Ipv4Addr::new(198, 18, 0, 1), target);
            let frame = router().arp_frame(MacAddress::BROADCAST, &question).expect("frame");
            neighbours().answer(frame.bytes())
        };
        let answer = ask(Ipv4Addr::new(198, 18, 0, 2)).expect("answer");
        let (header, packet) = ethernet::Repr::parse(answer.bytes()).expect("ethernet");
        assert_eq!((header.destination, header.source), (ROUTER, OURS));
        let (reply, _) = arp::Repr::parse(packet).expect("arp");
        assert_eq!((reply.operation, reply.sender_mac), (arp::Operation::Reply, OURS));
        assert_eq!(reply.sender_ip, Ipv4Addr::new(198, 18, 0, 2));
        assert_eq!(answer.bytes().len(), 60);
        assert_eq!(ask(Ipv4Addr::new(198, 18, 0, 3)), None);
    }

    #[test]
    fn a_solicitation_is_answered_with_an_advertisement_whose_checksum_is_right() {
        let (source, target): (Ipv6Addr, Ipv6Addr) =
            ("2001:2::1".parse().expect("address"), "2001:2::2".parse().expect("address"));
        let group = address::solicited_node(target);
        let mut bytes = [0u8; 14 + 40 + 24];
        let to = MacAddress::for_ip6_multicast(group);
        ethernet::Repr { destination: to, source: ROUTER, ether_type: EtherType::IPV6 }
            .emit(&mut bytes)
            .expect("ethernet");
        let options = nd::Options::new(&[]).expect("options");
        let message = Message::Nd(Nd::NeighborSolicitation { target, options });
        let payload_len = message.emit(source, group, &mut bytes[54..]).expect("message");
        ip6::Repr {
            traffic_class: 0,
            flow_label: 0,
            next_header: IpProtocol::ICMP6,
            hop_limit: 255,
            source,
            destination: group,
            payload_len,
        }
        .emit(&mut bytes[14..])
        .expect("ip6");
        let answer = neighbours().answer(&bytes).expect("answer");
        let (header, packet) = ethernet::Repr::parse(answer.bytes()).expect("ethernet");
        assert_eq!((header.destination, header.source), (ROUTER, OURS));
        let (header, payload) = ip6::Repr::parse(packet).expect("ip6");
        assert_eq!((header.source, header.destination, header.hop_limit), (target, source, 255));
        let reply = Message::parse(header.source, header.destination, payload).expect("checksum");
        let Message::Nd(Nd::NeighborAdvertisement { flags, target: told, options }) = reply else {
            panic!("{reply:?}");
        };
        assert!(flags.contains(NeighborFlags::SOLICITED) && flags.contains(NeighborFlags::OVERRIDE));
        assert_eq!((told, options.target_mac()), (target, Some(OURS)));
    }

    #[test]
    fn every_address_is_announced_once() {
        // The IPv4 address, the IPv6 address and the link-local one.
        assert_eq!(neighbours().announcements().len(), 3);
    }

    proptest! {
        #[test]
        fn no_frame_panics(mut frame in prop::collection::vec(any::<u8>(), 0..120), kind in 0usize..3) {
            let types: [[u8; 2]; 3] = [[8, 6], [0x86, 0xdd], [8, 0]];
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&types[kind]);
            }
            let _ = neighbours().answer(&frame);
        }
    }
}
