//! What operators type about local SIDs.

use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_srv6::register]);
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router
}

fn configured(router: &mut Router) -> Vec<String> {
    let all = router.cli("show running-config");
    all.lines().filter(|line| line.starts_with("sr localsid")).map(str::to_owned).collect()
}

#[test]
fn local_sids_are_written_back_as_they_were_given() {
    let mut router = router();
    router.cli("ip6 table add 10");
    router.cli("ip table add 10");
    let lines = [
        "sr localsid address fc00:0:1::1 behavior end",
        "sr localsid address fc00:0:1::2 behavior end psp usp usd",
        "sr localsid address fc00:0:1::3 behavior end.t 10 usd",
        "sr localsid address fc00:0:1:8000::/49 behavior end psp",
        "sr localsid address fc00:0:1::1 fib-table 10 behavior end",
    ];
    for line in lines {
        router.cli(line);
    }
    let mut before = configured(&mut router);
    before.sort();
    let mut expected = lines.to_vec();
    expected.sort_unstable();
    assert_eq!(before, expected);
    for line in lines {
        let place = line.split(" behavior").next().unwrap().replace("localsid", "localsid del");
        router.cli(&place);
    }
    assert!(configured(&mut router).is_empty());
    router.cli("ip6 table del 10");
    router.cli("ip table del 10");
}

#[test]
fn a_sid_beside_an_address_is_taken_in_either_order_and_the_address_goes_before_it() {
    let mut router = router();
    let said = router.cli("sr localsid address 2001:db8:0::1 behavior end");
    assert!(said.contains("also an address or a subnet of the router itself"), "{said}");
    assert!(
        router.cli("show ip6 fib 2001:db8:0::1/128").contains("local"),
        "the address goes before it"
    );
}

#[test]
fn a_sid_that_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end");
    let before = configured(&mut router);
    for (line, says) in [
        ("sr localsid address fc00:0:1::1 behavior end psp", "exists already: end"),
        ("sr localsid address ff02::1 behavior end", "cannot be a SID"),
        ("sr localsid address fe80::1 behavior end", "cannot be a SID"),
        ("sr localsid address :: behavior end", "cannot be a SID"),
        ("sr localsid address fc00:0:1::1/64 behavior end", "bits set behind its length"),
        (
            "sr localsid address fc00:0:1::2 behavior end.t 77",
            "no IPv6 table 77; add it first (ip6 table add 77)",
        ),
        ("sr localsid address fc00:0:1::2 behavior end.dt4 77", "(ip table add 77)"),
        ("sr vlan-table add 1 vlan 100", "vlan 100 in VLAN table 1: no interface to send out of"),
        ("sr localsid address fc00:0:1::2 fib-table 77 behavior end", "no IPv6 table 77"),
        ("sr localsid address fc00:0:1::2 behavior end.w", "end.t"),
        ("sr localsid del address fc00:0:1::9", "no local SID fc00:0:1::9"),
        ("show sr localsids fc00:0:1::9", "no local SID"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    assert_eq!(configured(&mut router), before);
    router.cli("ip6 table add 10");
    router.cli("sr localsid address fc00:0:1::2 behavior end.t 10");
    assert!(router.refused("ip6 table del 10").contains("a local SID"));
    assert!(
        router
            .refused("sr localsid address fc00:0:1::3 behavior end.t 10 usd")
            .contains("IPv4 table 10")
    );
}

#[test]
fn what_is_shown_of_a_sid_is_shown_in_json_too() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end psp");
    let all = router.json("show sr localsids");
    let first = &all[0];
    assert_eq!((&first["sid"], &first["behavior"]), (&"fc00:0:1::1".into(), &"end psp".into()));
    assert_eq!((&first["packets"], &first["bad_packets"]), (&0.into(), &0.into()), "{first}");
    let text = router.cli("show sr localsids fc00:0:1::1");
    assert!(text.contains("end psp"), "{text}");
    router.cli("clear sr localsid-counters");
}
