use super::*;
use proptest::prelude::*;
use std::vec::Vec;

fn path(count: usize) -> Vec<Ipv6Addr> {
    (1..=count as u16).map(|at| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, at)).collect()
}

fn emitted(repr: &Repr<'_>) -> Vec<u8> {
    let mut bytes = std::vec![0xaa; repr.len()];
    assert_eq!(repr.emit(&mut bytes), Ok(bytes.len()));
    bytes
}

#[test]
fn fields_lie_where_rfc_8754_draws_them() {
    let path = path(2);
    let repr = Repr { tag: 0x1234, flags: 0x20, ..Repr::new(&path, Form::Full, IpProtocol::IPV6) };
    let bytes = emitted(&repr);
    assert_eq!(bytes[..8], [41, 4, 4, 1, 1, 0x20, 0x12, 0x34]);
    assert_eq!(bytes[8..24], path[1].octets());
    assert_eq!(bytes[24..40], path[0].octets());
    let (srh, rest) = Srh::parse(&bytes).unwrap();
    assert!(rest.is_empty());
    assert_eq!(srh.active(), Some(path[0]));
    assert!(srh.segments().rev().eq(path));
}

#[test]
fn the_reduced_form_lacks_the_first_segment_until_it_was_visited() {
    let path = path(3);
    let mut bytes = emitted(&Repr::new(&path, Form::Reduced, IpProtocol::IPV4));
    assert_eq!(bytes[..6], [4, 4, 4, 2, 1, 0]);
    let (srh, _) = Srh::parse(&bytes).unwrap();
    assert!(srh.is_before_first());
    assert_eq!(srh.active(), None);
    assert!(srh.segments().rev().eq(path[1..].iter().copied()));
    bytes[3] = 1;
    assert_eq!(Srh::parse(&bytes).unwrap().0.active(), Some(path[1]));
}

#[test]
fn a_reduced_list_of_one_segment_needs_no_header() {
    let path = path(1);
    let repr = Repr::new(&path, Form::Reduced, IpProtocol::IPV6);
    assert!(repr.is_empty());
    assert!(repr.emit(&mut [0; 64]).is_err());
}

#[test]
fn an_hmac_tlv_has_room_for_thirty_two_bytes_and_says_when_the_destination_is_not_compared() {
    let path = path(2);
    let full = Repr { hmac_key_id: Some(7), ..Repr::new(&path, Form::Full, IpProtocol::IPV6) };
    let bytes = emitted(&full);
    assert_eq!(bytes[1], 9);
    assert_eq!(bytes[40..48], [5, 38, 0, 0, 0, 0, 0, 7]);
    let hmac = Srh::parse(&bytes).unwrap().0.hmac().unwrap();
    assert_eq!((hmac.key_id, hmac.field, hmac.field_offset()), (7, &[0; 32][..], 48));
    assert!(!hmac.skips_destination());
    let bytes = emitted(&Repr { form: Form::Reduced, ..full });
    assert!(Srh::parse(&bytes).unwrap().0.hmac().unwrap().skips_destination());
}

#[test]
fn a_header_that_cannot_be_followed_is_told_with_the_field_that_is_wrong() {
    let path = path(2);
    let good = emitted(&Repr::new(&path, Form::Full, IpProtocol::UDP));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        let bad = Srh::parse(&bytes).err();
        let header = *SrhHeader::overlay(&bytes).unwrap();
        assert_eq!(header.leads_on(), header.check().is_ok());
        bad
    };
    assert_eq!(with(1, 5), Some(SrhBad::Truncated));
    assert_eq!(with(1, 3), Some(SrhBad::LastEntryBeyondLength));
    assert_eq!(with(1, 0), Some(SrhBad::LastEntryBeyondLength));
    assert_eq!(with(2, 0), Some(SrhBad::OtherType));
    assert_eq!(with(3, 2), None); // as if reduced
    assert_eq!(with(3, 3), Some(SrhBad::SegmentsLeftBeyondList));
    assert_eq!(with(4, 2), Some(SrhBad::LastEntryBeyondLength));
    assert_eq!(with(4, 0), Some(SrhBad::TlvBeyondHeader(39))); // the second segment is now TLVs
    assert_eq!(SrhBad::SegmentsLeftBeyondList.offset(), 3);
    assert_eq!(Srh::parse(&good[..39]).err(), Some(SrhBad::Truncated));
    assert_eq!(Srh::parse(&good[..7]).err(), Some(SrhBad::Truncated));
}

#[test]
fn padding_and_unknown_tlvs_are_stepped_over() {
    let path = path(1);
    let mut bytes = emitted(&Repr::new(&path, Form::Full, IpProtocol::UDP));
    bytes.extend([0, 0, kind::PADN, 1, 0, 200, 1, 9]);
    bytes[1] += 1;
    let (srh, _) = Srh::parse(&bytes).unwrap();
    let tlvs: Vec<_> =
        srh.tlvs().map(|tlv| tlv.map(|tlv| (tlv.kind, tlv.offset, tlv.data.to_vec()))).collect();
    assert_eq!(tlvs, [Ok((kind::PADN, 26, std::vec![0])), Ok((200, 29, std::vec![9]))]);
    bytes[30] = 2;
    assert_eq!(Srh::parse(&bytes).err(), Some(SrhBad::TlvBeyondHeader(29)));
}

#[test]
fn an_hmac_of_a_length_that_no_digest_has_is_refused() {
    let path = path(1);
    let hmac = Repr { hmac_key_id: Some(1), ..Repr::new(&path, Form::Full, IpProtocol::UDP) };
    let mut bytes = emitted(&hmac);
    for (length, is_good) in
        [(38, true), (30, true), (14, true), (6, false), (5, false), (37, false)]
    {
        bytes[25] = length;
        // What the shorter TLV leaves of the field is padding.
        assert_eq!(Srh::parse(&bytes).is_ok(), is_good, "{length}");
    }
}

proptest! {
    #[test]
    fn parse_and_emit_are_inverse(
        segments in prop::collection::vec(any::<u128>(), 1..=SEGMENTS_MAX - 3),
        is_reduced: bool, flags: u8, tag: u16, next: u8, hmac_key_id: Option<u32>,
        behind in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let path: Vec<_> = segments.iter().copied().map(Ipv6Addr::from_bits).collect();
        let form = if is_reduced && path.len() > 1 { Form::Reduced } else { Form::Full };
        let repr =
            Repr { next_header: IpProtocol(next), path: &path, form, flags, tag, hmac_key_id };
        let mut bytes = emitted(&repr);
        bytes.extend(&behind);
        let (srh, rest) = Srh::parse(&bytes).unwrap();
        prop_assert_eq!(rest, &behind[..]);
        let listed = if form == Form::Full { &path[..] } else { &path[1..] };
        prop_assert!(srh.segments().rev().eq(listed.iter().copied()));
        prop_assert_eq!(usize::from(srh.header().segments_left()), path.len() - 1);
        prop_assert_eq!((srh.header().tag(), srh.header().flags()), (tag, flags));
        prop_assert_eq!(srh.header().next_header().0, next);
        prop_assert_eq!(srh.hmac().map(|hmac| hmac.key_id), hmac_key_id);
        prop_assert_eq!(srh.is_before_first(), form == Form::Reduced);
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), is_type_4: bool) {
        if let (true, Some(kind)) = (is_type_4, bytes.get_mut(2)) {
            *kind = ROUTING_TYPE;
        }
        if let Ok((srh, rest)) = Srh::parse(&bytes) {
            prop_assert_eq!(srh.bytes().len() + rest.len(), bytes.len());
            prop_assert!(srh.header().leads_on());
            let _ = (srh.active(), srh.hmac(), srh.segments().count(), srh.tlvs().count());
        }
        let _ = (segment(&bytes, 0), segment(&bytes, 255));
    }

    #[test]
    fn no_field_value_panics_and_the_short_test_says_what_the_long_one_says(
        mut bytes in prop::collection::vec(any::<u8>(), 40..400), length in 0u8..50, left in 0u8..4,
        last in 0u8..4,
    ) {
        bytes[1..5].copy_from_slice(&[length, ROUTING_TYPE, left, last]);
        let _ = Srh::parse(&bytes).map(|(srh, _)| (srh.active(), srh.hmac()));
        let header = SrhHeader::overlay(&bytes).unwrap();
        prop_assert_eq!(header.leads_on(), header.check().is_ok());
        let fits = header.len_bytes() <= bytes.len() && header.flags() & FLAG_OAM == 0;
        let next =
            (left > 0 && header.leads_on() && fits).then(|| segment_offset(usize::from(left) - 1));
        prop_assert_eq!(header.next_segment_if_plain(bytes.len()), next);
        let ended = (left == 0 && fits).then_some(header.len_bytes());
        prop_assert_eq!(header.length_if_ended(bytes.len()), ended);
    }
}
