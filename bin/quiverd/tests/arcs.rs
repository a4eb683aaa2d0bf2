//! The order of features in the arcs of the whole router.

use quiver_testkit::Router;

/// Each arc with features, and these in order.
const ARCS: [(&str, &[&str]); 4] = [
    (
        "device-input",
        &[
            "flowprobe-input",
            "qos-record",
            "sflow-input",
            "span-input",
            "bond-input",
            "l2-patch",
            "linux-cp-xc",
            "vlan-input",
            "l2-input-vtr",
            "acl-plugin-in-ip4-l2",
            "acl-plugin-in-ip6-l2",
            "acl-plugin-in-nonip-l2",
            "acl-plugin-macip",
            "classify-input-acl",
            "policer-classify-input",
            "policer-classify-input-ip4",
            "policer-classify-input-ip6",
            "policer-input",
            "policer-subscriber-input",
        ],
    ),
    (
        "interface-output",
        &[
            "l2-output-vtr",
            "l2-efp-filter",
            "ip4-tx-urpf",
            "ip6-tx-urpf",
            "qos-mark",
            "acl-plugin-out-ip4-fa",
            "acl-plugin-out-ip6-fa",
            "acl-plugin-out-nonip-l2",
            "classify-output-acl",
            "policer-classify-output",
            "policer-classify-output-ip4",
            "policer-classify-output-ip6",
            "policer-output",
            "policer-subscriber-output",
            "npt66-output",
            "shaper-output",
            "bvi-output",
            "gro",
            "gso-output",
            "tx-checksum-output",
            "flowprobe-output",
            "sflow-output",
            "span-output",
        ],
    ),
    (
        "ip4-unicast",
        &[
            "ip4-dhcp-client-detect",
            "ip4-full-reassembly-feature",
            "ip4-sv-reassembly-feature",
            "ip4-rx-urpf",
            "acl-plugin-in-ip4-fa",
            "ip4-cop-whitelist",
            "sr-proxy-ip4",
            "det44-out2in",
            "det44-in2out",
            "nat44-ed-out2in",
            "nat44-ed-in2out",
            "nat64-out2in",
            "abf-input-acl-ip4",
            "abf-input-ip4",
            "classify-fib-ip4",
        ],
    ),
    (
        "ip6-unicast",
        &[
            "ip6-hop-by-hop-process",
            "ip6-hop-by-hop-drop",
            "ip6-hop-by-hop-punt",
            "ip6-full-reassembly-feature",
            "ip6-sv-reassembly-feature",
            "ip6-rx-urpf",
            "acl-plugin-in-ip6-fa",
            "ip6-cop-whitelist",
            "sr-proxy-ip6",
            "sr-proxy-am",
            "nat64-in2out",
            "nat66-in2out",
            "nat66-out2in",
            "npt66-input",
            "abf-input-acl-ip6",
            "abf-input-ip6",
            "classify-fib-ip6",
            "sr-hmac-input",
        ],
    ),
];

#[test]
fn features_stand_in_the_listed_order() {
    let mut router = Router::new(&[quiverd::features::built_in]);
    let arcs = router.engine().arcs().iter().filter(|arc| !arc.features.is_empty());
    let mut found: Vec<_> = arcs.map(|arc| (arc.name, arc.features.as_slice())).collect();
    found.sort_unstable();
    assert_eq!(found, ARCS);
}
