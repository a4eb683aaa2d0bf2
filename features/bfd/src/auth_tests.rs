use quiver_wire::bfd::{Control, State};

use super::*;

const KINDS: [AuthType; 4] =
    [AuthType::KeyedMd5, AuthType::MeticulousMd5, AuthType::KeyedSha1, AuthType::MeticulousSha1];

fn using(kind: AuthType, secret: &[u8]) -> Using {
    Using { key: Arc::new(Key::new(kind, secret).unwrap()), key_id: 5 }
}

fn window(now_ns: u64) -> Window {
    Window { detect_mult: 3, now_ns, detection_ns: 150 }
}

/// A packet as the session's other end signs it.
fn signed(sender: &mut Authentication) -> Vec<u8> {
    let control = Control {
        state: State::Up,
        detect_mult: 3,
        my_discriminator: 1,
        your_discriminator: 2,
        ..Control::default()
    };
    let mut bytes = vec![0; CONTROL_LEN_MAX];
    let section = sender.section();
    let length = control.emit(section.as_ref(), &mut bytes).unwrap();
    bytes.truncate(length);
    if let Some(using) = sender.current() {
        using.key.sign(&mut bytes);
    }
    bytes
}

fn check(receiver: &mut Authentication, bytes: &[u8], now_ns: u64) -> Result<(), BfdDrop> {
    receiver.check(&Packet::parse(bytes).unwrap(), window(now_ns))
}

#[test]
fn packets_of_the_same_key_are_taken_and_changed_ones_are_not() {
    for kind in KINDS {
        let mut sender = Authentication::new(Some(using(kind, b"secret")), 1000);
        let mut receiver = Authentication::new(Some(using(kind, b"secret")), 77);
        let bytes = signed(&mut sender);
        for place in 32..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x40;
            assert_eq!(check(&mut receiver, &changed, 0), Err(BfdDrop::AuthDigest), "{place}");
        }
        let mut changed = bytes.clone();
        changed[1] = changed[1] & 0x3f | 0x40; // another state
        assert_eq!(check(&mut receiver, &changed, 0), Err(BfdDrop::AuthDigest));
        assert_eq!(check(&mut receiver, &bytes, 0), Ok(()));
        let mut other = Authentication::new(Some(using(kind, b"Secret")), 0);
        assert_eq!(check(&mut other, &bytes, 0), Err(BfdDrop::AuthDigest));
    }
}

#[test]
fn a_packet_that_is_repeated_is_refused_where_each_has_another_number() {
    for kind in KINDS {
        let mut sender = Authentication::new(Some(using(kind, b"k")), u32::MAX - 3);
        let mut receiver = Authentication::new(Some(using(kind, b"k")), 0);
        let packets: Vec<_> = (0..14).map(|_| signed(&mut sender)).collect();
        assert_eq!(check(&mut receiver, &packets[2], 0), Ok(()));
        let again = check(&mut receiver, &packets[2], 0);
        let refused = Err(BfdDrop::AuthSequence);
        assert_eq!(again, if kind.is_meticulous() { refused } else { Ok(()) });
        assert_eq!(check(&mut receiver, &packets[1], 0), refused, "older");
        assert_eq!(check(&mut receiver, &packets[12], 0), refused, "10 ahead, 9 may be");
        assert_eq!(check(&mut receiver, &packets[11], 0), Ok(()), "over the end of the numbers");
    }
}

#[test]
fn the_number_is_forgotten_after_twice_the_detection_time() {
    let key = || Some(using(AuthType::MeticulousSha1, b"k"));
    let mut receiver = Authentication::new(key(), 0);
    assert_eq!(check(&mut receiver, &signed(&mut Authentication::new(key(), 9000)), 0), Ok(()));
    let restarted = signed(&mut Authentication::new(key(), 5));
    assert_eq!(check(&mut receiver, &restarted, 299), Err(BfdDrop::AuthSequence));
    assert_eq!(check(&mut receiver, &restarted, 300), Ok(()));
}

#[test]
fn a_packet_that_fails_moves_no_window() {
    let key = || Some(using(AuthType::KeyedSha1, b"k"));
    let mut sender = Authentication::new(key(), 10);
    let mut receiver = Authentication::new(key(), 0);
    assert_eq!(check(&mut receiver, &signed(&mut sender), 0), Ok(()));
    let mut forged = signed(&mut Authentication::new(Some(using(AuthType::KeyedSha1, b"x")), 18));
    forged[26] = 5;
    assert_eq!(check(&mut receiver, &forged, 0), Err(BfdDrop::AuthDigest));
    assert_eq!(check(&mut receiver, &signed(&mut sender), 0), Ok(()), "number 12");
}

#[test]
fn what_does_not_fit_the_session_is_refused_for_its_reason() {
    let mut none = Authentication::new(None, 0);
    let mut sha1 = Authentication::new(Some(using(AuthType::KeyedSha1, b"k")), 0);
    let mut md5 = Authentication::new(Some(using(AuthType::KeyedMd5, b"k")), 0);
    let (plain, with_sha1) = (signed(&mut none), signed(&mut sha1));
    assert_eq!(check(&mut none, &plain, 0), Ok(()));
    assert_eq!(check(&mut none, &with_sha1, 0), Err(BfdDrop::AuthUnexpected));
    assert_eq!(check(&mut sha1, &plain, 0), Err(BfdDrop::AuthMissing));
    assert_eq!(check(&mut md5, &with_sha1, 0), Err(BfdDrop::AuthType));
    let other_id = Using { key_id: 6, ..using(AuthType::KeyedSha1, b"k") };
    let mut other_id = Authentication::new(Some(other_id), 0);
    assert_eq!(check(&mut other_id, &with_sha1, 0), Err(BfdDrop::AuthKeyId));
}

#[test]
fn a_delayed_key_is_used_once_the_peer_does() {
    let (old, new) = (using(AuthType::KeyedSha1, b"old"), using(AuthType::KeyedSha1, b"new"));
    let mut session = Authentication::new(Some(old.clone()), 0);
    let mut peer = Authentication::new(Some(old.clone()), 50);
    session.change(Some(new.clone()), true);
    assert_eq!(check(&mut session, &signed(&mut peer), 0), Ok(()));
    assert_eq!(session.current().unwrap().key.secret(), b"old");
    peer.change(Some(new), false);
    assert_eq!(check(&mut session, &signed(&mut peer), 0), Ok(()));
    assert_eq!(session.current().unwrap().key.secret(), b"new");
    assert_eq!(
        check(&mut session, &signed(&mut Authentication::new(Some(old), 60)), 0),
        Err(BfdDrop::AuthDigest)
    );
    session.change(None, true);
    let plain = signed(&mut Authentication::new(None, 0));
    assert_eq!(check(&mut session, &plain, 0), Ok(()));
    assert!(session.current().is_none());
}

#[test]
fn a_secret_is_as_long_as_the_digest_at_most_and_is_not_printed() {
    assert!(Key::new(AuthType::KeyedSha1, &[7; 20]).is_some());
    assert!(Key::new(AuthType::KeyedSha1, &[7; 21]).is_none());
    assert!(Key::new(AuthType::KeyedMd5, &[7; 17]).is_none());
    assert!(Key::new(AuthType::KeyedMd5, &[]).is_none());
    let printed = format!("{:?}", Key::new(AuthType::KeyedSha1, b"hidden"));
    assert!(!printed.contains("hidden") && printed.contains("keyed-sha1"));
}
