//! What becomes of DHCP packets.

use quiver_wire::dhcp4::Dhcp4Malformation;
use quiver_wire::dhcp6::Dhcp6Malformation;

quiver_core::reasons! {
    /// What becomes of packets for `dhcp-proxy` and `dhcpv6-proxy`. A worker gives a packet to the
    /// control thread, which counts what it did with it, or why it did nothing.
    pub enum RelayReason {
        /// Taken in.
        Taken = info "taken", "packets given to the control thread";
        /// Sent on.
        ToServer = info "to-server", "messages relayed to a server";
        /// Sent on.
        ToClient = info "to-client", "messages relayed to a client, or to a relay agent near it";
        /// RFC 3046 §2.1.
        NoRoom = info "option-82-no-room", "messages relayed without option 82: with it they \
            would be longer than a packet";
        /// A limit.
        PrefixesFull = info "prefixes-full", "delegated prefixes without a route: the table of \
            delegated prefixes is full, or the client's share of it";
        /// Not a prefix that a client may have.
        BadPrefix = info "bad-prefix", "delegated prefixes without a route: no client may have \
            them";
        /// Not configured.
        NotConfigured = "not-configured", "no server is configured for the table of the receiving \
            interface (`set dhcp proxy server`, `set dhcpv6 proxy server`)";
        /// A limit.
        TooLong = "too-long", "a packet of more than 2,048 bytes";
        /// Flood.
        TooMany = "too-many", "more packets than the receiving interface, or the worker, may take \
            in a second";
        /// Full.
        Busy = "busy", "the control thread has not read the last packets yet";
        /// Wrong headers.
        NotUdp = "not-udp", "no whole UDP datagram";
        /// RFC 951 §3, RFC 8415 §9.
        Truncated = "truncated", "a message shorter than the header of its type";
        /// RFC 951 §3.
        BadOp = "bad-op", "an op that is neither request nor reply";
        /// RFC 2131 §2.
        HardwareLength = "hardware-length", "a hardware address of more than 16 bytes";
        /// RFC 2132 §2, RFC 8415 §21.1.
        Options = "options-truncated", "an option that runs beyond the message";
        /// RFC 8415 §9.
        NoMessage = "no-relay-message", "a relay agent's message without a relayed one";
        /// RFC 8415 §19.
        WrongMessage = "wrong-message", "a message that no relay agent takes from that side";
        /// RFC 1542 §4.1.1, RFC 8415 §19.1.2.
        Hops = "too-many-hops", "a message that has passed too many relay agents: it goes in a \
            circle";
        /// RFC 3046 §2.1.
        GiaddrOurs = "giaddr-ours", "a client's message with an address of this router as its \
            relay agent's: somebody pretends, or it goes in a circle";
        /// RFC 3046 §2.1.1.
        OptionUntrusted = "option-82-untrusted", "a client's message that has option 82 already \
            (`set interface dhcp option-82 IF policy`)";
        /// No address.
        NoAddress = "no-address", "the receiving interface has no address for the server to answer \
            to (`set interface ip address`, or `src-address`)";
        /// Somebody pretends.
        NotAServer = "not-a-server", "a reply from an address that is no configured server's";
        /// Lost.
        Unmatched = "reply-unmatched", "a reply that says no interface of this router, or one that \
            is gone";
        /// Lost.
        Down = "interface-down", "a reply for an interface that is down, or cannot send it";
        /// RFC 8415 §19.
        BadPeer = "bad-peer-address", "a client or peer address that is no host's";
        /// No buffer to send from.
        NoBuffer = "no-buffer", "no buffer for a packet to send (`show buffers`)";
    }
}

quiver_core::reasons! {
    /// What becomes of packets for a DHCP client of the router.
    pub enum ClientReason {
        /// Taken in.
        Taken = info "taken", "packets given to the control thread";
        /// Not configured.
        NotEnabled = "not-enabled", "the receiving interface has no client (`dhcp6 client IF`, \
            `dhcp6 pd client IF`)";
        /// A limit.
        TooLong = "too-long", "a packet of more than 2,048 bytes";
        /// Flood.
        TooMany = "too-many", "more packets than the receiving interface, or the worker, may take \
            in a second";
        /// Full.
        Busy = "busy", "the control thread has not read the last packets yet";
        /// Wrong headers.
        NotUdp = "not-udp", "no whole UDP datagram with a right checksum";
        /// RFC 2131 §2, RFC 8415 §16.
        Malformed = "malformed", "a message whose header or options are wrong";
        /// RFC 2131 §4.4.1, RFC 8415 §16.
        Other = "other-client", "a reply to another client, or to an earlier transaction";
        /// RFC 2131 §4.4, RFC 8415 §18.2.
        Unexpected = "unexpected", "a reply that the client waits for no more, or that lacks what \
            it needs";
    }
}

impl From<Dhcp4Malformation> for RelayReason {
    fn from(wrong: Dhcp4Malformation) -> RelayReason {
        match wrong {
            Dhcp4Malformation::Truncated => RelayReason::Truncated,
            Dhcp4Malformation::BadOp => RelayReason::BadOp,
            Dhcp4Malformation::HardwareLength => RelayReason::HardwareLength,
            Dhcp4Malformation::Options => RelayReason::Options,
        }
    }
}

impl From<Dhcp6Malformation> for RelayReason {
    fn from(wrong: Dhcp6Malformation) -> RelayReason {
        match wrong {
            Dhcp6Malformation::Truncated => RelayReason::Truncated,
            Dhcp6Malformation::Options => RelayReason::Options,
            Dhcp6Malformation::NoMessage => RelayReason::NoMessage,
        }
    }
}
