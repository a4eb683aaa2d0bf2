//! Golden frames with bytes changed, cut or longer, to interfaces whose lists make sessions: each
//! is sent or counted, and no buffer is lost.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::hostile;

use crate::sessions::router;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in hostile::frames(Path::new(GOLDEN), 2, 60)) {
        let mut router = router();
        for direction in ["input", "output"] {
            router.cli(&format!("set acl-plugin interface e1 {direction} acl 1"));
        }
        for (port, frame) in frames {
            router.inject(&format!("e{port}"), &frame);
            router.run();
        }
        router.cli("show acl-plugin sessions");
        router.advance(Duration::from_secs(40));
        router.run();
    }
}
