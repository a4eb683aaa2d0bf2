//! Next hops of a side: resolved by ARP (RFC 826) or neighbour discovery (RFC
//! 4861) before anything is sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_wire::icmp6::nd::{HOP_LIMIT, Message as Nd, Options};
use quiver_wire::icmp6::{Message, within};
use quiver_wire::ip6::address;
use quiver_wire::{EtherType, Header, Ip6Header, IpProtocol, MacAddress, WireError, arp};

use quiver_tg_measuring::neighbours::Envelope;
use quiver_tg_traffic::profile::stateful::hosts::{Hosts, bits_of};

/// How long an answer may take before the solicitation is sent again.
const AGAIN_NS: u64 = 500_000_000;
/// Solicitations sent at once.
const AT_ONCE: usize = 16;
/// Bytes of the longest solicitation: Ethernet, two tags, IPv6, a solicitation with one option.
const SOLICITATION_BYTES: usize = 14 + 8 + 40 + 24 + 8;

/// An ARP request or a neighbour solicitation.
#[derive(Clone, Copy, Debug)]
pub struct Solicitation {
    bytes: [u8; SOLICITATION_BYTES],
    length: usize,
}

impl Solicitation {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The next hops of one side.
pub struct NextHop {
    /// Source of the solicitations.
    envelope: Envelope,
    from: IpAddr,
    /// Addresses to resolve: the gateway alone, or every destination.
    targets: Hosts,
    /// Their layer 2 addresses, as they become known.
    macs: Box<[Option<MacAddress>]>,
    unknown: usize,
    is_gateway: bool,
    solicited_ns: u64,
    /// The next target to look at.
    place: usize,
}

impl NextHop {
    /// Everything goes to one gateway, or to each of `targets` itself.
    pub fn new(envelope: Envelope, from: IpAddr, targets: Hosts, is_gateway: bool) -> NextHop {
        let macs = vec![None; targets.count() as usize].into_boxed_slice();
        NextHop {
            envelope,
            from,
            unknown: macs.len(),
            macs,
            targets,
            is_gateway,
            solicited_ns: 0,
            place: 0,
        }
    }

    /// How many have not answered.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// One that has not answered.
    pub fn first_unknown(&self) -> Option<IpAddr> {
        let place = self.macs.iter().position(Option::is_none)?;
        Some(self.targets.at(place as u32))
    }

    /// The gateway, once it is known.
    pub fn gateway(&self) -> Option<MacAddress> {
        if self.is_gateway { self.macs.first().copied().flatten() } else { None }
    }

    /// Where a packet for this address goes.
    #[inline]
    pub fn of(&self, far: u128) -> Option<MacAddress> {
        let place = if self.is_gateway { 0 } else { self.targets.place_of(far)? };
        self.macs.get(place as usize).copied().flatten()
    }

    /// Learn from a received frame; true when it resolved an address.
    pub fn learn(&mut self, frame: &[u8]) -> bool {
        let Some((ip, mac)) = self.neighbor_in(frame) else { return false };
        if ip.is_ipv6() != self.targets.is_ip6() || !mac.is_unicast() {
            return false;
        }
        let Some(place) = self.targets.place_of(bits_of(ip)) else { return false };
        let Some(known) = self.macs.get_mut(place as usize) else { return false };
        if known.is_none() {
            self.unknown -= 1;
        }
        *known = Some(mac);
        true
    }

    /// Send the solicitations that are due, a few at a time, each again until it is answered.
    pub fn solicit(&mut self, now_ns: u64, mut send: impl FnMut(&Solicitation)) {
        if self.unknown == 0 || now_ns.wrapping_sub(self.solicited_ns) < AGAIN_NS && self.place == 0
        {
            return;
        }
        if self.place == 0 {
            self.solicited_ns = now_ns;
        }
        let mut left = AT_ONCE;
        while left > 0 && self.place < self.macs.len() {
            if self.macs[self.place].is_none()
                && let Some(solicitation) = self.solicitation(self.targets.at(self.place as u32))
            {
                send(&solicitation);
                left -= 1;
            }
            self.place += 1;
        }
        if self.place == self.macs.len() {
            self.place = 0;
        }
    }

    fn solicitation(&self, target: IpAddr) -> Option<Solicitation> {
        let mut bytes = [0; SOLICITATION_BYTES];
        let length = match (self.from, target) {
            (IpAddr::V4(from), IpAddr::V4(target)) => self.arp_request(&mut bytes, from, target)?,
            (IpAddr::V6(from), IpAddr::V6(target)) => {
                self.neighbor_solicitation(&mut bytes, from, target)?
            }
            _ => return None,
        };
        Some(Solicitation { bytes, length })
    }

    fn arp_request(&self, out: &mut [u8], from: Ipv4Addr, target: Ipv4Addr) -> Option<usize> {
        let solicitation = arp::Repr::request(self.envelope.mac(), from, target);
        self.envelope.seal(out, MacAddress::BROADCAST, EtherType::ARP, |out| solicitation.emit(out))
    }

    fn neighbor_solicitation(
        &self,
        out: &mut [u8],
        from: Ipv6Addr,
        target: Ipv6Addr,
    ) -> Option<usize> {
        let group = address::solicited_node(target);
        // RFC 4861 §4.6.1: source link-layer address, one unit of eight octets.
        let mut option = [0; 8];
        option[..2].copy_from_slice(&[1, 1]);
        option[2..].copy_from_slice(&self.envelope.mac().0);
        let options = Options::new(&option).ok()?;
        let message = Message::Nd(Nd::NeighborSolicitation { target, options });
        let to = MacAddress::for_ip6_multicast(group);
        self.envelope.seal(out, to, EtherType::IPV6, |out| {
            let have = out.len();
            let room = out
                .get_mut(Ip6Header::LEN..)
                .ok_or(WireError::NoRoom { need: Ip6Header::LEN, have })?;
            let length = message.emit(from, group, room)?;
            Ip6Header::new(from, group, IpProtocol::ICMP6, HOP_LIMIT, length as u16).write(out)?;
            Ok(Ip6Header::LEN + length)
        })
    }

    /// Which address is at which layer 2 address, if a frame says so.
    fn neighbor_in(&self, frame: &[u8]) -> Option<(IpAddr, MacAddress)> {
        let letter = self.envelope.open(frame)?;
        match letter.ether_type {
            EtherType::ARP => {
                let (neighbor_in, _) = arp::Repr::parse(letter.packet).ok()?;
                Some((neighbor_in.sender_ip.into(), neighbor_in.sender_mac))
            }
            EtherType::IPV6 => {
                let (ip, message) = within(letter.packet)?;
                let Message::Nd(neighbor_in) =
                    Message::parse(ip.source(), ip.destination(), message).ok()?
                else {
                    return None;
                };
                neighbor_in.check(ip.source(), ip.destination(), ip.hop_limit()).ok()?;
                let Nd::NeighborAdvertisement { target, options, .. } = neighbor_in else {
                    return None;
                };
                Some((target.into(), options.target_mac().unwrap_or(letter.from)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_tg_measuring::neighbours::{ANSWER_BYTES_MAX, Neighbours};

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

    fn ask_all(from: &str, targets: Hosts, played: &[&str], tags: &str) -> NextHop {
        let tags: quiver_tg_traffic::profile::Tags = serde_saphyr::from_str(tags).expect("tags");
        let envelope = Envelope::new(OURS, &tags);
        let mut hop = NextHop::new(envelope, from.parse().expect("address"), targets, false);
        let family = if from.contains(':') { "ip6" } else { "ip4" };
        let port = serde_saphyr::from_str(&format!("{{{family}: {played:?}}}")).expect("a port");
        let port = quiver_tg_traffic::profile::Port { vlan: tags, ..port };
        let neighbours = Neighbours::new(THEIRS, &port, &std::sync::Arc::default());
        let mut answers = Vec::new();
        for pass in 1..20 {
            hop.solicit(pass * AGAIN_NS, |solicitation| {
                let mut out = vec![0; ANSWER_BYTES_MAX];
                if let Some(length) = neighbours.answer(solicitation.bytes(), &mut out) {
                    out.truncate(length);
                    answers.push(out);
                }
            });
            for answer in answers.drain(..) {
                hop.learn(&answer);
            }
        }
        hop
    }

    #[test]
    fn who_answers_is_known_and_who_does_not_is_named() {
        let targets = Hosts::new("20.0.0.0".parse().expect("address"), 40).expect("hosts");
        let hop = ask_all("10.0.0.1", targets, &["20.0.0.0", "20.0.0.39"], "[{dot1ad: 10}, 20]");
        assert_eq!((hop.unknown(), hop.first_unknown()), (38, "20.0.0.1".parse().ok()));
        assert_eq!(hop.of(0x1400_0027), Some(THEIRS));
        assert_eq!((hop.of(0x1400_0001), hop.of(0x1400_0040)), (None, None));
    }

    #[test]
    fn neighbour_discovery_finds_them_as_well() {
        let targets = Hosts::new("2001:db8::5".parse().expect("address"), 1).expect("hosts");
        let hop = ask_all("2001:db8::1", targets, &["2001:db8::5"], "7");
        assert_eq!((hop.unknown(), hop.gateway()), (0, None));
        assert_eq!(hop.of(targets.bits_at(0)), Some(THEIRS));
    }
}
