//! Golden packets: what comes out is what scapy says.

#[test]
fn golden_packets_come_out_as_scapy_says() {
    quiver_testkit::golden::run_all(
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")),
        &crate::fixture::FEATURES,
    );
}
