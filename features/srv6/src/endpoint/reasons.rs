//! Why packets die at a local SID, and what is counted there. All nodes of local SIDs have these.

use quiver_encap::decapsulated::InnerBad;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::icmp6::kind;

quiver_core::reasons! {
    /// What becomes of packets at a local SID.
    pub enum LocalSidDrop {
        /// Cannot be behind `ip6-input`.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// RFC 8754 §2.
        SrhBeyondPacket = "srh-beyond-packet",
            "a routing or another extension header is longer than the packet";
        /// RFC 8200 §4.1.
        Extensions = "extension-headers",
            "more than 8 extension headers, or a hop-by-hop header that is not the first";
        /// RFC 8986 §4.1, S05.
        HopLimit = "hop-limit", "packets whose hop limit ends here; senders hear `time exceeded`";
        /// RFC 8986 §4.1, S09.
        ListWrong = "segment-list-wrong",
            "last entry beyond the SRH, or segments left beyond the list; senders hear `parameter \
             problem`";
        /// RFC 8986 §4.4, S02.
        SegmentsLeft = "segments-left",
            "segments left at a SID that must be the last; senders hear `parameter problem`";
        /// RFC 8200 §4.4.
        RoutingType = "routing-type-unknown",
            "segments left in a routing header that is no SRH; senders hear `parameter problem`";
        /// RFC 8754 §2, RFC 4291 §2.
        NextSegment = "next-segment-wrong",
            "the next segment is a group, a loopback or the unspecified address, or there is none";
        /// RFC 8986 §4.1.1.
        UpperLayer = "upper-layer-not-allowed",
            "what follows the headers is not for this SID; senders hear `parameter problem`";
        /// An inner packet.
        InnerWrong = "inner-packet-wrong", "the inner packet's header is wrong or cut off";
        /// draft-ietf-spring-sr-service-programming §6.
        InnerKind = "inner-kind-wrong",
            "the packet inside is not of the kind that the proxied function takes, past which \
             nothing goes";
        /// As above.
        Bypassed = info "bypassed",
            "packets of another kind than the proxied function takes, which went past it \
             (`bypass`)";
        /// As above, §6.2.
        TooLongToKeep = "too-long-to-keep",
            "headers around a packet that are too long to be put in front of what comes back";
        /// End.AD.Flow.
        FlowsFull = "flows-full",
            "a packet of a new flow, and the SID keeps the headers of as many flows as it may \
             (`end.ad.flow … flows N`)";
        /// RFC 6040 §4.2.
        Congestion = "congestion-not-carried",
            "the outer header says congestion, and the inner packet cannot carry it on";
        /// Nobody puts it together.
        Fragment = "fragment", "a fragment for a SID; reassembly is not built in";
        /// RFC 8986 §4.10.
        VlanUnknown = "vlan-unknown",
            "the VLAN tags of the inner frame lead nowhere (`show sr vlan-tables`)";
        /// Gone.
        NotConfigured = "not-configured", "the SID or what it leads to is not there any more";
        /// Down.
        InterfaceDown = "interface-down", "the interface that the SID leads to is down";
        /// Round and round.
        Loop = "loop", "the packet came out of tunnels too often: they lead back into one another";
        /// RFC 9433 §6.7.
        NotGtpu = "not-gtp-u",
            "not GTP-U, at a gateway for nothing else: another protocol or UDP port";
        /// TS 29.281 §5.1.
        GtpuWrong = "gtp-u-wrong",
            "GTP-U of another version than 1, longer than its datagram, or in one with a wrong \
             length or checksum";
        /// TS 29.281 §5.2.
        GtpuExtensions = "gtp-u-extensions",
            "GTP-U extension headers that do not end, or one that must be understood and is not";
        /// TS 29.281 §6.1.
        Message = "gtp-u-message",
            "a GTP-U message that segments cannot carry, or segments that carry none that is known";
        /// RFC 9433 §6.6.
        AddressWrong = "address-wrong",
            "an address in a SID, or one that an answer would go to, is no host's";
        /// 16 bits.
        TooLong = "too-long", "with other headers the packet is longer than an IP packet can be";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for other headers";
        /// The sender hears of it.
        TooBig = "too-big",
            "packets that with other headers are longer than the outgoing MTU; senders hear of it";
        /// RFC 2473 §7.
        Fragmented = info "to-fragment",
            "packets that cannot be made smaller: what they become is fragmented";
        /// TS 29.281 §7.2.
        EchoAnswered = info "gtp-u-echo-answered", "GTP-U echo requests that were answered";
        /// Not a user's packet.
        Carried = info "gtp-u-messages", "GTP-U messages other than users' packets that went on";
        /// RFC 9259.
        ForUs = info "for-the-router", "packets to a SID itself, as echo requests";
        /// RFC 9259 §2.1.
        Oam = info "oam-flag", "packets with the O-flag (`show sr oam`)";
        /// A limit.
        OamTooMany = info "oam-not-told",
            "packets with the O-flag that `show sr oam` does not know: too many came";
    }
}

/// Hop limit exceeded in transit (RFC 4443 §3.3).
pub(crate) const TIME_EXCEEDED: IcmpErrorRequest =
    IcmpErrorRequest { kind: kind::TIME_EXCEEDED, code: 0, detail: 0 };

/// SR Upper-layer Header Error (RFC 8986 §10.1), a code of the parameter problem.
pub(crate) const CODE_UPPER_LAYER: u8 = 4;

/// A parameter problem (RFC 4443 §3.4) that points at a byte, counted from the IPv6 header.
pub(crate) fn parameter_problem(code: u8, pointer: usize) -> IcmpErrorRequest {
    let detail = u16::try_from(pointer).unwrap_or(u16::MAX);
    IcmpErrorRequest { kind: kind::PARAMETER_PROBLEM, code, detail }
}

/// A packet goes no further: it dies, or its sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It dies.
    Drop(LocalSidDrop),
    /// An ICMPv6 error is sent.
    Complain(IcmpErrorRequest, LocalSidDrop),
}

impl From<InnerBad> for LocalSidDrop {
    fn from(bad: InnerBad) -> LocalSidDrop {
        match bad {
            InnerBad::Truncated => LocalSidDrop::Truncated,
            InnerBad::Wrong => LocalSidDrop::InnerWrong,
            InnerBad::Congestion => LocalSidDrop::Congestion,
        }
    }
}

impl From<InnerBad> for Bad {
    fn from(bad: InnerBad) -> Bad {
        Bad::Drop(bad.into())
    }
}

impl From<LocalSidDrop> for Bad {
    fn from(drop: LocalSidDrop) -> Bad {
        Bad::Drop(drop)
    }
}
