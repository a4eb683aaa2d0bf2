//! Packets by which a protocol watches one member (BFD, RFC 7130): they stay with the member,
//! whatever the bond does with the rest.

use quiver_control::aggregates::{MEMBER_UDP_PORT, WatchedAddresses};
use quiver_core::NodeId;
use quiver_core::graph::node::Wiring;
use quiver_wire::{
    EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol, UdpHeader, VlanId, VlanTag,
};

/// Where the destination port stands in a UDP header.
const PORT_AT: usize = 2;

/// The nodes that take packets of members, by UDP port.
pub(crate) struct Watchers(Vec<([u8; 2], NodeId)>);

impl Watchers {
    /// Those that are claimed.
    pub fn new(wiring: &Wiring<'_>) -> Watchers {
        let claims = wiring.claims(MEMBER_UDP_PORT);
        Watchers(claims.iter().map(|(port, node)| ((*port as u16).to_be_bytes(), *node)).collect())
    }

    /// The node that a frame is for, if it is addressed to a protocol that watches the member. The
    /// port is read where it stands in nearly all packets that are to be found; only then come the
    /// other fields. A frame may have a priority tag (RFC 7130 §2.3).
    #[inline(always)]
    pub fn of(
        &self,
        addresses: &WatchedAddresses,
        ether_type: EtherType,
        frame: &[u8],
    ) -> Option<NodeId> {
        let front = EthernetHeader::LEN;
        match ether_type {
            EtherType::IPV4 => {
                let node = self.claimed(frame, front + Ip4Header::LEN + PORT_AT)?;
                is_ip4(addresses, frame.get(front..)?).then_some(node)
            }
            EtherType::IPV6 => {
                let node = self.claimed(frame, front + Ip6Header::LEN + PORT_AT)?;
                is_ip6(addresses, frame.get(front..)?).then_some(node)
            }
            EtherType::VLAN => self.of_tagged(addresses, frame.get(front..)?),
            _ => None,
        }
    }

    #[inline(always)]
    fn claimed(&self, frame: &[u8], at: usize) -> Option<NodeId> {
        let found = frame.get(at..)?.first_chunk::<2>()?;
        self.0.iter().find(|(port, _)| port == found).map(|(_, node)| *node)
    }

    #[cold]
    fn of_tagged(&self, addresses: &WatchedAddresses, tagged: &[u8]) -> Option<NodeId> {
        let (tag, packet) = VlanTag::split(tagged)?;
        if tag.vlan() != VlanId::PRIORITY {
            return None;
        }
        let (at, is_own): (_, fn(&WatchedAddresses, &[u8]) -> bool) = match tag.ether_type() {
            EtherType::IPV4 => (Ip4Header::LEN + PORT_AT, is_ip4),
            EtherType::IPV6 => (Ip6Header::LEN + PORT_AT, is_ip6),
            _ => return None,
        };
        self.claimed(packet, at).filter(|_| is_own(addresses, packet))
    }
}

/// Is it a whole UDP packet to the watched address? One to the same port of another host is not.
#[cold]
fn is_ip4(addresses: &WatchedAddresses, packet: &[u8]) -> bool {
    Ip4Header::overlay(packet).is_some_and(|header| {
        header.is_version_4_without_options()
            && header.protocol() == IpProtocol::UDP
            && !header.is_fragment()
            && addresses.ip4 == Some(header.destination())
    })
}

/// See [`is_ip4`].
#[cold]
fn is_ip6(addresses: &WatchedAddresses, packet: &[u8]) -> bool {
    Ip6Header::overlay(packet).is_some_and(|header| {
        header.version() == 6
            && header.next_header() == IpProtocol::UDP
            && addresses.ip6 == Some(header.destination())
            && packet.len() >= Ip6Header::LEN + UdpHeader::LEN
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const OWN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    fn watchers() -> Watchers {
        Watchers(vec![(6784u16.to_be_bytes(), NodeId(7))])
    }

    fn watched() -> WatchedAddresses {
        WatchedAddresses { ip4: Some(OWN), ip6: Some(OWN6) }
    }

    fn frame(ether_types: &[[u8; 2]], packet: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &ether_types.concat(), packet].concat()
    }

    fn of(frame: &[u8]) -> Option<NodeId> {
        let ether_type = EtherType(u16::from_be_bytes([frame[12], frame[13]]));
        watchers().of(&watched(), ether_type, frame)
    }

    fn ip4(to: Ipv4Addr, protocol: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 255, protocol, 0, 0, 192, 0, 2, 2];
        packet.extend(to.octets());
        packet.extend([0xc0, 0]);
        packet.extend(port.to_be_bytes());
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn ip6(to: Ipv6Addr, port: u16) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 255];
        packet.extend([0; 16]);
        packet.extend(to.octets());
        packet.extend([0xc0, 0]);
        packet.extend(port.to_be_bytes());
        packet.extend([0, 8, 0, 0]);
        packet
    }

    #[test]
    fn packets_to_the_watched_address_and_port_are_found_and_no_others() {
        let (v4, v6, tag) = ([8, 0], [0x86, 0xdd], [0x81, 0]);
        for (types, packet, is_found) in [
            (&[v4][..], ip4(OWN, 17, 6784), true),
            (&[v4], ip4(OWN, 6, 6784), false),
            (&[v4], ip4(OWN, 17, 3784), false),
            (&[v4], ip4(Ipv4Addr::new(192, 0, 2, 9), 17, 6784), false),
            (&[v6], ip6(OWN6, 6784), true),
            (&[v6], ip6(OWN6, 6785), false),
            (&[v6], ip6(Ipv6Addr::LOCALHOST, 6784), false),
            (&[tag, [0xe0, 0], v4], ip4(OWN, 17, 6784), true),
            (&[tag, [0xe0, 0], v6], ip6(OWN6, 6784), true),
            (&[tag, [0xe0, 7], v4], ip4(OWN, 17, 6784), false),
            (&[[8, 6]], ip4(OWN, 17, 6784), false),
        ] {
            let frame = frame(types, &packet);
            assert_eq!(of(&frame).is_some(), is_found, "{types:x?} {packet:?}");
        }
        let mut fragment = ip4(OWN, 17, 6784);
        fragment[6] = 0x20;
        assert_eq!(of(&frame(&[v4], &fragment)), None);
    }

    proptest! {
        #[test]
        fn no_frame_panics(kind in 0usize..4, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let types = [[8, 0], [0x86, 0xdd], [0x81, 0], [0x88, 9]];
            let _ = of(&frame(&[types[kind]], &bytes));
        }
    }
}
