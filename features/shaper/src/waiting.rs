//! A packet while it waits: where its IP header stands is known, so that it can be marked.

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::context::Behind;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_shaping::{Death, Item, Sink};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::node::ShaperDrop;

/// The bits of explicit congestion notification, which are all set in a packet that has
/// experienced congestion (RFC 3168 §5).
const CE: u8 = 0b11;
/// In the place of an IP header's offset: none.
const NO_HEADER: u32 = 0;
const IS_IP6: u32 = 1 << 31;

/// A packet that waits. Its hash is that of another use meanwhile: where its IP header stands.
#[derive(Debug)]
pub(crate) struct Waiting(Packet);

impl Waiting {
    /// `header`: the offset and version of its IP header.
    pub fn new(mut packet: Packet, header: Option<(usize, u8)>) -> Waiting {
        packet.hash = header.map_or(NO_HEADER, |(at, version)| {
            (at as u32 + 1) | if version == 6 { IS_IP6 } else { 0 }
        });
        Waiting(packet)
    }

    fn into_packet(mut self) -> Packet {
        self.0.hash = 0;
        self.0
    }
}

impl Item for Waiting {
    fn bytes(&self) -> u32 {
        self.0.length() as u32
    }

    fn buffers(&self) -> u32 {
        if self.0.is_chained() { self.0.buffer_count() as u32 } else { 1 }
    }

    fn mark(&mut self) -> bool {
        let word = self.0.hash;
        if word == NO_HEADER || self.0.has(PacketFlags::OFFLOAD) {
            return false;
        }
        let at = (word & !IS_IP6) as usize - 1;
        let Some(bytes) = self.0.bytes_mut().get_mut(at..) else { return false };
        if word & IS_IP6 != 0 { mark_ip6(bytes) } else { mark_ip4(bytes) }
    }
}

/// RFC 3168 §5, with the header checksum of RFC 1624 §3.
fn mark_ip4(bytes: &mut [u8]) -> bool {
    if Ip4Header::overlay(bytes).is_none() || bytes[1] & CE == 0 {
        return false;
    }
    let before = u16::from_be_bytes([bytes[0], bytes[1]]);
    bytes[1] |= CE;
    let now = u16::from_be_bytes([bytes[0], bytes[1]]);
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(now);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    true
}

fn mark_ip6(bytes: &mut [u8]) -> bool {
    let Some(header) = Ip6Header::overlay_mut(bytes) else { return false };
    let class = header.traffic_class();
    if class & CE == 0 {
        return false;
    }
    header.set_traffic_class(class | CE);
    true
}

/// Where packets go that leave the tree.
pub(crate) struct Out<'a, 'p> {
    cx: &'a mut Context<'p>,
    /// The node that shapes.
    own: NodeId,
    /// Where packets of an interface go: that of the last one that left.
    behind: Option<(InterfaceId, Behind)>,
}

impl<'a, 'p> Out<'a, 'p> {
    /// Of the node `own`.
    pub fn new(cx: &'a mut Context<'p>, own: NodeId) -> Out<'a, 'p> {
        Out { cx, own, behind: None }
    }

    /// Where packets of an interface go behind the node that shapes.
    fn behind(&mut self, tx: InterfaceId) -> Result<Behind, ShaperDrop> {
        let row = self.cx.interface(tx).ok_or(ShaperDrop::InterfaceGone)?;
        if !row.up {
            return Err(ShaperDrop::InterfaceDown);
        }
        let behind = self.cx.behind(INTERFACE_OUTPUT, tx, self.own, row.tx);
        self.behind = Some((tx, behind));
        Ok(behind)
    }
}

impl Sink<Waiting> for Out<'_, '_> {
    fn send(&mut self, item: Waiting) {
        let mut packet = item.into_packet();
        let tx = packet.tx;
        let behind = match self.behind {
            Some((known, behind)) if known == tx => Ok(behind),
            _ => self.behind(tx),
        };
        match behind {
            Ok(behind) => {
                let next = behind.take(&mut packet);
                self.cx.trace(&packet, next);
                self.cx.emit(packet, next);
            }
            Err(reason) => self.cx.kill(packet, reason),
        }
    }

    fn drop(&mut self, item: Waiting, why: Death) {
        let reason = match why {
            Death::Codel => ShaperDrop::Codel,
            Death::Overlimit => ShaperDrop::Overlimit,
        };
        self.cx.kill(item.into_packet(), reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_wire::checksum;

    #[test]
    fn only_packets_that_know_of_ecn_are_marked_and_their_checksum_stays_right() {
        for class in 0..=255 {
            let mut header =
                [0x45, class, 0, 20, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let sum = checksum::header_checksum(Ip4Header::overlay(&header).expect("header"));
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            let is_marked = mark_ip4(&mut header);
            assert_eq!(is_marked, class & 3 != 0);
            assert_eq!(header[1], if is_marked { class | 3 } else { class });
            let sum = u16::from_be_bytes([header[10], header[11]]);
            (header[10], header[11]) = (0, 0);
            assert_eq!(
                sum,
                checksum::header_checksum(Ip4Header::overlay(&header).expect("header"))
            );
        }
    }

    #[test]
    fn what_is_shorter_than_a_header_stays() {
        assert!(!mark_ip4(&mut [0x45, 1, 0]) && !mark_ip6(&mut [0x60; 10]) && !mark_ip4(&mut []));
        let mut header = [0; 40];
        (header[0], header[1]) = (0x60, 0x10);
        assert!(mark_ip6(&mut header));
        assert_eq!(header[1], 0x30);
    }
}
