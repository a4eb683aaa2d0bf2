//! UDP over IP: which datagram a packet holds, and how one is written.

use std::net::IpAddr;

use quiver_wire::checksum::header_checksum;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::udp::{
    fill_checksum_over_ip4, fill_checksum_over_ip6, is_good_over_ip4, is_good_over_ip6,
};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, UdpHeader};

/// TTL and hop limit of what is sent.
const TTL: u8 = 64;

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'p> {
    /// Who sent it.
    pub source: IpAddr,
    /// To which address.
    pub destination: IpAddr,
    /// From which port, and to which.
    pub ports: (u16, u16),
    /// What it carries.
    pub payload: &'p [u8],
    udp: &'p [u8],
}

impl<'p> Datagram<'p> {
    /// The datagram of an IP packet; `None` when it holds none, whole and in one piece.
    pub fn of(packet: &'p [u8]) -> Option<Datagram<'p>> {
        let (source, destination, upper) = match packet.first()? >> 4 {
            4 => {
                let header = Ip4Header::overlay(packet)?;
                let is_it = header.protocol() == IpProtocol::UDP && !header.is_fragment();
                let upper = packet.get(header.header_len()..header.total_length().into());
                (header.source().into(), header.destination().into(), upper.filter(|_| is_it)?)
            }
            6 => {
                let (header, behind) = Ip6Header::split(packet)?;
                let behind = behind.get(..header.payload_length().into())?;
                let upper = upper_layer(header.next_header(), behind).ok()?;
                (header.source().into(), header.destination().into(), behind.get(upper.offset..)?)
            }
            _ => return None,
        };
        let (header, _) = UdpHeader::split(upper)?;
        let udp = upper.get(..header.length().into())?;
        let payload = udp.get(UdpHeader::LEN..)?;
        let ports = (header.source_port(), header.destination_port());
        Some(Datagram { source, destination, ports, payload, udp })
    }

    /// Is its checksum right?
    pub fn is_good(&self) -> bool {
        match (self.source, self.destination) {
            (IpAddr::V4(from), IpAddr::V4(to)) => is_good_over_ip4(from, to, self.udp),
            (IpAddr::V6(from), IpAddr::V6(to)) => is_good_over_ip6(from, to, self.udp),
            _ => false,
        }
    }
}

/// A packet with this payload; `None` when the addresses are of two families or it is too long.
pub fn packet(from: IpAddr, to: IpAddr, ports: (u16, u16), payload: &[u8]) -> Option<Vec<u8>> {
    let udp_len = UdpHeader::LEN + payload.len();
    let udp = UdpHeader::new(ports.0, ports.1, payload.len())?;
    let ip_len = if from.is_ipv4() { Ip4Header::LEN } else { Ip6Header::LEN };
    let mut out = vec![0; ip_len + udp_len];
    let (front, datagram) = out.split_at_mut(ip_len);
    udp.write(datagram).ok()?;
    datagram[UdpHeader::LEN..].copy_from_slice(payload);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = Ip4Header::new(from, to, IpProtocol::UDP, TTL, udp_len)?;
            header.set_checksum(0);
            header.set_checksum(header_checksum(&header));
            header.write(front).ok()?;
            fill_checksum_over_ip4(from, to, datagram);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u16::try_from(udp_len).ok()?;
            Ip6Header::new(from, to, IpProtocol::UDP, TTL, length).write(front).ok()?;
            fill_checksum_over_ip6(from, to, datagram);
        }
        _ => return None,
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        for (from, to) in [("192.0.2.1", "255.255.255.255"), ("fe80::1", "ff02::1:2")] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let bytes = packet(from, to, (67, 68), b"hello").unwrap();
            let read = Datagram::of(&bytes).unwrap();
            assert_eq!((read.source, read.destination, read.ports), (from, to, (67, 68)));
            assert_eq!(read.payload, b"hello");
            assert!(read.is_good());
            let mut wrong = bytes.clone();
            *wrong.last_mut().unwrap() ^= 1;
            assert!(!Datagram::of(&wrong).unwrap().is_good());
            assert!(Datagram::of(&bytes[..bytes.len() - 1]).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), six: bool) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = if six { 0x60 } else { 0x45 };
            }
            let _ = Datagram::of(&bytes).map(|datagram| datagram.is_good());
        }
    }
}
