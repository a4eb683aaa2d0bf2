//! Why labelled packets die.

quiver_core::reasons! {
    /// Why a node of MPLS drops.
    pub enum MplsDrop {
        /// No whole label stack entry.
        Truncated = "truncated", "fewer bytes than a label stack entry";
        /// Not enabled there.
        NotEnabled = "not-enabled", "labelled packet on an interface that takes none (`set \
            interface mpls IF enable`)";
        /// RFC 3032 §2.1, RFC 5332.
        Group = "l2-group", "labelled packet in a broadcast or multicast frame";
        /// RFC 3032 §2.4.2.
        TtlExpired = "ttl-expired", "the TTL of the label ends here, and no ICMP error can be sent \
            about the packet";
        /// Nothing matches.
        NoRoute = "no-label-route", "no route for the label (`show mpls fib`)";
        /// RFC 7274 §3, RFC 3032 §2.1.
        SpecialLabel = "special-label", "a special-purpose label that nothing in the router \
            handles, or that may not be in a stack";
        /// RFC 3032 §2.1.
        RouterAlert = "router-alert", "the router alert label, which nothing in the router handles";
        /// Labels without end.
        StackTooDeep = "stack-too-deep", "more labels in front of the packet than are looked at";
        /// Round and round.
        Loop = "lookup-loop", "look-ups of label after label never end";
        /// Neither IPv4 nor IPv6.
        UnknownPayload = "unknown-payload", "neither an IPv4 nor an IPv6 packet behind the last \
            label";
        /// Not the family of the table.
        WrongFamily = "wrong-family", "the label's route leads to a table of the other address \
            family";
        /// The header behind the labels is wrong.
        BadPayload = "bad-payload", "the IP header behind the last label is wrong or cut off";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for labels and the layer 2 header";
        /// Longer than the link takes.
        TooBig = "too-big", "longer with its labels than the outgoing MTU, and not to be \
            fragmented";
        /// The route says so.
        RouteDrops = "route-drops", "the label's route says drop, or none of its paths can be used";
        /// Gone or down.
        InterfaceDown = "interface-down", "the interface that receives what is behind the label is \
            down or gone";
        /// No buffer.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
    }
}
