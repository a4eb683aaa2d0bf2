//! Packets that are nearly right, fragments that overlap among them: each is sent or counted, and
//! no buffer is lost.

use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::Fragment;

use crate::fixture::*;

/// A frame to one of both ports.
fn frames() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let protocol = prop::sample::select(vec![0u8, 6, 17, 43, 44, 47, 51, 58, 60, 132]);
    let data = prop_oneof![
        Just(udp(4000, 53)),
        Just(udp(53, 4000)),
        Just(tcp(4000, 80, 2)),
        Just(tcp(80, 4000, 18)),
        Just(echo(128, 7)),
        Just(echo(129, 7)),
        (0u8..8, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(kind, more)| {
            let inside = ip6(0, (POOL, REMOTE), UDP, 64, &udp(4000, 53));
            let mut error = vec![kind, 0, 0, 0, 0, 0, 5, 0];
            error.extend(&inside[14..]);
            error.extend(more);
            error
        }),
        prop::collection::vec(any::<u8>(), 0..160),
    ];
    let place = prop::option::weighted(0.3, (0u16..20, any::<bool>(), 0u32..3));
    let edit = prop::option::weighted(0.5, (any::<u16>(), any::<u8>()));
    let cut = prop::option::weighted(0.2, any::<u16>());
    let to = prop::sample::select(vec![POOL, OUTSIDE, HOST]);
    (any::<bool>(), protocol, data, place, 0u8..4, (edit, cut), to).prop_map(
        |(is_inside, protocol, data, fragment_of, hops, (edit, cut), to)| {
            let port = u8::from(!is_inside);
            let ends = match (is_inside, to) {
                (true, HOST) => (HOST, REMOTE),
                (true, to) => (OTHER, to),
                (false, to) => (REMOTE, to),
            };
            let mut frame = match fragment_of {
                Some((at, more, identification)) => {
                    let place = Fragment { identification, offset_bytes: at * 8, more };
                    fragment(port, ends, protocol, place, &data)
                }
                None => ip6(port, ends, protocol, hops, &data),
            };
            if let Some((at, value)) = edit {
                let at = 14 + usize::from(at) % (frame.len() - 14);
                frame[at] = value;
            }
            if let Some(length) = cut {
                frame.truncate(14 + usize::from(length) % (frame.len() - 13));
            }
            (port, frame)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in prop::collection::vec(frames(), 1..40)) {
        let mut router = router(20);
        router.cli("nat66 add static mapping udp local fd00:1::3 53 external 2001:db8:2::10 53");
        router.cli("nat66 add interface address e1");
        for (port, frame) in frames {
            router.send(&format!("e{port}"), &frame);
        }
        router.sent("e0");
        router.sent("e1");
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
        router.advance(Duration::from_secs(7_600));
        prop_assert_eq!(summary(&mut router, "sessions"), 0);
        prop_assert_eq!(summary(&mut router, "bindings"), 1);
    }
}
