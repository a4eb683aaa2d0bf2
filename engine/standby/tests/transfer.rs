//! Records come once and in order, whatever becomes of datagrams.

use proptest::prelude::*;
use quiver_standby::link::State;

use crate::network::{End, Fate, met, turn_until};

fn record(number: usize) -> Vec<u8> {
    let mut record = number.to_be_bytes().to_vec();
    record.resize(8 + number % 60, 9);
    record
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Late),
        1 => any::<u8>().prop_map(Fate::Changed),
    ];
    prop::collection::vec(fate, 1..64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_once_and_in_order(fates in fates(), count in 1usize..4000) {
        prop_assume!(fates.iter().filter(|fate| **fate == Fate::Arrives).count() * 4 > fates.len());
        let (mut a, mut b, mut now_ns) = met();
        let begins = a.link.begins();
        let (mut offered, mut at) = (0, 0);
        let done = turn_until(
            (&mut a, &mut b),
            &mut now_ns,
            20_000,
            || {
                at += 1;
                fates[at % fates.len()]
            },
            |a, b| {
                while offered < count && a.link.offer(3, &record(offered)) {
                    offered += 1;
                }
                // A stream that was given up begins anew once the peer is met again: then its
                // records are lost, and known to be, and this run proves nothing.
                let is_given_up = a.link.begins() != begins || !a.is_up();
                is_given_up || (b.got.len() == count && a.link.is_idle())
            },
        );
        prop_assert!(done, "{:?} of {count}", b.got.len());
        if a.link.begins() == begins && a.is_up() {
            let expected: Vec<Vec<u8>> = (0..count).map(record).collect();
            prop_assert_eq!(&b.got, &expected);
            let (sent, got) = (a.link.counts(), b.link.counts());
            prop_assert_eq!(sent.records_acknowledged, count as u64);
            prop_assert_eq!((sent.records_lost, got.records_received), (0, count as u64));
        } else {
            prop_assert!(a.link.counts().records_lost > 0 || b.link.counts().malformed > 0
                || a.link.begins() > begins);
        }
    }
}

#[test]
fn a_peer_that_falls_silent_is_down_and_what_it_did_not_get_is_lost() {
    let (mut a, mut b, mut now_ns) = met();
    assert!(a.link.offer(3, b"one"));
    let gone = turn_until((&mut a, &mut b), &mut now_ns, 2000, || Fate::Lost, |a, _| !a.is_up());
    assert!(gone);
    assert_eq!((a.link.counts().records_lost, a.link.offer(3, b"two")), (1, false));
    let begins = a.link.begins();
    let back = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        200,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up(),
    );
    assert!(back && a.link.begins() == begins + 1, "all is to be told again");
    assert_eq!((b.peers, a.peers), (1, 1), "it is the same one");
}

#[test]
fn a_peer_that_starts_anew_is_met_again_and_at_once() {
    let (mut a, mut b, mut now_ns) = met();
    assert!(a.link.offer(3, b"one"));
    turn_until((&mut a, &mut b), &mut now_ns, 5, || Fate::Arrives, |_, b| !b.got.is_empty());
    let mut again = End::new(300);
    let up = turn_until(
        (&mut a, &mut again),
        &mut now_ns,
        120,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up() && a.peers == 2,
    );
    assert!(up);
    assert!(a.link.offer(3, b"two"));
    turn_until((&mut a, &mut again), &mut now_ns, 5, || Fate::Arrives, |_, b| !b.got.is_empty());
    assert_eq!(again.got, [b"two"]);
}

#[test]
fn a_peer_whose_clock_was_set_back_is_met_again() {
    let (mut a, _, mut now_ns) = met();
    let mut again = End::new(150);
    let up = turn_until(
        (&mut a, &mut again),
        &mut now_ns,
        2000,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up(),
    );
    assert!(up && a.peers == 2);
}

#[test]
fn routers_that_differ_exchange_nothing_until_they_agree() {
    let (mut a, mut b, mut now_ns) = met();
    b.link.set_greeting([8; 32], now_ns);
    let differ = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        200,
        || Fate::Arrives,
        |a, b| a.link.state() == State::Disagrees && b.link.state() == State::Disagrees,
    );
    assert!(differ && !a.link.offer(3, b"one"));
    let begins = a.link.begins();
    a.link.set_greeting([8; 32], now_ns);
    let agree = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        200,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up(),
    );
    assert!(agree && a.link.begins() == begins + 1);
}

#[test]
fn a_receiver_that_takes_nothing_stops_the_sender_and_loses_nothing() {
    let (mut a, mut b, mut now_ns) = met();
    let mut offered = 0usize;
    for _ in 0..300 {
        now_ns += crate::network::TURN_NS;
        while a.link.has_room() && a.link.offer(3, &offered.to_be_bytes()) {
            offered += 1;
        }
        a.poll(now_ns);
        b.poll(now_ns);
        crate::network::carry(&mut a, &mut b, now_ns, || Fate::Arrives);
        crate::network::carry(&mut b, &mut a, now_ns, || Fate::Arrives);
    }
    assert!(a.is_up() && !a.link.has_room(), "the sender's queue is full");
    let all = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        2000,
        || Fate::Arrives,
        |_, b| b.got.len() == offered,
    );
    let expected: Vec<Vec<u8>> = (0..offered).map(|at| at.to_be_bytes().to_vec()).collect();
    assert!(all && b.got == expected);
    assert_eq!(a.link.counts().records_lost, 0);
    assert!(a.link.round_trip_ns() > 0);
}
