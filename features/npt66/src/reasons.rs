//! Why packets die.

quiver_core::reasons! {
    /// Why packets are not translated.
    pub enum Npt66Drop {
        /// All words that could take the difference are full.
        Unmappable = "unmappable",
            "the address has none in the other prefix: 0xffff stands where the difference of the \
             checksums has to go (RFC 6296 §3.5); the sender gets an ICMPv6 error";
        /// Its headers are in more than one buffer.
        Truncated = "truncated", "the headers in front of the IP header are not in one buffer";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the packet was under way";
    }
}
