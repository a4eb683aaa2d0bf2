//! Golden frames with bytes changed, cut or longer, to a router that translates: each is sent or
//! counted, no buffer is lost, and what is sent has right checksums of IPv4.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Router, hostile};

use crate::sessions::FEATURES;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    let lines = std::fs::read_to_string(format!("{GOLDEN}/flows/setup.cli")).expect("a file");
    router.script("setup", &lines).expect("a good configuration");
    router.run();
    router
}

/// Is the checksum of a sent frame's IPv4 header right?
fn is_good(frame: &[u8]) -> bool {
    if frame[12..14] != [8, 0] {
        return true;
    }
    let length = usize::from(frame[14] & 15) * 4;
    quiver_wire::checksum::of(&frame[14..14 + length]) == 0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in hostile::frames(Path::new(GOLDEN), 2, 60)) {
        let mut router = router();
        for (port, frame) in frames {
            router.inject(&format!("e{port}"), &frame);
            router.run();
            for interface in ["e0", "e1"] {
                prop_assert!(router.sent(interface).iter().all(|frame| is_good(frame)));
            }
        }
        router.cli("show nat44 sessions");
        router.advance(Duration::from_secs(40));
        router.run();
    }
}
