//! What a bridge and its ports tell one another of a frame that is flooded, in
//! [`Packet::index`](quiver_core::Packet::index). The features of `device-input` and
//! `interface-output` that stand between leave it alone, and no index of anything else is as high.

/// The split-horizon group of interfaces that lead into the core of a network (RFC 4762 §4.4, RFC
/// 7432 §8.3), unless an operator says another: what came from one of them goes to none of them.
pub const CORE_GROUP: u8 = 255;

/// Above the group's bits.
const FLOOD_REQUEST: u32 = 0xf10d_0000;
const FLOODED: u32 = 0xf10e_0000;
const GROUP: u32 = 0xff;

/// To `l2-input`: flood the frame, whatever its destination, as End.DT2M of RFC 8986 §4.12 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodRequest {
    /// The split-horizon group that gets none, beside the port's own; 0 is none.
    pub excluded: u8,
}

impl FloodRequest {
    /// As one word.
    #[inline(always)]
    pub const fn to_index(self) -> u32 {
        FLOOD_REQUEST | self.excluded as u32
    }

    /// From that word; `None` when it is another one.
    #[inline(always)]
    pub const fn from_index(index: u32) -> Option<FloodRequest> {
        if index & !GROUP == FLOOD_REQUEST {
            Some(FloodRequest { excluded: index as u8 })
        } else {
            None
        }
    }
}

/// From `l2-flood` and `l2-uu-flood`: the port gets a copy, for the frame is to a group, or to a
/// station that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flooded {
    /// The split-horizon group of the port that the frame came in by; 0 is none.
    pub from_group: u8,
}

impl Flooded {
    /// As one word.
    #[inline(always)]
    pub const fn to_index(self) -> u32 {
        FLOODED | self.from_group as u32
    }

    /// From that word; `None` when it is another one.
    #[inline(always)]
    pub const fn from_index(index: u32) -> Option<Flooded> {
        if index & !GROUP == FLOODED { Some(Flooded { from_group: index as u8 }) } else { None }
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
    /// As one word; 0 is the beginning, with nobody excluded.
    #[inline]
    pub const fn to_index(self) -> u32 {
        (self.excluded as u32) << 24 | self.port & 0x00ff_ffff
    }

    /// From that word.
    #[inline]
    pub const fn from_index(index: u32) -> FloodPlace {
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
            let (asked, flooded) = (FloodRequest { excluded: group }, Flooded { from_group: group });
            prop_assert_eq!(FloodRequest::from_index(asked.to_index()), Some(asked));
            prop_assert_eq!(Flooded::from_index(flooded.to_index()), Some(flooded));
            prop_assert_eq!(FloodRequest::from_index(flooded.to_index()), None);
            prop_assert_eq!(Flooded::from_index(asked.to_index()), None);
            prop_assert_eq!(FloodRequest::from_index(port), None);
            let place = FloodPlace { excluded: group, port };
            prop_assert_eq!(FloodPlace::from_index(place.to_index()), place);
        }
    }
}
