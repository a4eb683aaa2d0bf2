//! The two addresses at the head of a frame, as numbers (IEEE 802.3 §3.2.4).

use quiver_core::Packet;

/// Bytes of an Ethernet header without tags.
pub(crate) const HEADER_BYTES: usize = 14;
/// The bits of an address, its first octet lowest.
const MAC: u64 = (1 << 48) - 1;
/// The bit that makes an address a group's.
const GROUP: u64 = 1;

/// Both addresses, each with bytes behind it above its 48 bits.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    destination: u64,
    source: u64,
}

impl Addresses {
    /// Those of a frame; `None` when it is shorter than its header.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<Addresses> {
        let header: &[u8; HEADER_BYTES] = packet.bytes().first_chunk()?;
        let (destination, source) = (header.first_chunk::<8>()?, header.last_chunk::<8>()?);
        Some(Addresses {
            destination: u64::from_le_bytes(*destination),
            source: u64::from_le_bytes(*source),
        })
    }

    /// The destination, and something above its 48 bits.
    #[inline(always)]
    pub fn destination(self) -> u64 {
        self.destination
    }

    /// The source, and something above its 48 bits.
    #[inline(always)]
    pub fn source(self) -> u64 {
        self.source
    }

    /// Is the destination a group?
    #[inline(always)]
    pub fn is_to_group(self) -> bool {
        self.destination & GROUP != 0
    }

    /// Can a station have the source: no group, not zero?
    #[inline(always)]
    pub fn has_station_source(self) -> bool {
        (self.source & GROUP == 0) & (self.source & MAC != 0)
    }

    /// Is the destination one of 01:80:c2:00:00:01 to 01:80:c2:00:00:0f, which no bridge forwards
    /// (IEEE 802.1Q §8.6.3)? 01:80:c2:00:00:00 is the spanning tree's, which passes a bridge that
    /// takes no part in it.
    #[inline(always)]
    pub fn is_to_link(self) -> bool {
        const LOW_NIBBLE: u64 = 0x0f << 40;
        let reserved = self.destination & (MAC & !LOW_NIBBLE) == 0x0000_00c2_8001;
        reserved & (self.destination & LOW_NIBBLE != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(destination: [u8; 6]) -> Addresses {
        let [a, b, c, d, e, f] = destination;
        Addresses { destination: u64::from_le_bytes([a, b, c, d, e, f, 0xab, 0xcd]), source: 0 }
    }

    #[test]
    fn fifteen_addresses_never_cross_a_bridge() {
        for last in 0..=255 {
            assert_eq!(
                to([1, 0x80, 0xc2, 0, 0, last]).is_to_link(),
                (1..16).contains(&last),
                "{last}"
            );
            assert!(!to([1, 0x80, 0xc2, 0, 1, last]).is_to_link());
        }
    }

    #[test]
    fn groups_and_zero_are_no_stations() {
        let from = |bits: u64| Addresses { destination: 0, source: bits };
        assert!(from(2).has_station_source());
        assert!(!from(3).has_station_source());
        assert!(!from(0xabcd << 48).has_station_source());
        assert!(to([0xff; 6]).is_to_group());
    }
}
