//! Random mirrors, links and frames: every copy that a naive model says is made, and no other.

use std::collections::BTreeSet;

use proptest::prelude::*;
use quiver_testkit::{Router, Settings};

const FEATURES: &[quiver_testkit::Register] =
    &[quiver_bond::register, quiver_ethernet::register, quiver_span::register];
/// `e0` and `e1` give theirs to each other, and so do `e2` and `e3`; `e4` only watches.
const PORTS: [&str; 5] = ["e0", "e1", "e2", "e3", "e4"];
const PARTNERS: [Option<usize>; 5] = [Some(1), Some(0), Some(3), Some(2), None];
const DIRECTIONS: [&str; 3] = ["rx", "tx", "both"];

#[derive(Clone, Copy, Debug)]
enum Act {
    Frames { port: usize, count: usize, length: usize },
    Mirror { from: usize, to: usize, direction: usize },
    End { from: usize, to: usize },
    Up { port: usize, up: bool },
}

fn act() -> impl Strategy<Value = Act> {
    let port = 0..PORTS.len();
    prop_oneof![
        6 => (port.clone(), 1..20usize, prop_oneof![Just(14usize), 60..1514usize, Just(9000)])
            .prop_map(|(port, count, length)| Act::Frames { port, count, length }),
        4 => (port.clone(), port.clone(), 0..3usize)
            .prop_map(|(from, to, direction)| Act::Mirror { from, to, direction }),
        2 => (port.clone(), port.clone()).prop_map(|(from, to)| Act::End { from, to }),
        1 => (port, any::<bool>()).prop_map(|(port, up)| Act::Up { port, up }),
    ]
}

#[derive(Default)]
struct Model {
    /// From, to.
    rx: BTreeSet<(usize, usize)>,
    tx: BTreeSet<(usize, usize)>,
    down: BTreeSet<usize>,
}

impl Model {
    /// How many copies of a frame that `port` receives leave by each port, the frame itself
    /// included.
    fn sent(&self, port: usize) -> [usize; PORTS.len()] {
        let mut out = [0; PORTS.len()];
        let is_up = |port: usize| !self.down.contains(&port);
        if !is_up(port) {
            return out;
        }
        let copies =
            |mirrors: &BTreeSet<(usize, usize)>, of: usize, out: &mut [usize; PORTS.len()]| {
                for (_, to) in mirrors.iter().filter(|(from, to)| *from == of && is_up(*to)) {
                    out[*to] += 1;
                }
            };
        copies(&self.rx, port, &mut out);
        if let Some(partner) = PARTNERS[port].filter(|partner| is_up(*partner)) {
            out[partner] += 1;
            copies(&self.tx, partner, &mut out);
        }
        out
    }
}

fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![number; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[6] &= 0xfe;
    frame
}

fn play(acts: Vec<Act>, block_driver: bool) {
    let mut router = Router::with(Settings { block_driver, ..Settings::default() }, FEATURES);
    for name in PORTS {
        router.interface(name);
    }
    for (port, partner) in PARTNERS.iter().enumerate() {
        if let Some(partner) = partner {
            router.cli(&format!("set interface l2 xconnect {} {}", PORTS[port], PORTS[*partner]));
        }
    }
    let mut model = Model::default();
    for act in acts {
        match act {
            Act::Frames { port, count, length } => {
                let frames: Vec<_> = (0..count).map(|number| frame(number as u8, length)).collect();
                frames.iter().for_each(|frame| router.inject(PORTS[port], frame));
                router.run();
                let expected = model.sent(port);
                for (other, copies) in expected.into_iter().enumerate() {
                    let (mut out, mut all) = (router.sent(PORTS[other]), Vec::new());
                    (0..copies).for_each(|_| all.extend(frames.iter().cloned()));
                    out.sort();
                    all.sort();
                    assert_eq!(
                        out, all,
                        "{} of {} received by {}",
                        PORTS[other], count, PORTS[port]
                    );
                }
            }
            Act::Mirror { from, to, .. } if from == to => {
                router.refused(&format!(
                    "set interface span {} destination {}",
                    PORTS[from], PORTS[to]
                ));
            }
            Act::Mirror { from, to, direction } => {
                let word = DIRECTIONS[direction];
                router.cli(&format!(
                    "set interface span {} destination {} {word}",
                    PORTS[from], PORTS[to]
                ));
                for (mirrors, word) in [(&mut model.rx, "tx"), (&mut model.tx, "rx")] {
                    mirrors.remove(&(from, to));
                    if DIRECTIONS[direction] != word {
                        mirrors.insert((from, to));
                    }
                }
            }
            Act::End { from, to } => {
                let (rx, tx) = (model.rx.remove(&(from, to)), model.tx.remove(&(from, to)));
                let line =
                    format!("set interface span {} disable destination {}", PORTS[from], PORTS[to]);
                if rx || tx {
                    router.cli(&line);
                } else {
                    router.refused(&line);
                }
            }
            Act::Up { port, up } => {
                router.cli(&format!(
                    "set interface state {} {}",
                    PORTS[port],
                    if up { "up" } else { "down" }
                ));
                if up {
                    model.down.remove(&port);
                } else {
                    model.down.insert(port);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_copy_that_a_naive_mirror_makes_is_made_and_no_other(
        acts in prop::collection::vec(act(), 1..60),
        block_driver: bool,
    ) {
        play(acts, block_driver);
    }
}
