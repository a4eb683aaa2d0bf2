//! Packets that are nearly right, fragments that overlap among them: each is sent or counted, and
//! no buffer is lost.

use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};

use crate::sessions::{HOST, POOL, REMOTE, behind, ip6, router, tcp, udp, whole};

/// A frame to one of both ports.
fn frames() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let protocol = prop::sample::select(vec![0u8, 1, 6, 17, 43, 44, 51, 58, 60, 132]);
    let data = prop_oneof![
        Just(udp(4000, 53)),
        Just(udp(53, 4000)),
        Just(tcp(4000, 80, 2)),
        Just(tcp(80, 4000, 18)),
        Just(vec![128, 0, 0, 0, 0, 7, 0, 1]),
        prop::collection::vec(any::<u8>(), 0..160),
    ];
    let fragment = prop::option::weighted(0.3, (0u16..20, any::<bool>(), 0u32..3));
    let edit = prop::option::weighted(0.5, (any::<u16>(), any::<u8>()));
    let cut = prop::option::weighted(0.2, any::<u16>());
    (any::<bool>(), protocol, data, fragment, 0u8..4, edit, cut).prop_map(
        |(six, protocol, data, fragment, hops, edit, cut)| {
            let fragment = fragment.map(|(at, more, identification)| Fragment {
                identification,
                offset_bytes: at * 8,
                more,
            });
            let ends = (HOST, behind(REMOTE));
            let mut frame = match (six, fragment) {
                (true, Some(fragment)) => ip6_fragment(0, ends, protocol, fragment, &data),
                (true, None) => ip6(ends, protocol, hops, &data),
                (false, fragment) => {
                    ip4(1, (REMOTE, POOL), protocol, fragment.unwrap_or(whole()), &data)
                }
            };
            if let Some((at, value)) = edit {
                let at = 14 + usize::from(at) % (frame.len() - 14);
                frame[at] = value;
            }
            if let Some(length) = cut {
                frame.truncate(14 + usize::from(length) % (frame.len() - 13));
            }
            (u8::from(!six), frame)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in prop::collection::vec(frames(), 1..40)) {
        let mut router = router(20);
        router.cli("nat64 add static bib 2001:db8:1::3 53 192.0.2.1 53 udp");
        for (port, frame) in frames {
            router.send(&format!("e{port}"), &frame);
        }
        router.sent("e0");
        router.sent("e1");
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
        router.advance(Duration::from_secs(7_600));
        prop_assert_eq!(router.json("show nat64 summary")["sessions"].as_u64(), Some(0));
        prop_assert_eq!(router.json("show nat64 summary")["bindings"].as_u64(), Some(1));
    }
}
