//! A router with a local SID of every behaviour and policies of every kind, and packets that are
//! nearly right, to all of them at once: none panics, no buffer is lost, and each is sent on, or
//! counted where it ended.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Router, golden};

/// Where the frames are taken from that are changed.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
/// Frames sent through one router in one case.
const FRAMES_PER_CASE: usize = 96;
/// Ports of the router.
const PORTS: usize = 10;
/// One of every behaviour. Seeds are sent to the addresses of these, whatever they were made for.
const SIDS: [(&str, &str); 42] = [
    ("fc00:0:1::1", "end"),
    ("fc00:0:1::2", "end psp usp usd"),
    ("fc00:0:1::3", "end.t 10 psp usd"),
    ("fc00:0:1::4", "end.x e1 2001:db8:1::2 e2 2001:db8:2::2 psp"),
    ("fc00:0:1::5", "end.x e2 2001:db8:2::2 usp usd"),
    ("fc00:0:1::6", "end.dx4 e1 10.0.1.2"),
    ("fc00:0:1::7", "end.dx6 e1 2001:db8:1::2"),
    ("fc00:0:1::8", "end.dt4 10"),
    ("fc00:0:1::9", "end.dt6 0"),
    ("fc00:0:1::a", "end.dt46 10"),
    ("fc00:0:1::b", "end.dx2 e2"),
    ("fc00:0:1::c", "end.dx2v 7"),
    ("fc00:0:1::d", "end.dt2u sr_l2_tunnel0"),
    ("fc00:0:1:d2::/64", "end.dt2m sr_l2_tunnel0 arg-fe2 16"),
    ("fc00:0:1::e", "end.dt2m sr_l2_tunnel0"),
    ("fc00:0:1::f", "end.dt4 0"),
    ("fc00:0:1::10", "end psp"),
    ("fc00:0:1::11", "end usp"),
    (
        "fc00:0:1::20",
        "end.as nh 10.0.3.2 oif e3 iif e3 src fc00::1 next fc00:0:5::5 next fc00:0:9::9",
    ),
    ("fc00:0:1::21", "end.as nh 2001:db8:3::2 oif e3 iif e3 src fc00::1 next fc00:0:5::5 reduced"),
    ("fc00:0:1::22", "end.as oif e4 iif e4 src fc00::1 next fc00:0:9::9"),
    ("fc00:0:1::23", "end.ad nh 10.0.5.2 oif e5 iif e5"),
    ("fc00:0:1::24", "end.ad nh 2001:db8:5::2 oif e5 iif e5"),
    ("fc00:0:1::25", "end.ad oif e6 iif e6"),
    ("fc00:0:1::26", "end.am nh 2001:db8:7::2 oif e7 iif e7"),
    ("fc00:0:1::27", "end.am nh 2001:db8:8::2 oif e8 iif e8 nat cache"),
    ("fcbb:bbbb:1::/48", "un psp usd"),
    ("fcbb:bbbb:1:f001::/64", "ua e2 2001:db8:2::2 c-sid 32"),
    ("fcbb:bbbb:3::/48", "ut 10"),
    ("fc00:0:b:1:1::/80", "end.replace psp usd"),
    ("fc00:0:b:1:2::/80", "end.x.replace e2 2001:db8:2::2"),
    ("fc00:0:b:33::/64", "end.t.replace 10 c-sid 16"),
    ("fc01:1::/48", "end.m.gtp4.e v4src_position 64"),
    ("fc01:2::/32", "end.m.gtp4.e v4src_addr 10.9.9.9 uplink"),
    ("fc01:3::/64", "end.m.gtp6.e source fc01:1::1"),
    ("fc01:4::/64", "end.m.gtp6.e zero-checksum uplink"),
    ("fc01:6::/64", "end.m.gtp6.d fc00:2::/48"),
    ("fc01:7::/64", "end.m.gtp6.d fc00:2::/85 nhtype ipv4 source fc00:1::1 next fc00:5::5"),
    ("fc01:8::/64", "end.m.gtp6.d.di fc00:3::/64 source fc00:1::1"),
    ("fc01:9::/64", "end.m.gtp6.d fc00:2::/48 nhtype non-ip"),
    ("fc01:a::/48", "end.map fc00:3::/48"),
    ("fc01:b::1", "end.map fc00:2::2"),
];
/// Policies of every kind, which are binding SIDs, too.
const POLICIES: [&str; 6] = [
    "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 encap",
    "sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 next fc00:0:3::1 encap.red",
    "sr policy add bsid fc00:0:1::b3 next fc00:0:2::1 next fc00:0:1::a insert",
    "sr policy add bsid fc00:0:1::b4 next fc00:0:2::1 insert.red",
    "sr policy add bsid fc00:1::d1 behavior t.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64",
    "sr policy add bsid fc00:1::d2 behavior h.m.gtp4.d fc00:2::/53 v6src_prefix fc00:1::/96 nhtype \
     ipv4 drop-in",
];
const STEERED: [&str; 6] = [
    "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
    "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b2",
    "sr steer l3 2001:db8:c::/48 via bsid fc00:0:1::b3",
    "sr steer l2 e9 via bsid fc00:0:1::b1",
    "sr steer l3 192.0.3.0/24 via bsid fc00:1::d1",
    "sr steer l3 192.0.4.0/24 via bsid fc00:1::d2",
];
/// A bridge domain of a layer 2 tunnel, whose frames go round to its own SID and by a policy, and
/// the router itself.
const BRIDGED: [&str; 8] = [
    "sr policy add bsid fc00:0:1::b5 next fc00:0:1::d encap.red",
    "create sr l2-tunnel unicast bsid fc00:0:1::b5 flood bsid fc00:0:1::b1",
    "set interface state sr_l2_tunnel0 up",
    "set interface l2 bridge sr_l2_tunnel0 1",
    "create loopback interface instance 0",
    "set interface l2 bridge loop0 1 bvi",
    "set interface ip address loop0 10.0.99.1/24",
    "set interface state loop0 up",
];

fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_bridge::register,
        quiver_ip::register,
        quiver_reassembly::register,
        quiver_srv6::register,
    ]);
    router.cli("ip table add 10");
    router.cli("ip6 table add 10");
    for port in 0..PORTS {
        router.interface(&format!("e{port}"));
        if [4, 6, 9].contains(&port) {
            continue; // for frames
        }
        router.cli(&format!("set interface ip address e{port} 10.0.{port}.1/24"));
        router.cli(&format!("set interface ip address e{port} 2001:db8:{port}::1/64"));
        router.cli(&format!("ip neighbor e{port} 10.0.{port}.2 02:00:00:00:00:0{port} static"));
        router
            .cli(&format!("ip neighbor e{port} 2001:db8:{port}::2 02:00:00:00:00:0{port} static"));
    }
    router.cli("set sr encaps source addr fc00:0:1::1");
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router.cli("ip route add fcbb:bbbb::/32 via 2001:db8:1::2");
    router.cli("ip route add 2001:db8:a::/48 via 2001:db8:2::2");
    router.cli("ip route add ::/0 table 10 via ip6-lookup-in-table 0");
    router.cli("ip route add 0.0.0.0/0 table 10 via 10.0.2.2 e2");
    router.cli("ip route add 192.0.2.0/24 via 10.0.1.2");
    router.cli("ip route add 10.9.0.0/16 via 10.0.1.2");
    router.cli("sr vlan-table add 7 untagged e1");
    router.cli("sr vlan-table add 7 vlan 100 e2");
    for line in POLICIES.iter().chain(&STEERED) {
        router.cli(line);
    }
    for line in BRIDGED {
        router.cli(line);
    }
    for (sid, behavior) in SIDS {
        router.cli(&format!("sr localsid address {sid} behavior {behavior}"));
    }
    router
}

/// The address that packets to a SID have; behind a prefix stands what the packet had.
fn aim(frame: &mut [u8], sid: &str) {
    let (address, length) = sid.split_once('/').unwrap_or((sid, "128"));
    let (address, length): (std::net::Ipv6Addr, u32) =
        (address.parse().unwrap(), length.parse().unwrap());
    if let Some(place) = frame.get_mut(38..54).and_then(|place| place.first_chunk_mut::<16>()) {
        let behind = u128::MAX.checked_shr(length).unwrap_or(0);
        *place = (address.to_bits() | u128::from_be_bytes(*place) & behind).to_be_bytes();
    }
}

/// A golden frame to another SID by another port, with some bytes changed, and cut or made longer.
#[derive(Clone, Debug)]
struct Change {
    seed: prop::sample::Index,
    port: usize,
    sid: Option<usize>,
    edits: Vec<(prop::sample::Index, u8)>,
    cut: Option<prop::sample::Index>,
    grow: usize,
    is_length_mended: bool,
}

fn change() -> impl Strategy<Value = Change> {
    // What most often decides: small numbers, and the ends of a byte.
    let byte = prop_oneof![
        2 => any::<u8>(), 2 => 0u8..6, 1 => Just(0xff), 1 => Just(43), 1 => Just(41), 1 => Just(4)
    ];
    (
        any::<prop::sample::Index>(),
        prop_oneof![3 => Just(0), 1 => 0..PORTS],
        prop::option::weighted(0.7, 0..SIDS.len()),
        prop::collection::vec((any::<prop::sample::Index>(), byte), 0..4),
        prop::option::weighted(0.3, any::<prop::sample::Index>()),
        prop_oneof![6 => Just(0usize), 1 => 0usize..5000],
        prop::bool::weighted(0.9),
    )
        .prop_map(|(seed, port, sid, edits, cut, grow, is_length_mended)| Change {
            seed,
            port,
            sid,
            edits,
            cut,
            grow,
            is_length_mended,
        })
}

fn changed(seeds: &[Vec<u8>], change: &Change) -> Vec<u8> {
    let mut frame = change.seed.get(seeds).clone();
    frame.resize(frame.len() + change.grow, 0x5a);
    if frame.get(12..14) == Some(&[0x86, 0xdd]) {
        if let Some(sid) = change.sid {
            aim(&mut frame, SIDS[sid].0);
        }
        if let Some(cut) = change.cut {
            let kept = 54.min(frame.len());
            frame.truncate(kept + cut.index(frame.len() - kept + 1));
        }
        // The length is mostly right, so that what is cut or longer is looked at; an edit may
        // change it.
        let payload = frame.len().saturating_sub(54) as u16;
        if let (Some(field), true) = (frame.get_mut(18..20), change.is_length_mended) {
            field.copy_from_slice(&payload.to_be_bytes());
        }
    }
    if let Some(port) = frame.get_mut(5) {
        *port = change.port as u8;
    }
    for (place, value) in &change.edits {
        // The hop limit, the addresses, the SRH, the list, inner headers.
        let reach = frame.len().clamp(19, 170) - 18;
        if let Some(byte) = frame.get_mut(18 + place.index(reach)) {
            *byte = *value;
        }
    }
    frame
}

/// Frames sent, and packets that died with a reason.
fn ended(router: &mut Router) -> u64 {
    let sent: usize = (0..PORTS).map(|port| router.sent(&format!("e{port}")).len()).sum();
    sent as u64 + router.dropped().iter().map(|(_, _, count)| count).sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_to_all_behaviours_is_sent_or_counted(
        changes in prop::collection::vec(change(), FRAMES_PER_CASE),
    ) {
        let seeds = golden::frames_in(Path::new(GOLDEN));
        let mut router = router();
        let mut held = 0;
        for change in &changes {
            let before: u64 = router.dropped().iter().map(|(_, _, count)| count).sum();
            let frame = changed(&seeds, change);
            let in_use = router.buffers_in_use();
            router.inject(&format!("e{}", change.port), &frame);
            router.run();
            let more = router.buffers_in_use().saturating_sub(in_use);
            held += more;
            let after = ended(&mut router);
            let known = after - before;
            prop_assert!(known > 0 || more > 0, "{change:?}\n{frame:02x?}\n{:?}", router.events());
        }
        // Fragments are given up, and packets that wait for a neighbour.
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0, "{} were held", held);
    }
    #[test]
    fn whatever_comes_in_one_vector_loses_no_buffer(
        changes in prop::collection::vec(change(), FRAMES_PER_CASE)
    ) {
        let seeds = golden::frames_in(Path::new(GOLDEN));
        let mut router = router();
        for change in &changes {
            router.inject(&format!("e{}", change.port), &changed(&seeds, change));
        }
        router.run();
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
