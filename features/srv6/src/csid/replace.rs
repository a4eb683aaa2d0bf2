//! REPLACE-C-SID (RFC 9800 §4.2): the segment list has containers full of C-SIDs, the lowest bits
//! of the destination say which of them is the active one.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::csid::{Packing, Structure};
use quiver_wire::srh::{FLAG_OAM, ROUTING_TYPE, SrhHeader, segment};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::step::{Compression, FIRST, Flavor, ListStep, Step};
use crate::endpoint::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED};
use crate::endpoint::segments::is_plain_segment;
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path;

/// End and its kin with containers.
pub struct ReplaceCsid;

/// Where the SRH leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    /// To this destination, with so many segments left; nothing is left behind it when it is the
    /// last.
    On { to: u128, left: u8, last: bool },
    /// Nothing is left (RFC 9800 §4.2.1, S02).
    End,
    /// The list is not as the destination says.
    Wrong,
}

/// What the SRH that `srh` begins with makes of a destination (RFC 9800 §4.2.1).
#[inline(always)]
fn follow(destination: u128, structure: Structure, srh: &[u8]) -> Option<Followed> {
    let packing = Packing::of(structure.csid_bits())?;
    let fixed = SrhHeader::overlay(srh)?;
    let (mut left, index) = (fixed.segments_left(), packing.index(destination));
    // S02: an element of the list, and the place before this one in it; nothing stands before the
    // first.
    let is_last = |left: u8, index: u8| {
        left == 0
            && (index == 0 || entry(srh, 0).is_some_and(|list| packing.csid(list, index - 1) == 0))
    };
    if is_last(left, index) {
        return Some(Followed::End);
    }
    if !fixed.leads_on() || (index != 0 && usize::from(left) == fixed.segment_count()) {
        return Some(Followed::Wrong);
    }
    let place = if index == 0 {
        left -= 1;
        packing.count() - 1
    } else {
        index - 1
    };
    let csid = packing.csid(entry(srh, left)?, place);
    if index != 0 && csid == 0 {
        // The container ends here; what stands before it in the list is a SID of its own (S14 to
        // S18).
        left = left.checked_sub(1)?;
        return Some(Followed::On { to: entry(srh, left)?, left, last: left == 0 });
    }
    let to = packing.with_index(structure.replace(destination, csid), place);
    Some(Followed::On { to, left, last: is_last(left, place) })
}

/// Where the SRH leads from a destination: the next one, the segments that are left then, and
/// whether it is the last.
pub(crate) fn replaced(
    destination: u128,
    structure: Structure,
    srh: &[u8],
) -> Option<(u128, u8, bool)> {
    match follow(destination, structure, srh)? {
        Followed::On { to, left, last } => Some((to, left, last)),
        Followed::End | Followed::Wrong => None,
    }
}

/// An element of the segment list.
#[inline(always)]
fn entry(srh: &[u8], index: u8) -> Option<u128> {
    segment(srh, usize::from(index)).map(|segment| segment.to_bits())
}

impl Flavor for ReplaceCsid {
    const NODE: &'static str = "sr-replace-csid";
    const NODE_X: &'static str = "sr-replace-csid-x";
    const HELP: &'static str = "REPLACE-C-SID: to what follows in a container of the segment list";

    #[inline(always)]
    fn plain(sid: Compression, packet: &Packet) -> Option<Step> {
        let (header, behind) = Ip6Header::split(packet.bytes())?;
        let srh = SrhHeader::overlay(behind)?;
        let plain = (header.next_header() == IpProtocol::ROUTING)
            & (header.hop_limit() > 1)
            & (srh.routing_type() == ROUTING_TYPE)
            & (srh.len_bytes() <= behind.len())
            & (srh.flags() & FLAG_OAM == 0)
            & packet.has_none(PacketFlags::OFFLOAD);
        match follow(header.destination().to_bits(), sid.structure?, behind)? {
            Followed::On { to, left, last } if plain && is_plain_segment(to) => {
                Some(Step { to, list: Some(ListStep { srh: FIRST, left, last }) })
            }
            _ => None,
        }
    }

    /// By the first SRH that leads on.
    fn slow_path(line: SidEntryRef<'_>, packet: &Packet) -> Result<Option<Step>, Bad> {
        let structure = line.structure().ok_or(LocalSidDrop::NotConfigured)?;
        let header = Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        for routing in slow_path::routing_headers(packet) {
            let (srh, kind, left) = routing.map_err(slow_path::bad_extension)?;
            match (kind, left) {
                (ROUTING_TYPE, _) => {}
                (_, 0) => continue,
                _ => return Ok(None), // it is complained about as at the plain SID
            }
            let own = packet.bytes().get(srh.at..).unwrap_or_default();
            let followed = follow(header.destination().to_bits(), structure, own);
            match followed.ok_or(LocalSidDrop::SrhBeyondPacket)? {
                Followed::End => {}
                Followed::Wrong => {
                    return Err(slow_path::left_behind(srh, LocalSidDrop::ListWrong));
                }
                Followed::On { .. } if header.hop_limit() <= 1 => {
                    return Err(Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit));
                }
                Followed::On { to, .. } if !is_plain_segment(to) => {
                    return Err(LocalSidDrop::NextSegment.into());
                }
                Followed::On { to, left, last } => {
                    return Ok(Some(Step { to, list: Some(ListStep { srh, left, last }) }));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_list_panics_and_none_leads_beyond_itself(
            destination: u128,
            wide: bool,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
            left in 0u8..8,
            entries in 0u8..8,
        ) {
            for (byte, value) in
                bytes.iter_mut().zip([59, entries * 2, 4, left, entries.saturating_sub(1)])
            {
                *byte = value;
            }
            let structure = Structure::new(48, if wide { 32 } else { 16 }).unwrap();
            if let Some(Followed::On { left: then, .. }) = follow(destination, structure, &bytes) {
                prop_assert!(then <= left && then < entries);
            }
        }
    }
}
