//! Why packets die in this driver, and what it counts: all under the node `memif-input`.

quiver_core::reasons! {
    /// Deaths and events of `memif-input`, also those on the way out.
    pub enum MemifReason {
        /// Index.
        PeerIndex = "peer-index", "the peer wrote a ring index that cannot be; the connection was \
            ended";
        /// Outside.
        DescriptorOutside = "descriptor-outside",
            "the peer's descriptor points outside its regions";
        /// Empty.
        DescriptorEmpty = "descriptor-empty", "the peer's descriptor holds no bytes";
        /// Chain.
        ChainBroken = "chain-broken", "the peer's frame goes on in a descriptor that it did not \
            give";
        /// Long.
        FrameTooLong = "frame-too-long", "the peer's frame is longer than 65,535 bytes";
        /// Buffers.
        NoBuffer = "no-buffer", "all buffers are in use (`show buffers`), a frame of several was \
            dropped";
        /// Buffers.
        Waiting = info "waits-for-buffers", "passes in which frames waited in a ring because all \
            buffers are in use";
        /// Outgoing.
        TxDescriptor = "tx-descriptor", "the peer gave a buffer outside its regions to send into; \
            the connection was ended";
        /// Outgoing.
        TxTooLong = "tx-frame-too-long", "the frame needs more descriptors than the ring has";
        /// Outgoing.
        TxEmpty = "tx-empty", "a frame without bytes";
        /// Outgoing.
        Interrupts = info "interrupts-sent", "interrupts sent to peers that asked for them";
    }
}
