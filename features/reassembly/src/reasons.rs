//! Why fragments die, and what is counted: the same for all four nodes.

quiver_core::reasons! {
    /// What becomes of fragments.
    pub enum FragmentEnd {
        /// Not a whole fragment.
        Truncated = "truncated", "the fragment is shorter than its headers say";
        /// Nothing in it.
        Empty = "empty", "a fragment without data";
        /// RFC 791 §3.2, RFC 8200 §4.5.
        OddLength = "bad-length", "a fragment other than the last whose data is not a multiple of \
            8 bytes";
        /// RFC 791 §3.1, RFC 8200 §4.5.
        TooLong = "beyond-65535", "a fragment that ends beyond 65,535 bytes (ping of death)";
        /// RFC 1858 §3, RFC 3128.
        Tiny = "tiny-fragment", "a fragment that cuts the TCP header in two";
        /// RFC 7112 §5.
        HeaderChain = "headers-cut", "a first fragment without all headers up to the upper layer's";
        /// RFC 8200 §4.
        BadExtension = "bad-extension", "extension headers that run beyond the fragment, are out \
            of place or too many";
        /// RFC 8200 §4.5.
        Duplicate = "duplicate", "a fragment that is there already; it is ignored";
        /// RFC 5722, RFC 8200 §4.5.
        Overlap = "overlap", "fragments that overlap: all of the packet is refused";
        /// RFC 791 §3.2.
        LengthConflict = "length-conflict", "fragments that do not agree on where the packet \
            ends: all of it is refused";
        /// RFC 5722 §4.
        AfterRefusal = "of-refused-packet", "a fragment of a packet that was refused before";
        /// A limit.
        TooMany = "too-many-fragments", "more fragments of one packet than may be (`set ip \
            reassembly … max-reassembly-length N`)";
        /// RFC 3168 §5.3.
        Ecn = "ecn-conflict", "fragments that were marked for congestion beside others whose \
            sender does not know of it";
        /// RFC 791 §3.2, RFC 8200 §4.5.
        TimedOut = "timed-out", "the other fragments did not come in time";
        /// A limit.
        TableFull = "table-full", "had to make room: as many packets wait for fragments as may \
            (`set ip reassembly … max-reassemblies N`)";
        /// A limit.
        NoRoom = "buffers-limit", "fragments hold as many buffers as they may (`set ip reassembly \
            max-buffers N`)";
        /// The ring between two workers.
        HandoffFull = "hand-off-full", "the worker that puts the packet together takes no more";
        /// It went away.
        InterfaceGone = "interface-gone", "the interface that the fragment came in by is gone";
        /// Done.
        Reassembled = info "reassembled", "packets put together";
        /// What they were made of.
        Fragments = info "fragments", "fragments received";
        /// To the worker that owns the packet.
        HandedOff = info "handed-off", "fragments handed to the worker that puts their packet \
            together";
        /// Gone on.
        WentOn = info "went-on", "fragments that went on with their layer 4 ports known";
    }
}
