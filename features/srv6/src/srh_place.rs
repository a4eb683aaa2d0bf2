//! Where an SRH is put into an IPv6 packet that has none in front.

use std::net::Ipv6Addr;

use quiver_core::Packet;
use quiver_wire::ip6::extension::Walk;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::endpoint::segments::NEXT_HEADER_PLACE;

/// The place of an SRH that is inserted: behind hop-by-hop options (RFC 8200 §4.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SrhPlace {
    at: usize,
    named_at: usize,
    /// What stands there now.
    pub next: u8,
}

impl SrhPlace {
    /// Nothing for what is no IPv6 packet.
    pub fn of(bytes: &[u8]) -> Option<SrhPlace> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let first = Walk::new(header.next_header(), behind).next().and_then(Result::ok);
        let hop_by_hop = first.filter(|extension| extension.kind == IpProtocol::HOP_BY_HOP);
        let at = Ip6Header::LEN + hop_by_hop.map_or(0, |extension| extension.bytes.len());
        let named_at = if hop_by_hop.is_some() { Ip6Header::LEN } else { NEXT_HEADER_PLACE };
        Some(SrhPlace { at, named_at, next: *bytes.get(named_at)? })
    }

    /// Put it there, or nothing, and let the packet go `to` its first segment; false without
    /// headroom. Its own next header is [`next`](Self::next).
    #[must_use]
    pub fn put(self, packet: &mut Packet, srh: &[u8], to: Ipv6Addr) -> bool {
        let length = packet.length() + srh.len();
        if !packet.insert(self.at, srh) {
            return false;
        }
        let bytes = packet.bytes_mut();
        if !srh.is_empty()
            && let Some(named) = bytes.get_mut(self.named_at)
        {
            *named = IpProtocol::ROUTING.0;
        }
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.set_destination(to);
            header.set_payload_length((length - Ip6Header::LEN) as u16);
        }
        packet.l2_bytes = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT};
    use quiver_core::memory::mapping::PageSize;
    use quiver_core::memory::packet::PacketFlags;

    #[test]
    fn a_checksum_that_is_left_to_a_device_lies_behind_what_is_put_in() {
        let pool = BufferPool::new(128, DATA_BYTES_DEFAULT, PageSize::Small).unwrap();
        let mut cache = pool.cache();
        for hop_by_hop in [false, true] {
            let options = [17, 0, 1, 4, 0, 0, 0, 0];
            let options = if hop_by_hop { &options[..] } else { &[] };
            let mut frame = vec![0; 14];
            frame.extend([
                0x60,
                0,
                0,
                0,
                0,
                8 + options.len() as u8,
                if hop_by_hop { 0 } else { 17 },
                64,
            ]);
            frame.extend([0xfc; 32]);
            frame.extend(options);
            let udp = [0xaa, 0xaa, 0, 9, 0, 8, 0, 0];
            frame.extend(udp);
            let mut packet = cache.packet().unwrap();
            assert!(packet.append(&frame, &mut cache));
            packet.set(PacketFlags::OFFLOAD);
            packet.offload_mut().checksum_bytes = 8;
            packet.offload_mut().segment_bytes = 0;
            assert!(packet.pull(14));
            packet.l2_bytes = 14;
            let place = SrhPlace::of(packet.bytes()).unwrap();
            assert_eq!(place.next, 17);
            let srh = [[place.next, 2, 4, 0, 0, 0, 0, 0].as_slice(), &[0xfd; 16]].concat();
            assert!(place.put(&mut packet, &srh, Ipv6Addr::LOCALHOST));
            let start = packet.length() - usize::from(packet.offload().checksum_bytes);
            assert_eq!(packet.bytes()[start..], udp);
            let at = 40 + options.len();
            assert_eq!(packet.bytes()[at..at + 24], srh);
            assert_eq!(
                (packet.bytes()[5], packet.bytes()[if hop_by_hop { 40 } else { 6 }]),
                ((at - 8) as u8, 43)
            );
        }
    }
}
