//! The traffic class of IP packets, read and written: the differentiated services field with ECN
//! (RFC 2474 §3, RFC 3168 §5).

use quiver_wire::checksum::update16;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::fib::Family;

/// The traffic class of the packet that begins with these bytes; `None` when they are too few.
#[inline]
pub fn traffic_class(family: Family, bytes: &[u8]) -> Option<u8> {
    match family {
        Family::Ip4 => Ip4Header::overlay(bytes).map(|header| header.traffic_class),
        Family::Ip6 => Ip6Header::overlay(bytes).map(Ip6Header::traffic_class),
    }
}

/// Write the traffic class of the packet that begins with these bytes, and correct the checksum of
/// an IPv4 header (RFC 1624 eqn. 3). Too few bytes stay as they are.
#[inline]
pub fn set_traffic_class(family: Family, bytes: &mut [u8], class: u8) {
    match family {
        Family::Ip4 => {
            if let Some(header) = Ip4Header::overlay_mut(bytes) {
                // The class is the low byte of the header's first word.
                let (old, checksum) = (header.traffic_class, header.checksum());
                header.traffic_class = class;
                header.set_checksum(update16(checksum, old.into(), class.into()));
            }
        }
        Family::Ip6 => {
            if let Some(header) = Ip6Header::overlay_mut(bytes) {
                header.set_traffic_class(class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_wire::checksum::header_is_good;

    use super::*;

    #[test]
    fn a_changed_class_leaves_a_right_checksum_and_the_other_fields() {
        let mut bytes = [0x45, 0, 0, 40, 1, 2, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = quiver_wire::checksum::header_checksum(Ip4Header::overlay(&bytes).unwrap());
        Ip4Header::overlay_mut(&mut bytes).unwrap().set_checksum(sum);
        for class in 0..=u8::MAX {
            set_traffic_class(Family::Ip4, &mut bytes, class);
            assert_eq!(traffic_class(Family::Ip4, &bytes), Some(class));
            assert!(header_is_good(Ip4Header::overlay(&bytes).unwrap()), "{class}");
        }
        let mut bytes = [0x60, 0x0a, 0xbc, 0xde].to_vec();
        bytes.resize(40, 7);
        set_traffic_class(Family::Ip6, &mut bytes, 0xb9);
        assert_eq!(bytes[..5], [0x6b, 0x9a, 0xbc, 0xde, 7], "version and flow label stay");
        assert_eq!(traffic_class(Family::Ip6, &bytes), Some(0xb9));
    }

    #[test]
    fn too_few_bytes_stay_as_they_are() {
        for family in [Family::Ip4, Family::Ip6] {
            let mut bytes = [0x45; 19];
            set_traffic_class(family, &mut bytes, 1);
            assert_eq!((bytes, traffic_class(family, &bytes)), ([0x45; 19], None));
        }
    }
}
