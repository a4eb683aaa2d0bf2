//! What operators type about compressed SIDs.

use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_srv6::register]);
    router.interface("e0");
    router.cli("set interface ip address e0 2001:db8::1/64");
    router
}

fn configured(router: &mut Router) -> Vec<String> {
    let all = router.cli("show running-config");
    all.lines().filter(|line| line.starts_with("sr localsid")).map(str::to_owned).collect()
}

#[test]
fn compressed_sids_are_written_back_as_they_were_given() {
    let mut router = router();
    let mut lines = [
        "sr localsid address fcbb:bbbb:1::/48 behavior un psp usd",
        "sr localsid address fcbb:bbbb:1:f001::/64 behavior ua e0 2001:db8::2 c-sid 32",
        "sr localsid address fcbb:bbbb:2::/48 behavior ut 0",
        "sr localsid address fc00:0:b:1:1::/80 behavior end.replace usp",
        "sr localsid address fc00:0:b:1:2::/80 behavior end.x.replace e0 2001:db8::2 psp",
        "sr localsid address fc00:0:b:3::/64 behavior end.t.replace 0 c-sid 16",
    ];
    for line in lines {
        router.cli(line);
    }
    lines.sort_unstable();
    let mut written = configured(&mut router);
    written.sort();
    assert_eq!(written, lines);
    for line in lines {
        let place = line.split(" behavior").next().unwrap().replace("localsid", "localsid del");
        router.cli(&place);
    }
    assert!(configured(&mut router).is_empty());
}

#[test]
fn a_structure_that_cannot_be_is_refused() {
    let mut router = router();
    for (line, says) in [
        ("sr localsid address fcbb:bbbb:1:: behavior un", "a SID of 128 bits"),
        ("sr localsid address fcbb::/16 behavior un", "a SID of 16 bits"),
        ("sr localsid address fcbb:bbbb:1::/48 behavior un c-sid 48", "C-SID of 48 bits"),
        ("sr localsid address fcbb:bbbb:1::/48 behavior end.replace c-sid 24", "16 or 32"),
        ("sr localsid address fcbb:bbbb:1::/48 behavior ut 77", "no IPv6 table 77"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    assert!(configured(&mut router).is_empty());
}
