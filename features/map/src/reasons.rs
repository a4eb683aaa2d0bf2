//! Why packets die, and what is counted.

use quiver_encap::decapsulated::InnerBad;
use quiver_translation::versions::Refused;

use crate::domain::Nobody;
use crate::upper::Truncated;

quiver_core::reasons! {
    /// What becomes of packets of MAP domains.
    pub enum MapDrop {
        /// `map interface`.
        InterfaceOff = "interface-off", "a packet from an interface that takes none of such a \
            domain; `map interface` lets it";
        /// Deleted meanwhile.
        NoDomain = info "no-domain", "packets of IPv6 whose IPv4 source is in no domain of this \
            border relay; their senders get an ICMPv6 error";
        /// RFC 7596 §5.2.
        NoRule = info "no-rule", "packets to or from a PSID that no rule binds; their senders get \
            an ICMP error";
        /// RFC 7597 §5.1.
        PortOfNobody = info "port-of-nobody", "packets to or from a port below those of all \
            customers of a shared address; their senders get an ICMP error";
        /// RFC 7597 §8.1.
        Spoofed = info "spoofed", "packets whose IPv6 source is not the address of the customer \
            who has their IPv4 source and port; their senders get an ICMPv6 error";
        /// RFC 7597 §9.
        NoPort = "no-port", "a protocol without ports to or from a shared address";
        /// RFC 7597 §8.3.
        FragmentWithoutFirst = "fragment-without-first", "a fragment to or from a shared address \
            whose first one is not known";
        /// Wrong.
        Truncated = "truncated", "headers that are not whole";
        /// Wrong.
        InnerWrong = "inner-wrong", "the packet inside has a wrong header";
        /// RFC 6040 §4.2.
        Congestion = "congestion", "the outer header says congestion, and the sender of the packet \
            inside does not know of it";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the header of IPv6";
        /// RFC 791.
        Ttl = info "ttl", "packets whose TTL or hop limit ends here; their senders get an ICMP \
            error";
        /// RFC 2473 §7.2.
        TooBig = info "too-big", "packets that must not be cut and are longer than the MTU of \
            their domain; their senders get an ICMP error";
        /// RFC 2473 §7.1.
        Cut = info "cut", "packets that are cut because they are longer than the MTU of their \
            domain";
        /// RFC 2473 §8.
        Relayed = info "relayed", "errors about outer packets, told to the senders of the packets \
            inside";
        /// RFC 2473 §8.
        Kept = info "kept", "errors about outer packets that the senders of the packets inside \
            need not know of";
        /// RFC 8201 §4.
        NotBelieved = "mtu-not-believed", "an error that tells an MTU below 1,280 bytes";
        /// Forged, or late.
        NotOurs = "not-ours", "an ICMPv6 error about a packet that this border relay does not send";
        /// Wrong.
        BadChecksum = "bad-checksum", "an ICMPv6 error with a wrong checksum";
        /// RFC 7915 §4.3, §5.3.
        UnmappedInner = "unmapped-inner", "an ICMP error about a packet that is of no domain";
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
        /// Translated.
        ErrorTranslated = info "icmp-errors", "ICMP errors translated";
    }
}

impl From<Truncated> for MapDrop {
    fn from(Truncated: Truncated) -> MapDrop {
        MapDrop::Truncated
    }
}

impl From<Nobody> for MapDrop {
    fn from(nobody: Nobody) -> MapDrop {
        match nobody {
            Nobody::NoPort => MapDrop::NoPort,
            Nobody::LaterFragment => MapDrop::FragmentWithoutFirst,
            Nobody::Port => MapDrop::PortOfNobody,
            Nobody::NoRule => MapDrop::NoRule,
        }
    }
}

impl From<InnerBad> for MapDrop {
    fn from(bad: InnerBad) -> MapDrop {
        match bad {
            InnerBad::Truncated => MapDrop::Truncated,
            InnerBad::Wrong => MapDrop::InnerWrong,
            InnerBad::Congestion => MapDrop::Congestion,
        }
    }
}

impl From<Refused> for MapDrop {
    fn from(refused: Refused) -> MapDrop {
        match refused {
            Refused::Truncated => MapDrop::Truncated,
            Refused::NoCounterpart => MapDrop::NoCounterpart,
            Refused::FragmentedIcmp => MapDrop::FragmentedIcmp,
            Refused::NoChecksum => MapDrop::NoChecksum,
            Refused::SourceRoute(_) => MapDrop::SourceRoute,
            Refused::NoHeadroom => MapDrop::NoHeadroom,
        }
    }
}
