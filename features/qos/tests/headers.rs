//! Classes in headers of frames, good ones and any others.

use proptest::prelude::*;
use quiver_qos::class::Source;
use quiver_qos::headers::{ECN, Headers};
use quiver_wire::checksum::{header_checksum, header_is_good};
use quiver_wire::{Header, Ip4Header};

const IP4: usize = 20;

/// An IPv4 header with a right checksum.
fn ip4(class: u8) -> Vec<u8> {
    let mut bytes = vec![0x45, class, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend([10, 0, 0, 2, 10, 0, 1, 2, 0, 1, 0, 2, 0, 8, 0, 0]);
    let sum = header_checksum(Ip4Header::overlay(&bytes).unwrap());
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Addresses, these tags, and what is behind them.
fn frame(tags: &[(u16, u16)], kind: u16, inside: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for (kind, tag) in tags {
        bytes.extend(kind.to_be_bytes());
        bytes.extend(tag.to_be_bytes());
    }
    bytes.extend(kind.to_be_bytes());
    bytes.extend(inside);
    bytes
}

fn read(bytes: &[u8]) -> [Option<u8>; 3] {
    Source::HEADERS.map(|source| Headers::of(bytes, false).read(source, bytes))
}

#[test]
fn each_header_has_its_class() {
    assert_eq!(read(&frame(&[], 0x0800, &ip4(0xb9))), [None, None, Some(0xb8)], "without ECN");
    let ip6 = [&[0x6b, 0x8f, 0, 0][..], &[0; 36]].concat();
    assert_eq!(read(&frame(&[(0x8100, 0xa064)], 0x86dd, &ip6)), [Some(5), None, Some(0xb8)]);
    let tags = [(0x88a8, 0x6064), (0x8100, 0xe00a)];
    assert_eq!(read(&frame(&tags, 0x0800, &ip4(4))), [Some(3), None, Some(4)], "the outer tag");
    let label = [0, 1, 0x0d, 64];
    assert_eq!(read(&frame(&[], 0x8847, &label)), [None, Some(6), None]);
    assert_eq!(read(&frame(&[], 0x0806, &[0; 28])), [None; 3]);
    let bare = ip4(0x28);
    assert_eq!(Headers::of(&bare, true).read(Source::Ip, &bare), Some(0x28));
}

proptest! {
    // RFC 3168 §5: ECN is no part of the class. RFC 1624 §3: the checksum stays right.
    #[test]
    fn what_is_written_is_read_and_nothing_else_changes(
        class: u8, tag: u16, is_tagged: bool, value: u8,
    ) {
        let tags: &[(u16, u16)] = if is_tagged { &[(0x8100, tag)] } else { &[] };
        let before = frame(tags, 0x0800, &ip4(class));
        let (mut bytes, headers) = (before.clone(), Headers::of(&before, false));
        prop_assert!(headers.write(Source::Ip, &mut bytes, value));
        prop_assert_eq!(headers.read(Source::Ip, &bytes), Some(value & !ECN));
        let at = bytes.len() - IP4 - 8;
        prop_assert_eq!(bytes[at + 1] & ECN, class & ECN);
        prop_assert!(header_is_good(Ip4Header::overlay(&bytes[at..]).unwrap()));
        prop_assert_eq!(headers.write(Source::Vlan, &mut bytes, value & 7), is_tagged);
        if is_tagged {
            prop_assert_eq!(headers.read(Source::Vlan, &bytes), Some(value & 7));
            prop_assert_eq!(u16::from_be_bytes([bytes[14], bytes[15]]) & 0x1fff, tag & 0x1fff);
        }
        prop_assert!(!headers.write(Source::Mpls, &mut bytes, 1));
        // But for the three fields all is as it was.
        let mut expected = before;
        expected[at + 1] = bytes[at + 1];
        expected[at + 10..at + 12].copy_from_slice(&bytes[at + 10..at + 12]);
        if is_tagged {
            expected[14] = bytes[14];
        }
        prop_assert_eq!(bytes, expected);
    }

    #[test]
    fn labels_keep_all_but_their_class(entry: [u8; 4], value in 0..8u8) {
        let before = frame(&[], 0x8847, &entry);
        let (mut bytes, headers) = (before.clone(), Headers::of(&before, false));
        prop_assert!(headers.write(Source::Mpls, &mut bytes, value));
        prop_assert_eq!(headers.read(Source::Mpls, &bytes), Some(value));
        bytes[16] = before[16];
        prop_assert_eq!(bytes, before);
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..64), is_bare: bool,
                      kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x8847]),
                      value: u8) {
        if bytes.len() >= 14 {
            bytes[12..14].copy_from_slice(&kind.to_be_bytes());
        }
        let length = bytes.len();
        for source in Source::ALL {
            let headers = Headers::of(&bytes, is_bare);
            let _ = headers.read(source, &bytes);
            headers.write(source, &mut bytes, value);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}
