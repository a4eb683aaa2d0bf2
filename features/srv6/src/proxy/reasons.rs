//! Why packets die that come back from a proxied function, and what is counted there.

use quiver_forwarding::requests::IcmpErrorRequest;

quiver_core::reasons! {
    /// What becomes of packets that come back from a function.
    pub enum ProxyDrop {
        /// Cannot be behind `ip4-input` or `ip6-input`.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// The SID was deleted a moment ago.
        NotConfigured = "not-configured", "the interface is no proxy's any more";
        /// Nothing to put in front.
        NothingKept = "nothing-kept",
            "no packet has come to the SID yet, whose headers would be put in front of what comes \
             back";
        /// CachedHeader headers change faster than they can be read.
        KeptChanging = "kept-changing",
            "the kept headers changed while they were read: packets with different headers come to \
             one SID";
        /// The FIB knows no way.
        NoRoute = "no-route", "no route to the next segment";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the segments and a layer 2 header";
        /// 16 bits.
        TooLong = "too-long", "with the segments the packet is longer than an IPv6 packet can be";
        /// A frame has no sender who could be told.
        FrameTooBig = "frame-too-big",
            "a frame that with the segments is longer than the outgoing MTU";
        /// RFC 8754 §4.3.1.1.
        ListWrong = "segment-list-wrong",
            "last entry beyond the SRH, or segments left beyond the list; senders hear `parameter \
             problem`";
        /// RFC 8754 §2, RFC 4291 §2.
        NextSegment = "next-segment-wrong",
            "the active segment is a group, a loopback or the unspecified address";
        /// The sender hears of it.
        TooBig = "too-big",
            "packets that with the segments are longer than the outgoing MTU; senders hear of it";
        /// RFC 2473 §7.
        Fragmented = info "to-fragment",
            "packets that cannot be made smaller: the outer packet is fragmented";
        /// RFC 8986 §5.1.
        HopLimit = "hop-limit",
            "packets whose hop limit or TTL ends here; senders hear `time exceeded`";
        /// RFC 4291 §2.5.6.
        LinkLocalSource = "link-local-source",
            "packets with a link-local source to another link; senders hear of it";
        /// The function's own.
        FromKept = info "kept-segments",
            "packets that the function itself sends along the segments of the last packet to the \
             SID";
        /// The function's own.
        PassedBy = info "passed-by",
            "packets of the function itself: to the router, to the link, or without segments";
    }
}

/// A packet goes no further: it dies, or its sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// It dies.
    Drop(ProxyDrop),
    /// An ICMP error is sent.
    Complain(IcmpErrorRequest, ProxyDrop),
}

impl From<ProxyDrop> for Bad {
    fn from(drop: ProxyDrop) -> Bad {
        Bad::Drop(drop)
    }
}
