//! Link header of a side's IP packets: Ethernet header and the port's tags (IEEE 802.1Q).

use quiver_wire::{EtherType, MacAddress};

use quiver_tg_traffic::profile::{TAGS_MAX, Tags};

/// Bytes of both layer 2 addresses.
const ADDRESSES_BYTES: usize = 12;
/// Bytes of a tag.
const TAG_BYTES: usize = 4;
/// Bytes of the longest header.
const BYTES_MAX: usize = ADDRESSES_BYTES + TAG_BYTES * TAGS_MAX + 2;
/// The identifier in the upper byte of a tag's control information; the rest is priority.
const IDENTIFIER_HIGH: u8 = 0x0f;

/// The header of a side's frames.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// As it is sent, but for the destination.
    bytes: [u8; BYTES_MAX],
    length: usize,
    mac: MacAddress,
}

impl Link {
    /// Of frames from `mac` with these tags around IPv4 or IPv6.
    pub fn new(mac: MacAddress, tags: &Tags, is_ip6: bool) -> Link {
        let mut bytes = [0; BYTES_MAX];
        bytes[6..ADDRESSES_BYTES].copy_from_slice(&mac.0);
        let mut at = ADDRESSES_BYTES;
        for tag in tags.0.iter().take(TAGS_MAX) {
            let kind = if tag.is_dot1ad { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
            bytes[at..at + 2].copy_from_slice(&kind.0.to_be_bytes());
            bytes[at + 2..at + 4].copy_from_slice(&tag.id.to_be_bytes());
            at += TAG_BYTES;
        }
        let kind = if is_ip6 { EtherType::IPV6 } else { EtherType::IPV4 };
        bytes[at..at + 2].copy_from_slice(&kind.0.to_be_bytes());
        Link { bytes, length: at + 2, mac }
    }

    /// Bytes of it.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.length
    }

    /// Put it in front of a frame to `to`; the room behind it. `None` when there is none.
    #[inline]
    pub fn write<'a>(&self, out: &'a mut [u8], to: MacAddress) -> Option<&'a mut [u8]> {
        let (header, packet) = out.split_at_mut_checked(self.length)?;
        header.copy_from_slice(self.bytes.get(..self.length)?);
        header.get_mut(..6)?.copy_from_slice(&to.0);
        Some(packet)
    }

    /// Take it off: who sent the frame, and what is behind. `None` when it is for another host,
    /// has other tags, or is not IP of the side's family. Priorities do not matter.
    #[inline]
    pub fn open<'a>(&self, frame: &'a [u8]) -> Option<(MacAddress, &'a [u8])> {
        let (header, packet) = frame.split_at_checked(self.length)?;
        let (own, kinds) =
            (self.bytes.get(ADDRESSES_BYTES..self.length)?, header.get(ADDRESSES_BYTES..)?);
        let is_same = own.iter().zip(kinds).enumerate().all(|(place, (own, came))| {
            let mask = if place % TAG_BYTES == 2 { IDENTIFIER_HIGH } else { 0xff };
            *own == came & mask
        });
        let to = MacAddress(*header.first_chunk::<6>()?);
        let from = MacAddress(*header.get(6..)?.first_chunk::<6>()?);
        (is_same && (to == self.mac || to.is_multicast())).then_some((from, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn link(mac: MacAddress, tags: &str) -> Link {
        Link::new(mac, &serde_saphyr::from_str(tags).expect("tags"), false)
    }

    #[test]
    fn what_one_end_writes_the_other_reads_and_nobody_else() {
        let all = ["[]", "7", "[{dot1ad: 10}, 20]"];
        for (place, tags) in all.iter().enumerate() {
            let mut frame = [0x45; 64];
            let bytes = link(OURS, tags).bytes();
            assert_eq!(bytes, 14 + 4 * place);
            assert_eq!(link(OURS, tags).write(&mut frame, THEIRS).expect("room").len(), 64 - bytes);
            for other in all {
                let opened = link(THEIRS, other).open(&frame);
                assert_eq!(
                    opened.map(|(from, packet)| (from, packet.len())),
                    (other == *tags).then_some((OURS, 64 - bytes))
                );
            }
            assert!(link(OURS, tags).open(&frame).is_none(), "it is for another host");
            if place > 0 {
                frame[14] |= 0xe0;
                assert!(link(THEIRS, tags).open(&frame).is_some(), "a priority does not matter");
            }
        }
        assert!(link(OURS, "7").open(&[0; 17]).is_none());
    }
}
