//! Two routers in one process, joined by memif.

use crate::router;

use quiver_core::worker::device::RxMode;
use quiver_memif::{MemifConfig, MemifReason, Mode, Role};
use router::{Router, frame, socket, until};

/// A connected pair, the slave first.
fn pair(
    test: &str,
    change: impl Fn(&mut MemifConfig),
) -> ((Router, quiver_core::InterfaceId), (Router, quiver_core::InterfaceId)) {
    let path = socket(test);
    let (mut master, m) = Router::with(&path, Role::Master, &change);
    let (mut slave, s) = Router::with(&path, Role::Slave, &change);
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    ((slave, s), (master, m))
}

#[test]
fn frames_of_all_lengths_cross_in_both_directions_unchanged() {
    for buffer_bytes in [2048, 512, 64, 4096] {
        let test = format!("lengths-{buffer_bytes}");
        let ((mut slave, s), (mut master, m)) = pair(&test, |c| c.buffer_bytes = buffer_bytes);
        let lengths =
            [1, 14, 60, 63, 64, 65, 127, 128, 511, 512, 513, 1500, 1518, 2047, 2048, 2049, 9000];
        for (number, length) in lengths.into_iter().enumerate() {
            slave.send(s, &frame(number, length));
            master.send(m, &frame(number + 100, length));
        }
        until(&mut slave, &mut master, "all there", |a, b| {
            a.ethernet.lock().unwrap().len() == lengths.len()
                && b.ethernet.lock().unwrap().len() == lengths.len()
        });
        let at_master: Vec<_> = lengths.iter().enumerate().map(|(n, l)| frame(n, *l)).collect();
        let at_slave: Vec<_> =
            lengths.iter().enumerate().map(|(n, l)| frame(n + 100, *l)).collect();
        assert_eq!(master.take(), at_master);
        assert_eq!(slave.take(), at_slave);
        master.assert_balance();
        slave.assert_balance();
    }
}

/// As [`pair`], with a slave that lends its buffers.
fn lending_pair(
    test: &str,
    change: impl Fn(&mut MemifConfig),
) -> ((Router, quiver_core::InterfaceId), (Router, quiver_core::InterfaceId)) {
    pair(test, |config| {
        config.zero_copy = config.role == Role::Slave;
        change(config);
    })
}

#[test]
fn frames_of_all_lengths_cross_without_a_copy_and_every_buffer_comes_home() {
    let ((mut slave, s), (mut master, m)) = lending_pair("lending", |c| c.ring_size = 128);
    let lengths =
        [1, 14, 60, 63, 64, 65, 127, 128, 511, 512, 513, 1500, 1518, 2047, 2048, 2049, 9000];
    for _ in 0..20 {
        for (number, length) in lengths.into_iter().enumerate() {
            slave.send(s, &frame(number, length));
            master.send(m, &frame(number + 100, length));
        }
        until(&mut slave, &mut master, "all there", |a, b| {
            a.ethernet.lock().unwrap().len() == lengths.len()
                && b.ethernet.lock().unwrap().len() == lengths.len()
        });
        let at_master: Vec<_> = lengths.iter().enumerate().map(|(n, l)| frame(n, *l)).collect();
        let at_slave: Vec<_> =
            lengths.iter().enumerate().map(|(n, l)| frame(n + 100, *l)).collect();
        assert_eq!(master.take(), at_master);
        assert_eq!(slave.take(), at_slave);
    }
    master.assert_balance();
    quiver_memif::delete(&mut slave.engine, s).expect("deleted");
    slave.assert_balance();
}

#[test]
fn two_queues_lend_and_all_buffers_come_home_from_each() {
    let path = socket("lending-queues");
    let (mut master, mut slave) = (Router::new(2), Router::new(2));
    let m = master.add(&path, Role::Master, |_| {});
    let s = slave.add(&path, Role::Slave, |c| {
        (c.zero_copy, c.ring_size, c.rx_queues, c.tx_queues) = (true, 64, Some(2), Some(2));
    });
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    assert_eq!(
        (master.engine.interface(m).unwrap().rx.len(), slave.engine.interface(s).unwrap().rx.len()),
        (2, 2)
    );
    let lengths = [60, 1500, 5000];
    for round in 0..100 {
        for (number, length) in lengths.into_iter().enumerate() {
            for worker in 0..2 {
                let number = round * 10 + number + 5 * worker as usize;
                slave.send_on(worker, s, &frame(number, length));
                master.send_on(worker, m, &frame(number + 1000, length));
            }
        }
        until(&mut slave, &mut master, "all there", |a, b| {
            [a, b].iter().all(|router| router.ethernet.lock().unwrap().len() == 2 * lengths.len())
        });
        for (router, from) in [(&master, 0), (&slave, 1000)] {
            let numbers = (0..2).flat_map(|worker| (0..3).map(move |place| (place, 5 * worker)));
            let mut sent: Vec<_> = numbers
                .map(|(place, more)| frame(from + round * 10 + place + more, lengths[place]))
                .collect();
            let mut seen = router.take();
            sent.sort();
            seen.sort();
            assert!(seen == sent, "round {round}");
        }
    }
    master.assert_balance();
    let pool = slave.engine.pool();
    assert!(pool.total() - pool.free() >= 2 * 64, "what two queues hold for receiving");
    quiver_memif::delete(&mut slave.engine, s).expect("deleted");
    slave.assert_balance();
}

#[test]
fn a_peer_that_does_not_read_holds_no_more_buffers_than_its_ring_and_gives_them_back_by_going() {
    let ((mut slave, s), (mut master, m)) = lending_pair("slow-reader", |c| c.ring_size = 64);
    for number in 0..200 {
        slave.send(s, &frame(number, 64));
    }
    (0..3).for_each(|_| slave.turn());
    assert_eq!(slave.engine.interface_totals(s).tx_errors, 136);
    let pool = slave.engine.pool();
    assert_eq!(pool.total() - pool.free(), 128); // a ring full in each direction
    quiver_memif::delete(&mut master.engine, m).expect("deleted");
    (0..5).for_each(|_| slave.turn());
    slave.assert_balance();
    master.assert_balance();
}

#[test]
fn a_peer_borrows_at_most_half_of_the_buffers() {
    let mut router = Router::new(1);
    quiver_memif::add_socket(&mut router.engine, 1, &socket("too-many")).expect("socket");
    let mut config = MemifConfig::new(1, 0, Role::Slave);
    (config.zero_copy, config.ring_size) = (true, 2048);
    let error = quiver_memif::create(&mut router.engine, config).expect_err("refused").to_string();
    assert!(error.contains("4096 of the router's 4096 buffers"), "{error}");
    assert!(error.contains("8192 with `buffers { buffers-per-numa N }`"), "{error}");
}

#[test]
fn jumbo_frames_cross_ring_after_ring() {
    let ((mut slave, s), (mut master, m)) = pair("jumbo", |c| c.ring_size = 64);
    for round in 0..200 {
        slave.send(s, &frame(round, 9000));
        master.send(m, &frame(round, 8999));
        until(&mut slave, &mut master, "there", |a, b| {
            !a.ethernet.lock().unwrap().is_empty() && !b.ethernet.lock().unwrap().is_empty()
        });
        assert!(master.take() == [frame(round, 9000)] && slave.take() == [frame(round, 8999)]);
    }
    master.assert_balance();
    slave.assert_balance();
}

#[test]
fn a_full_ring_drops_and_counts_and_goes_on_when_it_is_emptied() {
    let ((mut slave, s), (mut master, _)) = pair("full", |c| c.ring_size = 64);
    for number in 0..200 {
        slave.send(s, &frame(number, 64));
    }
    slave.engine.step();
    let totals = slave.engine.interface_totals(s);
    assert_eq!((totals.tx_packets, totals.tx_errors), (200, 136));
    until(&mut slave, &mut master, "a ring full", |_, b| b.ethernet.lock().unwrap().len() == 64);
    slave.send(s, &frame(500, 64));
    until(&mut slave, &mut master, "one more", |_, b| b.ethernet.lock().unwrap().len() == 65);
    let expected: Vec<_> = (0..64).chain([500]).map(|n| frame(n, 64)).collect();
    assert_eq!(master.take(), expected);
    slave.assert_balance();
    master.assert_balance();
}

#[test]
fn a_frame_that_no_ring_can_hold_dies_for_its_own_reason() {
    let ((mut slave, s), (mut master, _)) =
        pair("too-long", |c| (c.ring_size, c.buffer_bytes) = (8, 64));
    slave.send(s, &frame(1, 1000));
    slave.send(s, &frame(2, 60));
    until(&mut slave, &mut master, "the short one", |_, b| b.ethernet.lock().unwrap().len() == 1);
    assert_eq!(slave.count(MemifReason::TxTooLong), 1);
    slave.assert_balance();
}

#[test]
fn in_ip_mode_packets_go_to_ip_input() {
    let ((mut slave, s), (mut master, m)) = pair("ip", |c| c.mode = Mode::Ip);
    assert_eq!(master.engine.interface(m).unwrap().row().mac, [0; 6]);
    slave.send(s, &frame(1, 84));
    until(&mut slave, &mut master, "there", |_, b| b.ip.lock().unwrap().len() == 1);
    assert!(master.take().is_empty());
}

#[test]
fn every_worker_sends_on_its_own_ring_and_all_rings_are_received() {
    let path = socket("queues");
    let (mut master, mut slave) = (Router::new(2), Router::new(3));
    let m = master.add(&path, Role::Master, |_| {});
    let s = slave.add(&path, Role::Slave, |c| (c.rx_queues, c.tx_queues) = (Some(2), Some(3)));
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    assert_eq!(master.engine.interface(m).unwrap().rx.len(), 3);
    assert_eq!(slave.engine.interface(s).unwrap().rx.len(), 2);
    for worker in 0..3 {
        slave.send_on(worker, s, &frame(worker as usize, 64));
    }
    for worker in 0..2 {
        master.send_on(worker, m, &frame(worker as usize + 10, 64));
    }
    until(&mut slave, &mut master, "all there", |a, b| {
        a.ethernet.lock().unwrap().len() == 2 && b.ethernet.lock().unwrap().len() == 3
    });
    slave.assert_balance();
    master.assert_balance();
}

#[test]
fn workers_without_a_ring_of_their_own_share_one() {
    let path = socket("shared");
    let (mut master, mut slave) = (Router::new(1), Router::new(3));
    let m = master.add(&path, Role::Master, |_| {});
    let s = slave.add(&path, Role::Slave, |_| {});
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    for worker in 0..3 {
        slave.send_on(worker, s, &frame(worker as usize, 64));
    }
    until(&mut slave, &mut master, "all there", |_, b| b.ethernet.lock().unwrap().len() == 3);
}

#[test]
fn several_interfaces_meet_on_one_socket() {
    let path = socket("several");
    let (mut master, mut slave) = (Router::new(1), Router::new(1));
    let m: Vec<_> = (0..3).map(|n| master.add(&path, Role::Master, |c| c.id = n)).collect();
    let s: Vec<_> = (0..3).rev().map(|n| slave.add(&path, Role::Slave, |c| c.id = n)).collect();
    until(&mut slave, &mut master, "all up", |a, b| {
        s.iter().all(|id| a.is_up(*id)) && m.iter().all(|id| b.is_up(*id))
    });
    master.send(m[2], &frame(2, 64));
    until(&mut slave, &mut master, "there", |a, _| a.ethernet.lock().unwrap().len() == 1);
    assert_eq!(slave.engine.interface_totals(s[0]).rx_packets, 1);
    let twice = MemifConfig::new(1, 2, Role::Master);
    assert!(
        quiver_memif::create(&mut master.engine, twice)
            .unwrap_err()
            .to_string()
            .contains("memif1/2 exists")
    );
}

#[test]
fn sockets_of_one_path_join_masters_and_slaves_of_one_router() {
    let path = socket("loop");
    let mut router = Router::new(1);
    quiver_memif::add_socket(&mut router.engine, 1, &path).unwrap();
    quiver_memif::add_socket(&mut router.engine, 2, &path).unwrap();
    let mut ends = Vec::new();
    for (socket, id, role) in [
        (1, 0, Role::Master),
        (2, 0, Role::Slave),
        (2, 1, Role::Slave),
        (1, 1, Role::Master),
        (1, 2, Role::Slave),
    ] {
        let end =
            quiver_memif::create(&mut router.engine, MemifConfig::new(socket, id, role)).unwrap();
        router.engine.set_admin_up(end, true).unwrap();
        ends.push(end);
    }
    for _ in 0..50 {
        router.pass_ms(100);
    }
    assert!(ends[..4].iter().all(|end| router.is_up(*end)));
    for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        let before = router.engine.interface_totals(ends[to]).rx_packets;
        router.send(ends[from], &frame(from, 100));
        (0..4).for_each(|_| router.turn());
        assert_eq!(router.take(), [frame(from, 100)]);
        assert_eq!(router.engine.interface_totals(ends[to]).rx_packets, before + 1);
    }
    // A slave does not find itself, and a second listener at the path is not possible.
    assert!(
        router.reason(ends[4]).contains("there is no interface 2"),
        "{}",
        router.reason(ends[4])
    );
    let refused =
        quiver_memif::create(&mut router.engine, MemifConfig::new(2, 7, Role::Master)).unwrap_err();
    assert!(refused.to_string().contains("memif socket 1 listens at"), "{refused}");
    // Slaves stay when a socket's last master goes, and find the next one.
    quiver_memif::delete(&mut router.engine, ends[0]).unwrap();
    quiver_memif::delete(&mut router.engine, ends[3]).unwrap();
    (0..4).for_each(|_| router.turn());
    assert!(!router.is_up(ends[1]));
    let again =
        quiver_memif::create(&mut router.engine, MemifConfig::new(2, 5, Role::Master)).unwrap();
    assert!(quiver_memif::create(&mut router.engine, MemifConfig::new(1, 5, Role::Slave)).is_ok());
    router.engine.set_admin_up(again, true).unwrap();
    for _ in 0..50 {
        router.pass_ms(100);
    }
    assert!(router.is_up(again));
    ends.extend([again]);
    router.assert_balance();
}

#[test]
fn only_who_knows_the_secret_is_let_in() {
    let path = socket("secret");
    let (mut master, m) = Router::with(&path, Role::Master, |c| c.secret = Some("sesame".into()));
    let (mut slave, s) = Router::with(&path, Role::Slave, |c| c.secret = Some("barley".into()));
    until(&mut slave, &mut master, "refused", |a, _| a.reason(s).contains("the secret is wrong"));
    assert!(master.reason(m).contains("the secret is wrong"), "{}", master.reason(m));
    quiver_memif::delete(&mut slave.engine, s).unwrap();
    let s = slave.add(&path, Role::Slave, |_| {});
    until(&mut slave, &mut master, "refused", |a, _| a.reason(s).contains("a secret is required"));
    quiver_memif::delete(&mut slave.engine, s).unwrap();
    let s = slave.add(&path, Role::Slave, |c| c.secret = Some("sesame".into()));
    until(&mut slave, &mut master, "let in", |a, b| a.is_up(s) && b.is_up(m));
}

#[test]
fn what_does_not_fit_together_is_said_on_both_sides() {
    let path = socket("mismatch");
    let (mut master, m) = Router::with(&path, Role::Master, |c| c.rx_queues = Some(1));
    let (mut slave, s) = Router::with(&path, Role::Slave, |c| c.mode = Mode::Ip);
    until(&mut slave, &mut master, "refused", |a, _| a.reason(s).contains("the modes differ"));
    quiver_memif::delete(&mut slave.engine, s).unwrap();
    let s = slave.add(&path, Role::Slave, |c| c.id = 77);
    until(&mut slave, &mut master, "refused", |a, _| a.reason(s).contains("no interface 77"));
    quiver_memif::delete(&mut slave.engine, s).unwrap();
    let s = slave.add(&path, Role::Slave, |c| c.tx_queues = Some(2));
    until(&mut slave, &mut master, "refused", |a, _| {
        a.reason(s).contains("ring 1 where at most 1 are taken")
    });
    assert!(master.reason(m).contains("ring 1 where at most 1"));
    let (mut second, t) = Router::with(&path, Role::Slave, |_| {});
    until(&mut second, &mut master, "up", |a, b| a.is_up(t) && b.is_up(m));
    slave.pass_ms(1001);
    until(&mut slave, &mut master, "taken", |a, _| a.reason(s).contains("connected already"));
    assert!(master.is_up(m));
}

#[test]
fn a_slave_tries_again_until_there_is_a_master() {
    let path = socket("again");
    let (mut slave, s) = Router::with(&path, Role::Slave, |_| {});
    slave.turn();
    assert!(slave.reason(s).contains("no master at"), "{}", slave.reason(s));
    let (mut master, m) = Router::with(&path, Role::Master, |_| {});
    slave.pass_ms(1001);
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
}

#[test]
fn either_side_may_go_and_come_back_under_load_and_no_buffer_is_lost() {
    let path = socket("reconnect");
    let (mut master, mut slave) = (Router::new(2), Router::new(2));
    let mut m = master.add(&path, Role::Master, |c| c.ring_size = 256);
    let mut s = slave.add(&path, Role::Slave, |c| {
        (c.ring_size, c.rx_queues, c.tx_queues) = (256, Some(2), Some(2))
    });
    let mut random = 1u32;
    let mut crossed = 0;
    for round in 0..400 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for number in 0..100 {
            let length = if number % 10 == 0 { 9000 } else { 64 + (random >> 8) as usize % 1400 };
            slave.send_on(number as u16 % 2, s, &frame(number, length));
            master.send_on(number as u16 % 2, m, &frame(number, length));
        }
        slave.pass_ms(300);
        master.pass_ms(300);
        for _ in 0..random >> 28 {
            slave.turn();
            master.turn();
        }
        crossed += master.take().len() + slave.take().len();
        if round % 20 == 7 {
            quiver_memif::delete(&mut master.engine, m).unwrap();
            m = master.add(&path, Role::Master, |c| c.ring_size = 256);
        }
        if round % 20 == 17 {
            quiver_memif::delete(&mut slave.engine, s).unwrap();
            s = slave.add(&path, Role::Slave, |c| {
                (c.ring_size, c.rx_queues, c.tx_queues) = (256, Some(2), Some(2))
            });
        }
    }
    assert!(crossed > 10_000, "only {crossed} frames crossed");
    master.assert_balance();
    slave.assert_balance();
    quiver_memif::delete(&mut master.engine, m).unwrap();
    quiver_memif::delete(&mut slave.engine, s).unwrap();
    master.assert_balance();
    slave.assert_balance();
}

#[test]
fn without_buffers_frames_wait_in_the_ring() {
    let path = socket("buffers");
    let mut master = Router::with_buffers(1, 128);
    let m = master.add(&path, Role::Master, |_| {});
    let (mut slave, s) = Router::with(&path, Role::Slave, |_| {});
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    let held: Vec<_> = {
        let worker = master.engine.inline_worker(quiver_core::WorkerId(0)).unwrap();
        std::iter::from_fn(|| worker.buffers().take()).collect()
    };
    slave.send(s, &frame(1, 64));
    slave.turn();
    master.turn();
    assert_eq!(master.count(MemifReason::Waiting), 1);
    let worker = master.engine.inline_worker(quiver_core::WorkerId(0)).unwrap();
    held.into_iter().for_each(|buffer| worker.buffers().give(buffer));
    until(&mut slave, &mut master, "there", |_, b| b.ethernet.lock().unwrap().len() == 1);
    master.assert_balance();
}

#[test]
fn interrupts_are_sent_only_to_who_asks_for_them() {
    let path = socket("interrupt");
    let (mut master, m) = Router::with(&path, Role::Master, |c| c.rx_mode = RxMode::Interrupt);
    let (mut slave, s) = Router::with(&path, Role::Slave, |_| {});
    until(&mut slave, &mut master, "both up", |a, b| a.is_up(s) && b.is_up(m));
    (0..4).for_each(|_| master.turn()); // falls asleep
    for number in 1..=3 {
        slave.send(s, &frame(number, 64));
        slave.turn();
        assert_eq!(slave.count(MemifReason::Interrupts), number as u64);
        until(&mut slave, &mut master, "awake", |_, b| !b.ethernet.lock().unwrap().is_empty());
        assert_eq!(master.take(), [frame(number, 64)]);
        (0..4).for_each(|_| master.turn()); // falls asleep again
    }
    master.send(m, &frame(9, 64));
    until(&mut slave, &mut master, "there", |a, _| a.ethernet.lock().unwrap().len() == 1);
    assert_eq!(master.count(MemifReason::Interrupts), 0);
}

#[test]
fn the_socket_file_goes_with_its_last_master() {
    let file =
        std::env::temp_dir().join(format!("quiver-memif-file-{}/memif.sock", std::process::id()));
    let path = file.to_str().unwrap();
    let (mut master, m) = Router::with(path, Role::Master, |_| {});
    assert!(file.exists());
    let mut other = Router::new(1);
    quiver_memif::add_socket(&mut other.engine, 5, path).unwrap();
    let refused =
        quiver_memif::create(&mut other.engine, MemifConfig::new(5, 0, Role::Master)).unwrap_err();
    assert!(refused.to_string().contains("cannot listen at"), "{refused}");
    quiver_memif::delete(&mut master.engine, m).unwrap();
    assert!(!file.exists());
    let _ = std::fs::remove_dir(file.parent().unwrap());
}
