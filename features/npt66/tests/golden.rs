//! Golden packets: what scapy says comes out.

#[test]
fn golden_packets_come_out_as_scapy_says() {
    quiver_testkit::golden::run_all(
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")),
        &[quiver_ethernet::register, quiver_ip::register, quiver_npt66::register],
    );
}
