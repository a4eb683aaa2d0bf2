//! The golden packets of the features, through superblocks and node by node, in every form that this
//! processor has: the malformed ones meet the same reasons everywhere.

use std::path::Path;

use quiver_core::cpu::Variant;
use quiver_testkit::golden::run_all_with;
use quiver_testkit::{Register, Settings};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_superblocks::register];

#[test]
fn golden_packets_come_out_alike_in_every_form() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../features/ip/tests/golden"));
    for variant in Variant::available() {
        for superblocks in [false, true] {
            let settings = Settings { variant, superblocks, ..Settings::default() };
            assert!(run_all_with(settings, folder, &FEATURES) > 0);
        }
    }
}
