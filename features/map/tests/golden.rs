//! Golden packets: what comes out is what scapy says, in one pass and node by node.

use std::path::Path;

use quiver_testkit::Settings;
use quiver_testkit::golden::run_all_with;

use crate::fixture::FEATURES;

#[test]
fn golden_packets_come_out_as_scapy_says() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
    for block_driver in [true, false] {
        let settings = Settings { block_driver, ..Settings::default() };
        assert_eq!(run_all_with(settings, folder, &FEATURES), 2);
    }
}
