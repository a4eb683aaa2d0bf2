//! Packets that are nearly right: each is sent or counted, and no buffer is lost.

use std::net::Ipv6Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};

use crate::fixture::*;
use crate::translation::relay;

/// Extension headers in front of a packet of IPv4, or none.
fn inside(packet: Vec<u8>, extension: u8) -> (u8, Vec<u8>) {
    let next = match extension {
        0 => return (IPIP, packet),
        1 => 60,
        2 => 0,
        3 => 43,
        _ => 41,
    };
    (next, [&[IPIP, 0, 1, 4, 0, 0, 0, 0], &packet[..]].concat())
}

/// A frame to one of both ports.
fn frames() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let protocol = prop::sample::select(vec![1u8, 6, 17, 33, 47, 132]);
    let data = prop_oneof![
        Just(udp(53, PORT, b"data")),
        Just(udp(PORT, 53, b"data")),
        Just(udp(SOFTWIRE_PORT, SOFTWIRE_PORT, &[0; 1500])),
        Just(icmp(3, 3, [0; 4], &packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b"")))),
        Just(icmp(8, 0, [4, 0xd0, 0, 1], b"ping")),
        prop::collection::vec(any::<u8>(), 0..160),
    ];
    let fragment = prop::option::weighted(0.3, (0u16..20, any::<bool>(), 0u32..3));
    let edits = prop::collection::vec((any::<u16>(), any::<u8>()), 0..3);
    let cut = prop::option::weighted(0.2, any::<u16>());
    let nested = prop::bool::weighted(0.1);
    (any::<u8>(), protocol, data, fragment, 0u8..5, edits, cut, nested).prop_map(
        |(kind, protocol, data, fragment, extension, edits, cut, nested)| {
            let fragment = fragment.map_or_else(whole, |(at, more, identification)| Fragment {
                identification,
                offset_bytes: at * 8,
                more,
            });
            let softwire = kind & 1 != 0;
            let (address, customer) = if softwire { (SOFTWIRE, B4) } else { (SHARED, CUSTOMER) };
            let default: Ipv6Addr = "2001:db8:64::c633:6407".parse().expect("an address");
            let translated: Ipv6Addr =
                "2001:db8:7712:3400:0:c000:312:34".parse().expect("an address");
            let mut packet = packet4((address, SERVER), protocol, fragment, &data);
            if nested {
                let outer = ip6((customer, BORDER), IPIP, 64, &packet);
                packet = packet4((address, SERVER), 41, whole(), &outer[LINK..]);
            }
            let (next, behind) = inside(packet, extension);
            let (port, mut frame) = match kind >> 1 & 7 {
                0 | 1 => (1, ip6((customer, BORDER), next, kind >> 4, &behind)),
                2 => (1, ip6_fragment(1, (customer, BORDER), next, fragment, &behind)),
                3 => (1, ip6((translated, default), protocol, kind >> 4, &data)),
                4 => (1, ip6_fragment(1, (translated, default), protocol, fragment, &data)),
                5 => {
                    let ends = (B4, BORDER);
                    let quoted = ip6((BORDER, customer), next, 64, &behind);
                    let message =
                        icmp6(ends, kind & 3, extension, [0, 0, 5, 0x14], &quoted[LINK..]);
                    (1, ip6(ends, 58, 64, &message))
                }
                6 => (0, ip4(0, (SERVER, [192, 0, 3, 18].into()), protocol, fragment, &data)),
                _ => (0, ip4(0, (SERVER, address), protocol, fragment, &data)),
            };
            for (at, value) in edits {
                let at = LINK + usize::from(at) % (frame.len() - LINK);
                frame[at] = value;
            }
            if let Some(length) = cut {
                frame.truncate(LINK + usize::from(length) % (frame.len() - LINK + 1));
            }
            (port, frame)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(
        frames in prop::collection::vec(frames(), 1..40), inner: bool, checks: bool,
    ) {
        let mut router = relay();
        if inner {
            router.cli("map params fragment inner ignore-df");
        }
        if !checks {
            router.cli("map params security-check off");
        }
        for (port, frame) in frames {
            router.inject(&format!("e{port}"), &frame);
        }
        router.run();
        router.sent("e0");
        router.sent("e1");
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
