//! Why packets of softwires die, and what is counted.

use quiver_encap::decapsulated::InnerBad;

quiver_core::reasons! {
    /// What becomes of packets from and to B4s.
    pub enum DsliteDrop {
        /// Wrong.
        Truncated = "truncated", "headers that are not whole";
        /// Wrong.
        InnerWrong = "inner-wrong", "the packet inside is no whole packet of IPv4";
        /// RFC 6040 §4.2.
        Congestion = "congestion", "the outer header says congestion, and the sender of the packet \
            inside does not know of it";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
        /// Deleted meanwhile.
        NoB4 = "no-b4", "the softwire has ended, or DS-Lite is not set up any more";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the header of IPv6";
        /// RFC 791.
        Ttl = "ttl", "an ICMP error to a host behind a B4 whose TTL ends here";
        /// RFC 2473 §7.2.
        TooBig = info "too-big", "packets to a B4 that must not be cut and are longer than the \
            MTU of the tunnel; their senders get an ICMP error";
        /// An error to its sender is not made.
        HairpinTooBig = "hairpin-too-big", "a packet from one B4 to another one that must not be \
            cut and is longer than the MTU of the tunnel";
        /// RFC 6333 §6.3.
        Cut = info "cut", "packets cut behind their encapsulation, because they are longer than \
            the MTU of the tunnel";
        /// RFC 2473 §8.
        Relayed = info "relayed", "errors about packets to B4s, told to the senders of the packets \
            inside";
        /// RFC 2473 §8.
        Kept = info "kept", "errors about packets to B4s that the senders of the packets inside \
            need not know of";
        /// RFC 8201 §4.
        NotBelieved = "mtu-not-believed", "an error that tells an MTU below 1,280 bytes";
        /// Forged, or late.
        NotOurs = "not-ours", "an ICMPv6 error about a packet that no session has sent to a B4";
        /// Wrong.
        BadChecksum = "bad-checksum", "an ICMPv6 error with a wrong checksum";
    }
}

impl From<InnerBad> for DsliteDrop {
    fn from(bad: InnerBad) -> DsliteDrop {
        match bad {
            InnerBad::Truncated => DsliteDrop::Truncated,
            InnerBad::Wrong => DsliteDrop::InnerWrong,
            InnerBad::Congestion => DsliteDrop::Congestion,
        }
    }
}
