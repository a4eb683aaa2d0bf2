//! NEXT-C-SID (RFC 9800 §4.1): what follows in the destination's argument moves up to the locator
//! block; when nothing follows, the SID is as the plain one.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::csid::Structure;
use quiver_wire::srh::SrhHeader;
use quiver_wire::{Header, Ip6Header};

use super::step::{Compression, FIRST, Flavor, ListStep, Step};
use crate::endpoint::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED};
use crate::endpoint::segments::{self, is_plain_segment};
use crate::endpoint::sid_entry::SidEntryRef;

/// uN and its kin.
pub struct NextCsid;

/// The destination with the next C-SID of its argument as the active one; `None` when there is
/// none.
#[inline(always)]
fn moved_up(structure: Option<Structure>, header: &Ip6Header) -> Option<u128> {
    let destination = header.destination().to_bits();
    structure?.next(destination)
}

/// The segments left in an SRH right behind the IPv6 header.
#[inline(always)]
fn segments_left(packet: &Packet) -> u8 {
    let srh = packet.bytes().get(FIRST.at..).and_then(SrhHeader::overlay);
    srh.map_or(0, SrhHeader::segments_left)
}

impl Flavor for NextCsid {
    const NODE: &'static str = "sr-next-csid";
    const NODE_X: &'static str = "sr-next-csid-x";
    const HELP: &'static str =
        "NEXT-C-SID: to what follows in the destination, or to the next segment";

    #[inline(always)]
    fn plain(sid: Compression, packet: &Packet) -> Option<Step> {
        let header = Ip6Header::overlay(packet.bytes())?;
        if let Some(to) = moved_up(sid.structure, header) {
            let plain = (header.hop_limit() > 1)
                & is_plain_segment(to)
                & packet.has_none(PacketFlags::OFFLOAD);
            return plain.then_some(Step { to, list: None });
        }
        let to = segments::next_if_plain(packet);
        if to == 0 {
            return None;
        }
        let left = segments_left(packet).wrapping_sub(1);
        Some(Step { to, list: Some(ListStep { srh: FIRST, left, last: left == 0 }) })
    }

    fn slow_path(line: SidEntryRef<'_>, packet: &Packet) -> Result<Option<Step>, Bad> {
        let header = Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        let Some(to) = moved_up(line.structure(), header) else { return Ok(None) };
        if header.hop_limit() <= 1 {
            return Err(Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit));
        }
        if !is_plain_segment(to) {
            return Err(LocalSidDrop::NextSegment.into());
        }
        Ok(Some(Step { to, list: None }))
    }
}
