//! Whatever bytes come, no node panics, and every buffer comes back.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Router, golden};
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

/// Where the frames are taken from that are changed.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
/// Frames sent through one router in one case.
const FRAMES_PER_CASE: usize = 48;
/// Nodes that get bytes directly, whatever they expect.
const NODES: [&str; 33] = [
    "ip-input",
    "arp-input",
    "ip4-input",
    "ip4-lookup",
    "ip4-lookup-in-table",
    "ip4-rewrite",
    "ip4-confirm-neighbor",
    "ip4-too-big",
    "ip4-frag",
    "ip4-local",
    "ip4-icmp-input",
    "ip4-icmp-echo-request",
    "ip4-icmp-error",
    "ip4-arp",
    "ip4-glean",
    "ip4-drop",
    "ip4-punt",
    "ip6-input",
    "ip6-lookup",
    "ip6-lookup-in-table",
    "ip6-link-local",
    "ip6-rewrite",
    "ip6-confirm-neighbor",
    "ip6-local",
    "ip6-icmp-input",
    "ip6-icmp-echo-request",
    "ip6-icmp-error",
    "icmp6-neighbor-solicitation",
    "icmp6-neighbor-advertisement",
    "ip6-discover-neighbor",
    "ip6-glean",
    "ip6-drop",
    "ip6-punt",
];

/// A router with everything that IP can be configured with.
fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    for (number, node) in NODES.iter().enumerate() {
        router.cli(&format!("create test interface n{number} input {node}"));
        router.cli(&format!("set interface state n{number} up"));
        router.cli(&format!("set interface ip address n{number} 10.1.{number}.1/24"));
        router.cli(&format!("set interface ip address n{number} 2001:db8:f00:{number:x}::1/64"));
    }
    let lines = "
        ip table add 10
        ip6 table add 10
        set interface ip table e2 10
        set interface ip6 table e2 10
        set interface ip address e0 10.0.0.1/24
        set interface ip address e1 10.0.1.1/24
        set interface ip address e2 10.0.2.1/24
        set interface ip address e0 2001:db8::1/64
        set interface ip address e1 2001:db8:1::1/64
        set interface ip address e2 2001:db8:2::1/64
        set interface mtu 1300 e1
        ip neighbor e0 10.0.0.2 02:00:00:00:00:a0
        ip neighbor e0 2001:db8::2 02:00:00:00:00:a0
        ip neighbor e1 10.0.1.2 02:00:00:00:00:b1
        ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1
        ip route add 0.0.0.0/1 via 10.0.1.2 weight 3 via 10.0.0.2 via 10.0.0.77
        ip route add 128.0.0.0/2 via local
        ip route add 192.0.0.0/3 via punt
        ip route add 0.0.0.0/0 table 10 via ip4-lookup-in-table 0
        ip route add 2001:db8:8000::/33 via 2001:db8:1::2 via 2001:db8::77
        ip route add 4000::/2 via ip6-lookup-in-table 10
        ip route add 8000::/1 via local
        ip route add ::/0 table 10 via ip6-lookup-in-table 0
        ip route add 10.99.0.0/16 via 2001:db8:1::2 e1";
    router.script("everything", lines).expect("a good configuration");
    router
}

/// Make checksums right again, so that what was changed is looked at more closely.
fn mend(frame: &mut [u8]) {
    let Some(packet) = frame.get_mut(14..) else { return };
    let Some(first) = packet.first().copied() else { return };
    if first >> 4 == 4 {
        let Some(header) = Ip4Header::overlay(packet).copied() else { return };
        let length = header.header_len();
        if let Some(with_options) = packet.get_mut(..length).filter(|_| length >= 20) {
            with_options[10..12].fill(0);
            let sum = checksum::of(with_options);
            with_options[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let end = usize::from(header.total_length());
        if let Some(icmp) = packet.get_mut(length..end).filter(|icmp| icmp.len() >= 4) {
            icmp[2..4].fill(0);
            let sum = checksum::of(icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    } else if let Some(header) = Ip6Header::overlay(packet).copied() {
        let end = 40 + usize::from(header.payload_length());
        if let Some(icmp) = packet.get_mut(40..end).filter(|icmp| icmp.len() >= 4) {
            icmp[2..4].fill(0);
            let length = icmp.len() as u32;
            let pseudo =
                Sum::pseudo6(header.source(), header.destination(), IpProtocol::ICMP6, length);
            let sum = pseudo.bytes(icmp).checksum();
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

#[derive(Clone, Debug)]
struct Change {
    seed: prop::sample::Index,
    edits: Vec<(prop::sample::Index, u8)>,
    cut: Option<prop::sample::Index>,
    grow: usize,
    mended: bool,
    port: prop::sample::Index,
}

fn change() -> impl Strategy<Value = Change> {
    (
        any::<prop::sample::Index>(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        prop::option::weighted(0.2, any::<prop::sample::Index>()),
        prop_oneof![4 => Just(0usize), 1 => 0usize..9000],
        any::<bool>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(seed, edits, cut, grow, mended, port)| Change {
            seed,
            edits,
            cut,
            grow,
            mended,
            port,
        })
}

fn changed(seeds: &[Vec<u8>], change: &Change) -> Vec<u8> {
    let mut frame = change.seed.get(seeds).clone();
    frame.resize(frame.len() + change.grow, 0x5a);
    for (place, value) in &change.edits {
        // Headers are where the decisions are.
        let reach = frame.len().min(90);
        frame[place.index(reach)] = *value;
    }
    if let Some(cut) = change.cut {
        frame.truncate(cut.index(frame.len()) + 1);
    }
    if change.mended {
        mend(&mut frame);
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_frame_panics_and_no_buffer_is_lost(
        changes in prop::collection::vec(change(), FRAMES_PER_CASE)
    ) {
        let seeds = golden::frames_in(Path::new(GOLDEN));
        let mut router = router();
        for change in &changes {
            let frame = changed(&seeds, change);
            let port = change.port.index(NODES.len() + 3);
            if port < 3 {
                router.inject(["e0", "e1", "e2"][port], &frame);
            } else {
                // Behind the Ethernet header, as from `ethernet-input`.
                router.inject(&format!("n{}", port - 3), frame.get(14..).unwrap_or(&frame));
            }
        }
        router.run();
        // Unknown neighbours are given up, and then those that are told so.
        router.advance(Duration::from_secs(10));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }

    #[test]
    fn no_bytes_panic_in_any_node(
        frames in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..120), 0..NODES.len()), FRAMES_PER_CASE
        ),
        versions in any::<bool>(),
    ) {
        let mut router = router();
        for (mut bytes, node) in frames {
            if versions {
                bytes[0] = if bytes[0] & 1 == 0 { 0x45 } else { 0x60 };
            }
            router.inject(&format!("n{node}"), &bytes);
        }
        router.run();
        // Unknown neighbours are given up, and then those that are told so.
        router.advance(Duration::from_secs(10));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
