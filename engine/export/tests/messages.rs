//! Messages of IPFIX, read again by a decoder that shares no code with them.

use proptest::prelude::*;
use quiver_export::ipfix::elements::{
    NAT_EVENT, OBSERVATION_TIME_MS, PROTOCOL, RECORDS_NOT_SENT, SOURCE_IP4, SOURCE_PORT,
};
use quiver_export::ipfix::message::{Format, Full, HEADER_BYTES, Message, SET_HEADER_BYTES};
use quiver_export::ipfix::template::Template;
use quiver_export::moment::Moment;

use crate::collector::Decoder;

const LONG: Template =
    Template::new(300, &[OBSERVATION_TIME_MS, NAT_EVENT, SOURCE_IP4, SOURCE_PORT]);
const SHORT: Template = Template::new(301, &[PROTOCOL]);
const OPTIONS: Template = Template::options(302, &[SOURCE_IP4, RECORDS_NOT_SENT]);

/// Some seconds of Unix time, two seconds after the start.
fn at(unix_s: u64) -> Moment {
    Moment { now_ns: 2_000_000_000, unix_ns: unix_s * 1_000_000_000 }
}

/// RFC 3954 §5.1 and §5.2: the count is of records of both kinds, sets end at words.
#[test]
fn a_message_is_laid_out_as_rfc_3954_has_it() {
    let mut message = Message::new(Format::NetFlow9, 1024);
    message.template(&SHORT).expect("place");
    message.template(&OPTIONS).expect("place");
    message.record(&SHORT, |fields| fields.u8(17)).expect("place");
    let expected = [
        [0, 9, 0, 3].as_slice(), // version, records
        &2_000_u32.to_be_bytes(),
        &0x6500_0001_u32.to_be_bytes(),
        &[0, 0, 0, 9, 0, 0, 0, 7], // sequence, source
        &[0, 0, 0, 12],
        &[1, 45, 0, 1, 0, 4, 0, 1], // template 301
        &[0, 1, 0, 20],
        &[1, 46, 0, 4, 0, 4, 0, 1, 0, 4, 0, 166, 0, 8, 0, 0], // options template 302, padding
        &[1, 45, 0, 8],
        &[17, 0, 0, 0],
    ];
    assert_eq!(message.finish(at(0x6500_0001), 9, 7), expected.concat());
}

#[test]
fn no_message_is_longer_than_asked_for() {
    for format in [Format::Ipfix, Format::NetFlow9] {
        for most in 64..128 {
            let mut message = Message::new(format, most);
            for number in 0..200 {
                let template = if number % 3 == 0 { &LONG } else { &SHORT };
                let _ = message.record(template, |fields| {
                    (0..template.record_bytes()).for_each(|_| fields.u8(1));
                });
            }
            assert!(message.records() > 0 && message.finish(at(1), 0, 7).len() <= most);
        }
    }
}

fn templates() -> Vec<u8> {
    let mut message = Message::new(Format::Ipfix, 1024);
    for template in [LONG, SHORT, OPTIONS] {
        message.template(&template).expect("place");
    }
    message.finish(at(0), 0, 7).to_vec()
}

#[test]
fn a_message_is_laid_out_as_rfc_7011_section_3_has_it() {
    let mut message = Message::new(Format::Ipfix, 1024);
    message.record(&SHORT, |fields| fields.u8(17)).expect("place");
    message.record(&SHORT, |fields| fields.u8(6)).expect("place");
    assert_eq!(message.records(), 2);
    #[rustfmt::skip]
    let expected = [
        0, 10, 0, 22, 0x65, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7, // version, length, time, …
        1, 45, 0, 6, 17, 6, // set 301 with both records
    ];
    assert_eq!(message.finish(at(0x6500_0001), 9, 7), expected);
    message.clear();
    assert!(message.is_empty());
    message.template(&OPTIONS).expect("place");
    #[rustfmt::skip]
    let expected = [
        0, 10, 0, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
        // RFC 7011 §3.4.2.2: set 3, number, fields, scope fields, elements with lengths.
        0, 3, 0, 18, 1, 46, 0, 2, 0, 1, 0, 8, 0, 4, 0, 166, 0, 8,
    ];
    assert_eq!(message.finish(at(0), 0, 7), expected);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_the_message_as_it_was() {
    let most = HEADER_BYTES + SET_HEADER_BYTES + 2 * LONG.record_bytes();
    let mut message = Message::new(Format::Ipfix, most);
    let mut add = || {
        message.record(&LONG, |fields| {
            fields.u64(1);
            fields.u8(2);
            fields.u32(3);
            fields.u16(4);
        })
    };
    assert_eq!([add(), add(), add()], [Ok(()), Ok(()), Err(Full)]);
    assert_eq!(message.record(&SHORT, |fields| fields.u8(1)), Err(Full), "no place for a set");
    let mut decoder = Decoder::default();
    decoder.message(&templates());
    assert_eq!(decoder.message(message.finish(at(0), 0, 7)).len(), 2);
}

proptest! {
    /// Records of any templates in any order come out as they went in, in their order.
    #[test]
    fn records_come_out_as_they_went_in(
        values in prop::collection::vec((0..3u8, any::<u64>()), 0..200),
        most in 64..1500usize,
    ) {
        let mut decoder = Decoder::default();
        decoder.message(&templates());
        let (mut message, mut sequence) = (Message::new(Format::Ipfix, most), 0u32);
        let mut read = Vec::new();
        let put = |message: &mut Message, kind: u8, value: u64| match kind {
            0 => message.record(&LONG, |fields| {
                fields.u64(value);
                fields.u8(value as u8);
                fields.u32(value as u32);
                fields.u16(value as u16);
            }),
            1 => message.record(&SHORT, |fields| fields.u8(value as u8)),
            _ => message.record(&OPTIONS, |fields| {
                fields.u32(value as u32);
                fields.u64(value);
            }),
        };
        for (kind, value) in &values {
            if put(&mut message, *kind, *value).is_err() {
                let records = message.records();
                let bytes = message.finish(at(1), sequence, 7);
                prop_assert!(bytes.len() <= most);
                read.extend(decoder.message(bytes));
                sequence += records;
                message.clear();
                prop_assert_eq!(put(&mut message, *kind, *value), Ok(()));
            }
        }
        if !message.is_empty() {
            read.extend(decoder.message(message.finish(at(1), sequence, 7)));
        }
        prop_assert_eq!(read.len(), values.len());
        for (record, (kind, value)) in read.iter().zip(&values) {
            prop_assert_eq!(record.template, 300 + u16::from(*kind));
            let (element, expected) = match kind {
                0 => (323, *value),
                1 => (4, *value & 0xff),
                _ => (166, *value),
            };
            prop_assert_eq!(record.fields[&element], expected);
        }
    }
}
