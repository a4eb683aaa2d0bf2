//! Why packets die, and what is counted.

use quiver_bindings::NoSession;
use quiver_tables::sessions::SessionError;
use quiver_translation::versions::Refused;
use quiver_translation::versions::read::OpensNothing;

quiver_core::reasons! {
    /// What becomes of packets that NAPT66 translates.
    pub enum Nat66Drop {
        /// To an address of the pool.
        NoTranslation = "no-translation", "no session and no binding that admits it (`show nat66 \
            sessions`, `show nat66 bindings`)";
        /// RFC 5382 REQ-2.
        NonSyn = "non-syn", "a TCP packet without session that opens no connection";
        /// RFC 5508 REQ-1.
        BadIcmpType = "bad-icmp-type", "ICMPv6 that is neither an echo nor an error about a \
            session";
        /// RFC 4302 §3.3.3.1: its addresses must not change.
        Authenticated = info "authentication-header", "packets whose addresses are authenticated; \
            the sender gets an ICMPv6 error";
        /// RFC 8200 §4.4.
        SourceRoute = info "source-route", "packets whose source route has not ended; the sender \
            gets an ICMPv6 error";
        /// It would get the packets of others.
        FromPool = "from-pool", "a packet from inside whose source is an address of the pool";
        /// RFC 5508 REQ-4 and -5.
        InnerHasNoSession = "inner-has-no-session", "an ICMPv6 error about a packet that no \
            session sent";
        /// Needs virtual reassembly.
        FragmentWithoutFirst = "fragment-without-first", "a fragment whose first one is not known";
        /// Its headers are not whole.
        Truncated = "truncated", "headers that are not whole, or a wrong checksum of an ICMPv6 \
            error";
        /// RFC 4787 §5.
        Filtered = "filtered", "from outside to a binding, by a remote host that it does not admit";
        /// The table has no room at this key; it does not happen by chance.
        Crowded = "crowded", "the session table has no room at this key";
        /// The owner does not keep up.
        Congestion = "congestion", "too many packets wait for the worker that makes sessions";
        /// Not enabled any more.
        NotEnabled = "not-enabled", "NAT66 was disabled meanwhile";
        /// The sender gets an ICMPv6 error.
        OutOfPorts = info "out-of-ports", "new bindings refused: every port of the pool is in use";
        /// The sender gets an ICMPv6 error.
        SessionsExceeded = info "maximum-sessions-exceeded", "new sessions refused: all sessions \
            are in use";
        /// The sender gets an ICMPv6 error.
        SubscriberLimit = info "subscriber-limit", "new sessions refused: the subscriber has as \
            many as it may have";
        /// Passes.
        BackPressure = info "back-pressure", "passes in which a worker read no packets because \
            too many packets waited for their sessions";
        /// Made.
        Made = info "sessions-made", "new sessions";
        /// Translated.
        ErrorTranslated = info "icmp-errors", "ICMPv6 errors translated";
        /// From inside to inside, by an address of the pool.
        Hairpinned = info "hairpinned", "packets between two hosts inside";
    }
}

impl From<Refused> for Nat66Drop {
    fn from(refused: Refused) -> Nat66Drop {
        match refused {
            Refused::NoCounterpart | Refused::FragmentedIcmp => Nat66Drop::BadIcmpType,
            Refused::SourceRoute(_) => Nat66Drop::SourceRoute,
            Refused::Truncated | Refused::NoChecksum | Refused::NoHeadroom => Nat66Drop::Truncated,
        }
    }
}

impl From<OpensNothing> for Nat66Drop {
    fn from(why: OpensNothing) -> Nat66Drop {
        match why {
            OpensNothing::NoSyn => Nat66Drop::NonSyn,
            OpensNothing::NoQuery => Nat66Drop::NoTranslation,
        }
    }
}

impl From<NoSession> for Nat66Drop {
    fn from(why: NoSession) -> Nat66Drop {
        match why {
            NoSession::Ports(_) => Nat66Drop::OutOfPorts,
            NoSession::Binding(error) | NoSession::Session(error) => match error {
                SessionError::Full { .. } | SessionError::Waiting => Nat66Drop::SessionsExceeded,
                SessionError::Collides { .. } => Nat66Drop::NoTranslation,
                SessionError::Table(_) => Nat66Drop::Crowded,
            },
        }
    }
}
