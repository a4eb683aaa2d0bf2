//! Whatever comes to a local SID, no node panics, and every buffer comes back.

mod seeds;

use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::Router;

/// Frames sent through one router in one case.
const FRAMES_PER_CASE: usize = 64;
/// Behaviours of the SIDs that seeds are sent to, by the last number of the SID.
const BEHAVIORS: [&str; 14] = [
    "end",
    "end psp",
    "end usp",
    "end psp usp usd",
    "end.t 10 psp usd",
    "end.x e1 2001:db8:1::2 e2 2001:db8:2::2 usd",
    "end.dx4 e1 10.0.1.2",
    "end.dx6 e1 2001:db8:1::2",
    "end.dt46 10",
    "end.dt4 0",
    "end.dx2 e2",
    "end.dx2v 7",
    "end.dt2u sr_l2_tunnel0",
    "end.dt2m sr_l2_tunnel0",
];

/// A router with a SID of every behaviour.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_reassembly::register,
        quiver_bridge::register,
        quiver_srv6::register,
    ]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    router.cli("ip table add 10");
    router.cli("ip6 table add 10");
    for (number, name) in ["e0", "e1", "e2"].into_iter().enumerate() {
        router.cli(&format!("set interface ip address {name} 10.0.{number}.1/24"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
        router.cli(&format!("ip neighbor {name} 10.0.{number}.2 02:00:00:00:00:0{number}"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router.cli("ip route add ::/0 table 10 via ip6-lookup-in-table 0");
    router.cli("ip route add 0.0.0.0/0 table 10 via 10.0.2.2 e2");
    router.cli("ip route add 192.0.2.0/24 via 10.0.1.2");
    router.interface("e3");
    for line in [
        "set sr encaps source addr fc00:0:1::ff",
        "sr policy add bsid fc00:0:f::b next fc00:0:2::1 next fc00:0:2::2 encap",
        "create sr l2-tunnel unicast bsid fc00:0:f::b",
        "set interface state sr_l2_tunnel0 up",
        "set interface l2 bridge sr_l2_tunnel0 1",
        "set interface l2 bridge e3 1",
        "create loopback interface instance 0",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 10.0.7.1/24",
        "set interface state loop0 up",
    ] {
        router.cli(line);
    }
    router.cli("sr vlan-table add 7 untagged e1");
    router.cli("sr vlan-table add 7 vlan 100 e2");
    for (number, behavior) in BEHAVIORS.iter().enumerate() {
        router.cli(&format!("sr localsid address fc00:0:1::{number:x} behavior {behavior}"));
    }
    router
}

/// A golden frame to another SID, with some bytes changed, and cut or made longer.
#[derive(Clone, Debug)]
struct Change {
    seed: prop::sample::Index,
    sid: Option<u8>,
    edits: Vec<(prop::sample::Index, u8)>,
    cut: Option<prop::sample::Index>,
    grow: usize,
}

fn change() -> impl Strategy<Value = Change> {
    (
        any::<prop::sample::Index>(),
        prop::option::weighted(0.8, 0..BEHAVIORS.len() as u8),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        prop::option::weighted(0.3, any::<prop::sample::Index>()),
        prop_oneof![4 => Just(0usize), 1 => 0usize..5000],
    )
        .prop_map(|(seed, sid, edits, cut, grow)| Change { seed, sid, edits, cut, grow })
}

fn changed(seeds: &[Vec<u8>], change: &Change) -> Vec<u8> {
    let mut frame = change.seed.get(seeds).clone();
    frame.resize(frame.len() + change.grow, 0x5a);
    if let (Some(sid), Some(last)) = (change.sid, frame.get_mut(53)) {
        *last = sid;
    }
    for (place, value) in &change.edits {
        // Behind the addresses: the SRH, the list, the inner header.
        let reach = frame.len().clamp(19, 150) - 18;
        if let Some(byte) = frame.get_mut(18 + place.index(reach)) {
            *byte = *value;
        }
    }
    if let Some(cut) = change.cut {
        let kept = 54.min(frame.len());
        frame.truncate(kept + cut.index(frame.len() - kept + 1));
        // The length of the payload is mended, so that what is cut is looked at.
        let payload = frame.len().saturating_sub(54) as u16;
        if let Some(field) = frame.get_mut(18..20) {
            field.copy_from_slice(&payload.to_be_bytes());
        }
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_frame_panics_and_no_buffer_is_lost(changes in prop::collection::vec(change(), FRAMES_PER_CASE)) {
        let seeds = seeds::golden_frames();
        let mut router = router();
        for change in &changes {
            router.inject("e0", &changed(&seeds, change));
        }
        router.run();
        // Fragments are given up.
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
