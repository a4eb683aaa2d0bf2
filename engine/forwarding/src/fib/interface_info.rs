//! What the FIB must know of an interface.

use std::net::IpAddr;

use quiver_core::{InterfaceId, NodeId};
use quiver_wire::{EtherType, MacAddress};

use super::path::Family;

/// What the FIB must know of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Its number.
    pub id: InterfaceId,
    /// Its output node.
    pub output: NodeId,
    /// Its MAC address; none where frames have no Ethernet header (then there are no neighbours).
    pub mac: Option<MacAddress>,
    /// VLAN tags of what it sends, as on the wire, at most 8 bytes.
    pub vlan_tags: Vec<u8>,
    /// Its L3 MTU in bytes.
    pub mtu_bytes: u16,
    /// A smaller one for IPv4 and for IPv6, in bytes.
    pub family_mtu_bytes: [Option<u16>; 2],
    /// A smaller one for labelled packets, in bytes, labels included.
    pub mpls_mtu_bytes: Option<u16>,
    /// May it send and receive?
    pub up: bool,
    /// Small number of its IPv4 table.
    pub ip4_table: u32,
    /// Small number of its IPv6 table.
    pub ip6_table: u32,
}

impl InterfaceInfo {
    pub(super) fn table(&self, family: Family) -> u32 {
        match family {
            Family::Ip4 => self.ip4_table,
            Family::Ip6 => self.ip6_table,
        }
    }

    /// The longest packet of a family that it sends, in bytes.
    pub fn mtu_of(&self, family: Family) -> u16 {
        let own = self.family_mtu_bytes[usize::from(family == Family::Ip6)];
        own.map_or(self.mtu_bytes, |own| own.min(self.mtu_bytes))
    }

    /// The longest labelled packet that it sends, in bytes, labels included (RFC 3032 §3).
    pub fn mtu_of_labelled(&self) -> u16 {
        self.mpls_mtu_bytes.map_or(self.mtu_bytes, |own| own.min(self.mtu_bytes))
    }

    /// Destination, source, VLAN tags, EtherType (IEEE 802.3 §3.1.1, RFC 894, RFC 2464).
    pub(super) fn header_to(&self, own: MacAddress, peer: MacAddress, payload: Family) -> Vec<u8> {
        self.header_of_type(
            own,
            peer,
            match payload {
                Family::Ip4 => EtherType::IPV4,
                Family::Ip6 => EtherType::IPV6,
            },
        )
    }

    /// As [`header_to`](Self::header_to), with any EtherType.
    pub(super) fn header_of_type(
        &self,
        own: MacAddress,
        peer: MacAddress,
        ether_type: EtherType,
    ) -> Vec<u8> {
        [&peer.0[..], &own.0[..], &self.vlan_tags[..], &ether_type.0.to_be_bytes()].concat()
    }

    /// The layer 2 header of what goes to `group` here (RFC 1112 §6.4, RFC 2464 §7); empty where
    /// frames have none.
    pub fn header_to_group(&self, group: IpAddr) -> Vec<u8> {
        let to = match group {
            IpAddr::V4(group) => MacAddress::for_ip4_multicast(group),
            IpAddr::V6(group) => MacAddress::for_ip6_multicast(group),
        };
        self.mac.map_or_else(Vec::new, |own| self.header_to(own, to, Family::of(group)))
    }
}
