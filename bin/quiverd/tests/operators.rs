//! What the fingers of an operator of VPP type, verbatim, on the whole router.

use quiver_testkit::{Router, Settings};
use quiverd::features;

fn router() -> Router {
    let mut router = Router::whole(Settings::default(), features::register);
    for port in ["e0", "e1", "e2"] {
        router.interface(port);
    }
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e1 2001:db8::1/64");
    router
}

#[test]
fn routes_are_taken_in_every_order_of_words() {
    let mut router = router();
    router.cli("ip table add 7 name blue");
    for line in [
        "ip route 198.51.100.0/24 via 10.0.0.2",
        "ip route add table 7 198.51.101.0/24 via 10.0.0.2 e0",
        "ip route add 198.51.102.0/24 via 10.0.0.2 e0 table 7",
        "ip route table 7 198.51.103.0/24 via 10.0.0.2 e0",
        "ip route add count 3 198.51.104.0/24 via 10.0.0.2",
        "ip route add 198.51.107.0/24 via 10.0.0.2 count 2",
        "ip route add 2001:db8:1::/48 via 2001:db8::2 e1",
        "ip route add 2001:db8:2::/48 via fe80::2 e1",
        "ip route add 198.51.110.0/24 via 10.0.0.2 weight 2 via 10.0.0.3 weight 1",
    ] {
        router.cli(line);
    }
    let config = router.cli("show running-config");
    for line in [
        "ip route add 198.51.100.0/24 via 10.0.0.2\n",
        "ip route add 198.51.101.0/24 table 7 count 3 via 10.0.0.2 e0\n",
        "ip route add 198.51.104.0/24 count 5 via 10.0.0.2\n",
        "ip route add 2001:db8:2::/48 via fe80::2 e1\n",
        "ip table add 7 name blue\n",
    ] {
        assert!(config.contains(line), "{line} in {config}");
    }
    router.cli("ip route del table 7 198.51.101.0/24");
    router.cli("ip route del count 5 198.51.104.0/24");
    assert!(!router.cli("show running-config").contains("198.51.104.0"));
    assert!(router.refused("ip route 10.9.0.0/16").contains("via"));
}

/// Lines that VPP's pages and articles show, each of which must be understood as it stands.
const LINES: &[&str] = &[
    "show version",
    "show int",
    "sh int addr",
    "show hardware",
    "show hardware-interfaces verbose",
    "show interface tag",
    "show interface l2 tag-rewrite",
    "show interface features e0",
    "show node counters",
    "clear node counters",
    "show errors",
    "show plugins",
    "show clock",
    "show clock verbose",
    "show runtime",
    "show run verbose",
    "clear runtime",
    "clear interfaces",
    "clear counters",
    "clear hardware",
    "clear hardware-interfaces",
    "clear ip neighbors",
    "clear ip6 neighbors",
    "clear errors",
    "clear trace",
    "show threads",
    "show memory",
    "show buffers",
    "show ip fib",
    "show ip fib table 0",
    "show ip fib 10.0.0.0/24",
    "show ip6 fib",
    "show ip neighbors",
    "show ip4 neighbors",
    "show ip6 neighbors",
    "show ip table",
    "show ip6 table",
    "show adj",
    "show bridge-domain",
    "show l2fib verbose",
    "show l2fib all",
    "show mode",
    "show trace",
    "show trace max 10",
    "loop create",
    "loopback create-interface instance 3",
    "create loopback interface instance 4",
    "loopback delete-interface intfc loop4",
    "set interface state loop3 up",
    "set int ip address loop3 10.3.0.1/24",
    "set int ip addr del loop3 10.3.0.1/24",
    "set int ip addr loop3 10.3.0.1/24",
    "set int ip addr loop3 2001:db8:3::1/64",
    "set int ip addr del loop3 all",
    "set interface mtu 1400 loop3",
    "set interface tag e0 \"to the core\"",
    "set interface name e2 customer",
    "clear interface tag e0",
    "set ip neighbor e0 10.0.0.9 02:00:00:00:00:09",
    "set ip neighbor del e0 10.0.0.9",
    "create bridge-domain 5 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0",
    "set bridge-domain learn 5 enable",
    "set bridge-domain forward 5 enable",
    "set bridge-domain flood 5 enable",
    "set bridge-domain uu-flood 5 disable",
    "set bridge-domain arp term 5 enable",
    "set bridge-domain mac-age 5 10",
    "set interface l2 bridge customer 5 1",
    "set interface l2 learn customer enable",
    "set interface l2 tag-rewrite customer disable",
    "show bridge-domain 5 detail",
    "show bridge-domain 5 int",
    "show bridge 5",
    "set interface l3 customer",
    "create sub-interfaces e0 100",
    "create sub e0 101 dot1q 101 exact-match",
    "create sub-interface e0 102",
    "delete sub-interface e0.101",
    "ping ipv4 10.0.0.1 repeat 1",
    "ping ipv6 2001:db8::1 repeat 1",
    "ping 10.0.0.1 source e0 repeat 1",
    "trace add test-input 10",
    "ip table add 9",
    "ip6 table add 9",
    "ip table 10",
    "set interface unnumbered customer use loop3",
    "set interface unnumbered del customer",
    "set interface ip table customer 9",
    "ip table del 10",
    "set interface promiscuous on e0",
    "set interface promiscuous off e0",
    "enable ip6 interface loop3",
    "disable ip6 interface loop3",
    "test l2patch rx e0 tx e1",
    "test l2patch rx e0 tx e1 del",
];

#[test]
fn the_words_of_vpp_are_understood_as_they_stand() {
    let mut router = router();
    let refused: Vec<String> = LINES
        .iter()
        .filter_map(|line| router.execute(line).err().map(|refusal| format!("{line}: {refusal}")))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_renamed_interface_keeps_all_it_has_and_is_made_again_under_its_name() {
    let mut first = Router::whole(Settings::default(), features::register);
    first.cli("create loopback interface instance 0");
    first.cli("create packet-generator interface pg0");
    first.cli("create sub-interfaces loop0 100");
    first.cli("set interface name loop0 core");
    first.cli("set interface name core.100 customer");
    first.cli("set interface name pg0 source");
    first.cli("set interface tag customer \"rack 7\"");
    first.cli("set interface state core up");
    first.cli("set interface ip address customer 10.0.0.1/24");
    for gone in ["loop0", "core.100", "pg0"] {
        assert!(first.refused(&format!("set interface state {gone} up")).contains(gone));
    }
    assert!(first.refused("set interface name source core").contains("exists already"));
    // The name that it was made with is not free, or the configuration could not make both.
    assert!(first.refused("set interface name source loop0").contains("exists already"));
    assert_eq!(first.cli("create loopback interface"), "loop1\n");
    assert!(first.cli("show node core-tx").starts_with("core-tx "));
    assert!(first.refused("show node loop0-tx").contains("loop0-tx"));
    let config = first.cli("show running-config");
    let mut second = Router::whole(Settings::default(), features::register);
    second.script("saved", &config).unwrap_or_else(|refusal| panic!("{refusal}\n{config}"));
    assert_eq!(second.cli("show running-config"), config);
    assert_eq!(second.json("show interface customer")["interfaces"][0]["tag"], "rack 7");
    second.cli("set interface name core loop0");
    assert!(!second.cli("show running-config").contains("set interface name loop0 "));
    second.cli("delete loopback interface intfc loop0");
    assert!(!second.cli("show running-config").contains("customer"));
}

#[test]
fn secrets_are_hidden_unless_they_are_asked_for_and_hidden_ones_are_refused() {
    let mut first = Router::whole(Settings::default(), features::register);
    first.cli("sr hmac key 7 algo sha256 secret correct-horse");
    let shown = first.cli("show running-config");
    assert!(
        shown.contains("sr hmac key 7 algo sha256 secret <hidden>")
            && shown.contains("# secrets are hidden")
    );
    for line in
        ["show running-config", "show running-config json", "show sr hmac", "show sr hmac json"]
    {
        assert!(!first.cli(line).contains("correct-horse"), "{line}");
    }
    let whole = first.cli("show running-config secrets");
    assert!(whole.contains("secret correct-horse") && !whole.contains('#'), "{whole}");
    let mut second = Router::whole(Settings::default(), features::register);
    let refused = second.script("saved", &shown).expect_err("a hidden secret").to_string();
    assert!(refused.contains("show running-config secrets"), "{refused}");
    second.script("saved", &whole).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(second.cli("show running-config secrets"), whole);
}

#[test]
fn learned_neighbours_are_forgotten_and_configured_ones_stay() {
    let mut router = router();
    router.cli("set ip neighbor e0 10.0.0.9 02:00:00:00:00:09");
    router.cli("ip route add 198.51.100.0/24 via 10.0.0.7");
    assert!(router.cli("clear ip neighbors").contains("0 forgotten"));
    assert!(router.cli("show ip neighbors").contains("10.0.0.9"));
}

#[test]
fn counters_count_from_a_clear() {
    let mut router = router();
    router.cli("ping 10.0.0.1 repeat 1");
    router.send("e0", &[0; 60]);
    let packets = |router: &mut Router| {
        router.json("show interface e0")["interfaces"][0]["counters"]["rx_packets"].clone()
    };
    assert_eq!(packets(&mut router), 1);
    assert_ne!(router.json("show node counters")["errors"], serde_json::json!([]));
    router.cli("clear counters");
    assert_eq!(packets(&mut router), 0);
    assert_eq!(router.json("show node counters")["errors"], serde_json::json!([]));
}
