//! What becomes of packets that are not simply translated.

use quiver_translation::icmp_error::BadQuote;

quiver_core::reasons! {
    /// Why packets die, and what is counted.
    pub enum Det44Drop {
        /// From outside to a port of ours.
        NoTranslation = "no-translation", "no session has this outside port for this sender \
            (`show det44 sessions`)";
        /// It opens nothing.
        NonSyn = "non-syn", "a TCP packet without session that opens no connection";
        /// RFC 5508 REQ-1.
        BadIcmpType = "bad-icmp-type", "ICMP that is neither a query nor an error about a session";
        /// RFC 5508 REQ-3.
        BadIcmpError = "bad-icmp-error", "an ICMP error that is cut, or with a wrong checksum";
        /// RFC 5508 REQ-4 and -5.
        InnerHasNoSession = "inner-has-no-session", "an ICMP error about a packet that no session \
            sent";
        /// Needs virtual reassembly.
        FragmentWithoutFirst = "fragment-without-first", "a fragment whose first one is not known";
        /// Its headers are not whole.
        Truncated = "truncated", "the headers of the upper layer are not whole";
        /// Without ports.
        UnsupportedProtocol = "unsupported-protocol", "a protocol without ports, of which hosts \
            have none of their own";
        /// Not enabled any more.
        NotEnabled = "not-enabled", "DET44 was disabled meanwhile";
        /// RFC 6888 REQ-11; the sender gets an ICMP error.
        OutOfPorts = info "out-of-ports", "new sessions refused: all ports of the host are in use";
        /// Made.
        Made = info "sessions-made", "new sessions";
        /// RFC 5508 REQ-4 and -5.
        ErrorTranslated = info "icmp-errors", "ICMP errors translated";
    }
}

impl From<BadQuote> for Det44Drop {
    fn from(why: BadQuote) -> Det44Drop {
        match why {
            BadQuote::NotWhole => Det44Drop::BadIcmpError,
            BadQuote::NoFlow => Det44Drop::InnerHasNoSession,
        }
    }
}
