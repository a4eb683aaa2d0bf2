//! Whatever comes in leaves as it came, though in super-frames.

use proptest::prelude::*;

use crate::frames::{Tcp, pass, router, sizes};

#[test]
fn the_segments_of_a_vector_become_one_super_frame() {
    let mut router = router();
    for is_ip6 in [false, true] {
        for tags in [vec![], vec![0x2005], vec![100, 200]] {
            let first = Tcp { is_ip6, tags, ..Tcp::default() };
            assert_eq!(sizes(&mut router, &first.flow(20)), 1);
        }
    }
    assert_eq!(router.count("gro", "super-frame"), 6);
    assert_eq!(router.count("gro", "coalesced"), 120);
    assert_eq!(router.totals("e1").tx_packets, 120, "packets of a wire");
}

#[test]
fn a_trace_shows_each_segment() {
    let mut router = router();
    router.cli("trace add test-input 9");
    assert_eq!(sizes(&mut router, &Tcp::default().flow(4)), 1);
    let text = router.cli("show trace");
    assert_eq!(text.matches("bytes go on to e1-tx").count(), 4, "{text}");
}

#[test]
fn flows_that_take_turns_have_a_super_frame_each() {
    let mut router = router();
    let flow = |host, port| Tcp { host, port, ..Tcp::default() }.flow(10);
    let flows = [flow(1, 80), flow(2, 80), flow(1, 81)];
    let segments: Vec<Tcp> =
        (0..10).flat_map(|at| flows.iter().map(move |flow| flow[at].clone())).collect();
    let frames: Vec<Vec<u8>> = segments.iter().map(Tcp::frame).collect();
    let (count, on_wire) = pass(&mut router, &frames);
    let expected: Vec<Vec<u8>> = flows.iter().flatten().map(Tcp::frame).collect();
    assert_eq!((count, on_wire == expected), (3, true));
}

#[test]
fn a_super_frame_has_at_most_64_kilobytes_and_44_segments() {
    let mut router = router();
    let large = Tcp { payload: vec![1; 1448], ..Tcp::default() };
    assert_eq!(sizes(&mut router, &large.flow(100)), 3, "44, 44 and 12 segments");
    let small = Tcp { payload: vec![1; 1], is_ip6: true, ..Tcp::default() };
    assert_eq!(sizes(&mut router, &small.flow(88)), 2);
    let jumbo = Tcp { payload: vec![1; 8948], ..Tcp::default() };
    assert_eq!(sizes(&mut router, &jumbo.clone().flow(14)), 2, "7 segments fit 64 KB");
    let jumbo = Tcp { is_ip6: true, ..jumbo };
    assert_eq!(sizes(&mut router, &jumbo.flow(7)), 1);
}

#[test]
fn a_vector_of_flows_that_are_all_different_stays_as_it_is() {
    let mut router = router();
    let segments: Vec<Tcp> = (0..256u16).map(|port| Tcp { port, ..Tcp::default() }).collect();
    assert_eq!(sizes(&mut router, &segments), 256);
    assert_eq!(router.count("gro", "super-frame"), 0);
}

/// How a segment differs from the one that its flow would have next.
#[derive(Clone, Debug)]
struct Change {
    flow: usize,
    bytes: Option<usize>,
    which: u8,
    by: u8,
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = prop_oneof![4 => Just(None), 1 => (0usize..3000).prop_map(Some)];
    (0usize..4, bytes, prop_oneof![5 => Just(255u8), 1 => 0u8..14], any::<u8>())
        .prop_map(|(flow, bytes, which, by)| Change { flow, bytes, which, by })
}

fn changed(mut tcp: Tcp, change: &Change) -> Tcp {
    if let Some(bytes) = change.bytes {
        tcp.payload.resize(bytes, change.by);
    }
    match change.which {
        0 => tcp.sequence ^= u32::from(change.by),
        1 => tcp.acknowledgement ^= u32::from(change.by),
        2 => tcp.flags = change.by,
        3 => tcp.window ^= u16::from(change.by),
        4 => tcp.options = vec![1; usize::from(change.by % 11) * 4],
        5 => tcp.hops ^= change.by,
        6 => tcp.traffic_class ^= change.by,
        7 => tcp.padding = change.by.into(),
        8 => tcp.is_wrong = true,
        9 => tcp.tags = vec![change.by.into(); usize::from(change.by % 4)],
        10 => tcp.may_fragment = !tcp.may_fragment,
        11 => tcp.flags |= 0x08,
        12 => tcp.flags |= 0x01,
        13 if tcp.may_fragment => tcp.identification ^= u16::from(change.by),
        _ => {}
    }
    tcp
}

proptest! {
    #[test]
    fn each_flow_leaves_as_it_came(changes in prop::collection::vec(change(), 0..200)) {
        let mut router = router();
        let mut next: Vec<Tcp> = (0..4)
            .map(|flow| Tcp {
                port: flow,
                is_ip6: flow & 1 == 1,
                may_fragment: flow == 2,
                ..Tcp::default()
            })
            .collect();
        let mut flows = vec![Vec::new(); 4];
        let mut frames = Vec::new();
        for change in &changes {
            let tcp = changed(next[change.flow].clone(), change);
            frames.push(tcp.frame());
            flows[change.flow].push(tcp.frame());
            next[change.flow] = Tcp { padding: 0, is_wrong: false, ..tcp.next() };
        }
        let (_, on_wire) = pass(&mut router, &frames);
        prop_assert_eq!(on_wire.len(), frames.len());
        let is_of = |frame: &[u8], flow: usize| flows[flow].iter().any(|own| own == frame);
        for (flow, expected) in flows.iter().enumerate() {
            let own = on_wire.iter().filter(|frame| is_of(frame, flow));
            prop_assert!(own.eq(expected), "flow {} does not leave as it came", flow);
        }
    }

    #[test]
    fn no_frame_panics(
        mut frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..40),
        cuts in prop::collection::vec(0usize..1100, 0..40),
    ) {
        let mut router = router();
        let whole = Tcp::default().frame();
        frames.extend(cuts.iter().map(|cut| whole[..whole.len().min(*cut)].to_vec()));
        frames.iter().for_each(|frame| router.inject("e0", frame));
        router.run();
    }
}
