//! Why packets die in tunnels, and what is counted there.

use crate::decapsulated::InnerBad;
use crate::inner::{Refused, Truncated};
use crate::output::EncapError;

quiver_core::reasons! {
    /// What becomes of packets at the ends of tunnels.
    pub enum TunnelDrop {
        /// Cannot be behind the nodes before.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// Not this version.
        Version = "bad-version", "a tunnel header of a version that is not known";
        /// Must be zero.
        Flags = "reserved-flags", "a flag of the tunnel header that must be zero is set";
        /// RFC 7348 §5.
        NoVni = "vni-not-valid", "a VXLAN header whose flag for a valid VNI is not set";
        /// RFC 2784 §2.5.
        Checksum = "bad-checksum", "the checksum of the tunnel header is wrong";
        /// Nothing known.
        Payload = "unknown-payload",
            "the tunnel header announces a protocol that is not carried here";
        /// Wrong kind.
        Kind = "wrong-kind", "a frame in a tunnel for packets, or a packet in a tunnel for frames";
        /// RFC 3931 §4.1.
        Cookie = "wrong-cookie", "the cookie behind the tunnel header is not that of the tunnel";
        /// RFC 8926 §3.5.1.
        Critical = "critical-option", "a critical option of the tunnel header that is not known";
        /// Nobody's.
        NoTunnel = "no-tunnel", "no tunnel between these addresses, with this key";
        /// Down.
        InterfaceDown = "interface-down", "the interface of the tunnel is down";
        /// An inner packet.
        InnerWrong = "inner-packet-wrong", "the inner packet's header is wrong or cut off";
        /// RFC 6040 §4.2.
        Congestion = "congestion-not-carried",
            "the outer header says congestion, and the inner packet cannot carry it on";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom",
            "no room in the buffer for the tunnel's headers and a layer 2 header";
        /// 16 bits.
        TooLong = "too-long",
            "with the tunnel's headers the packet is longer than an IP packet can be";
        /// A frame has no sender who could be told.
        FrameTooBig = "frame-too-big",
            "a frame that with the tunnel's headers is longer than the path takes";
        /// The sender is told.
        TooBig = info "too-big",
            "packets that with the tunnel's headers are longer than the path takes; senders are \
             told";
        /// RFC 2473 §7, RFC 2003 §5.1.
        Fragmented = info "to-fragment",
            "packets that cannot be made smaller: the outer packet is fragmented";
        /// RFC 2473 §3.1.
        HopLimit = info "hop-limit", "packets whose hop limit or TTL ends here; senders are told";
        /// RFC 4291 §2.5.6.
        LinkLocalSource = info "link-local-source",
            "packets with a link-local source to another link; senders are told";
    }
}

impl From<EncapError> for TunnelDrop {
    fn from(error: EncapError) -> TunnelDrop {
        match error {
            EncapError::Truncated => TunnelDrop::Truncated,
            EncapError::NoHeadroom => TunnelDrop::NoHeadroom,
            EncapError::TooLong => TunnelDrop::TooLong,
        }
    }
}

impl From<Truncated> for TunnelDrop {
    fn from(Truncated: Truncated) -> TunnelDrop {
        TunnelDrop::Truncated
    }
}

impl From<Refused> for TunnelDrop {
    fn from(refused: Refused) -> TunnelDrop {
        match refused {
            Refused::LinkLocalSource => TunnelDrop::LinkLocalSource,
            Refused::HopLimit => TunnelDrop::HopLimit,
        }
    }
}

impl From<InnerBad> for TunnelDrop {
    fn from(bad: InnerBad) -> TunnelDrop {
        match bad {
            InnerBad::Truncated => TunnelDrop::Truncated,
            InnerBad::Wrong => TunnelDrop::InnerWrong,
            InnerBad::Congestion => TunnelDrop::Congestion,
        }
    }
}
