//! Whether an IPv4 header may go on: one test without branches for the good path, the reason behind
//! it.

use super::{Ip4Header, address};
use crate::{Header, IpProtocol, checksum};

malformations! {
    /// Why an IPv4 packet goes no further (RFC 1812 §5.2.2 and §5.3.7).
    pub enum Ip4Bad {
        /// Fewer than 20 bytes are there.
        Truncated = "truncated", "fewer bytes than an IPv4 header";
        /// The version is not 4.
        BadVersion = "bad-version", "IP version is not 4";
        /// The header length is below 20 bytes, or runs beyond the bytes there.
        HeaderTooShort = "bad-header-length",
            "IPv4 header length below 20 bytes or beyond the packet";
        /// The total length is below the header's.
        LengthTooShort = "length-too-short", "IPv4 total length below the header's";
        /// The total length is more than arrived.
        LengthBeyondPacket = "length-beyond-packet", "IPv4 total length beyond the packet";
        /// The header's checksum is wrong.
        BadChecksum = "bad-checksum", "IPv4 header checksum wrong";
        /// The source is a multicast group.
        SourceIsMulticast = "source-multicast", "IPv4 source is a multicast group";
        /// The source is 255.255.255.255.
        SourceIsBroadcast = "source-broadcast", "IPv4 source is the broadcast address";
        /// The source is in 127.0.0.0/8.
        SourceIsLoopback = "source-loopback", "IPv4 source is a loopback address";
        /// The source is in 0.0.0.0/8 (0.0.0.0 may speak to 255.255.255.255).
        SourceIsThisNetwork = "source-this-network", "IPv4 source is in network 0";
        /// The source is in 240.0.0.0/4.
        SourceIsReserved = "source-reserved", "IPv4 source is reserved (240.0.0.0/4)";
        /// The destination is in 127.0.0.0/8.
        DestinationIsLoopback = "destination-loopback", "IPv4 destination is a loopback address";
        /// The destination is in 0.0.0.0/8.
        DestinationIsThisNetwork = "destination-this-network", "IPv4 destination is in network 0";
        /// The destination is in 240.0.0.0/4 and not 255.255.255.255.
        DestinationIsReserved = "destination-reserved",
            "IPv4 destination is reserved (240.0.0.0/4)";
    }
}

/// Version 4, no options, both lengths and the checksum right: no branch. `available` is how many
/// bytes arrived from the header's first one on, in all segments.
#[inline(always)]
pub fn is_well_formed(header: &Ip4Header, available: usize) -> bool {
    let total = usize::from(header.total_length());
    header.is_version_4_without_options()
        & (total >= Ip4Header::LEN)
        & (total <= available)
        & checksum::header_is_good(header)
}

/// Source unicast, destination unicast or multicast, neither in network 0 or 127: no branch. False
/// for a few packets that [`validate`] lets pass (limited broadcast).
#[inline(always)]
pub fn has_good_addresses(header: &Ip4Header) -> bool {
    let source = header.source_bits() >> 24;
    let destination = header.destination_bits() >> 24;
    (source.wrapping_sub(1) < 223)
        & (source != 127)
        & (destination.wrapping_sub(1) < 239)
        & (destination != 127)
}

/// The good path in one test: everything that [`validate`] asks, for a packet without options that
/// is no broadcast. When it is false, [`explain`] says why, if anything is wrong at all.
#[inline(always)]
pub fn is_plain(header: &Ip4Header, available: usize) -> bool {
    is_well_formed(header, available) & has_good_addresses(header)
}

/// Validates the packet that starts at `segment[0]`, and returns its header. `segment` is the
/// contiguous part, which must hold the options if there are some; `available` counts all segments.
///
/// # Errors
/// The header or its lengths are malformed, or the checksum is wrong; [`Ip4Bad`] names the fault.
#[inline(always)]
pub fn validate(segment: &[u8], available: usize) -> Result<&Ip4Header, Ip4Bad> {
    let header = Ip4Header::overlay(segment).ok_or(Ip4Bad::Truncated)?;
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
pub fn explain(segment: &[u8], available: usize) -> Result<(), Ip4Bad> {
    let header = Ip4Header::overlay(segment).ok_or(Ip4Bad::Truncated)?;
    if header.version() != 4 {
        return Err(Ip4Bad::BadVersion);
    }
    let header_len = header.header_len();
    if header_len < Ip4Header::LEN || header_len > available {
        return Err(Ip4Bad::HeaderTooShort);
    }
    let with_options = segment.get(..header_len).ok_or(Ip4Bad::HeaderTooShort)?;
    let total = usize::from(header.total_length());
    if total < header_len {
        return Err(Ip4Bad::LengthTooShort);
    }
    if total > available {
        return Err(Ip4Bad::LengthBeyondPacket);
    }
    if !checksum::Sum::new().bytes(with_options).is_good() {
        return Err(Ip4Bad::BadChecksum);
    }
    addresses(header)
}

/// May a packet come from 0.0.0.0? A host that has no address yet (RFC 2131 §4.1), and who speaks
/// IGMP on the link without one, as a snooping switch does (RFC 3376 §4.2.13, RFC 4541 §2.1.1).
fn may_be_unnumbered(header: &Ip4Header) -> bool {
    let destination = header.destination();
    let is_link_group = destination.to_bits() >> 8 == 0x00e0_0000;
    address::is_limited_broadcast(destination)
        || is_link_group && header.protocol() == IpProtocol::IGMP
}

/// RFC 1812 §5.3.7.
fn addresses(header: &Ip4Header) -> Result<(), Ip4Bad> {
    let (source, destination) = (header.source(), header.destination());
    let unnumbered = source.is_unspecified() && may_be_unnumbered(header);
    let checks = [
        (address::is_this_network(source) && !unnumbered, Ip4Bad::SourceIsThisNetwork),
        (address::is_loopback(source), Ip4Bad::SourceIsLoopback),
        (address::is_multicast(source), Ip4Bad::SourceIsMulticast),
        (address::is_limited_broadcast(source), Ip4Bad::SourceIsBroadcast),
        (address::is_reserved(source), Ip4Bad::SourceIsReserved),
        (address::is_this_network(destination), Ip4Bad::DestinationIsThisNetwork),
        (address::is_loopback(destination), Ip4Bad::DestinationIsLoopback),
        (address::is_reserved(destination), Ip4Bad::DestinationIsReserved),
    ];
    match checks.iter().find(|(bad, _)| *bad) {
        Some((_, reason)) => Err(*reason),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Repr;
    use super::*;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    fn packet(source: &str, destination: &str, options: &[u8]) -> [u8; 64] {
        packet_of(IpProtocol::UDP, source, destination, options)
    }

    fn packet_of(
        protocol: IpProtocol,
        source: &str,
        destination: &str,
        options: &[u8],
    ) -> [u8; 64] {
        let mut bytes = [0; 64];
        let addresses: [Ipv4Addr; 2] = [source.parse().unwrap(), destination.parse().unwrap()];
        let payload_len = 44 - options.len();
        let repr = Repr { options, ..Repr::new(addresses[0], addresses[1], protocol, payload_len) };
        repr.emit(&mut bytes).unwrap();
        bytes
    }

    fn verdict(bytes: &[u8]) -> Result<(), Ip4Bad> {
        validate(bytes, bytes.len()).map(|_| ())
    }

    #[test]
    fn each_lie_of_the_header_has_its_own_reason() {
        let good = packet("10.0.0.1", "10.0.0.2", &[]);
        assert_eq!(verdict(&good), Ok(()));
        assert_eq!(verdict(&good[..19]), Err(Ip4Bad::Truncated));
        assert_eq!(verdict(&good[..63]), Err(Ip4Bad::LengthBeyondPacket));
        for (place, value, reason) in [
            (0, 0x65, Ip4Bad::BadVersion),
            (0, 0x44, Ip4Bad::HeaderTooShort),
            (3, 19, Ip4Bad::LengthTooShort),
            (3, 65, Ip4Bad::LengthBeyondPacket),
            (8, 3, Ip4Bad::BadChecksum),
        ] {
            let mut bad = good;
            bad[place] = value;
            assert_eq!(verdict(&bad), Err(reason));
        }
        let mut long_header = good;
        long_header[0] = 0x4f;
        assert_eq!(verdict(&long_header[..59]), Err(Ip4Bad::HeaderTooShort));
    }

    #[test]
    fn each_wrong_address_has_its_own_reason() {
        for (source, reason) in [
            ("0.0.0.0", Ip4Bad::SourceIsThisNetwork),
            ("127.0.0.1", Ip4Bad::SourceIsLoopback),
            ("224.0.0.1", Ip4Bad::SourceIsMulticast),
            ("240.0.0.1", Ip4Bad::SourceIsReserved),
            ("255.255.255.255", Ip4Bad::SourceIsBroadcast),
        ] {
            assert_eq!(verdict(&packet(source, "10.0.0.2", &[])), Err(reason));
        }
        for (destination, reason) in [
            ("0.1.2.3", Ip4Bad::DestinationIsThisNetwork),
            ("127.0.0.1", Ip4Bad::DestinationIsLoopback),
            ("255.0.0.1", Ip4Bad::DestinationIsReserved),
        ] {
            assert_eq!(verdict(&packet("10.0.0.1", destination, &[])), Err(reason));
        }
    }

    #[test]
    fn broadcasts_groups_and_options_pass() {
        assert_eq!(verdict(&packet("10.0.0.1", "255.255.255.255", &[])), Ok(()));
        assert_eq!(verdict(&packet("0.0.0.0", "255.255.255.255", &[])), Ok(()));
        assert_eq!(verdict(&packet("10.0.0.1", "224.0.0.5", &[])), Ok(()));
        assert_eq!(verdict(&packet("0.0.0.0", "224.0.0.1", &[])), Err(Ip4Bad::SourceIsThisNetwork));
        let query = packet_of(IpProtocol::IGMP, "0.0.0.0", "224.0.0.1", &[148, 4, 0, 0]);
        assert_eq!(verdict(&query), Ok(()));
        let alert = packet("10.0.0.1", "10.0.0.2", &[148, 4, 0, 0]);
        assert_eq!(verdict(&alert), Ok(()));
        assert!(!is_plain(Ip4Header::overlay(&alert).unwrap(), 64));
    }

    proptest! {
        #[test]
        fn the_one_test_never_disagrees_with_the_steps(
            mut bytes: [u8; 64], mend: bool, first in 0usize..4, available in 0usize..80,
        ) {
            bytes[0] = [0x45, 0x46, 0x44, bytes[0]][first];
            bytes[2] = 0;
            if mend {
                let header = Ip4Header::overlay_mut(&mut bytes).unwrap();
                header.set_checksum(checksum::header_checksum(header));
            }
            let header = Ip4Header::overlay(&bytes).unwrap();
            if is_plain(header, available) {
                prop_assert_eq!(explain(&bytes, available), Ok(()));
            } else if explain(&bytes, available).is_ok() {
                let special = header.header_len() > 20
                    || address::is_limited_broadcast(header.destination())
                    || header.source().is_unspecified();
                prop_assert!(special);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..70), available: usize) {
            let _ = validate(&bytes, available);
            let _ = explain(&bytes, available);
        }
    }
}
