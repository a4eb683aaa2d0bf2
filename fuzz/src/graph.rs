//! The whole graph: the set-up of a golden case in a router with everything built in, its frames
//! changed by the bytes, and any feature of any arc switched on. Every packet leaves or dies
//! counted, within the limit of visits, and every buffer comes back.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_testkit::choices::{Bytes, Numbers};
use quiver_testkit::golden::{Seed, seeds};
use quiver_testkit::{Router, Settings};
use quiverd::features;

use crate::{chosen, folder};

/// Steps of one input.
const STEPS_MAX: usize = 32;
/// Changes of one frame.
const CHANGES_MAX: usize = 8;
/// Copies of a frame in one vector.
const COPIES_MAX: usize = 6;
/// Time after which nothing waits for a neighbour, a fragment or a timer any more.
const REST: Duration = Duration::from_secs(200);
/// Only a bridge's routed interface has it, and no command switches it on elsewhere.
const NOT_BY_HAND: &str = "bvi-output";

fn cases() -> &'static [Seed] {
    static CASES: OnceLock<Vec<Seed>> = OnceLock::new();
    CASES.get_or_init(|| seeds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")))
}

/// The case of an input's first bytes, and its name; the corpus is begun with one input for each.
pub fn case_of(selector: u16) -> &'static str {
    &chosen(selector, cases(), |case| &case.name).name
}

/// The names of all cases.
pub fn case_names() -> impl Iterator<Item = &'static str> {
    cases().iter().map(|case| case.name.as_str())
}

/// Two bytes choose the case, one says how the router is made; then each step begins with a byte.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let case = chosen(u16::from_le_bytes([bytes.byte(), bytes.byte()]), cases(), |case| &case.name);
    let made = bytes.byte();
    let settings = Settings {
        buffers: [2048, 256, 128][usize::from(made >> 1) % 3],
        block_driver: made & 1 == 0,
        unasked: made & 128 != 0,
        runtime_dir: Some(folder()),
        ..Settings::default()
    };
    let mut router = Router::with(settings, &[features::built_in]);
    if router.script("setup.cli", &case.setup).is_err() {
        router.discard(); // a set-up that asks for another size of router
        return;
    }
    router.run();
    let ports = router.interfaces();
    for _ in 0..STEPS_MAX {
        if bytes.is_empty() {
            break;
        }
        step(&mut router, case, &ports, &mut bytes);
        // What was sent is not looked at.
        ports.iter().for_each(|port| drop(router.sent(port)));
    }
    ports.iter().for_each(|port| router.stall(port, false));
    router.run();
    if router.buffers_in_use() > 0 {
        router.advance(REST);
    }
    assert_eq!(router.buffers_in_use(), 0, "{}: buffers that nothing gives back", case.name);
}

fn step(router: &mut Router, case: &Seed, ports: &[String], bytes: &mut Bytes<'_>) {
    let kind = bytes.byte();
    match kind % 16 {
        0..8 if !case.frames.is_empty() => changed_frame(router, case, ports, bytes, kind),
        0..9 => {
            let port = &ports[bytes.below(ports.len())];
            let length = bytes.below(256);
            let frame = bytes.take(length);
            if !frame.is_empty() {
                router.send(port, frame);
            }
        }
        9..12 => feature(router, bytes, kind & 128 == 0),
        12 => router.advance(Duration::from_millis(1 << bytes.below(17))),
        13 if !case.commands.is_empty() => {
            let _ = router.execute(&case.commands[bytes.below(case.commands.len())]);
        }
        14 => {
            let port = &ports[bytes.below(ports.len())];
            let state = if kind & 128 == 0 { "down" } else { "up" };
            let _ = router.execute(&format!("set interface state {port} {state}"));
        }
        _ => {
            let port = &ports[bytes.below(ports.len())];
            router.stall(port, kind & 128 == 0);
        }
    }
}

/// Bytes of a frame replaced, cut out or put in, then so many copies of it in one vector.
fn changed_frame(
    router: &mut Router,
    case: &Seed,
    ports: &[String],
    bytes: &mut Bytes<'_>,
    kind: u8,
) {
    let (port, frame) = &case.frames[bytes.below(case.frames.len())];
    let mut frame = frame.clone();
    for _ in 0..usize::from(kind >> 4).min(CHANGES_MAX) {
        let place = bytes.below(frame.len());
        match bytes.byte() {
            0..16 => frame.truncate(place + 1),
            16..32 => {
                let end = (place + bytes.below(16)).min(frame.len() - 1);
                frame.drain(place..end);
            }
            32..48 => {
                let length = bytes.below(64);
                frame.splice(place..place, bytes.take(length).iter().copied());
            }
            48..80 => {
                let length = bytes.below(16).min(frame.len() - place);
                let new = bytes.take(length);
                frame[place..place + new.len()].copy_from_slice(new);
            }
            80..112 => frame[place] ^= 1 << bytes.below(8),
            112..128 => frame.resize(frame.len() + bytes.below(4096), 0x5a),
            _ => frame[place] = bytes.byte(),
        }
    }
    let port = if ports.contains(port) { port } else { &ports[0] };
    for _ in 0..=usize::from(kind) % COPIES_MAX {
        router.inject(port, &frame);
    }
    router.run();
}

/// Any feature of any arc, on or off, on any interface.
fn feature(router: &mut Router, bytes: &mut Bytes<'_>, on: bool) {
    let all: Vec<(&str, &str)> = {
        let arcs = router.engine().arcs();
        let all =
            arcs.iter().flat_map(|arc| arc.features.iter().map(|feature| (arc.name, *feature)));
        all.filter(|(_, feature)| *feature != NOT_BY_HAND).collect()
    };
    let selector = u16::from_le_bytes([bytes.byte(), bytes.byte()]);
    let (arc, feature) = *chosen(selector, &all, |(_, feature)| feature);
    let interfaces: Vec<_> =
        router.engine().all_interfaces().map(|interface| interface.id).collect();
    let id = interfaces[bytes.below(interfaces.len())];
    let number = router.engine().arc_id(arc).expect("the arc is there");
    let is_on = router.engine().features_of(id, number).iter().any(|other| other == feature);
    if is_on != on {
        router.engine().set_feature(id, arc, feature, on).unwrap_or_else(|error| panic!("{error}"));
    }
}
