//! Masks and matches, in words and in digits.

use proptest::prelude::*;
use quiver_classify::filter::Rule;
use quiver_classify::key::{Form, bytes_of};
use quiver_classify::mask::Mask;

/// Fields of IPv4, one with a length.
const IP4_FIELDS: [&str; 5] = ["src", "dst/9", "proto", "tos", "ttl"];

#[test]
fn words_choose_the_bits_of_their_fields() {
    let mask = Mask::read("l3 ip4 src/20 proto l4 dst_port").unwrap();
    let bytes = bytes_of(&mask.key);
    assert_eq!(bytes[12..14], [0xff; 2], "IPv4 packets alone");
    assert_eq!((bytes[23], bytes[26..30].to_vec()), (0xff, vec![0xff, 0xff, 0xf0, 0]));
    assert_eq!((bytes[34..36].to_vec(), bytes[36..38].to_vec()), (vec![0; 2], vec![0xff; 2]));
    let key = mask.read_match("l3 ip4 src 10.1.255.1 proto 6 l4 dst_port 443").unwrap();
    let bytes = bytes_of(&key);
    assert_eq!(bytes[12..14], [8, 0]);
    assert_eq!(
        (bytes[23], &bytes[26..30], &bytes[36..38]),
        (6, &[10, 1, 0xf0, 0][..], &[1, 0xbb][..])
    );
    assert_eq!(mask.write_match(&key), "l3 ip4 src 10.1.240.0 proto 6 l4 dst_port 443");
    let mask = Mask::read("l3 ip6 l4 src_port").unwrap();
    assert_eq!(bytes_of(&mask.key)[54..56], [0xff; 2]);
    let mask = Mask::read("l2 dst proto").unwrap();
    let key = mask.read_match("l2 proto 0x0806 dst ff:ff:ff:ff:ff:ff").unwrap();
    assert_eq!(bytes_of(&key)[..14], [255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 8, 6]);
}

#[test]
fn digits_choose_bits_behind_vectors_of_zeros() {
    let mask = Mask::read(&format!("hex {}00ff", "00".repeat(32))).unwrap();
    assert_eq!(mask.form, Form::Raw { skip_bytes: 32 });
    assert_eq!(bytes_of(&mask.key)[..3], [0, 0xff, 0]);
    let key = mask.read_match(&format!("hex {}aabbcc", "11".repeat(32))).unwrap();
    assert_eq!(bytes_of(&key)[..3], [0, 0xbb, 0], "what is not under the mask is nothing");
    assert_eq!(mask.to_string(), format!("hex {}00ff", "00".repeat(32)));
}

#[test]
fn mistakes_name_what_is_wrong() {
    for (text, why) in [
        ("", "chooses no bits"),
        ("hex", "followed by digits"),
        ("hex 0", "even number"),
        ("hex zz", "even number"),
        ("hex 0000", "chooses no bits"),
        ("l3", "followed by ip4 or ip6"),
        ("l3 ip5 src", "followed by ip4 or ip6"),
        ("l3 ip4 sources", "sources is no field"),
        ("src", "src is no field"),
        ("l3 ip4 src src", "said twice"),
        ("l3 ip4 src/33", "a length from 1 to 32"),
        ("l3 ip4 proto/3", "only addresses"),
        ("l3 ip4 src l3 ip6 dst", "not both"),
        ("l4 src_port", "behind l3"),
    ] {
        let mistake = Mask::read(text).unwrap_err();
        assert!(mistake.to_string().contains(why), "{text}: {mistake}");
    }
    let long = format!("hex ff{}ff", "00".repeat(79));
    assert!(Mask::read(&long).unwrap_err().what.contains("80 bytes"));
    let far = format!("hex {}ff", "00".repeat(272));
    assert!(Mask::read(&far).unwrap_err().to_string().contains("16 vectors"));
    let mask = Mask::read("l3 ip4 src l4 dst_port").unwrap();
    for (text, why) in [
        ("l3 ip4 src 10.0.0.1", "l4 dst_port is missing"),
        ("l3 ip4 src 10.0.0.256 l4 dst_port 1", "an IPv4 address"),
        ("l3 ip4 src 10.0.0.1 l4 dst_port 65536", "a number from 0 to 65535"),
        ("l3 ip4 src 10.0.0.1 dst 10.0.0.1 l4 dst_port 1", "the mask has no dst"),
        ("l3 ip4 src", "followed by"),
        ("hex 1 2", "digits alone"),
    ] {
        let mistake = mask.read_match(text).unwrap_err();
        assert!(mistake.to_string().contains(why), "{text}: {mistake}");
    }
    assert!(Rule::read("l3 ip4 src").unwrap_err().what.contains("followed by match"));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        l2 in 0..8u8, l3 in 0..3u8, fields in 0..32u8, l4 in 0..4u8,
        value in prop::collection::vec(any::<u8>(), 80),
    ) {
        let names = |all: &[&str], bits: u8| -> String {
            let chosen = all.iter().enumerate().filter(|(place, _)| bits >> place & 1 != 0);
            chosen.map(|(_, name)| format!(" {name}")).collect()
        };
        let mut text = String::new();
        if l2 != 0 {
            text += &format!("l2{} ", names(&["src", "dst", "proto"], l2));
        }
        match l3 {
            1 => text += &format!("l3 ip4{} ", names(&IP4_FIELDS, fields)),
            2 => text += &format!("l3 ip6{} ", names(&["src/77", "dst", "proto"], fields)),
            _ => {}
        }
        if l3 != 0 && l4 != 0 {
            text += &format!("l4{}", names(&["src_port", "dst_port"], l4));
        }
        prop_assume!(!text.is_empty());
        let mask = Mask::read(&text).unwrap();
        let again = Mask::read(&mask.to_string()).unwrap();
        prop_assert!(again == mask && again.to_string() == mask.to_string());
        let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut key = bytes_of(&mask.read_match(&format!("hex {digits}")).unwrap());
        match l3 {
            1 => key[12..14].copy_from_slice(&[8, 0]),
            2 => key[12..14].copy_from_slice(&[0x86, 0xdd]),
            _ => {}
        }
        // A type that contradicts the family cannot be said in words.
        prop_assume!(l3 == 0 || l2 & 4 == 0);
        let words = mask.write_match(&quiver_classify::key::key_of(&key));
        prop_assert_eq!(bytes_of(&mask.read_match(&words).unwrap()), key);
    }

    #[test]
    fn digits_are_written_as_they_were_read(
        skip in 0..3usize, value in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        prop_assume!(value.iter().any(|byte| *byte != 0));
        let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let mask = Mask::read(&format!("hex {}{digits}", "00".repeat(16 * skip))).unwrap();
        let again = Mask::read(&mask.to_string()).unwrap();
        prop_assert!(again == mask);
        let written = mask.write_match(&mask.key);
        prop_assert_eq!(mask.read_match(&written).unwrap(), mask.key);
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9/:. _]{0,60}", hex in "hex [0-9a-f]{0,400}") {
        let _ = (Mask::read(&text), Mask::read(&hex), Rule::read(&text));
        if let Ok(mask) = Mask::read("l2 src proto l3 ip6 src l4 dst_port") {
            let _ = (mask.read_match(&text), mask.read_match(&hex));
        }
    }
}
