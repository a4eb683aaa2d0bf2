//! From one C-SID to the next: what the flavours have in common.

use quiver_core::Packet;
use quiver_wire::csid::Structure;
use quiver_wire::srh::SrhHeader;
use quiver_wire::{Header, Ip6Header};

use crate::endpoint::reasons::Bad;
use crate::endpoint::segments::{self, NEXT_HEADER_PLACE};
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::Spot;
use crate::local_sids::Flavors;

/// Where a packet goes from a compressed SID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The destination that it has then.
    pub to: u128,
    /// What becomes of its SRH, if that has a part in it.
    pub list: Option<ListStep>,
}

/// A step along the segment list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListStep {
    pub srh: Spot,
    /// Segments left then.
    pub left: u8,
    /// Is nothing left behind it?
    pub last: bool,
}

/// What a step needs to know of a compressed SID.
#[derive(Clone, Copy)]
pub(crate) struct Compression {
    /// `None` only of a SID that is no longer there.
    pub structure: Option<Structure>,
    /// Does the SRH go with the last step?
    pub pops: bool,
}

impl Compression {
    /// As its line says.
    #[inline(always)]
    pub fn of(line: SidEntryRef<'_>) -> Compression {
        Compression { structure: line.structure(), pops: line.flavors().has(Flavors::PSP) }
    }
}

/// An SRH right behind the IPv6 header.
pub(crate) const FIRST: Spot = Spot { at: Ip6Header::LEN, named_at: NEXT_HEADER_PLACE };

/// A flavour of RFC 9800.
pub(crate) trait Flavor: Send + Sync + 'static {
    /// The node of SIDs whose next destination is looked up.
    const NODE: &'static str;
    /// The node of SIDs that name a neighbour.
    const NODE_X: &'static str;
    /// What the nodes do.
    const HELP: &'static str;

    /// The step of a packet about which nothing is unusual; `None` for others.
    fn plain(sid: Compression, packet: &Packet) -> Option<Step>;

    /// The step of any packet; `None` when the SID does with it what the plain one does.
    fn slow_path(line: SidEntryRef<'_>, packet: &Packet) -> Result<Option<Step>, Bad>;
}

/// Make a step; with the flavour PSP the SRH goes with the last one (RFC 9800 §4.2.8).
#[inline(always)]
pub(crate) fn take(sid: Compression, step: Step, packet: &mut Packet) {
    match step.list {
        Some(ListStep { srh, last: true, .. }) if sid.pops => {
            segments::pop(packet, srh.at, srh.named_at);
        }
        Some(ListStep { srh, left, .. }) => {
            if let Some(header) =
                packet.bytes_mut().get_mut(srh.at..).and_then(SrhHeader::overlay_mut)
            {
                header.set_segments_left(left);
            }
        }
        None => {}
    }
    segments::set_destination(packet, step.to);
}
