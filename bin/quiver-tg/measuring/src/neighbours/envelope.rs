//! Ethernet headers with a port's tags: taken off what comes, put on what goes.

use quiver_wire::vlan::{Repr as Tag, VlanId};
use quiver_wire::{EtherType, MacAddress, WireError, ethernet};

use quiver_tg_traffic::profile::Tags;

/// The shortest frame on a wire, without FCS.
const FRAME_BYTES_MIN: usize = 60;

/// The tags of a port, and its MAC address.
#[derive(Clone, Debug)]
pub struct Envelope {
    mac: MacAddress,
    tags: Box<[(EtherType, VlanId)]>,
}

/// A frame without its header and tags.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// Source MAC address.
    pub from: MacAddress,
    /// What it is.
    pub ether_type: EtherType,
    /// The packet, and what pads the frame.
    pub packet: &'a [u8],
}

impl Envelope {
    /// For a port.
    pub fn new(mac: MacAddress, tags: &Tags) -> Envelope {
        let tag = |tag: &quiver_tg_traffic::profile::Tag| {
            let kind = if tag.is_dot1ad { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
            VlanId::new(tag.id).map(|id| (kind, id))
        };
        Envelope { mac, tags: tags.0.iter().filter_map(tag).collect() }
    }

    /// The port's address.
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Take off header and tags. `None` when it is for another host, or has other tags.
    pub fn open<'a>(&self, frame: &'a [u8]) -> Option<Letter<'a>> {
        let (header, mut packet) = ethernet::Repr::parse(frame).ok()?;
        if header.destination != self.mac && !header.destination.is_multicast() {
            return None;
        }
        let mut ether_type = header.ether_type;
        for (kind, id) in &self.tags {
            if ether_type != *kind {
                return None;
            }
            let (tag, rest) = Tag::parse(packet).ok()?;
            if tag.vlan != *id {
                return None;
            }
            (ether_type, packet) = (tag.ether_type, rest);
        }
        (!ether_type.is_vlan()).then_some(Letter { from: header.source, ether_type, packet })
    }

    /// Write a frame whose packet `write` puts into what is left of `out` and says the length of.
    pub fn seal(
        &self,
        out: &mut [u8],
        to: MacAddress,
        ether_type: EtherType,
        write: impl FnOnce(&mut [u8]) -> Result<usize, WireError>,
    ) -> Option<usize> {
        let kind_at = |place: usize| self.tags.get(place).map_or(ether_type, |(kind, _)| *kind);
        let header = ethernet::Repr { destination: to, source: self.mac, ether_type: kind_at(0) };
        let mut at = header.emit(out).ok()?;
        for (place, (_, vlan)) in self.tags.iter().enumerate() {
            let ether_type = kind_at(place + 1);
            let tag = Tag { priority: 0, drop_eligible: false, vlan: *vlan, ether_type };
            at += tag.emit(out.get_mut(at..)?).ok()?;
        }
        let length = at + write(out.get_mut(at..)?).ok()?;
        if length < FRAME_BYTES_MIN {
            out.get_mut(length..FRAME_BYTES_MIN)?.fill(0);
        }
        Some(length.max(FRAME_BYTES_MIN))
    }
}
