//! Drop reasons as collectors know them (`drop_reason` of sflow_drops.txt, "sFlow Dropped Packet
//! Notification Structures", October 2020).

use quiver_forwarding::fib::Family;
use quiver_wire::icmp4::kind as icmp4;
use quiver_wire::icmp6::kind as icmp6;

/// Codes below are those of ICMP "destination unreachable" (RFC 792, RFC 1812 §5.2.7.1).
const UNREACHABLE_CODES: u8 = 16;
const NET_UNREACHABLE: u32 = 0;
const HOST_UNREACHABLE: u32 = 1;
const PROTOCOL_UNREACHABLE: u32 = 2;
const PORT_UNREACHABLE: u32 = 3;
const SRC_ROUTE_FAILED: u32 = 5;
const DST_NET_UNKNOWN: u32 = 6;
const DST_NET_PROHIBITED: u32 = 9;
const COMM_ADMIN_PROHIBITED: u32 = 13;
const UNKNOWN: u32 = 256;
const TTL_EXCEEDED: u32 = 257;
const ACL: u32 = 258;
const NO_BUFFER_SPACE: u32 = 259;
const RED: u32 = 260;
const TRAFFIC_SHAPING: u32 = 261;
const PKT_TOO_BIG: u32 = 262;
const SRC_MAC_IS_MULTICAST: u32 = 263;
const INGRESS_VLAN_FILTER: u32 = 265;
const PORT_LIST_IS_EMPTY: u32 = 267;
const PORT_LOOPBACK_FILTER: u32 = 268;
const BLACKHOLE_ROUTE: u32 = 269;
const NON_IP: u32 = 270;
const UC_DIP_OVER_MC_DMAC: u32 = 271;
const DIP_IS_LOOPBACK_ADDRESS: u32 = 272;
const SIP_IS_MC: u32 = 273;
const SIP_IS_LOOPBACK_ADDRESS: u32 = 274;
const IP_HEADER_CORRUPTED: u32 = 275;
const IPV4_SIP_IS_LIMITED_BC: u32 = 276;
const IPV6_MC_DIP_INTERFACE_LOCAL_SCOPE: u32 = 278;
const UNRESOLVED_NEIGH: u32 = 279;
const MC_REVERSE_PATH_FORWARDING: u32 = 280;
const NON_ROUTABLE_PACKET: u32 = 281;
const DECAP_ERROR: u32 = 282;
const UNKNOWN_L2: u32 = 284;
const UNKNOWN_L3: u32 = 285;
const UNKNOWN_TUNNEL: u32 = 288;
const UNKNOWN_L4: u32 = 289;

/// A part of a node's name, a reason, and the code of what has both. Nothing stands for all.
pub(crate) type Rule = (&'static str, &'static str, u32);

/// The first rule that applies gives the code.
pub(crate) const RULES: &[Rule] = &[
    // Of whole features.
    ("acl-plugin", "", ACL),
    ("cop-", "", ACL),
    ("input-acl", "denied", ACL),
    ("output-acl", "denied", ACL),
    ("urpf", "", UNKNOWN_L3),
    ("dhcp", "", UNKNOWN),
    ("shaper", "codel", RED),
    ("shaper", "overlimit", NO_BUFFER_SPACE),
    ("", "policed", TRAFFIC_SHAPING),
    // Neighbours that are not known.
    ("ip4-arp", "", UNRESOLVED_NEIGH),
    ("ip6-discover-neighbor", "", UNRESOLVED_NEIGH),
    ("resolve-neighbor", "", UNRESOLVED_NEIGH),
    // Headers of IP packets.
    ("ip4-input", "source-multicast", SIP_IS_MC),
    ("ip6-input", "source-multicast", SIP_IS_MC),
    ("ip4-input", "source-broadcast", IPV4_SIP_IS_LIMITED_BC),
    ("-input", "source-loopback", SIP_IS_LOOPBACK_ADDRESS),
    ("-input", "destination-loopback", DIP_IS_LOOPBACK_ADDRESS),
    ("-input", "unicast-in-l2-group", UC_DIP_OVER_MC_DMAC),
    ("ip6-input", "destination-interface-local", IPV6_MC_DIP_INTERFACE_LOCAL_SCOPE),
    ("ip4-input", "bad-", IP_HEADER_CORRUPTED),
    ("ip4-input", "length-", IP_HEADER_CORRUPTED),
    ("ip4-input", "truncated", IP_HEADER_CORRUPTED),
    ("ip6-input", "bad-", IP_HEADER_CORRUPTED),
    ("ip6-input", "length-", IP_HEADER_CORRUPTED),
    ("ip6-input", "truncated", IP_HEADER_CORRUPTED),
    // Routes.
    ("", "no-route", DST_NET_UNKNOWN),
    ("", "no-label-route", DST_NET_UNKNOWN),
    ("", "route-drops", BLACKHOLE_ROUTE),
    ("", "route-unreachable", NET_UNREACHABLE),
    ("", "route-prohibits", DST_NET_PROHIBITED),
    ("-drop", "not-enabled", NON_ROUTABLE_PACKET),
    ("", "rpf-failure", MC_REVERSE_PATH_FORWARDING),
    ("", "ttl-expired", TTL_EXCEEDED),
    ("", "ttl-too-low", TTL_EXCEEDED),
    ("", "hop-limit", TTL_EXCEEDED),
    // Packets for the router itself.
    ("", "udp-port-closed", PORT_UNREACHABLE),
    ("", "protocol-unknown", PROTOCOL_UNREACHABLE),
    ("", "source-route", SRC_ROUTE_FAILED),
    ("-local", "udp-bad-", UNKNOWN_L4),
    ("-local", "tcp-bad-", UNKNOWN_L4),
    // Room.
    ("", "too-big", PKT_TOO_BIG),
    ("", "frame-too-big", PKT_TOO_BIG),
    ("", "tx-too-long", PKT_TOO_BIG),
    ("", "no-buffer", NO_BUFFER_SPACE),
    ("", "tx-ring-full", NO_BUFFER_SPACE),
    ("", "congestion", NO_BUFFER_SPACE),
    ("", "hand-off-full", NO_BUFFER_SPACE),
    ("", "handoff-full", NO_BUFFER_SPACE),
    ("", "buffers-limit", NO_BUFFER_SPACE),
    // Frames.
    ("l2-input", "bad-source", SRC_MAC_IS_MULTICAST),
    ("l2-flood", "no-port", PORT_LIST_IS_EMPTY),
    ("l2-fwd", "own-port", PORT_LOOPBACK_FILTER),
    ("l2-fwd", "split-horizon", PORT_LOOPBACK_FILTER),
    ("vlan-input", "unknown-vlan", INGRESS_VLAN_FILTER),
    ("", "unknown-ethertype", NON_IP),
    ("", "llc", NON_IP),
    ("l2-", "", UNKNOWN_L2),
    ("ethernet-input", "", UNKNOWN_L2),
    ("vlan-input", "", UNKNOWN_L2),
    ("bond-input", "", UNKNOWN_L2),
    // Tunnels.
    ("", "inner-packet-wrong", DECAP_ERROR),
    ("", "congestion-not-carried", DECAP_ERROR),
    ("", "inner-wrong", DECAP_ERROR),
    ("gre", "", UNKNOWN_TUNNEL),
    ("vxlan", "", UNKNOWN_TUNNEL),
    ("geneve", "", UNKNOWN_TUNNEL),
    ("ipip", "", UNKNOWN_TUNNEL),
    ("6rd", "", UNKNOWN_TUNNEL),
    ("l2tpv3", "", UNKNOWN_TUNNEL),
    ("dslite", "", UNKNOWN_TUNNEL),
    // What is left of a layer.
    ("ip4-", "", UNKNOWN_L3),
    ("ip6-", "", UNKNOWN_L3),
    ("mpls-", "", UNKNOWN_L3),
];

/// Does a rule apply? A reason that ends with a hyphen stands for all that begin with it.
fn applies((part, wanted, _): &Rule, node: &str, reason: &str) -> bool {
    let is_reason = match wanted.ends_with('-') {
        true => reason.starts_with(wanted),
        false => wanted.is_empty() || reason == *wanted,
    };
    is_reason && node.contains(part)
}

/// The code of a reason of a node.
pub(crate) fn of_drop(node: &str, reason: &str) -> u32 {
    let rule = RULES.iter().find(|rule| applies(rule, node, reason));
    rule.map_or(UNKNOWN, |(.., code)| *code)
}

/// The code of a packet whose sender gets an ICMP error of this type and code.
pub(crate) fn of_icmp(family: Family, kind: u8, code: u8) -> u32 {
    match (family, kind, code) {
        (Family::Ip4, icmp4::DESTINATION_UNREACHABLE, 0..UNREACHABLE_CODES) => code.into(),
        (Family::Ip4, icmp4::TIME_EXCEEDED, _) => TTL_EXCEEDED,
        (Family::Ip4, icmp4::PARAMETER_PROBLEM, _) => IP_HEADER_CORRUPTED,
        // RFC 4443 §3.1: no route, prohibited or source refused, address, port, route rejects.
        (Family::Ip6, icmp6::DESTINATION_UNREACHABLE, 0) => NET_UNREACHABLE,
        (Family::Ip6, icmp6::DESTINATION_UNREACHABLE, 1 | 5) => COMM_ADMIN_PROHIBITED,
        (Family::Ip6, icmp6::DESTINATION_UNREACHABLE, 3) => HOST_UNREACHABLE,
        (Family::Ip6, icmp6::DESTINATION_UNREACHABLE, 4) => PORT_UNREACHABLE,
        (Family::Ip6, icmp6::DESTINATION_UNREACHABLE, 6) => DST_NET_PROHIBITED,
        (Family::Ip6, icmp6::PACKET_TOO_BIG, _) => PKT_TOO_BIG,
        (Family::Ip6, icmp6::TIME_EXCEEDED, _) => TTL_EXCEEDED,
        // RFC 4443 §3.4: a next header that is not known.
        (Family::Ip6, icmp6::PARAMETER_PROBLEM, 1) => PROTOCOL_UNREACHABLE,
        (Family::Ip6, icmp6::PARAMETER_PROBLEM, _) => IP_HEADER_CORRUPTED,
        _ => UNKNOWN_L3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::graph::builtin::TxDrop;
    use quiver_core::graph::node::Reason;

    /// Nodes and their drop reasons, as the reference lists them, and those of devices.
    fn reasons() -> Vec<(&'static str, &'static str)> {
        let reference = include_str!("../../../docs/reference/counters.md");
        let cells = reference.lines().map(|line| line.split(" | ").collect::<Vec<_>>());
        cells
            .filter_map(|cells| match cells[..] {
                [node, reason, "drop", ..] => Some((node.trim_start_matches("| "), reason)),
                _ => None,
            })
            .chain(TxDrop::ALL.iter().map(|text| ("e0-tx", text.name)))
            .collect()
    }

    #[test]
    fn each_rule_is_the_first_one_for_some_reason_that_a_node_has() {
        let (reasons, mut used) = (reasons(), vec![false; RULES.len()]);
        for (node, reason) in &reasons {
            if let Some(place) = RULES.iter().position(|rule| applies(rule, node, reason)) {
                used[place] = true;
            }
        }
        assert!(reasons.len() > 1_000, "the reference is read");
        let stale: Vec<_> = RULES.iter().zip(used).filter(|(_, used)| !used).collect();
        assert!(stale.is_empty(), "{stale:?}");
    }

    #[test]
    fn frequent_reasons_have_the_codes_that_a_collector_shows() {
        for (node, reason, code) in [
            ("ip4-drop", "no-route", DST_NET_UNKNOWN),
            ("ip6-drop", "route-drops", BLACKHOLE_ROUTE),
            ("ip4-rx-urpf", "no-route", UNKNOWN_L3),
            ("acl-plugin-in-ip4-fa", "acl-deny", ACL),
            ("ip4-arp", "unanswered", UNRESOLVED_NEIGH),
            ("ip4-input", "bad-checksum", IP_HEADER_CORRUPTED),
            ("policer-input", "policed", TRAFFIC_SHAPING),
            ("ethernet-input", "mac-mismatch", UNKNOWN_L2),
            ("nat44-ed-in2out", "non-syn", UNKNOWN),
        ] {
            assert_eq!(of_drop(node, reason), code, "{node} {reason}");
        }
        assert_eq!(of_icmp(Family::Ip4, 11, 0), TTL_EXCEEDED);
        assert_eq!(of_icmp(Family::Ip4, 3, 4), 4, "frag_needed");
        assert_eq!(of_icmp(Family::Ip6, 2, 0), PKT_TOO_BIG);
        assert_eq!(of_icmp(Family::Ip4, 99, 99), UNKNOWN_L3);
    }
}
