//! Keys of frames, good ones and any others.

use proptest::prelude::*;
use quiver_classify::key::{Form, KEY_BYTES, bytes_of, key_of, load, masked};

/// Where the ports stand in a frame without tags and options.
const PORTS: usize = 34;

/// An IPv4 packet with so many words of options, a fragment offset, and ports.
fn ip4(options: u8, offset: u16, ports: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0x45 + options, 7, 0, 60, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes[6..8].copy_from_slice(&offset.to_be_bytes());
    bytes.extend([10, 0, 0, 2, 10, 0, 1, 2]);
    bytes.extend(vec![1; usize::from(options) * 4]);
    bytes.extend(ports);
    bytes.extend([9; 40]);
    bytes
}

fn frame(tags: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in tags {
        bytes.extend([0x81, 0]);
        bytes.extend(tag.to_be_bytes());
    }
    [&bytes[..], &[8, 0], packet].concat()
}

fn fields(bytes: &[u8], is_bare: bool) -> [u8; KEY_BYTES] {
    bytes_of(&load(Form::Fields, bytes, is_bare))
}

proptest! {
    #[test]
    fn fields_stand_in_the_same_place_whatever_tags_and_options_are_in_front(
        tags in prop::collection::vec(any::<u16>(), 0..=4), options in 0..=10u8, ports: [u8; 4],
    ) {
        let plain = frame(&[], &ip4(0, 0, ports));
        let same = |bytes: &[u8; KEY_BYTES]| (bytes[..14].to_vec(), bytes[15..34].to_vec());
        let found = fields(&frame(&tags, &ip4(options, 0, ports)), false);
        prop_assert_eq!(same(&found), same(&fields(&plain, false)));
        prop_assert_eq!(&found[PORTS..PORTS + 4], &ports);
        // Without a link layer all but the addresses.
        let bare = fields(&ip4(options, 0, ports), true);
        prop_assert_eq!(&bare[12..14], &[8, 0]);
        prop_assert_eq!(&bare[PORTS..PORTS + 4], &ports);
        // RFC 791 §3.2: only the first fragment has a transport header.
        let later = fields(&frame(&tags, &ip4(options, 0x2001, ports)), false);
        prop_assert_eq!(&later[PORTS..PORTS + 4], &[0; 4]);
    }

    #[test]
    fn raw_keys_are_bytes_as_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..300), skip_bytes in 0..256u16,
    ) {
        let found = bytes_of(&load(Form::Raw { skip_bytes }, &bytes, false));
        for (place, byte) in found.into_iter().enumerate() {
            let expected = bytes.get(usize::from(skip_bytes) + place).copied().unwrap_or(0);
            prop_assert_eq!(byte, expected);
        }
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), is_bare: bool,
                      kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x88a8])) {
        if bytes.len() >= 14 {
            bytes[12..14].copy_from_slice(&kind.to_be_bytes());
        }
        for length in 0..=bytes.len() {
            let _ = load(Form::Fields, &bytes[..length], is_bare);
        }
    }

    #[test]
    fn keys_and_bytes_are_inverse_and_masks_are_laid_on_each_byte(
        a in prop::collection::vec(any::<u8>(), KEY_BYTES),
        b in prop::collection::vec(any::<u8>(), KEY_BYTES),
    ) {
        let (a, b): ([u8; KEY_BYTES], [u8; KEY_BYTES]) =
            (a.try_into().unwrap(), b.try_into().unwrap());
        prop_assert_eq!(bytes_of(&key_of(&a)), a);
        let both = bytes_of(&masked(&key_of(&a), &key_of(&b)));
        prop_assert!(both.iter().zip(a.iter().zip(&b)).all(|(both, (a, b))| *both == a & b));
    }
}
