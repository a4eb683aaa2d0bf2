//! Headers of a frame, for filters. Parsing never fails: a missing header is `None`.

use std::net::IpAddr;

use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::vlan::Tags;
use quiver_wire::{
    ArpHeader, EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol, MacAddress,
    UdpHeader,
};

/// Labels that are looked through.
const LABELS_MAX: usize = 8;

/// A frame's headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers {
    /// Source and destination on layer 2.
    pub macs: Option<[MacAddress; 2]>,
    /// VLANs, the outer one first.
    pub vlans: [Option<u16>; 2],
    /// The type behind the tags.
    pub ether_type: Option<u16>,
    /// MPLS labels, from the outside in.
    pub labels: [Option<u32>; LABELS_MAX],
    /// Source and destination of IP, or sender and target of ARP.
    pub addresses: Option<[IpAddr; 2]>,
    /// Protocol behind IP.
    pub protocol: Option<u8>,
    /// Source and destination.
    pub ports: Option<[u16; 2]>,
    /// Bytes of the frame without FCS.
    pub length: usize,
    /// The stream that its stamp names.
    pub stream: Option<u8>,
}

impl Headers {
    /// Of a frame of `length` bytes that begins with `bytes`.
    pub fn of(bytes: &[u8], length: usize, stream: Option<u8>) -> Headers {
        let mut headers = Headers { length, stream, ..Headers::default() };
        let Some((ethernet, rest)) = EthernetHeader::split(bytes) else { return headers };
        headers.macs = Some([ethernet.source, ethernet.destination]);
        let Some(tags) = Tags::walk(ethernet.ether_type(), rest) else { return headers };
        headers.vlans = [tags.outer, tags.inner].map(|tag| tag.map(|(_, vlan)| vlan.get()));
        headers.ether_type = Some(tags.ether_type.0);
        headers.behind(tags.ether_type, rest.get(tags.len..).unwrap_or_default());
        headers
    }

    fn behind(&mut self, ether_type: EtherType, bytes: &[u8]) {
        match ether_type {
            EtherType::IPV4 => self.ip4(bytes),
            EtherType::IPV6 => self.ip6(bytes),
            EtherType::ARP => {
                if let Some(arp) =
                    ArpHeader::overlay(bytes).filter(|arp| arp.is_ip4_over_ethernet())
                {
                    self.addresses = Some([arp.sender_ip().into(), arp.target_ip().into()]);
                }
            }
            EtherType::MPLS => self.mpls(bytes),
            _ => {}
        }
    }

    /// Label stack entries (RFC 3032 §2.1), and IP behind the last as its first four bits say.
    fn mpls(&mut self, mut bytes: &[u8]) {
        for place in 0..LABELS_MAX {
            let Some((entry, rest)) = bytes.split_first_chunk::<4>() else { return };
            let entry = u32::from_be_bytes(*entry);
            self.labels[place] = Some(entry >> 12);
            bytes = rest;
            if entry & 0x100 != 0 {
                return match bytes.first().map(|first| first >> 4) {
                    Some(4) => self.ip4(bytes),
                    Some(6) => self.ip6(bytes),
                    _ => {}
                };
            }
        }
    }

    fn ip4(&mut self, bytes: &[u8]) {
        let Some(header) = Ip4Header::overlay(bytes) else { return };
        self.addresses = Some([header.source().into(), header.destination().into()]);
        self.protocol = Some(header.protocol().0);
        if header.fragment_offset() == 0 {
            let behind = bytes.get(header.header_len().max(Ip4Header::LEN)..).unwrap_or_default();
            self.upper(header.protocol(), behind);
        }
    }

    fn ip6(&mut self, bytes: &[u8]) {
        let Some((header, rest)) = Ip6Header::split(bytes) else { return };
        self.addresses = Some([header.source().into(), header.destination().into()]);
        self.protocol = Some(header.next_header().0);
        let Ok(upper) = upper_layer(header.next_header(), rest) else { return };
        self.protocol = Some(upper.protocol.0);
        if upper.fragment.is_none_or(|fragment| fragment.offset == 0) {
            self.upper(upper.protocol, rest.get(upper.offset..).unwrap_or_default());
        }
    }

    fn upper(&mut self, protocol: IpProtocol, bytes: &[u8]) {
        if protocol.has_ports() {
            // All that have ports begin with them, as UDP does.
            self.ports =
                UdpHeader::overlay(bytes).map(|udp| [udp.source_port(), udp.destination_port()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x0806]),
        ) {
            let mut bytes = bytes;
            if let Some(place) = bytes.get_mut(12..14) {
                place.copy_from_slice(&kind.to_be_bytes());
            }
            let headers = Headers::of(&bytes, bytes.len(), None);
            prop_assert_eq!(headers.macs.is_some(), bytes.len() >= 14);
        }
    }
}
