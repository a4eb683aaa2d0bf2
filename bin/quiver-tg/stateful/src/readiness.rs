//! Is the path through the forwarder ready? Before the first transaction each client's host pings
//! its server through the forwarder. The first ping makes the forwarder ask for its neighbours; an
//! answer has gone there and back, so both next hops are known.

use std::net::IpAddr;

use quiver_wire::icmp6::{self, within};
use quiver_wire::{EtherType, Header, Ip6Header, IpProtocol, MacAddress, WireError, icmp4, ip4};

use quiver_tg_measuring::neighbours::{Envelope, Letter};
use quiver_tg_traffic::profile::stateful::hosts::{Hosts, bits_of};

/// Hosts that ping, at most; further hosts use the same paths.
pub const PINGED_MAX: u32 = 4096;
/// How long an answer may take before the ping is sent again, nanoseconds.
const AGAIN_NS: u64 = 50_000_000;
/// Pings sent at once.
const AT_ONCE: usize = 16;
/// Identifier of this program's pings.
const IDENTIFIER: u16 = 0x5170;
/// Bytes of a ping's frame: Ethernet, two tags, IPv6, an echo request.
const SOLICITATION_BYTES: usize = 14 + 8 + 40 + 8 + 8;
/// Hops that a solicitation may take.
const HOPS: u8 = 64;
/// Bytes behind the header of an echo request.
const DATA: [u8; 8] = *b"Qv ready";

/// Which hosts have been answered.
pub struct Readiness {
    envelope: Envelope,
    clients: Hosts,
    servers: Hosts,
    answered: Box<[bool]>,
    left: usize,
    solicited_ns: u64,
    /// The next host to look at.
    place: usize,
}

impl Readiness {
    /// Of clients behind `envelope`'s port, who talk to these servers.
    pub fn new(envelope: Envelope, clients: Hosts, servers: Hosts) -> Readiness {
        let answered = vec![false; clients.count().min(PINGED_MAX) as usize].into_boxed_slice();
        let left = answered.len();
        Readiness { envelope, clients, servers, answered, left, solicited_ns: 0, place: 0 }
    }

    /// Hosts that have not been answered.
    pub fn left(&self) -> usize {
        self.left
    }

    /// A client and its server whose ping was not answered.
    pub fn first_left(&self) -> Option<(IpAddr, IpAddr)> {
        self.answered.iter().position(|answered| !answered).map(|place| self.pair(place))
    }

    fn pair(&self, place: usize) -> (IpAddr, IpAddr) {
        let place = place as u32;
        (self.clients.at(place), self.servers.at(place % self.servers.count()))
    }

    /// Ask a few at a time, each again until it is answered. `send` is given the server and a frame
    /// whose destination it says.
    pub fn ask(
        &mut self,
        now_ns: u64,
        mac_of: impl Fn(u128) -> MacAddress,
        mut send: impl FnMut(&[u8]),
    ) {
        if self.left == 0 || self.place == 0 && now_ns.wrapping_sub(self.solicited_ns) < AGAIN_NS {
            return;
        }
        if self.place == 0 {
            self.solicited_ns = now_ns;
        }
        let mut more = AT_ONCE;
        while more > 0 && self.place < self.answered.len() {
            if !self.answered[self.place] {
                let mut out = [0; SOLICITATION_BYTES];
                let to = mac_of(bits_of(self.pair(self.place).1));
                if let Some(length) = self.solicitation(&mut out, to, self.place) {
                    send(&out[..length]);
                }
                more -= 1;
            }
            self.place += 1;
        }
        if self.place == self.answered.len() {
            self.place = 0;
        }
    }

    fn solicitation(&self, out: &mut [u8], to: MacAddress, place: usize) -> Option<usize> {
        let sequence = place as u16;
        match self.pair(place) {
            (IpAddr::V4(from), IpAddr::V4(target)) => {
                let message = icmp4::Message::EchoRequest { identifier: IDENTIFIER, sequence };
                let ping = icmp4::Repr { message, data: &DATA };
                let ip = ip4::Repr {
                    ttl: HOPS,
                    ..ip4::Repr::new(from, target, IpProtocol::ICMP, ping.len())
                };
                self.envelope.seal(out, to, EtherType::IPV4, |out| {
                    let at = ip.emit(out)?;
                    Ok(at + ping.emit(behind(out, at)?)?)
                })
            }
            (IpAddr::V6(from), IpAddr::V6(target)) => {
                let ping =
                    icmp6::Message::EchoRequest { identifier: IDENTIFIER, sequence, data: &DATA };
                self.envelope.seal(out, to, EtherType::IPV6, |out| {
                    let length = ping.emit(from, target, behind(out, Ip6Header::LEN)?)?;
                    Ip6Header::new(from, target, IpProtocol::ICMP6, HOPS, length as u16)
                        .write(out)?;
                    Ok(Ip6Header::LEN + length)
                })
            }
            _ => None,
        }
    }

    /// A frame that came may be an answer; true when it is.
    pub fn hear(&mut self, frame: &[u8]) -> bool {
        let Some((client, server, sequence)) =
            self.envelope.open(frame).and_then(|letter| answer_in(&letter))
        else {
            return false;
        };
        let place = usize::from(sequence);
        if place >= self.answered.len() || self.pair(place) != (client, server) {
            return false;
        }
        if !std::mem::replace(&mut self.answered[place], true) {
            self.left -= 1;
        }
        true
    }
}

/// The room behind so many bytes.
fn behind(out: &mut [u8], at: usize) -> Result<&mut [u8], WireError> {
    let have = out.len();
    out.get_mut(at..).ok_or(WireError::NoRoom { need: at, have })
}

/// Destination, source and number of an echo reply, if it is one of ours.
fn answer_in(letter: &Letter<'_>) -> Option<(IpAddr, IpAddr, u16)> {
    match letter.ether_type {
        EtherType::IPV4 => {
            let (ip, payload) = ip4::Repr::parse(letter.packet).ok()?;
            let is_icmp =
                ip.protocol == IpProtocol::ICMP && !ip.more_fragments && ip.fragment_offset == 0;
            let reply =
                icmp4::Repr::parse(payload.get(..ip.payload_len)?).ok().filter(|_| is_icmp)?;
            let icmp4::Message::EchoReply { identifier: IDENTIFIER, sequence } = reply.message
            else {
                return None;
            };
            Some((ip.destination.into(), ip.source.into(), sequence))
        }
        EtherType::IPV6 => {
            let (ip, message) = within(letter.packet)?;
            let message = icmp6::Message::parse(ip.source(), ip.destination(), message).ok()?;
            let icmp6::Message::EchoReply { identifier: IDENTIFIER, sequence, .. } = message else {
                return None;
            };
            Some((ip.destination().into(), ip.source().into(), sequence))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_tg_measuring::neighbours::{ANSWER_BYTES_MAX, Neighbours};
    use quiver_tg_traffic::profile::{Port, Tags};

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

    fn hosts(first: &str, count: u32) -> Hosts {
        Hosts::new(first.parse().expect("address"), count).expect("hosts")
    }

    /// Ask for a second; servers answer that are played.
    fn ask(clients: Hosts, servers: Hosts, played: Hosts, tags: &str) -> Readiness {
        let tags: Tags = serde_saphyr::from_str(tags).expect("tags");
        let mut readiness = Readiness::new(Envelope::new(OURS, &tags), clients, servers);
        let port = Port { vlan: tags, ..Port::default() };
        let neighbours =
            Neighbours::new(THEIRS, &port, &std::sync::Arc::default()).with_hosts(vec![played]);
        for pass in 0..200 {
            let mut answers = Vec::new();
            readiness.ask(
                AGAIN_NS + pass * AGAIN_NS / 10,
                |_| THEIRS,
                |solicitation| {
                    let mut out = vec![0; ANSWER_BYTES_MAX];
                    if let Some(length) = neighbours.answer(solicitation, &mut out) {
                        out.truncate(length);
                        answers.push(out);
                    }
                },
            );
            answers.iter().for_each(|answer| assert!(readiness.hear(answer)));
        }
        readiness
    }

    #[test]
    fn all_hosts_are_ready_when_their_pings_came_back() {
        let (clients, servers) = (hosts("10.0.0.0", 100), hosts("20.0.0.0", 30));
        assert_eq!(ask(clients, servers, servers, "[]").left(), 0);
        assert_eq!(ask(clients, servers, servers, "[{dot1ad: 10}, 20]").left(), 0);
        let (clients, servers) = (hosts("2001:db8:1::", 40), hosts("2001:db8:2::", 40));
        assert_eq!(ask(clients, servers, servers, "7").left(), 0);
    }

    #[test]
    fn who_is_not_answered_is_named() {
        let (clients, servers) = (hosts("10.0.0.0", 100), hosts("20.0.0.0", 100));
        let readiness = ask(clients, servers, hosts("20.0.0.0", 60), "[]");
        assert_eq!(readiness.left(), 40);
        let address = |text: &str| text.parse::<IpAddr>().expect("address");
        assert_eq!(readiness.first_left(), Some((address("10.0.0.60"), address("20.0.0.60"))));
    }

    #[test]
    fn other_frames_are_no_answers() {
        let mut readiness =
            ask(hosts("10.0.0.0", 3), hosts("20.0.0.0", 3), hosts("20.0.0.9", 1), "[]");
        let mut out = [0; SOLICITATION_BYTES];
        let length = readiness.solicitation(&mut out, OURS, 0).expect("a solicitation");
        assert!(
            !readiness.hear(&out[..length]) && !readiness.hear(&[]) && !readiness.hear(&[0; 60])
        );
        assert_eq!(readiness.left(), 3);
    }
}
