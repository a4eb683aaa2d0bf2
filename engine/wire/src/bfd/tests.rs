use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn control() -> impl Strategy<Value = Control> {
    let numbers = any::<(u32, u32, u32, u32, u32)>();
    (0u8..32, 0u8..4, any::<[bool; 4]>(), 1u8.., numbers).prop_map(
        |(diagnostic, state, [poll, is_final, independent, demand], detect_mult, numbers)| {
            Control {
                diagnostic: Diagnostic(diagnostic),
                state: State::from_bits(state),
                poll,
                is_final,
                control_plane_independent: independent,
                demand,
                detect_mult,
                my_discriminator: numbers.0.max(1),
                your_discriminator: numbers.1.max(1),
                desired_min_tx_us: numbers.2,
                required_min_rx_us: numbers.3,
                required_min_echo_rx_us: numbers.4,
            }
        },
    )
}

fn auth() -> impl Strategy<Value = Option<Auth>> {
    prop::option::of((2u8..6, any::<(u8, u32)>()).prop_map(|(kind, (key_id, sequence))| Auth {
        kind: AuthType::from_number(kind),
        key_id,
        sequence,
    }))
}

fn written(control: &Control, auth: Option<&Auth>) -> Vec<u8> {
    let mut bytes = [0xff; CONTROL_LEN_MAX];
    let length = control.emit(auth, &mut bytes).unwrap();
    bytes[..length].to_vec()
}

fn up() -> Control {
    Control {
        state: State::Up,
        detect_mult: 3,
        my_discriminator: 0x0102_0304,
        your_discriminator: 0x1112_1314,
        desired_min_tx_us: 300_000,
        required_min_rx_us: 200_000,
        required_min_echo_rx_us: 7,
        ..Control::default()
    }
}

#[test]
fn the_fields_stand_where_the_figure_has_them() {
    let control = Control { diagnostic: Diagnostic(3), poll: true, demand: true, ..up() };
    let auth = Auth { kind: Some(AuthType::MeticulousSha1), key_id: 9, sequence: 0x2122_2324 };
    let bytes = written(&control, Some(&auth));
    assert_eq!(bytes[..8], [0x23, 0xe6, 3, 52, 1, 2, 3, 4]);
    assert_eq!(bytes[8..16], [0x11, 0x12, 0x13, 0x14, 0, 4, 0x93, 0xe0]);
    assert_eq!(bytes[16..24], [0, 3, 0x0d, 0x40, 0, 0, 0, 7]);
    assert_eq!(bytes[24..32], [5, 28, 9, 0, 0x21, 0x22, 0x23, 0x24]);
    assert_eq!(bytes[32..], [0; 20]);
}

#[test]
fn what_the_rfc_has_discarded_is_refused_for_its_reason() {
    let auth = Auth { kind: Some(AuthType::KeyedSha1), key_id: 1, sequence: 1 };
    let plain = written(&up(), None);
    let signed = written(&up(), Some(&auth));
    use BfdMalformation::*;
    for (base, at, value, reason) in [
        (&plain, 0, 0x00, Version),
        (&plain, 0, 0x40, Version),
        (&plain, 3, 23, TooShort),
        (&signed, 3, 25, TooShort),
        (&plain, 3, 25, TooLong),
        (&plain, 2, 0, DetectMultZero),
        (&plain, 1, 0xc1, Multipoint),
        (&signed, 3, 51, AuthLength),
        (&signed, 25, 27, AuthLength),
        (&signed, 25, 29, AuthLength),
        (&signed, 25, 1, AuthLength),
        (&signed, 24, 2, AuthLength),
    ] {
        let mut bytes = base.clone();
        bytes[at] = value;
        assert_eq!(Packet::parse(&bytes), Err(reason), "byte {at} is {value}");
    }
    assert_eq!(Packet::parse(&plain[..23]), Err(Truncated));
    let nobody = Control { my_discriminator: 0, ..up() };
    assert_eq!(Packet::parse(&written(&nobody, None)), Err(MyDiscriminatorZero));
    for (state, ok) in
        [(State::AdminDown, true), (State::Down, true), (State::Init, false), (State::Up, false)]
    {
        let first = Control { your_discriminator: 0, state, ..up() };
        let bytes = written(&first, None);
        assert_eq!(Packet::parse(&bytes).is_ok(), ok, "{state:?}");
    }
}

#[test]
fn a_type_of_authentication_that_is_not_known_is_told_apart_from_none() {
    let mut bytes = written(&up(), None);
    bytes[1] |= AUTHENTICATION;
    bytes[3] = 29;
    bytes.extend([1, 5, 7, b'a', b'b']);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.auth, Some(Auth { kind: None, key_id: 0, sequence: 0 }));
    assert!(packet.digest().is_empty());
}

#[test]
fn what_follows_the_length_is_not_of_the_packet() {
    let mut bytes = written(&up(), None);
    bytes.extend([0xee; 9]);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.control, packet.bytes.len()), (up(), 24));
}

proptest! {
    #[test]
    fn parse_and_emit_are_inverse(control in control(), auth in auth()) {
        let bytes = written(&control, auth.as_ref());
        let packet = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(packet.control, control);
        prop_assert_eq!(packet.auth, auth);
        let digest = auth.and_then(|auth| auth.kind).map_or(0, AuthType::digest_len);
        prop_assert_eq!(packet.digest().len(), digest);
        let mut short = [0; CONTROL_LEN_MAX];
        let is_refused = control.emit(auth.as_ref(), &mut short[..bytes.len() - 1]).is_err();
        prop_assert!(is_refused);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            let _ = packet.digest();
        }
    }

    #[test]
    fn cut_anywhere_it_is_refused(control in control(), auth in auth(), cut in 0usize..52) {
        let bytes = written(&control, auth.as_ref());
        let cut = cut.min(bytes.len() - 1);
        let is_refused = Packet::parse(&bytes[..cut]).is_err();
        prop_assert!(is_refused);
    }
}
