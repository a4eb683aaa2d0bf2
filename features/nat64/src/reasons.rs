//! Why packets die, and what is counted.

use quiver_bindings::NoSession;
use quiver_tables::sessions::SessionError;
use quiver_translation::versions::Refused;
use quiver_translation::versions::read::OpensNothing;

quiver_core::reasons! {
    /// What becomes of packets that NAT64 translates.
    pub enum Nat64Drop {
        /// From outside to an address of the pool.
        NoTranslation = "no-translation", "no session and no binding that admits it (`show nat64 \
            session table`, `show nat64 bib`)";
        /// RFC 6146 §3.5.2.
        NonSyn = "non-syn", "a TCP packet without session that opens no connection";
        /// RFC 6146 §3.4.
        UnknownProtocol = info "unknown-protocol", "packets of protocols other than TCP, UDP and \
            ICMP; the sender gets an ICMP error";
        /// RFC 7915 §4.2, §5.2.
        NoCounterpart = "no-counterpart", "ICMP that has no counterpart in the other version";
        /// RFC 7915 §1.2.
        FragmentedIcmp = "fragmented-icmp", "a fragment of an ICMP message, whose checksum covers \
            the other ones";
        /// RFC 7915 §4.5.
        NoChecksum = "udp-no-checksum", "a fragment of a UDP datagram without checksum, which \
            IPv6 must have";
        /// RFC 7915 §4.1, §5.1.
        SourceRoute = info "source-route", "packets whose source route has not ended; the sender \
            gets an ICMP error";
        /// RFC 6052 §3.1.
        NotGlobal = "not-global", "an IPv4 address that is not global behind 64:ff9b::/96";
        /// RFC 6146 §3.5: loops.
        Translated = "from-prefix", "an IPv6 packet whose source is in the prefix of NAT64 itself";
        /// RFC 6146 §3.5.
        InnerHasNoSession = "inner-has-no-session", "an ICMP error about a packet that no session \
            sent";
        /// RFC 7915 §4, §5.
        FragmentWithoutFirst = "fragment-without-first", "a fragment whose first one is not known";
        /// Its headers are not whole.
        Truncated = "truncated", "headers that are not whole, or a wrong checksum of an ICMP error";
        /// The packet has too many headers in front.
        NoHeadroom = "no-headroom", "no room in the buffer for the header of IPv6";
        /// RFC 6146 §3.5.1.
        Filtered = "filtered", "from outside to a binding, by a remote host that it does not admit";
        /// The table has no room at this key; it does not happen by chance.
        Crowded = "crowded", "the session table has no room at this key";
        /// The owner does not keep up.
        Congestion = "congestion", "too many packets wait for the worker that makes sessions";
        /// Routed to the prefix of NAT64.
        NotInside = "not-inside", "an IPv6 packet to the prefix that no inside interface received";
        /// Not enabled any more.
        NotEnabled = "not-enabled", "NAT64 was disabled meanwhile";
        /// RFC 6146 §3.5.1.1; the sender gets an ICMP error.
        OutOfPorts = info "out-of-ports", "new bindings refused: every port of the pool is in use";
        /// The sender gets an ICMP error.
        SessionsExceeded = info "maximum-sessions-exceeded", "new sessions refused: all sessions \
            are in use";
        /// The sender gets an ICMP error.
        SubscriberLimit = info "subscriber-limit", "new sessions refused: the subscriber has as \
            many as it may have";
        /// Passes.
        BackPressure = info "back-pressure", "passes in which a worker read no packets because \
            too many packets waited for their sessions";
        /// Made.
        Made = info "sessions-made", "new sessions";
        /// Translated.
        ErrorTranslated = info "icmp-errors", "ICMP errors translated";
        /// From inside to inside, by an address of the pool.
        Hairpinned = info "hairpinned", "packets between two hosts inside";
    }
}

impl From<Refused> for Nat64Drop {
    fn from(refused: Refused) -> Nat64Drop {
        match refused {
            Refused::Truncated => Nat64Drop::Truncated,
            Refused::NoCounterpart => Nat64Drop::NoCounterpart,
            Refused::FragmentedIcmp => Nat64Drop::FragmentedIcmp,
            Refused::NoChecksum => Nat64Drop::NoChecksum,
            Refused::SourceRoute(_) => Nat64Drop::SourceRoute,
            Refused::NoHeadroom => Nat64Drop::NoHeadroom,
        }
    }
}

impl From<OpensNothing> for Nat64Drop {
    fn from(why: OpensNothing) -> Nat64Drop {
        match why {
            OpensNothing::NoSyn => Nat64Drop::NonSyn,
            OpensNothing::NoQuery => Nat64Drop::NoTranslation,
        }
    }
}

impl From<NoSession> for Nat64Drop {
    fn from(why: NoSession) -> Nat64Drop {
        match why {
            NoSession::Ports(_) => Nat64Drop::OutOfPorts,
            NoSession::Binding(error) | NoSession::Session(error) => match error {
                SessionError::Full { .. } | SessionError::Waiting => Nat64Drop::SessionsExceeded,
                SessionError::Collides { .. } => Nat64Drop::NoTranslation,
                SessionError::Table(_) => Nat64Drop::Crowded,
            },
        }
    }
}
