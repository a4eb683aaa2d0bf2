//! Why BFD packets are discarded.

use quiver_wire::bfd::BfdMalformation;

quiver_core::reasons! {
    /// Why `bfd-input` discards packets.
    pub enum BfdDrop {
        /// RFC 5880 §6.8.6, before the session is known.
        Malformed(BfdMalformation);
        /// RFC 5881 §5.
        Ttl = "ttl-not-255", "a control packet of one hop whose TTL or hop limit is not 255: it \
            comes from elsewhere";
        /// RFC 5883 leaves the limit to the operator of the session.
        TtlTooLow = "ttl-too-low", "a control packet of several hops with a TTL or hop limit below \
            what the routing daemon has set for the session";
        /// No session has this number.
        UnknownDiscriminator = "unknown-discriminator",
            "a Your Discriminator that no session has";
        /// No session between these addresses.
        NoSession = "no-session", "the first packet of a session that is not configured (`bfd udp \
            session add`)";
        /// Not by the interface, or not between the addresses, of the session.
        OtherPath = "other-path", "a packet of a session that has another interface, other \
            addresses or another UDP port";
        /// The rings between workers.
        HandoffFull = "handoff-full", "the ring to the worker that has the session is full";
        /// No authentication section.
        AuthMissing = "auth-missing", "no authentication section in a session that uses one";
        /// One where none is used.
        AuthUnexpected = "auth-unexpected", "an authentication section in a session that uses none \
            (`bfd udp session auth activate`)";
        /// Another type.
        AuthType = "auth-type", "an authentication type other than that of the session's key";
        /// Another number.
        AuthKeyId = "auth-key-id", "a key ID other than the session's";
        /// A repetition.
        AuthSequence = "auth-sequence", "a sequence number outside of the window: a packet from \
            before";
        /// The digest is wrong.
        AuthDigest = "auth-digest", "a digest that the session's key does not give: the secret \
            differs, or somebody pretends";
        /// No buffer to send from.
        NoBuffer = "no-buffer", "no buffer for a packet to send (`show buffers`)";
        /// An echo packet that is not ours.
        EchoUnknown = "echo-unknown", "an echo packet that no session here has sent, or too late";
    }
}
