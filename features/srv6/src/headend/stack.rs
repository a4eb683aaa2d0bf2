//! Header stacks of segment lists, ready made for encapsulation entries
//! ([`EncapEntries`](quiver_encap::EncapEntries)): an outer IPv6 header and an SRH behind it, or an
//! SRH that goes into packets.

use std::net::Ipv6Addr;

use quiver_encap::entries::{ENTRY_WORDS, HEADER_BYTES_MAX};
use quiver_encap::inner::Truncated;
use quiver_encap::outer::fill_ip6;
use quiver_encap::{EntryView, EntryWords, HeaderStack, Inside, OuterHeader};
use quiver_forwarding::ip::Ip6;
use quiver_tables::GroupId;
use quiver_wire::srh::{Form, Repr, SEGMENT_BYTES, segment_offset};
use quiver_wire::{Header, Ip6Header, IpProtocol, WireError};

use crate::endpoint::segments::NEXT_HEADER_PLACE;

/// Where the SRH behind the IPv6 header begins, and names what follows.
pub(super) const SRH_PLACE: usize = Ip6Header::LEN;
/// Where the last segment of the path stands.
pub(super) const LAST_SEGMENT: std::ops::Range<usize> =
    SRH_PLACE + segment_offset(0)..SRH_PLACE + segment_offset(0) + SEGMENT_BYTES;

/// The longest super-frame that gets a list's segments, in bytes: with the longest list its length
/// still fits the outer header.
pub(super) const SUPER_FRAME_BYTES_MAX: u32 =
    (<Ip6 as OuterHeader>::PACKET_BYTES_MAX - HEADER_BYTES_MAX) as u32;

/// The hop limit of an outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopLimit {
    /// This one, 1 or more.
    Fixed(u8),
    /// What the inner packet has left.
    Propagated,
}

/// What an outer header has beside its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outer {
    /// Its source address.
    pub source: Ipv6Addr,
    /// Its hop limit.
    pub hop_limit: HopLimit,
}

/// A header and the words beside it.
pub(super) struct Prepared {
    pub header: Vec<u8>,
    /// Does it hold a Segment Routing Header?
    has_srh: bool,
    hop_limit: HopLimit,
    /// Is every packet to be signed?
    signs: bool,
}

/// An IPv6 header to the first segment and an SRH behind it, if there is one.
fn prepare(outer: &Outer, first: Ipv6Addr, srh: Option<Repr<'_>>) -> Result<Prepared, WireError> {
    let srh_len = srh.as_ref().map_or(0, Repr::len);
    let mut header = vec![0; Ip6Header::LEN + srh_len];
    if header.len() > HEADER_BYTES_MAX {
        return Err(WireError::NoRoom { need: header.len(), have: HEADER_BYTES_MAX });
    }
    let next = if srh.is_some() { IpProtocol::ROUTING } else { IpProtocol::NO_NEXT_HEADER };
    let limit = match outer.hop_limit {
        HopLimit::Fixed(limit) => limit,
        HopLimit::Propagated => 0,
    };
    Ip6Header::new(outer.source, first, next, limit, 0).write(&mut header)?;
    if let Some(srh) = &srh {
        srh.emit(header.get_mut(SRH_PLACE..).unwrap_or_default())?;
    }
    Ok(Prepared { header, has_srh: srh.is_some(), hop_limit: outer.hop_limit, signs: false })
}

/// What goes around packets (RFC 8986 §5.1, §5.2). The reduced form of one segment has no SRH,
/// unless it carries an HMAC, which stands in the full form then.
pub(super) fn around(
    outer: &Outer,
    path: &[Ipv6Addr],
    form: Form,
    hmac_key_id: Option<u32>,
) -> Result<Prepared, WireError> {
    let first = path.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
    let alone = path.len() == 1 && form == Form::Reduced;
    let form = if alone { Form::Full } else { form };
    let srh = Repr { hmac_key_id, ..Repr::new(path, form, IpProtocol::NO_NEXT_HEADER) };
    prepare(outer, first, (!alone || hmac_key_id.is_some()).then_some(srh))
}

/// What goes into packets: an SRH whose last segment, where `to_destination`, is the destination
/// that the packet had (draft-filsfils-spring-srv6-net-pgm-insertion §3). The header in front of it
/// lends the first segment. An HMAC is made for every packet: its text has the packet's source (RFC
/// 8754 §2.1.2.1).
pub(super) fn into(
    path: &[Ipv6Addr],
    form: Form,
    to_destination: bool,
    hmac_key_id: Option<u32>,
) -> Result<Prepared, WireError> {
    let outer = Outer { source: Ipv6Addr::UNSPECIFIED, hop_limit: HopLimit::Propagated };
    let first = path.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
    let mut whole = path.to_vec();
    whole.extend(to_destination.then_some(Ipv6Addr::UNSPECIFIED));
    // A list that leaves nothing for an SRH stands in the full form when it is signed.
    let is_needless = Repr::new(&whole, form, IpProtocol::NO_NEXT_HEADER).is_empty();
    let form = if is_needless { Form::Full } else { form };
    let srh = Repr { hmac_key_id, ..Repr::new(&whole, form, IpProtocol::NO_NEXT_HEADER) };
    let prepared = prepare(&outer, first, (!is_needless || hmac_key_id.is_some()).then_some(srh))?;
    Ok(Prepared { signs: hmac_key_id.is_some(), ..prepared })
}

impl Prepared {
    /// The words of the entry, with the group of the way to the first segment, which is looked up
    /// in `table`.
    pub fn words(&self, group: GroupId, table: u32) -> [u32; ENTRY_WORDS] {
        let place = if self.has_srh { SRH_PLACE } else { NEXT_HEADER_PLACE };
        EntryWords {
            underlay: group,
            table,
            protocol_offset: place as u8,
            copies_hop_limit: self.hop_limit == HopLimit::Propagated,
            copies_dscp: true,
            feature_flag: self.signs,
        }
        .words()
    }
}

/// Is there an SRH in the stack?
#[inline(always)]
pub(super) fn has_srh(words: EntryView<'_>) -> bool {
    words.protocol_offset() == SRH_PLACE
}

/// Is the SRH signed for every packet?
#[inline(always)]
pub(super) fn signs(words: EntryView<'_>) -> bool {
    words.feature_flag()
}

/// Bytes of an IPv6 header and of what is behind it at least: an SRH, or a packet without one in
/// front.
const FRONT_BYTES: usize = Ip6Header::LEN + 8;

/// The header stack of a segment list.
pub struct SegmentStack;

impl HeaderStack for SegmentStack {
    type Outer = Ip6;

    #[inline(always)]
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        inside: Inside,
    ) -> Result<(), Truncated> {
        let bytes: &mut [u8; FRONT_BYTES] = bytes.first_chunk_mut().ok_or(Truncated)?;
        bytes[if has_srh(words) { SRH_PLACE } else { NEXT_HEADER_PLACE }] = inside.protocol.0;
        fill_ip6(words, bytes, total, inside)
    }
}

#[cfg(test)]
mod tests {
    use quiver_wire::srh::Srh;

    use super::*;

    fn path(count: u16) -> Vec<Ipv6Addr> {
        (1..=count).map(|at| Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, at)).collect()
    }

    const OUTER: Outer = Outer { source: Ipv6Addr::LOCALHOST, hop_limit: HopLimit::Fixed(64) };

    #[test]
    fn the_reduced_form_of_one_segment_has_no_srh_unless_it_is_signed() {
        let alone = around(&OUTER, &path(1), Form::Reduced, None).unwrap();
        assert_eq!(alone.header.len(), 40);
        assert_eq!(alone.words(GroupId(7), 3), [7, 0xffff_0406, 3]);
        let signed = around(&OUTER, &path(1), Form::Reduced, Some(9)).unwrap();
        assert_eq!(signed.header.len(), 40 + 8 + 16 + 40);
        assert_eq!(signed.words(GroupId(7), 3), [7, 0xffff_0428, 3]);
    }

    #[test]
    fn what_is_inserted_leads_to_the_destination_in_the_end() {
        let inserted = into(&path(2), Form::Reduced, true, None).unwrap();
        let (srh, _) = Srh::parse(&inserted.header[40..]).unwrap();
        assert_eq!(srh.header().segments_left(), 2);
        assert!(srh.segments().eq([Ipv6Addr::UNSPECIFIED, path(2)[1]]));
        let bound = into(&path(2), Form::Full, false, None).unwrap();
        let (srh, _) = Srh::parse(&bound.header[40..]).unwrap();
        assert_eq!(srh.active(), Some(path(2)[0]));
        assert!(!into(&path(1), Form::Reduced, false, None).unwrap().has_srh);
        let signed = into(&path(1), Form::Reduced, false, Some(9)).unwrap();
        assert!(signed.has_srh && signed.signs);
    }

    #[test]
    fn a_list_that_fits_no_entry_is_refused() {
        assert!(around(&OUTER, &path(11), Form::Full, None).is_ok());
        assert!(around(&OUTER, &path(12), Form::Full, None).is_err());
        assert!(around(&OUTER, &path(12), Form::Reduced, None).is_ok());
        assert!(around(&OUTER, &path(9), Form::Full, Some(1)).is_err());
    }
}
