//! The golden packets of the features, through superblocks and node by node, in every form that this
//! processor has: the malformed ones meet the same reasons everywhere.

use std::path::Path;

use quiver_core::cpu::Variant;
use quiver_testkit::golden::run_all_with;
use quiver_testkit::{Register, Settings};

const FEATURES: [Register; 6] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_bridge::register,
    quiver_reassembly::register,
    quiver_srv6::register,
    quiver_superblocks::register,
];
/// Whose.
const FOLDERS: [&str; 2] = ["../features/ip/tests/golden", "../features/srv6/tests/golden"];

#[test]
fn golden_packets_come_out_alike_in_every_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for variant in Variant::available() {
        for superblocks in [false, true] {
            let settings = Settings { variant, superblocks, ..Settings::default() };
            for folder in FOLDERS {
                assert!(run_all_with(settings, &root.join(folder), &FEATURES) > 0);
            }
        }
    }
}
