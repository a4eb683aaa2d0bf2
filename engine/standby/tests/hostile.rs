//! Strangers: datagrams that are cut, changed, replayed, reflected, or signed with another key.

use proptest::prelude::*;
use quiver_standby::wire::{self, Body, Header, Key};

use crate::network::{End, Fate, GREETING, SECRET, TURN_NS, carry, met, turn_until};

proptest! {
    #[test]
    fn any_bytes_are_refused_and_counted(datagrams in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..200), 1..50,
    )) {
        let (mut a, _, now_ns) = met();
        let before = a.link.counts();
        datagrams.iter().for_each(|datagram| a.link.receive(now_ns, datagram));
        let after = a.link.counts();
        let refused = after.malformed + after.unauthentic - before.malformed - before.unauthentic;
        prop_assert_eq!(refused, datagrams.len() as u64);
        prop_assert!(a.is_up());
    }

    /// Also one that is signed well: its sender has the key, and a fault.
    #[test]
    fn any_signed_body_is_survived(
        kind in 0u8..6, from in 0u64..400, to in 0u64..400, number: u64,
        body in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let (mut a, mut b, mut now_ns) = met();
        let mut datagram = Vec::new();
        let header = Header { from, to, number };
        let data = Body::Data { stream: 0, sequence: 0, records: &body };
        wire::write(&Key::new(SECRET), header, &data, &mut datagram);
        // The kind is another one: sign it anew.
        let end = datagram.len() - wire::MAC_BYTES;
        datagram.truncate(end);
        datagram[4] = kind;
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET);
        let code = aws_lc_rs::hmac::sign(&key, &datagram);
        datagram.extend(code.as_ref());
        a.link.receive(now_ns, &datagram);
        a.take();
        turn_until((&mut a, &mut b), &mut now_ns, 20, || Fate::Arrives, |_, _| false);
    }

    #[test]
    fn what_is_written_is_read_and_what_is_changed_is_refused(
        header in any::<(u64, u64, u64)>(), records in prop::collection::vec(any::<u8>(), 0..300),
        stream: u32, sequence: u64, at: prop::sample::Index, bit in 0u8..8,
    ) {
        let key = Key::new(SECRET);
        let (from, to, number) = header;
        let header = Header { from, to, number };
        let body = Body::Data { stream, sequence, records: &records };
        let mut datagram = Vec::new();
        wire::write(&key, header, &body, &mut datagram);
        prop_assert_eq!(wire::read(&key, &datagram), Ok((header, body)));
        prop_assert!(wire::read(&Key::new(b"another"), &datagram).is_err());
        let place = at.index(datagram.len());
        prop_assert!(wire::read(&key, &datagram[..place]).is_err(), "cut");
        datagram[place] ^= 1 << bit;
        prop_assert!(wire::read(&key, &datagram).is_err(), "changed");
    }
}

#[test]
fn a_peer_with_another_key_is_never_met() {
    let (mut a, mut b, mut now_ns) = (End::new(1), End::with(2, b"other", GREETING), 0);
    turn_until((&mut a, &mut b), &mut now_ns, 300, || Fate::Arrives, |_, _| false);
    assert!(!a.is_up() && !b.is_up() && a.peers + b.peers == 0);
    assert!(a.link.counts().unauthentic > 2 && b.link.counts().unauthentic > 2);
}

#[test]
fn what_was_recorded_is_refused_whenever_it_is_replayed() {
    let (mut a, mut b, mut now_ns) = met();
    let mut recorded = Vec::new();
    for number in 0..200u32 {
        now_ns += TURN_NS;
        a.link.offer(3, &number.to_be_bytes());
        a.poll(now_ns);
        b.poll(now_ns);
        recorded.extend(a.sent.clone());
        carry(&mut a, &mut b, now_ns, || Fate::Arrives);
        carry(&mut b, &mut a, now_ns, || Fate::Arrives);
        b.take();
    }
    let (got, begins, taken) = (b.got.len(), b.link.begins(), b.link.counts().datagrams_received);
    recorded.iter().for_each(|datagram| b.link.receive(now_ns, datagram));
    b.take();
    assert_eq!((b.got.len(), b.link.begins()), (got, begins));
    assert_eq!(b.link.counts().replayed, recorded.len() as u64);
    assert_eq!(b.link.counts().datagrams_received, taken);
    // Both start anew: the recording is of another life.
    let (mut a, mut b) = (End::new(1000), End::new(2000));
    recorded.iter().for_each(|datagram| b.link.receive(now_ns, datagram));
    b.take();
    assert!(b.got.is_empty() && b.peers == 0 && !b.is_up());
    let up = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        300,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up(),
    );
    assert!(up);
    recorded.iter().for_each(|datagram| b.link.receive(now_ns, datagram));
    b.take();
    assert!(b.got.is_empty() && b.peers == 1 && b.is_up());
}

#[test]
fn a_router_does_not_meet_itself() {
    let (mut a, mut now_ns) = (End::new(5), 0);
    for _ in 0..300 {
        now_ns += TURN_NS;
        a.poll(now_ns);
        for datagram in std::mem::take(&mut a.sent) {
            a.link.receive(now_ns, &datagram);
        }
    }
    assert!(!a.is_up());
    a.take();
    assert_eq!(a.peers, 0);
    assert!(a.link.counts().replayed > 2);
}

/// A peer with other software is not taken for a stranger, and its records are not read.
#[test]
fn another_version_is_counted_and_said() {
    let (mut a, mut b, mut now_ns) = met();
    b.poll(now_ns + 600_000_000);
    let mut other = b.sent.pop().expect("a hello");
    other.truncate(other.len() - wire::MAC_BYTES);
    other[3] = wire::VERSION + 1;
    let mut unsigned = other.clone();
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET);
    other.extend(aws_lc_rs::hmac::sign(&key, &other).as_ref());
    a.link.receive(now_ns, &other);
    assert_eq!((a.link.counts().other_version, a.link.hears_other_version()), (1, true));
    // Who has no key cannot pretend it.
    unsigned.extend([0; wire::MAC_BYTES]);
    a.link.receive(now_ns, &unsigned);
    assert_eq!(a.link.counts().other_version, 1);
    assert!(a.is_up());
    // It is forgotten when nothing more comes.
    now_ns += 6_000_000_000;
    a.poll(now_ns);
    assert!(!a.link.hears_other_version());
}
