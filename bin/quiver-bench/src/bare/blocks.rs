//! A block of packets: headers are checked, then all destinations are looked up together.

use quiver_core::cpu::Variant;
use quiver_core::memory::packet::Packet;
use quiver_forwarding::ip::IpTables;
use quiver_tables::GroupId;
use quiver_wire::ethernet::EthernetHeader;
use quiver_wire::{EtherType, Header, Ip4Header, Ip6Header, ip4, ip6};

use crate::population::OUR_MAC;

/// Packets whose headers are checked before the first of them is looked up.
pub const BLOCK: usize = 64;
/// What is in front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// IPv4 behind Ethernet.
    Ip4,
    /// IPv6 behind Ethernet.
    Ip6,
    /// Nothing but Ethernet, which is not looked at.
    Frame,
}

/// Destinations of a block, and what was found for them.
pub struct LookUpBlock {
    four: [u32; BLOCK],
    six: [u128; BLOCK],
    /// Next-hop groups, by place.
    pub found: [GroupId; BLOCK],
}

impl LookUpBlock {
    /// Nothing yet.
    pub fn new() -> LookUpBlock {
        LookUpBlock { four: [0; BLOCK], six: [0; BLOCK], found: [GroupId(0); BLOCK] }
    }

    /// Look at the header that `behind` begins with, and note where it leads; false when it is not
    /// plain.
    #[inline(always)]
    pub fn note(&mut self, layer: Layer, place: usize, behind: &[u8]) -> bool {
        match layer {
            Layer::Frame => true,
            Layer::Ip4 => Ip4Header::overlay(behind).is_some_and(|header| {
                self.four[place] = header.destination_bits();
                ip4::is_plain(header, behind.len()) & (header.ttl() > 1)
            }),
            Layer::Ip6 => Ip6Header::overlay(behind).is_some_and(|header| {
                self.six[place] = header.destination_bits();
                ip6::is_plain(header, behind.len()) & (header.hop_limit() > 1)
            }),
        }
    }

    /// Check a frame, and note where its packet goes.
    #[inline(always)]
    pub fn check(&mut self, layer: Layer, place: usize, packet: &Packet) -> bool {
        let Some((ethernet, behind)) = EthernetHeader::split(packet.bytes()) else { return false };
        let kind = match layer {
            Layer::Frame => return true,
            Layer::Ip4 => EtherType::IPV4,
            Layer::Ip6 => EtherType::IPV6,
        };
        self.note(layer, place, behind)
            & (ethernet.ether_type() == kind)
            & (ethernet.destination.0 == OUR_MAC)
    }

    /// Look the first `count` destinations up.
    #[inline(always)]
    pub fn look_up(&mut self, layer: Layer, variant: Variant, tables: &IpTables, count: usize) {
        let LookUpBlock { four, six, found } = self;
        match layer {
            Layer::Frame => {}
            Layer::Ip4 => {
                tables.ip4.table(0).lookup_slice(variant, &four[..count], &mut found[..count])
            }
            Layer::Ip6 => {
                tables.ip6.table(0).lookup_slice(variant, &six[..count], &mut found[..count])
            }
        }
    }
}
