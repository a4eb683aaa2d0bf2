//! What operators type.

use quiver_testkit::Router;
use quiver_testkit::configuration::running;

const BINDING: &str =
    "set npt66 binding interface e1 internal fd01:203:405::/48 external 2001:db8:1::/48";

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_npt66::register]);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    router
}

fn bindings(router: &mut Router) -> Vec<String> {
    let text = router.cli("show running-config");
    text.lines().filter(|line| line.contains("npt66")).map(str::to_owned).collect()
}

#[test]
fn bindings_are_written_down_and_go_with_their_interface() {
    let mut router = router();
    let second = "set npt66 binding interface e1 internal fd07::/56 external 2001:db8:7::/60";
    for line in [BINDING, second, BINDING] {
        router.cli(line);
    }
    assert_eq!(bindings(&mut router), [BINDING, second]);
    let mut again = self::router();
    again.script("again", &bindings(&mut router).join("\n")).expect("what it wrote itself");
    assert_eq!(bindings(&mut again), bindings(&mut router));
    let shown = router.json("show npt66 bindings e1");
    assert_eq!(shown[1]["external"], "2001:db8:7::/60");
    router.cli(&format!("{BINDING} del"));
    assert_eq!(bindings(&mut router), [second]);
    let e1 = router.id("e1");
    router.engine().delete_interface(e1).expect("it is there");
    assert!(bindings(&mut router).is_empty());
    assert_eq!(router.json("show npt66 bindings"), serde_json::json!([]));
}

#[test]
fn the_other_address_is_computed() {
    let mut router = router();
    router.cli(BINDING);
    let shown = router.json("show npt66 address fd01:203:405:1::1234");
    assert_eq!(shown[0]["side"], "external");
    assert_eq!(shown[0]["address"], "2001:db8:1:d550::1234");
    let shown = router.json("show npt66 address 2001:db8:1:d550::1234");
    assert_eq!(shown[0]["address"], "fd01:203:405:1::1234");
    let shown = router.json("show npt66 address fd01:203:405:ffff::1");
    assert!(shown[0]["address"].is_null());
    assert_eq!(router.json("show npt66 address 2001:db8:2::1"), serde_json::json!([]));
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router();
    router.cli(BINDING);
    let before = running(&mut router);
    for (internal, external, says) in [
        ("fd02::/65", "2001:db8:2::/48", "from 1 to 64 bits"),
        ("fd02::/48", "::/0", "from 1 to 64 bits"),
        ("fd02::1/48", "2001:db8:2::/48", "fd02::/48 would be right"),
        ("fe80::/48", "2001:db8:2::/48", "link-local"),
        ("fd02::/48", "ff00::/48", "multicast"),
        ("e000::/3", "2001:db8:2::/48", "link-local or multicast"),
        ("2001:db8::/32", "2001:db8::/40", "overlap"),
        ("fd01:203:405:6::/64", "2001:db8:2::/64", "already"),
        ("fd02::/32", "2001:db8::/32", "already"),
    ] {
        let line =
            format!("set npt66 binding interface e1 internal {internal} external {external}");
        let refusal = router.refused(&line);
        assert!(refusal.contains(says), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
    let refusal = router.refused(
        "set npt66 binding interface e0 internal fd01:203:405::/48 external 2001:db8:1::/48 del",
    );
    assert!(refusal.contains("e0 does not translate"), "{refusal}");
    for number in 0..15 {
        router.cli(&format!(
            "set npt66 binding interface e1 internal fd09:{number}::/48 external \
             2001:db9:{number}::/48"
        ));
    }
    let refusal =
        router.refused("set npt66 binding interface e1 internal fd0a::/48 external 2001:dba::/48");
    assert!(refusal.contains("16 bindings"), "{refusal}");
}
