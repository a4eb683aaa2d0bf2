//! Why packets die at the headend, and what is counted there. All of its nodes have these.

use quiver_encap::EncapError;
use quiver_encap::inner::{Refused, Truncated};

quiver_core::reasons! {
    /// What becomes of packets at the headend.
    pub enum HeadendDrop {
        /// Cannot be behind `ip4-input` or `ip6-input`.
        Truncated = "truncated", "the packet is shorter than its headers say";
        /// Gone.
        NoPolicy = "no-policy", "the policy was deleted while the packet was under way";
        /// Nothing said.
        TunnelUnset = "tunnel-without-policy",
            "a frame for a layer 2 tunnel that has no policy for such (`set sr l2-tunnel`)";
        /// Said so.
        NotFlooded = "flood-off",
            "a flooded frame at a layer 2 tunnel that takes none (`set sr l2-tunnel IF flood off`)";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the segments and a layer 2 header";
        /// 16 bits.
        TooLong = "too-long", "with the segments the packet is longer than an IPv6 packet can be";
        /// A frame has no sender who could be told.
        FrameTooBig = "frame-too-big",
            "a frame that with the segments is longer than the outgoing MTU";
        /// What binding SIDs need.
        SrhWrong = "srh-wrong",
            "no way to the next segment: the SRH or another extension header is wrong or cut off";
        /// RFC 8986 §4.13.
        UpperLayer = "upper-layer-not-allowed",
            "no segments are left at a binding SID; senders hear `parameter problem`";
        /// RFC 8986 §4.13, S09.
        ListWrong = "segment-list-wrong",
            "last entry beyond the SRH, or segments left beyond the list; senders hear `parameter \
             problem`";
        /// RFC 8200 §4.4.
        RoutingType = "routing-type-unknown",
            "segments left in a routing header that is no SRH; senders hear `parameter problem`";
        /// No buffers.
        NoBuffer = "no-buffer", "no buffer for a copy; `show buffers`";
        /// The sender hears of it.
        TooBig = "too-big",
            "packets that with the segments are longer than the outgoing MTU; senders hear of it";
        /// RFC 2473 §7.
        Fragmented = info "to-fragment",
            "packets that cannot be made smaller: the outer packet is fragmented";
        /// RFC 8986 §5.1.
        HopLimit = "hop-limit",
            "packets whose hop limit or TTL ends here; senders hear `time exceeded`";
        /// RFC 4291 §2.5.6.
        LinkLocalSource = "link-local-source",
            "packets with a link-local source to another link; senders hear of it";
        /// RFC 9259 §2.1.
        Oam = info "oam-flag", "packets with the O-flag (`show sr oam`)";
        /// A limit.
        OamTooMany = info "oam-not-told",
            "packets with the O-flag that `show sr oam` does not know: too many came";
        /// Copies.
        Copied = info "copied", "copies made for the lists of a spray policy";
    }
}

impl From<EncapError> for HeadendDrop {
    fn from(error: EncapError) -> HeadendDrop {
        match error {
            EncapError::Truncated => HeadendDrop::Truncated,
            EncapError::NoHeadroom => HeadendDrop::NoHeadroom,
            EncapError::TooLong => HeadendDrop::TooLong,
        }
    }
}

impl From<Truncated> for HeadendDrop {
    fn from(Truncated: Truncated) -> HeadendDrop {
        HeadendDrop::Truncated
    }
}

impl From<Refused> for HeadendDrop {
    fn from(refused: Refused) -> HeadendDrop {
        match refused {
            Refused::LinkLocalSource => HeadendDrop::LinkLocalSource,
            Refused::HopLimit => HeadendDrop::HopLimit,
        }
    }
}
