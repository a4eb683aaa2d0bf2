//! What a bridge and its ports hand over to one another of a frame that is flooded. The features of
//! `device-input` and `interface-output` that stand between leave it alone, and no index of
//! anything else is as high.

use quiver_core::memory::packet::handover::{Handover, MarkedHandover};

/// The split-horizon group of interfaces that lead into the core of a network (RFC 4762 §4.4, RFC
/// 7432 §8.3), unless an operator says another: what came from one of them goes to none of them.
pub const CORE_GROUP: u8 = 255;

/// Above the group's bits.
const FLOOD_REQUEST: u32 = 0xf10d_0000;
const FLOODED: u32 = 0xf10e_0000;
const FAR_END: u32 = 0xf10f_0000;
const NUMBER: u32 = 0xffff;
const GROUP: u32 = 0xff;

/// To `l2-input`: flood the frame, whatever its destination, as End.DT2M of RFC 8986 §4.12 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodRequest {
    /// The split-horizon group that gets none, beside the port's own; 0 is none.
    pub excluded: u8,
}

impl Handover for FloodRequest {
    #[inline(always)]
    fn to_index(self) -> u32 {
        FLOOD_REQUEST | u32::from(self.excluded)
    }

    #[inline(always)]
    fn from_index(index: u32) -> FloodRequest {
        FloodRequest { excluded: index as u8 }
    }
}

impl MarkedHandover for FloodRequest {
    #[inline(always)]
    fn is_marked(index: u32) -> bool {
        index & !GROUP == FLOOD_REQUEST
    }
}

/// From `l2-flood` and `l2-uu-flood`: the port gets a copy, for the frame is to a group, or to a
/// station that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flooded {
    /// The split-horizon group of the port that the frame came in by; 0 is none.
    pub from_group: u8,
}

impl Handover for Flooded {
    #[inline(always)]
    fn to_index(self) -> u32 {
        FLOODED | u32::from(self.from_group)
    }

    #[inline(always)]
    fn from_index(index: u32) -> Flooded {
        Flooded { from_group: index as u8 }
    }
}

impl MarkedHandover for Flooded {
    #[inline(always)]
    fn is_marked(index: u32) -> bool {
        index & !GROUP == FLOODED
    }
}

/// From `l2-fwd`: the station is behind this one of the far ends of the port, a tunnel with many.
/// The port says what the number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarEnd(pub u16);

impl Handover for FarEnd {
    #[inline(always)]
    fn to_index(self) -> u32 {
        FAR_END | u32::from(self.0)
    }

    #[inline(always)]
    fn from_index(index: u32) -> FarEnd {
        FarEnd(index as u16)
    }
}

impl MarkedHandover for FarEnd {
    #[inline(always)]
    fn is_marked(index: u32) -> bool {
        index & !NUMBER == FAR_END
    }
}

/// Between the nodes that flood: where they go on, and who gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodPlace {
    /// The split-horizon group that gets none, beside that of the port that the frame came in by; 0
    /// is none.
    pub excluded: u8,
    /// The place of the next port in the domain, of 24 bits. It begins with 0.
    pub port: u32,
}

impl FloodPlace {
    /// At the first port, with no group excluded.
    pub const START: FloodPlace = FloodPlace { excluded: 0, port: 0 };
}

impl Handover for FloodPlace {
    #[inline]
    fn to_index(self) -> u32 {
        u32::from(self.excluded) << 24 | self.port & 0x00ff_ffff
    }

    #[inline]
    fn from_index(index: u32) -> FloodPlace {
        FloodPlace { excluded: (index >> 24) as u8, port: index & 0x00ff_ffff }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_word_is_read_as_what_it_was_written_as(group: u8, port in 0u32..1 << 24) {
            let (asked, flooded) =
                (FloodRequest { excluded: group }, Flooded { from_group: group });
            let (asked_word, flooded_word) = (asked.to_index(), flooded.to_index());
            prop_assert!(FloodRequest::is_marked(asked_word) && Flooded::is_marked(flooded_word));
            prop_assert!(!FloodRequest::is_marked(flooded_word) && !Flooded::is_marked(asked_word));
            prop_assert!(!FloodRequest::is_marked(port) && !Flooded::is_marked(port));
            let far = FarEnd(port as u16).to_index();
            prop_assert!(FarEnd::is_marked(far) && !Flooded::is_marked(far));
            prop_assert!(!FarEnd::is_marked(flooded_word) && !FarEnd::is_marked(port));
            prop_assert_eq!(FarEnd::from_index(far), FarEnd(port as u16));
            prop_assert_eq!(FloodRequest::from_index(asked_word), asked);
            prop_assert_eq!(Flooded::from_index(flooded_word), flooded);
            let place = FloodPlace { excluded: group, port };
            prop_assert_eq!(FloodPlace::from_index(place.to_index()), place);
        }
    }
}
