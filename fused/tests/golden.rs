//! The golden packets of the features, in one pass and node by node, in every form that this
//! processor has: the malformed ones meet the same reasons everywhere.

use std::path::Path;

use quiver_testkit::Register;
use quiver_testkit::golden::run_all_with;

use crate::fixture::forms;

const IP: [Register; 3] = [quiver_ethernet::register, quiver_ip::register, quiver_fused::register];
/// Super-frames in packets of their own are cut.
const SRV6: [Register; 7] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_bridge::register,
    quiver_srv6::register,
    quiver_gso::register,
    quiver_fused::register,
];
/// Whose, and what is built in.
const FOLDERS: [(&str, &[Register]); 2] =
    [("../features/ip/tests/golden", &IP), ("../features/srv6/tests/golden", &SRV6)];

#[test]
fn golden_packets_come_out_alike_in_every_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for settings in forms() {
        for (folder, features) in FOLDERS {
            assert!(run_all_with(settings, &root.join(folder), features) > 0);
        }
    }
}
