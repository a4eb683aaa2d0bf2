//! Fragments for the router itself: it answers whole packets, whatever way they came in.

use crate::stand;

use std::time::Duration;

use quiver_testkit::Settings;
use stand::{Cut, Family, Four, Six, Whole, replies, router, router_with, send_all};

const DATA: usize = 4000;

fn data(whole: &Whole) -> &[u8] {
    &whole.payload[8..]
}

#[test]
fn a_ping_in_fragments_is_answered() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        send_all(&mut router, &whole.frames(1232));
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        assert_eq!(router.count(family.full(), "reassembled"), 1);
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn fragments_may_come_in_any_order() {
    for family in Family::BOTH {
        for turn in 0..4 {
            let mut router = router();
            let whole = Whole::echo(family, 1, DATA);
            let mut frames = whole.frames(1232);
            frames.rotate_left(turn);
            frames.reverse();
            send_all(&mut router, &frames);
            assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        }
    }
}

#[test]
fn the_smallest_fragments_are_put_together() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 500);
        send_all(&mut router, &whole.frames(8));
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn the_largest_packet_is_put_together_and_answered_in_fragments() {
    for family in Family::BOTH {
        let mut router = router();
        let most = if family == Four { 65_535 - 20 - 8 } else { 65_535 - 8 };
        let whole = Whole::echo(family, 1, most);
        send_all(&mut router, &whole.frames(8000));
        assert_eq!(router.count(family.full(), "reassembled"), 1);
        if family == Four {
            assert_eq!(router.sent("e0").len(), 65_515_usize.div_ceil(8976));
        }
    }
}

#[test]
fn a_last_fragment_of_one_byte_counts() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 1232 * 2 - 8 + 1);
        let frames = whole.frames(1232);
        assert_eq!(frames.len(), 3);
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn padding_behind_a_fragment_is_no_data() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 1232 - 8 + 3);
        let mut frames = whole.frames(1232);
        frames.iter_mut().for_each(|frame| frame.extend_from_slice(&[0xee; 20]));
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn exact_duplicates_are_ignored() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        let mut frames = whole.frames(1232);
        let (last, others) = (frames.pop().unwrap(), frames.clone());
        frames.extend(others);
        frames.push(last);
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        assert_eq!(router.count(family.full(), "duplicate"), 3);
    }
}

#[test]
fn a_first_fragment_that_comes_twice_is_ignored() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        let mut frames = whole.frames(1232);
        frames.insert(0, frames[0].clone());
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        assert_eq!(router.count(family.full(), "duplicate"), 1);
    }
}

#[test]
fn a_duplicate_with_other_bytes_refuses_the_packet() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        let mut frames = whole.frames(1232);
        let mut forged = frames[1].clone();
        *forged.last_mut().unwrap() ^= 1;
        frames.insert(2, forged);
        send_all(&mut router, &frames);
        assert!(replies(&mut router, family, "e0").is_empty());
        assert_eq!(router.count(family.full(), "overlap"), 3);
        assert_eq!(router.count(family.full(), "of-refused-packet"), 2);
    }
}

/// Two pieces, then one from `start` to `end`: the packet is refused, and what comes later of it
/// too.
fn refused_after(family: Family, start: usize, end: usize) {
    let mut router = router();
    let whole = Whole::echo(family, 1, DATA);
    let cut = |start, end| whole.frame(Cut { start, end, more: true });
    let last = whole.frame(Cut { start: 2400, end: 4008, more: false });
    send_all(&mut router, &[cut(0, 800), cut(1600, 2400), cut(start, end), cut(800, 1600), last]);
    assert!(router.sent("e0").is_empty(), "{family:?} {start}..{end}");
    assert_eq!(router.count(family.full(), "overlap"), 3, "{family:?} {start}..{end}");
    assert_eq!(router.count(family.full(), "of-refused-packet"), 2);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn an_overlap_in_front_refuses_the_packet() {
    Family::BOTH.into_iter().for_each(|family| refused_after(family, 1200, 1608));
}

#[test]
fn an_overlap_behind_refuses_the_packet() {
    Family::BOTH.into_iter().for_each(|family| refused_after(family, 792, 1600));
}

#[test]
fn a_piece_inside_another_refuses_the_packet_as_teardrop_sends_it() {
    Family::BOTH.into_iter().for_each(|family| refused_after(family, 8, 16));
}

#[test]
fn a_piece_around_another_refuses_the_packet() {
    Family::BOTH.into_iter().for_each(|family| refused_after(family, 1592, 2408));
}

#[test]
fn a_second_first_fragment_of_another_length_refuses_the_packet() {
    Family::BOTH.into_iter().for_each(|family| refused_after(family, 0, 792));
}

#[test]
fn fragments_that_disagree_about_the_end_refuse_the_packet() {
    for family in Family::BOTH {
        let whole = Whole::echo(family, 1, DATA);
        let cut = |start, end, more| whole.frame(Cut { start, end, more });
        for (one, other) in [
            (cut(3200, 4008, false), cut(2400, 3200, false)), // a last one in front of the last
            (cut(2400, 3200, false), cut(3200, 4008, false)), // and behind it
            (cut(2400, 3200, false), cut(3200, 4000, true)),  // more behind the last
            (cut(3200, 4000, true), cut(2400, 3200, false)),  // the last in front of more
        ] {
            let mut router = router();
            send_all(&mut router, &[one, other]);
            assert_eq!(router.count(family.full(), "length-conflict"), 2, "{family:?}");
        }
    }
}

#[test]
fn a_refused_packet_is_forgotten_in_time_and_may_come_again() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        let frames = whole.frames(1232);
        let odd = whole.frame(Cut { start: 8, end: 16, more: true });
        send_all(&mut router, &[frames[0].clone(), odd]);
        send_all(&mut router, &frames);
        assert!(router.sent("e0").is_empty());
        router.advance(Duration::from_secs(61));
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn packets_of_other_names_are_not_mixed() {
    for family in Family::BOTH {
        let mut router = router();
        let one = Whole::echo(family, 1, DATA);
        let other = Whole::echo(family, 2, DATA + 100);
        let mixed: Vec<_> = one
            .frames(1232)
            .into_iter()
            .zip(other.frames(1232))
            .flat_map(|(a, b)| [a, b])
            .collect();
        send_all(&mut router, &mixed);
        assert_eq!(replies(&mut router, family, "e0"), [data(&one), data(&other)]);
    }
}

#[test]
fn in_ip4_the_protocol_is_part_of_the_name_and_in_ip6_it_is_not() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 2000);
        let other = Whole { protocol: quiver_wire::IpProtocol::UDP, ..whole.clone() };
        send_all(&mut router, &[whole.frames(1232)[0].clone(), other.frames(1232)[1].clone()]);
        let answered = replies(&mut router, family, "e0").len();
        assert_eq!(answered, usize::from(family == Six));
        router.advance(Duration::from_secs(61));
    }
}

#[test]
fn the_senders_of_packets_that_stay_incomplete_are_told() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, DATA);
        let frames = whole.frames(1232);
        send_all(&mut router, &frames[..3]);
        router.advance(Duration::from_secs(59));
        assert!(router.sent("e0").is_empty());
        router.advance(Duration::from_secs(2));
        let sent = router.sent("e0");
        assert_eq!(sent.len(), 1);
        let (at, kind) = if family == Four { (34, 11) } else { (54, 3) };
        assert_eq!(sent[0][at..at + 2], [kind, 1], "time exceeded, fragment reassembly");
        // It quotes the first fragment as it came.
        let quoted = &sent[0][at + 8..];
        assert_eq!(quoted, &frames[0][14..14 + quoted.len()]);
        assert_eq!(router.count(family.full(), "timed-out"), 3);
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn nobody_is_told_when_the_first_fragment_is_missing() {
    for family in Family::BOTH {
        let mut router = router();
        send_all(&mut router, &Whole::echo(family, 1, DATA).frames(1232)[1..]);
        router.advance(Duration::from_secs(61));
        assert!(router.sent("e0").is_empty());
        assert_eq!(router.count(family.full(), "timed-out"), 3);
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn time_runs_from_the_first_fragment_that_came() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set ip reassembly full timeout 1000");
        let frames = Whole::echo(family, 1, DATA).frames(1232);
        for frame in &frames[..3] {
            router.send("e0", frame);
            router.advance(Duration::from_millis(400));
        }
        assert_eq!(router.count(family.full(), "timed-out"), 3);
    }
}

#[test]
fn a_full_table_makes_the_oldest_go() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli(&format!("set ip reassembly full {} max-reassemblies 8", family.word()));
        let wholes: Vec<_> = (0..12).map(|number| Whole::echo(family, number, 2000)).collect();
        let pairs: Vec<_> = wholes.iter().map(|whole| whole.frames(1232)).collect();
        pairs.iter().for_each(|pair| router.send("e0", &pair[0]));
        assert_eq!(router.count(family.full(), "table-full"), 4);
        assert_eq!(router.buffers_in_use(), 8);
        pairs[4..].iter().for_each(|pair| router.send("e0", &pair[1]));
        assert_eq!(replies(&mut router, family, "e0").len(), 8);
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn a_packet_has_only_so_many_fragments() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set ip reassembly full max-reassembly-length 3");
        let whole = Whole::echo(family, 1, 2000);
        send_all(&mut router, &whole.frames(1000));
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        let whole = Whole::echo(family, 2, 5000);
        send_all(&mut router, &whole.frames(1000));
        assert!(router.sent("e0").is_empty());
        assert_eq!(router.count(family.full(), "too-many-fragments"), 4);
        assert_eq!(router.count(family.full(), "of-refused-packet"), 2);
    }
}

#[test]
fn fragments_hold_only_so_many_buffers() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set ip reassembly max-buffers 64");
        for number in 0..50 {
            send_all(&mut router, &Whole::echo(family, number, 3000).frames(1232)[..2]);
            assert!(router.buffers_in_use() <= 64);
        }
        assert_eq!(router.buffers_in_use(), 64);
        assert_eq!(router.count(family.full(), "buffers-limit"), 36);
        // Those that came last are there, and the pool is not dry.
        send_all(&mut router, &Whole::echo(family, 49, 3000).frames(1232)[2..]);
        assert_eq!(replies(&mut router, family, "e0").len(), 1);
    }
}

#[test]
fn a_flood_of_first_fragments_leaves_the_pool_buffers() {
    for family in Family::BOTH {
        let mut router = router_with(Settings { buffers: 1024, ..Settings::default() });
        for number in 0..3000 {
            router.inject("e0", &Whole::echo(family, number, 2000).frames(1232)[0]);
            if number % 100 == 0 {
                router.run();
            }
        }
        router.run();
        assert_eq!(router.buffers_in_use(), 256);
        let whole = Whole::echo(family, 5000, DATA);
        send_all(&mut router, &whole.frames(1232));
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn chained_fragments_are_put_together() {
    for family in Family::BOTH {
        let settings = Settings { buffer_data_bytes: 1024, ..Settings::default() };
        let mut router = router_with(settings);
        let whole = Whole::echo(family, 1, 8000);
        let mut frames = whole.frames(5000);
        frames.insert(0, frames[0].clone());
        send_all(&mut router, &frames);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn congestion_that_one_fragment_met_is_the_packets() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 on");
        let capable = Whole { class: 2, ..Whole::transit(family, 1, DATA) };
        let congested = Whole { class: 3, ..capable.clone() };
        let mut frames = capable.frames(1232);
        frames[2] = congested.frames(1232)[2].clone();
        send_all(&mut router, &frames);
        let sent = router.sent("e1");
        let class = if family == Four { sent[0][15] } else { sent[0][14] << 4 | sent[0][15] >> 4 };
        assert_eq!((sent.len(), class & 3), (1, 3));
    }
}

#[test]
fn congestion_beside_a_sender_who_does_not_know_of_it_drops_the_packet() {
    for family in Family::BOTH {
        let mut router = router();
        let unaware = Whole::echo(family, 1, DATA);
        let congested = Whole { class: 3, ..unaware.clone() };
        let mut frames = unaware.frames(1232);
        frames[2] = congested.frames(1232)[2].clone();
        send_all(&mut router, &frames);
        assert!(router.sent("e0").is_empty());
        assert_eq!(router.count(family.full(), "ecn-conflict"), 4);
    }
}

#[test]
fn a_fragment_without_data_is_dropped_alone() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole::echo(family, 1, 2000);
        let mut frames = whole.frames(1232);
        frames.insert(1, whole.frame(Cut { start: 1232, end: 1232, more: true }));
        frames.insert(2, whole.frame(Cut { start: 1232, end: 1232, more: false }));
        send_all(&mut router, &frames);
        assert_eq!(router.count(family.full(), "empty"), 2);
        assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
    }
}

#[test]
fn a_ping_of_death_is_dropped() {
    for family in Family::BOTH {
        let mut router = router();
        let whole = Whole { payload: vec![0; 65_528 + 400], ..Whole::echo(family, 1, 0) };
        router.send("e0", &whole.frame(Cut { start: 65_528, end: 65_928, more: false }));
        assert_eq!(router.count(family.full(), "beyond-65535"), 1);
    }
}

#[test]
fn an_ip4_packet_that_grows_too_long_with_the_options_of_the_first_fragment_is_dropped() {
    let mut router = router();
    let whole = Whole { payload: vec![0; 65_515], ..Whole::echo(Four, 1, 0) };
    let mut frames = whole.frames(8000);
    // The first fragment has options, so that all would be longer than a length can say.
    let mut first = frames[0].clone();
    first.splice(34..34, [1; 8]);
    first[14] = 0x47;
    let length = (first.len() - 14) as u16;
    first[16..18].copy_from_slice(&length.to_be_bytes());
    first[24..26].copy_from_slice(&[0, 0]);
    let sum = quiver_wire::checksum::of(&first[14..42]);
    first[24..26].copy_from_slice(&sum.to_be_bytes());
    frames[0] = first;
    send_all(&mut router, &frames);
    assert_eq!(router.count("ip4-full-reassembly", "beyond-65535"), 1);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn workers_hand_fragments_to_the_one_that_owns_their_packet() {
    for family in Family::BOTH {
        let mut router = router_with(Settings { workers: 2, ..Settings::default() });
        for number in 0..16 {
            let whole = Whole::echo(family, number, DATA);
            for (place, frame) in whole.frames(1232).iter().enumerate() {
                router.inject_queue("e0", place % 2, frame);
            }
            router.run();
            assert_eq!(replies(&mut router, family, "e0"), [data(&whole)]);
        }
        assert!(router.count(family.full(), "handed-off") > 0);
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn an_interface_that_goes_takes_its_fragments_with_it() {
    for family in Family::BOTH {
        let mut router = router();
        send_all(&mut router, &Whole::echo(family, 1, DATA).frames(1232)[..2]);
        assert_eq!(router.buffers_in_use(), 2);
        let id = router.id("e0");
        router.engine().delete_interface(id).expect("it is there");
        router.run();
        assert_eq!(router.buffers_in_use(), 0);
        assert_eq!(router.count(family.full(), "interface-gone"), 2);
    }
}

#[test]
fn fragments_from_our_own_address_are_not_kept() {
    let mut router = router();
    let mut frame = Whole::echo(Four, 1, DATA).frames(1232)[0].clone();
    frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
    frame[24..26].copy_from_slice(&[0, 0]);
    let sum = quiver_wire::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &frame);
    assert_eq!(router.count("ip4-local", "source-is-ours"), 1);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn an_atomic_fragment_waits_for_nobody() {
    let mut router = router();
    let whole = Whole::echo(Six, 1, 1000);
    // Others of the same name are under way: it has nothing to do with them.
    router.send("e0", &whole.frame(Cut { start: 0, end: 800, more: true }));
    router.send("e0", &whole.frame(Cut { start: 0, end: 1008, more: false }));
    assert_eq!(replies(&mut router, Six, "e0"), [data(&whole)]);
    router.send("e0", &whole.frame(Cut { start: 800, end: 1008, more: false }));
    assert_eq!(replies(&mut router, Six, "e0"), [data(&whole)]);
}

#[test]
fn an_ip6_fragment_of_a_wrong_length_is_answered() {
    let mut router = router();
    let whole = Whole { protocol: quiver_wire::IpProtocol::UDP, ..Whole::echo(Six, 1, DATA) };
    router.send("e0", &whole.frame(Cut { start: 8, end: 20, more: true }));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0][54], sent[0][55], &sent[0][58..62]), (4, 0, &[0, 0, 0, 4][..]));
    assert_eq!(router.count("ip6-full-reassembly", "bad-length"), 1);
}

#[test]
fn an_ip6_fragment_beyond_the_longest_packet_is_answered() {
    let mut router = router();
    let protocol = quiver_wire::IpProtocol::UDP;
    let whole = Whole { payload: vec![0; 65_600], protocol, ..Whole::echo(Six, 1, 0) };
    router.send("e0", &whole.frame(Cut { start: 65_528, end: 65_600, more: false }));
    let sent = router.sent("e0");
    assert_eq!((sent[0][54], sent[0][55], &sent[0][58..62]), (4, 0, &[0, 0, 0, 42][..]));
}

#[test]
fn an_ip6_first_fragment_without_its_headers_is_answered() {
    let mut router = router();
    let mut whole = Whole::echo(Six, 1, DATA);
    whole.protocol = quiver_wire::IpProtocol::DESTINATION_OPTIONS;
    whole.payload[..2].copy_from_slice(&[58, 200]);
    router.send("e0", &whole.frame(Cut { start: 0, end: 1232, more: true }));
    let sent = router.sent("e0");
    assert_eq!((sent[0][54], sent[0][55], &sent[0][58..62]), (4, 3, &[0; 4][..]));
    assert_eq!(router.count("ip6-full-reassembly", "headers-cut"), 1);
}
