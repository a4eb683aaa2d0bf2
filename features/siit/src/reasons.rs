//! Why packets die, and what is counted.

use quiver_translation::versions::Refused;

quiver_core::reasons! {
    /// What becomes of packets that are translated without state.
    pub enum SiitDrop {
        /// RFC 7915 §4.1, §5.1.
        UnmappedSource = info "unmapped-source", "packets whose source has no address of the \
            other version (`show siit address`); the sender gets an ICMP error";
        /// RFC 7915 §4.1, §5.1.
        UnmappedDestination = info "unmapped-destination", "packets whose destination has no \
            address of the other version (`show siit address`), or one that leads back here; the \
            sender gets an ICMP error";
        /// RFC 7915 §4.3, §5.3.
        UnmappedInner = "unmapped-inner", "an ICMP error about a packet whose addresses have none \
            of the other version";
        /// RFC 6791.
        NoOwnAddress = "no-own-address", "an ICMP error from a router without address of the \
            other version, and this router has none to send it from";
        /// RFC 7915 §4.2, §5.2.
        NoCounterpart = "no-counterpart", "ICMP or IGMP that has no counterpart in the other \
            version";
        /// RFC 7915 §1.2.
        FragmentedIcmp = "fragmented-icmp", "a fragment of an ICMP message, whose checksum covers \
            the other ones";
        /// RFC 7915 §4.5.
        NoChecksum = "udp-no-checksum", "a fragment of a UDP datagram without checksum, which \
            IPv6 must have";
        /// RFC 7915 §4.1, §5.1.
        SourceRoute = info "source-route", "packets whose source route has not ended; the sender \
            gets an ICMP error";
        /// Its headers are not whole.
        Truncated = "truncated", "headers that are not whole, or a wrong checksum of an ICMP error";
        /// The packet has too many headers in front.
        NoHeadroom = "no-headroom", "no room in the buffer for the header of IPv6";
        /// Translated.
        ErrorTranslated = info "icmp-errors", "ICMP errors translated";
    }
}

impl From<Refused> for SiitDrop {
    fn from(refused: Refused) -> SiitDrop {
        match refused {
            Refused::Truncated => SiitDrop::Truncated,
            Refused::NoCounterpart => SiitDrop::NoCounterpart,
            Refused::FragmentedIcmp => SiitDrop::FragmentedIcmp,
            Refused::NoChecksum => SiitDrop::NoChecksum,
            Refused::SourceRoute(_) => SiitDrop::SourceRoute,
            Refused::NoHeadroom => SiitDrop::NoHeadroom,
        }
    }
}
