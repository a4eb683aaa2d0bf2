//! Whether an IPv6 header may go on: one test without branches for the good path, the reason behind
//! it.

use super::{Ip6Header, address};
use crate::Header;

malformations! {
    /// Why an IPv6 packet goes no further.
    pub enum Ip6Bad {
        /// Fewer than 40 bytes are there.
        Truncated = "truncated", "fewer bytes than an IPv6 header";
        /// The version is not 6.
        BadVersion = "bad-version", "IP version is not 6";
        /// The payload length is more than arrived.
        PayloadBeyondPacket = "length-beyond-packet", "IPv6 payload length beyond the packet";
        /// The source is a multicast group (RFC 4291 §2.7).
        SourceIsMulticast = "source-multicast", "IPv6 source is a multicast group";
        /// The source is ::1 (RFC 4291 §2.5.3).
        SourceIsLoopback = "source-loopback", "IPv6 source is the loopback address";
        /// The source is an IPv4-mapped address (RFC 6890).
        SourceIsV4Mapped = "source-v4-mapped", "IPv6 source is an IPv4-mapped address";
        /// The destination is :: (RFC 4291 §2.5.2).
        DestinationIsUnspecified = "destination-unspecified",
            "IPv6 destination is the unspecified address";
        /// The destination is ::1 (RFC 4291 §2.5.3).
        DestinationIsLoopback = "destination-loopback", "IPv6 destination is the loopback address";
        /// The destination is an IPv4-mapped address (RFC 6890).
        DestinationIsV4Mapped = "destination-v4-mapped",
            "IPv6 destination is an IPv4-mapped address";
        /// The destination is a group of the interface itself or of scope 0 (RFC 4291 §2.7).
        DestinationIsInterfaceLocal = "destination-interface-local",
            "IPv6 destination group does not leave its interface";
    }
}

/// Version and payload length are right: no branch. `available` is how many bytes arrived from the
/// header's first one on, in all segments.
#[inline(always)]
pub fn is_well_formed(header: &Ip6Header, available: usize) -> bool {
    (header.version() == 6) & (usize::from(header.payload_length()) + Ip6Header::LEN <= available)
}

/// The source is no group, and neither address is in ::/64, where all other wrong ones are; the
/// destination is no group. False for some packets that [`validate`] lets pass.
#[inline(always)]
pub fn has_good_addresses(header: &Ip6Header) -> bool {
    let source = (header.source_bits() >> 64) as u64;
    let destination = (header.destination_bits() >> 64) as u64;
    (source.wrapping_sub(1) < (0xff << 56) - 1) & (destination.wrapping_sub(1) < (0xff << 56) - 1)
}

/// The good path in one test: everything that [`validate`] asks, for unicast destinations outside
/// ::/64. When it is false, [`explain`] says why, if anything is wrong at all.
#[inline(always)]
pub fn is_plain(header: &Ip6Header, available: usize) -> bool {
    is_well_formed(header, available) & has_good_addresses(header)
}

/// Validates the packet that starts at `segment[0]`, and returns its header. `available` counts all
/// segments. The source :: passes, for neighbour discovery needs it.
///
/// # Errors
/// The header or its lengths are malformed; [`Ip6Bad`] names the fault.
#[inline(always)]
pub fn validate(segment: &[u8], available: usize) -> Result<&Ip6Header, Ip6Bad> {
    let header = Ip6Header::overlay(segment).ok_or(Ip6Bad::Truncated)?;
    if !is_plain(header, available) {
        explain(segment, available)?;
    }
    Ok(header)
}

/// As [`validate`], step by step: for packets that are not [`is_plain`].
///
/// # Errors
/// As for [`validate`].
#[cold]
#[inline(never)]
pub fn explain(segment: &[u8], available: usize) -> Result<(), Ip6Bad> {
    let header = Ip6Header::overlay(segment).ok_or(Ip6Bad::Truncated)?;
    let (source, destination) = (header.source(), header.destination());
    let beyond = usize::from(header.payload_length()) + Ip6Header::LEN > available;
    let interface_local =
        address::is_multicast(destination) && address::multicast_scope(destination) <= 1;
    let checks = [
        (header.version() != 6, Ip6Bad::BadVersion),
        (beyond, Ip6Bad::PayloadBeyondPacket),
        (address::is_multicast(source), Ip6Bad::SourceIsMulticast),
        (address::is_loopback(source), Ip6Bad::SourceIsLoopback),
        (address::is_v4_mapped(source), Ip6Bad::SourceIsV4Mapped),
        (address::is_unspecified(destination), Ip6Bad::DestinationIsUnspecified),
        (address::is_loopback(destination), Ip6Bad::DestinationIsLoopback),
        (address::is_v4_mapped(destination), Ip6Bad::DestinationIsV4Mapped),
        (interface_local, Ip6Bad::DestinationIsInterfaceLocal),
    ];
    match checks.iter().find(|(bad, _)| *bad) {
        Some((_, reason)) => Err(*reason),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IpProtocol;
    use core::net::Ipv6Addr;
    use proptest::prelude::*;

    fn verdict(source: &str, destination: &str) -> Result<(), Ip6Bad> {
        let addresses: [Ipv6Addr; 2] = [source.parse().unwrap(), destination.parse().unwrap()];
        let mut bytes = [0; 48];
        Ip6Header::new(addresses[0], addresses[1], IpProtocol::UDP, 64, 8)
            .write(&mut bytes)
            .unwrap();
        validate(&bytes, 48).map(|_| ())
    }

    #[test]
    fn each_lie_of_the_header_has_its_own_reason() {
        let mut bytes = [0; 48];
        let at = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        Ip6Header::new(at, at, IpProtocol::UDP, 64, 8).write(&mut bytes).unwrap();
        assert!(validate(&bytes, 48).is_ok());
        assert_eq!(validate(&bytes, 47).err(), Some(Ip6Bad::PayloadBeyondPacket));
        assert_eq!(validate(&bytes[..39], 39).err(), Some(Ip6Bad::Truncated));
        bytes[0] = 0x40;
        assert_eq!(validate(&bytes, 48).err(), Some(Ip6Bad::BadVersion));
    }

    #[test]
    fn each_wrong_address_has_its_own_reason() {
        let good = "2001:db8::1";
        assert_eq!(verdict("ff02::1", good), Err(Ip6Bad::SourceIsMulticast));
        assert_eq!(verdict("::1", good), Err(Ip6Bad::SourceIsLoopback));
        assert_eq!(verdict("::ffff:10.0.0.1", good), Err(Ip6Bad::SourceIsV4Mapped));
        assert_eq!(verdict(good, "::"), Err(Ip6Bad::DestinationIsUnspecified));
        assert_eq!(verdict(good, "::1"), Err(Ip6Bad::DestinationIsLoopback));
        assert_eq!(verdict(good, "::ffff:10.0.0.1"), Err(Ip6Bad::DestinationIsV4Mapped));
        assert_eq!(verdict(good, "ff01::1"), Err(Ip6Bad::DestinationIsInterfaceLocal));
    }

    #[test]
    fn neighbour_discovery_passes() {
        assert_eq!(verdict("::", "ff02::1:ff00:1"), Ok(()));
        assert_eq!(verdict("fe80::1", "ff02::2"), Ok(()));
        assert_eq!(verdict("fe80::1", "fe80::2"), Ok(()));
    }

    proptest! {
        #[test]
        fn the_one_test_never_disagrees_with_the_steps(
            mut bytes: [u8; 40], source in 0usize..6, destination in 0usize..6,
            available in 0usize..400,
        ) {
            bytes[0] = 0x60;
            bytes[4] = 0;
            let special = [0, 1, 0xffff_0a00_0001, 0xff02 << 112 | 1, 0xff01 << 112 | 1];
            for (place, pick) in [(8, source), (24, destination)] {
                if let Some(address) = special.get(pick) {
                    bytes[place..place + 16].copy_from_slice(&u128::to_be_bytes(*address));
                }
            }
            let header = Ip6Header::overlay(&bytes).unwrap();
            let steps = explain(&bytes, available);
            if is_plain(header, available) {
                prop_assert_eq!(steps, Ok(()));
            }
            prop_assert_eq!(validate(&bytes, available).map(|_| ()), steps);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), available: usize) {
            let _ = validate(&bytes, available);
        }
    }
}
