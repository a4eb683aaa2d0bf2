//! Why packets of VRRP, and packets for virtual routers, are discarded.

use quiver_wire::vrrp::VrrpMalformation;

quiver_core::reasons! {
    /// Why `vrrp-input` discards advertisements.
    pub enum VrrpDrop {
        /// RFC 9568 §7.1.
        Malformed(VrrpMalformation);
        /// From elsewhere.
        Ttl = "ttl-not-255", "an advertisement whose TTL or hop limit is not 255: it comes from \
            elsewhere";
        /// Would make the sender miss itself.
        IntervalZero = "interval-zero", "an advertisement with an interval of 0";
        /// Not configured.
        UnknownVrId = "unknown-vr-id", "a virtual router that the receiving interface does not \
            have (`vrrp vr add IF vr_id N`)";
        /// Not started.
        NotStarted = "not-started", "a virtual router that is not started (`vrrp proto start IF \
            vr_id N`), or whose interface has no address";
        /// RFC 9568 §7.1.
        Owner = "address-owner", "an advertisement for a virtual router whose addresses are this \
            router's own (priority 255)";
        /// The rings between workers.
        HandoffFull = "handoff-full", "the ring to the worker that has the virtual router is full";
        /// No buffer to send from.
        NoBuffer = "no-buffer", "no buffer for a packet to send (`show buffers`)";
    }
}

quiver_core::reasons! {
    /// Why packets to the address of a virtual router are not taken.
    pub enum NotAccepted {
        /// RFC 9568 §6.1, Accept_Mode.
        AcceptMode = "not-accepted", "a packet to the address of a virtual router that does not \
            take packets (`vrrp vr add IF vr_id N accept_mode`)";
    }
}
