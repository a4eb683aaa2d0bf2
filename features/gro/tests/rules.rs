//! Which segments become part of a super-frame, and which do not.

use quiver_testkit::frames::{Fragment, ip4};

use crate::frames::{Tcp, pass, router, sizes};

/// Super-frames and segments that two segments become, the second of which is changed.
fn two(first: Tcp, change: impl FnOnce(&mut Tcp)) -> usize {
    let mut second = first.next();
    change(&mut second);
    sizes(&mut router(), &[first, second])
}

#[test]
fn segments_with_other_headers_stay_apart() {
    for is_ip6 in [false, true] {
        let tcp = || Tcp { is_ip6, ..Tcp::default() };
        assert_eq!(two(tcp(), |_| ()), 1);
        assert_eq!(two(tcp(), |next| next.acknowledgement += 1), 2);
        assert_eq!(two(tcp(), |next| next.window += 1), 2);
        assert_eq!(two(tcp(), |next| next.options[11] += 1), 2, "another time stamp");
        assert_eq!(two(tcp(), |next| next.options.clear()), 2);
        assert_eq!(two(tcp(), |next| next.hops -= 1), 2);
        assert_eq!(two(tcp(), |next| next.traffic_class = 3), 2, "congestion experienced");
        assert_eq!(two(tcp(), |next| next.tags = vec![5]), 2);
        assert_eq!(two(tcp(), |next| next.sequence += 1), 2);
        assert_eq!(two(tcp(), |next| next.padding = 4), 2);
        assert_eq!(two(tcp(), |next| next.payload.push(1)), 2, "longer than the first");
        assert_eq!(two(tcp(), |next| next.payload.clear()), 2, "only an acknowledgement");
        assert_eq!(two(tcp(), |next| next.payload.truncate(1)), 1, "a shorter one ends it");
    }
}

#[test]
fn flags_say_what_a_super_frame_takes_and_where_it_ends() {
    const FIN: u8 = 1;
    const PSH: u8 = 8;
    const ECE: u8 = 0x40;
    for flag in [2, 4, 0x20, 0x80, ECE] {
        assert_eq!(two(Tcp::default(), |next| next.flags |= flag), 2, "{flag:#x}");
    }
    for flag in [FIN, PSH] {
        let segments = |at: usize| {
            let mut flow = Tcp::default().flow(4);
            flow[at].flags |= flag;
            sizes(&mut router(), &flow)
        };
        assert_eq!([0, 1, 2, 3].map(segments), [2, 2, 2, 1], "{flag:#x}");
    }
    let tcp = Tcp { flags: 0x10 | ECE, ..Tcp::default() };
    assert_eq!(sizes(&mut router(), &tcp.flow(4)), 1, "all of them have it");
    for flag in [2, 4, 0x20, 0x80] {
        let tcp = Tcp { flags: 0x10 | flag, ..Tcp::default() };
        assert_eq!(sizes(&mut router(), &tcp.flow(4)), 4, "{flag:#x}");
    }
}

#[test]
fn identifications_count_on_where_they_mean_something() {
    let tcp = Tcp { may_fragment: true, identification: 0xffff, ..Tcp::default() };
    assert_eq!(two(tcp.clone(), |_| ()), 1);
    assert_eq!(two(tcp, |next| next.identification = 9), 2);
    let atomic = Tcp::default();
    let second = Tcp { identification: atomic.identification, ..atomic.next() };
    let (count, on_wire) = pass(&mut router(), &[atomic.frame(), second.frame()]);
    assert_eq!((count, on_wire.len()), (1, 2), "RFC 6864: it has no meaning");
}

#[test]
fn a_segment_with_a_wrong_checksum_is_sent_as_it_is() {
    for (wrong, count, bad) in [(0, 2, 1), (1, 3, 2), (2, 3, 2), (3, 2, 1)] {
        let mut flow = Tcp::default().flow(4);
        flow[wrong].is_wrong = true;
        let mut router = router();
        assert_eq!(sizes(&mut router, &flow), count, "{wrong}");
        assert_eq!(router.count("gro", "bad-checksum"), bad, "{wrong}");
    }
}

#[test]
fn nothing_moves_across_a_fragment_or_a_segment_of_its_flow_that_stays_alone() {
    let flow = Tcp::default().flow(4);
    let mut frames: Vec<Vec<u8>> = flow.iter().map(Tcp::frame).collect();
    let fragment = Fragment { identification: 1, offset_bytes: 8, more: true };
    let hosts = ([10, 0, 0, 1].into(), [10, 0, 1, 1].into());
    frames.insert(2, ip4(0, hosts, 6, fragment, &[0; 64]));
    let (count, on_wire) = pass(&mut router(), &frames);
    assert_eq!((count, on_wire == frames), (3, true));
    let only_acknowledges = Tcp { payload: Vec::new(), ..flow[2].clone() };
    let segments = [&flow[..2], &[only_acknowledges], &flow[2..]].concat();
    assert_eq!(sizes(&mut router(), &segments), 3);
}

#[test]
fn packets_of_other_protocols_do_not_end_super_frames() {
    let flow = Tcp::default().flow(4);
    let hosts = ([10, 0, 0, 1].into(), [10, 0, 1, 1].into());
    let udp = ip4(0, hosts, 17, Fragment::default(), &[0; 64]);
    let frames: Vec<Vec<u8>> = flow.iter().flat_map(|tcp| [tcp.frame(), udp.clone()]).collect();
    let (count, on_wire) = pass(&mut router(), &frames);
    assert_eq!((count, on_wire.len()), (5, 8));
}
