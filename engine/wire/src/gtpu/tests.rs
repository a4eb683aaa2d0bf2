use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

fn g_pdu(session: Option<PduSession>) -> Repr {
    Repr {
        message_type: message::G_PDU,
        teid: 0x0102_0304,
        sequence: None,
        session,
        payload_len: 3,
    }
}

fn bytes_of(repr: &Repr) -> Vec<u8> {
    let mut bytes = vec![0xaa; repr.len() + repr.payload_len];
    assert_eq!(repr.emit(&mut bytes), Ok(repr.len()));
    bytes
}

#[test]
fn a_header_reads_like_the_figure() {
    assert_eq!(bytes_of(&g_pdu(None)), [0x30, 255, 0, 3, 1, 2, 3, 4, 0xaa, 0xaa, 0xaa]);
    let session = PduSession { direction: Direction::Downlink, qfi: 9, reflective: true };
    let bytes = bytes_of(&g_pdu(Some(session)));
    assert_eq!(bytes[..16], [0x34, 255, 0, 11, 1, 2, 3, 4, 0, 0, 0, 0x85, 1, 0, 0x49, 0]);
    let session = PduSession { direction: Direction::Uplink, qfi: 63, reflective: false };
    assert_eq!(bytes_of(&g_pdu(Some(session)))[12..16], [1, 0x10, 63, 0]);
}

#[test]
fn other_versions_and_gtp_prime_are_refused() {
    for flags in [0x10, 0x50, 0x70, 0x20, 0x00] {
        let mut bytes = bytes_of(&g_pdu(None));
        bytes[0] = flags;
        assert_eq!(Repr::parse(&bytes, bytes.len()), Err(GtpuBad::Version), "{flags:#x}");
    }
}

#[test]
fn a_message_longer_than_its_datagram_is_refused() {
    let bytes = bytes_of(&g_pdu(None));
    assert_eq!(Repr::parse(&bytes, 10), Err(GtpuBad::Truncated));
    assert_eq!(Repr::parse(&bytes[..7], 11), Err(GtpuBad::Truncated));
    // The flags announce four bytes that the length does not count.
    assert_eq!(
        Repr::parse(&[0x32, 255, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0], 12),
        Err(GtpuBad::Truncated)
    );
}

fn with_extensions(first: u8, extensions: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x34, 255, 0, (4 + extensions.len()) as u8, 0, 0, 0, 1, 0, 0, 0, first];
    bytes.extend(extensions);
    bytes
}

#[test]
fn extension_headers_are_walked_to_their_end() {
    // A UDP port, which need not be understood, then the container, longer than it must be.
    let bytes = with_extensions(0x40, &[1, 0x12, 0x34, 0x85, 2, 0x10, 0x45, 0, 0, 0, 0, 0]);
    let (repr, len) = Repr::parse(&bytes, bytes.len()).unwrap();
    let session = PduSession { direction: Direction::Uplink, qfi: 5, reflective: false };
    assert_eq!((repr.session, len, repr.payload_len), (Some(session), 24, 0));
}

#[test]
fn extension_headers_that_do_not_end_are_refused() {
    for (first, extensions) in [
        (0x85, &[][..]),
        (0x85, &[0, 0, 1, 0]),
        (0x85, &[2, 0, 1, 0]),
        (0x85, &[1, 0, 1]),
        (0x40, &[1, 0, 0, 0x40, 0, 0, 0, 0x40]),
        (0x40, &[1, 0, 0, 0x40].repeat(9)),
        (0x40, &[1, 0, 0, 0x40]),
    ] {
        let bytes = with_extensions(first, extensions);
        assert_eq!(Repr::parse(&bytes, bytes.len()), Err(GtpuBad::Extensions), "{extensions:x?}");
    }
}

#[test]
fn what_must_be_understood_and_is_not_is_refused() {
    for (first, extensions) in [(0xc0, [1, 0, 0, 0]), (0x84, [1, 0, 0, 0]), (0x85, [1, 0x20, 1, 0])]
    {
        let bytes = with_extensions(first, &extensions);
        assert_eq!(Repr::parse(&bytes, bytes.len()), Err(GtpuBad::NotUnderstood(first)));
    }
}

proptest! {
    #[test]
    fn parse_and_emit_are_inverse(
        message_type: u8, teid: u32, sequence: Option<u16>, payload_len in 0usize..40,
        session in prop::option::of((any::<bool>(), 0u8..64, any::<bool>())),
    ) {
        let session = session.map(|(up, qfi, reflective)| PduSession {
            direction: if up { Direction::Uplink } else { Direction::Downlink },
            qfi,
            reflective: reflective && !up,
        });
        let repr = Repr { message_type, teid, sequence, session, payload_len };
        let bytes = bytes_of(&repr);
        prop_assert_eq!(Repr::parse(&bytes, bytes.len()), Ok((repr, repr.len())));
        // More bytes behind the message are not its own.
        prop_assert_eq!(Repr::parse(&bytes, bytes.len() + 9), Ok((repr, repr.len())));
    }

    #[test]
    fn no_bytes_panic_and_a_header_lies_in_its_message(bytes: Vec<u8>, available in 0usize..300) {
        if let Ok((repr, len)) = Repr::parse(&bytes, available) {
            prop_assert!(len <= bytes.len() && len + repr.payload_len <= available);
        }
    }
}
