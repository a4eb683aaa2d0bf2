//! What is unusual about a packet for a local SID, found step by step: where its segments are, or
//! what follows when none are left.

use quiver_core::Packet;
use quiver_wire::ip6::Ip6Header;
use quiver_wire::ip6::extension::{ExtensionBad, Walk, upper_layer};
use quiver_wire::srh::{ROUTING_TYPE, SrhHeader, segment};
use quiver_wire::{Header, IpProtocol};

use super::reasons::{Bad, LocalSidDrop, TIME_EXCEEDED, parameter_problem};
use super::segments::{self, NEXT_HEADER_PLACE};

/// Where segments left and the routing type stand in an SRH.
const SEGMENTS_LEFT_PLACE: usize = 3;
const ROUTING_TYPE_PLACE: usize = 2;

/// A header and where it is named, in bytes from the IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub at: usize,
    pub named_at: usize,
}

/// What stands behind all extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upper {
    pub protocol: IpProtocol,
    /// Where it begins, counted from the IPv6 header.
    pub at: usize,
    /// Is it a fragment's?
    pub is_fragment: bool,
}

impl Upper {
    /// Is a whole inner packet of this protocol there?
    pub fn is_inner(self, protocol: IpProtocol) -> bool {
        self.protocol == protocol && !self.is_fragment
    }
}

/// What a packet for a local SID is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    /// To the next segment of the SRH there.
    Segments { srh: Spot, next: u128 },
    /// No segments are left.
    Upper(Upper),
}

/// Why the headers cannot be walked.
pub(crate) fn bad_extension(bad: ExtensionBad) -> Bad {
    Bad::Drop(match bad {
        ExtensionBad::Truncated => LocalSidDrop::SrhBeyondPacket,
        ExtensionBad::TooMany | ExtensionBad::HopByHopNotFirst => LocalSidDrop::Extensions,
    })
}

/// The routing headers of a packet one after the other: each with its place, its type and the
/// segments left.
pub(crate) fn routing_headers(
    packet: &Packet,
) -> impl Iterator<Item = Result<(Spot, u8, u8), ExtensionBad>> + '_ {
    let (next, behind) = Ip6Header::split(packet.bytes())
        .map_or((IpProtocol::NO_NEXT_HEADER, &[][..]), |(header, behind)| {
            (header.next_header(), behind)
        });
    let mut named_at = NEXT_HEADER_PLACE;
    Walk::new(next, behind).filter_map(move |extension| match extension {
        Ok(extension) => {
            let at = Ip6Header::LEN + extension.offset;
            let spot = Spot { at, named_at: std::mem::replace(&mut named_at, at) };
            extension.routing().map(|(kind, left)| Ok((spot, kind, left)))
        }
        Err(bad) => Some(Err(bad)),
    })
}

/// What is to be done with a packet, by its routing headers: the first one with segments left says
/// so (RFC 8200 §4.4, RFC 8986 §4.1).
pub(crate) fn matter(packet: &Packet) -> Result<Matter, Bad> {
    for header in routing_headers(packet) {
        let (spot, kind, left) = header.map_err(bad_extension)?;
        match (kind, left) {
            (_, 0) => {}
            (ROUTING_TYPE, _) => return segments(packet, spot),
            _ => return Err(not_segments(spot)),
        }
    }
    upper(packet).map(Matter::Upper)
}

/// An SRH with segments left.
fn segments(packet: &Packet, srh: Spot) -> Result<Matter, Bad> {
    let bytes = packet.bytes();
    let header = Ip6Header::overlay(bytes).ok_or(LocalSidDrop::Truncated)?;
    if header.hop_limit() <= 1 {
        return Err(Bad::Complain(TIME_EXCEEDED, LocalSidDrop::HopLimit));
    }
    let own = bytes.get(srh.at..).unwrap_or_default();
    let fixed = SrhHeader::overlay(own).ok_or(LocalSidDrop::SrhBeyondPacket)?;
    if !fixed.leads_on() {
        return Err(left_behind(srh, LocalSidDrop::ListWrong));
    }
    let next = segment(own, usize::from(fixed.segments_left()) - 1)
        .ok_or(LocalSidDrop::SrhBeyondPacket)?;
    if next.is_multicast() || next.is_unspecified() || next.is_loopback() {
        return Err(LocalSidDrop::NextSegment.into());
    }
    Ok(Matter::Segments { srh, next: next.to_bits() })
}

/// The sender hears that the number of segments left is wrong.
pub(crate) fn left_behind(srh: Spot, why: LocalSidDrop) -> Bad {
    Bad::Complain(parameter_problem(0, srh.at + SEGMENTS_LEFT_PLACE), why)
}

/// The sender hears that the type of a routing header that leads on is not known (RFC 8200 §4.4).
pub(crate) fn not_segments(header: Spot) -> Bad {
    Bad::Complain(parameter_problem(0, header.at + ROUTING_TYPE_PLACE), LocalSidDrop::RoutingType)
}

/// As [`matter`], at a SID that must be the last (RFC 8986 §4.4, S01 to S06): what follows when it
/// is.
pub(crate) fn last(packet: &Packet) -> Result<Upper, Bad> {
    for header in routing_headers(packet) {
        let (spot, kind, left) = header.map_err(bad_extension)?;
        match (kind, left) {
            (_, 0) => {}
            (ROUTING_TYPE, _) => return Err(left_behind(spot, LocalSidDrop::SegmentsLeft)),
            _ => return Err(not_segments(spot)),
        }
    }
    upper(packet)
}

/// What stands behind the extension headers.
pub(crate) fn upper(packet: &Packet) -> Result<Upper, Bad> {
    let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
    let upper = upper_layer(header.next_header(), behind).map_err(bad_extension)?;
    let is_fragment = upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
    Ok(Upper { protocol: upper.protocol, at: Ip6Header::LEN + upper.offset, is_fragment })
}

/// Take out the SRHs in which no segments are left (RFC 8986 §4.16.2). The headers were walked
/// before.
pub(crate) fn pop_ended(packet: &mut Packet) {
    while let Some(spot) = ended(packet) {
        let before = packet.length();
        segments::pop(packet, spot.at, spot.named_at);
        if packet.length() == before {
            return;
        }
    }
}

/// The first SRH in which no segments are left.
fn ended(packet: &Packet) -> Option<Spot> {
    let mut headers = routing_headers(packet).flatten();
    headers.find(|(_, kind, left)| (*kind, *left) == (ROUTING_TYPE, 0)).map(|(spot, ..)| spot)
}
