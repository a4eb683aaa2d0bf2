//! Entries of a multipoint tunnel.

use quiver_testkit::Router;

#[test]
fn an_entry_is_changed_shown_and_gone_with_its_tunnel() {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_teib::register,
        quiver_ipip::register,
    ]);
    router.interface("e0");
    let refusal = router.refused("create teib interface e0 peer 10.0.0.2 nh 192.0.2.2");
    assert!(refusal.contains("no multipoint tunnel"), "{refusal}");
    router.cli("create ipip tunnel src 192.0.2.1 multipoint");
    router.cli("create teib interface ipip0 peer 10.0.0.2 nh 192.0.2.2");
    router.cli("create teib interface ipip0 peer 2001:db8::2 nh 192.0.2.2");
    router.cli("create teib interface ipip0 peer 10.0.0.2 nh 192.0.2.3");
    let shown = router.json("show teib");
    assert_eq!((&shown[0]["nh"], &shown[1]["nh"]), (&"192.0.2.3".into(), &"192.0.2.2".into()));
    assert_eq!(router.json("show ipip tunnel").as_array().map(Vec::len), Some(2));
    let refusal = router.refused("create teib interface ipip0 peer 10.0.0.2 nh 2001:db8::9");
    assert!(refusal.contains("one family"), "{refusal}");
    assert_eq!(router.json("show teib"), shown);
    router.cli("delete teib interface ipip0 peer 10.0.0.2");
    router.refused("delete teib interface ipip0 peer 10.0.0.2");
    router.cli("delete ipip tunnel ipip0");
    assert_eq!(router.json("show teib"), serde_json::json!([]));
}
