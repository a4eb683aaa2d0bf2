//! Golden packets: what scapy says comes out.

use crate::sessions::FEATURES;

#[test]
fn golden_packets_come_out_as_scapy_says() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
    quiver_testkit::golden::run_all(folder, &FEATURES);
}
