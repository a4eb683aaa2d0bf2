//! Two sides against each other: packet counts, closes, faults, translation, hostile input.

use proptest::prelude::*;

use super::simulation::{CLIENT, Faults, MACS, Out, SERVER, Simulation};
use super::tcp::Connection;
use super::udp::Exchange;
use crate::test_profiles::stateful;
use quiver_tg_traffic::frames::random::Random;

const HOSTS: &str = "clients: {on: 0, first: 10.0.0.0, count: 4, ports_per_host: 8}, \
                     servers: {on: 1, first: 20.0.0.0, count: 4, port: same}";
const HOSTS6: &str = "clients: {on: 0, first: \"2001:db8:1::\", count: 4, ports_per_host: 8}, \
                      servers: {on: 1, first: \"2001:db8:2::\", count: 4, port: 80}";

fn tcp(keys: &str, faults: Faults, seed: u64) -> Simulation<Connection> {
    Simulation::new(&stateful(&format!("{{kind: tcp, {HOSTS}, {keys}}}")), faults, seed)
}

fn udp(keys: &str, faults: Faults, seed: u64) -> Simulation<Exchange> {
    Simulation::new(&stateful(&format!("{{kind: udp, {HOSTS}, {keys}}}")), faults, seed)
}

#[test]
fn tcp_connections_alone_are_seven_packets() {
    let mut simulation = tcp("time_wait_s: 0.1", Faults::default(), 1);
    simulation.begin();
    simulation.run_until_empty(5);
    simulation.check_balance();
    assert_eq!((simulation.packets(), simulation.outcome()), ([4, 3], (1, 0)));
    assert_eq!(simulation.sides[SERVER].counters().transactions.successful.get(), 1);
}

#[test]
fn tcp_with_11111_bytes_each_way_is_eleven_packets_each_way() {
    let mut simulation = tcp("request_bytes: 11111, response_bytes: 11111", Faults::default(), 1);
    simulation.begin();
    simulation.run_until_empty(5);
    simulation.check_balance();
    assert_eq!((simulation.packets(), simulation.outcome()), ([11, 11], (1, 0)));
}

#[test]
fn udp_transactions_are_the_packets_that_are_asked_for() {
    for (keys, packets) in [("requests: 1", [1, 1]), ("requests: 33, responses: 33", [33, 33])] {
        let mut simulation = udp(keys, Faults::default(), 1);
        (0..32).for_each(|_| simulation.begin());
        simulation.run_until_empty(1);
        simulation.check_balance();
        assert_eq!(simulation.outcome(), (32, 0));
        assert_eq!(simulation.packets(), packets.map(|n: u64| n * 32));
    }
}

#[test]
fn either_end_may_close_first_with_bytes_and_without() {
    for keys in ["close: client", "close: server"] {
        for bytes in [
            "",
            ", request_bytes: 3000",
            ", response_bytes: 3000",
            ", request_bytes: 1, response_bytes: 1",
        ] {
            let mut simulation = tcp(&format!("{keys}{bytes}"), Faults::default(), 3);
            (0..10).for_each(|_| simulation.begin());
            simulation.run_until_empty(5);
            simulation.check_balance();
            assert_eq!(simulation.outcome(), (10, 0), "{keys}{bytes}");
            assert_eq!(simulation.sides[SERVER].counters().transactions.successful.get(), 10);
        }
    }
}

#[test]
fn a_rest_keeps_transactions_open_and_time_does_not_end_them() {
    let mut simulation = tcp("hold_s: 20, timeout_s: 5", Faults::default(), 1);
    (0..32).for_each(|_| simulation.begin());
    simulation.run_for_ms(10_000);
    assert_eq!((simulation.sides[CLIENT].open(), simulation.outcome()), (32, (0, 0)));
    simulation.run_until_empty(40);
    simulation.check_balance();
    assert_eq!(simulation.outcome(), (32, 0));
    let mut simulation = udp("hold_s: 20, timeout_s: 5", Faults::default(), 1);
    simulation.begin();
    simulation.run_until_empty(40);
    assert_eq!(simulation.outcome(), (1, 0));
    assert!(simulation.now_ns > 20_000_000_000);
}

#[test]
fn ip6_is_spoken_as_well() {
    let text = format!("{{kind: tcp, request_bytes: 5000, response_bytes: 5000, {HOSTS6}}}");
    let mut simulation: Simulation<Connection> =
        Simulation::new(&stateful(&text), Faults::default(), 1);
    simulation.begin();
    simulation.run_until_empty(5);
    assert_eq!(simulation.outcome(), (1, 0));
    let text = format!("{{kind: udp, requests: 3, {HOSTS6}}}");
    let mut simulation: Simulation<Exchange> =
        Simulation::new(&stateful(&text), Faults::default(), 1);
    simulation.begin();
    simulation.run_until_empty(5);
    assert_eq!(simulation.outcome(), (1, 0));
}

#[test]
fn servers_answer_to_the_address_that_a_translator_shows_them() {
    let mut simulation =
        tcp("request_bytes: 4000, response_bytes: 4000", Faults::default(), 1).with_nat();
    (0..32).for_each(|_| simulation.begin());
    simulation.run_until_empty(5);
    simulation.check_balance();
    assert_eq!(simulation.outcome(), (32, 0));
    let mut simulation = udp("requests: 2", Faults::default(), 1).with_nat();
    (0..32).for_each(|_| simulation.begin());
    simulation.run_until_empty(5);
    assert_eq!(simulation.outcome(), (32, 0));
}

#[test]
fn nobody_who_answers_is_a_timeout_and_counted() {
    let silence = Faults { loss: 1000, ..Faults::default() };
    let mut simulation = tcp("timeout_s: 10", silence, 1);
    simulation.begin();
    simulation.run_until_empty(20);
    simulation.check_balance();
    // SYNs after 0, 1, 3 and 7 seconds (RFC 6298 §5.5), and the reset that ends it.
    assert_eq!((simulation.outcome(), simulation.packets()), ((0, 1), [5, 0]));
    let failed = &simulation.sides[CLIENT].counters().transactions.failed;
    assert_eq!(failed[super::program::Failure::Timeout as usize].get(), 1);
}

#[test]
fn a_full_table_and_a_session_in_use_are_told_apart() {
    let mut simulation = tcp("concurrent: 8, hold_s: 1", Faults::default(), 1);
    (0..40).for_each(|_| simulation.begin());
    simulation.run_until_empty(5);
    simulation.check_balance();
    let failed = &simulation.sides[CLIENT].counters().transactions.failed;
    let of = |failure| failed[failure as usize].get();
    // 32 sessions, 8 of them in the table; then the first 8 again.
    assert_eq!(of(super::program::Failure::TableFull), 24);
    assert_eq!(of(super::program::Failure::InUse), 8);
    assert_eq!(simulation.outcome(), (8, 32));
}

#[test]
fn a_session_that_is_only_remembered_begins_anew() {
    for keys in ["close: client, time_wait_s: 60", "close: server, time_wait_s: 60"] {
        let mut simulation = tcp(keys, Faults::default(), 1);
        for _ in 0..100 {
            simulation.begin();
            simulation.run_for_ms(20);
        }
        assert_eq!(simulation.outcome(), (100, 0), "{keys}");
        simulation.run_until_empty(100);
        simulation.check_balance();
    }
}

#[test]
fn damage_that_checksums_find_costs_time_and_no_transaction() {
    let faults = Faults { damage: 100, ..Faults::default() };
    let mut simulation =
        tcp("request_bytes: 20000, response_bytes: 20000, timeout_s: 300", faults, 5);
    (0..32).for_each(|_| simulation.begin());
    simulation.run_until_empty(1000);
    simulation.check_balance();
    assert_eq!(simulation.outcome(), (32, 0));
    let packets = &simulation.sides[SERVER].counters().packets;
    assert!(packets.bad_checksum.get() > 0 && packets.retransmitted.get() > 0);
}

/// Frames that look like those of transactions, at the hosts that are played.
fn hostile_frame(random: &mut Random, is_tcp: bool, side: usize) -> Vec<u8> {
    use quiver_wire::{Header, Ip4Header, IpProtocol};
    let length = 54 + random.below(60) as usize;
    let mut frame: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
    frame[..6].copy_from_slice(&MACS[side].0);
    frame[12..14].copy_from_slice(&[8, 0]);
    let far = [20, 10][side] << 24 | random.below(6) as u32;
    let near = [10, 20][side] << 24 | random.below(6) as u32;
    let protocol = if is_tcp { IpProtocol::TCP } else { IpProtocol::UDP };
    let header =
        Ip4Header::new(far.into(), near.into(), protocol, 64, length - 34).expect("header");
    header.write(&mut frame[14..]).expect("room");
    frame[34..36].copy_from_slice(&(1024 + random.below(9) as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&(1024 + random.below(9) as u16).to_be_bytes());
    let sum = quiver_wire::checksum::Sum::pseudo4(
        far.into(),
        near.into(),
        protocol,
        (length - 34) as u16,
    );
    if is_tcp {
        frame[46] = 0x50 | (random.below(4) as u8) << 4;
        frame[50..52].fill(0);
        let checksum = sum.bytes(&frame[34..]).checksum();
        frame[50..52].copy_from_slice(&checksum.to_be_bytes());
    } else {
        frame[38..40].copy_from_slice(&((length - 34) as u16).to_be_bytes());
        frame[40..42].fill(0);
        if random.below(2) == 0 {
            frame[42..44].copy_from_slice(b"Qs");
        }
        let checksum = sum.bytes(&frame[34..]).udp_checksum();
        frame[40..42].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}

fn assail<F: super::flow::Flow>(simulation: &mut Simulation<F>, seed: u64, is_tcp: bool) {
    let mut random = Random::new(seed);
    for number in 0..300 {
        if number % 10 == 0 {
            simulation.begin();
        }
        let side = random.below(2) as usize;
        let mut frame = hostile_frame(&mut random, is_tcp, side);
        if random.below(4) == 0 {
            let place = random.below(frame.len() as u64) as usize;
            frame[place] = random.bits() as u8;
        }
        let mut out = Out::default();
        let now_ns = simulation.now_ns;
        simulation.sides[side].receive(now_ns, &frame, &mut out);
        simulation.transmit(side, out);
        simulation.step(1_000_000);
    }
    simulation.run_until_empty(200);
    simulation.check_balance();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn over_a_bad_channel_every_connection_ends_and_is_counted(
        loss in 0u64..300, repeat in 0u64..200, damage in 0u64..100, jitter_ns in 0u64..3_000_000,
        request in 0u32..40_000, response in 0u32..40_000, segment in 64usize..1900,
        by_client: bool, translated: bool, seed: u64,
    ) {
        let close = if by_client { "client" } else { "server" };
        let keys = format!(
            "request_bytes: {request}, response_bytes: {response}, segment: {segment}, close: \
             {close}, timeout_s: 20"
        );
        let mut simulation = tcp(&keys, Faults { loss, repeat, damage, jitter_ns }, seed);
        if translated {
            simulation = simulation.with_nat();
        }
        (0..20).for_each(|_| { simulation.begin(); simulation.step(1_000_000); });
        simulation.run_until_empty(200);
        simulation.check_balance();
        let (successful, failed) = simulation.outcome();
        prop_assert_eq!(successful + failed, 20);
    }

    #[test]
    fn what_is_lost_is_sent_again_until_all_is_there(
        loss in 0u64..150, repeat in 0u64..100, jitter_ns in 0u64..1_000_000,
        request in 0u32..60_000, response in 0u32..60_000, seed: u64,
    ) {
        let keys = format!("request_bytes: {request}, response_bytes: {response}, timeout_s: 3000");
        let mut simulation = tcp(&keys, Faults { loss, repeat, damage: 0, jitter_ns }, seed);
        (0..4).for_each(|_| simulation.begin());
        simulation.run_until_empty(10_000);
        simulation.check_balance();
        prop_assert_eq!(simulation.outcome(), (4, 0));
    }

    #[test]
    fn over_a_bad_channel_every_exchange_ends_and_is_counted(
        loss in 0u64..300, repeat in 0u64..200, damage in 0u64..100, jitter_ns in 0u64..300_000,
        requests in 1u16..100, responses in 1u16..100, seed: u64,
    ) {
        let keys = format!("requests: {requests}, responses: {responses}, timeout_s: 2");
        let mut simulation = udp(&keys, Faults { loss, repeat, damage, jitter_ns }, seed);
        (0..20).for_each(|_| simulation.begin());
        simulation.run_until_empty(20);
        simulation.check_balance();
        let (successful, failed) = simulation.outcome();
        prop_assert_eq!(successful + failed, 20);
        if loss + damage == 0 && jitter_ns == 0 {
            prop_assert_eq!(failed, 0);
        }
    }

    #[test]
    fn hostile_segments_neither_panic_nor_leave_anything_behind(seed: u64) {
        assail(&mut tcp("request_bytes: 5000, response_bytes: 5000, timeout_s: \
            3", Faults::default(), seed), seed, true);
    }

    #[test]
    fn hostile_datagrams_neither_panic_nor_leave_anything_behind(seed: u64) {
        assail(&mut udp("requests: 3, responses: 3, timeout_s: \
            3", Faults::default(), seed), seed, false);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), side in 0usize..2) {
        let mut simulation = tcp("request_bytes: 10", Faults::default(), 1);
        simulation.sides[side].receive(2_000_000_000, &bytes, &mut Out::default());
    }
}
