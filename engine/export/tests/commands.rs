//! Commands: what is refused, and what `show running-config` says.

use quiver_testkit::Router;

fn router() -> Router {
    Router::new(&[quiver_export::register])
}

#[test]
fn what_is_configured_is_written_as_it_can_be_typed_again() {
    for line in [
        "set ipfix exporter collector 192.0.2.9 src 192.0.2.1",
        "set ipfix exporter collector 2001:db8::9 src 2001:db8::1 port 9995 path-mtu 1500 \
         template-interval 60",
        "set ipfix exporter collector 192.0.2.9 src 192.0.2.1 format netflow-v9",
        "ipfix collector 192.0.2.10 src 192.0.2.1",
        "ipfix collector 2001:db8::9 src 2001:db8::1 port 9995 path-mtu 1500 template-interval 60 \
         format netflow-v9",
        "set syslog sender collector 192.0.2.9 src 192.0.2.1 port 5514 max-msg-size 1024",
        "set syslog filter severity warn",
    ] {
        let mut router = router();
        router.cli(line);
        let written = router.cli("show running-config");
        assert!(written.lines().any(|written| written == line), "{written}");
    }
}

#[test]
fn what_is_taken_back_is_not_written() {
    let mut router = router();
    router.cli("set ipfix exporter collector 192.0.2.9 src 192.0.2.1");
    router.cli("set syslog sender collector 192.0.2.9 src 192.0.2.1");
    router.cli("set ipfix exporter disable");
    router.cli("set syslog sender disable");
    let written = router.cli("show running-config");
    assert!(!written.contains("ipfix") && !written.contains("syslog"), "{written}");
    assert!(router.json("show ipfix exporter")["collector"].is_null());
}

#[test]
fn addresses_that_cannot_be_meant_are_refused() {
    let mut router = router();
    let refused = router.refused("set ipfix exporter collector 192.0.2.9 src 2001:db8::1");
    assert!(refused.contains("not of one family"), "{refused}");
    let refused = router.refused("set syslog sender collector 0.0.0.0 src 192.0.2.1");
    assert!(refused.contains("0.0.0.0 is no address of a host"), "{refused}");
    router.refused("set ipfix exporter collector 192.0.2.9");
    router.refused("set ipfix exporter collector 192.0.2.9 src 192.0.2.1 path-mtu 68");
}

#[test]
fn further_collectors_are_up_to_seven_and_are_taken_away_one_by_one() {
    let mut router = router();
    for port in 1..8 {
        router.cli(&format!("ipfix collector 192.0.2.9 src 192.0.2.1 port {port}"));
    }
    let refused = router.refused("ipfix collector 192.0.2.9 src 192.0.2.1 port 8");
    assert!(refused.contains("7 further collectors"), "{refused}");
    // One that is known may change, and the first one has its own place.
    router.cli("ipfix collector 192.0.2.9 src 192.0.2.1 port 7 path-mtu 1500");
    router.cli("set ipfix exporter collector 192.0.2.9 src 192.0.2.1");
    assert_eq!(router.json("show ipfix exporter")["collectors"].as_array().map(Vec::len), Some(8));
    router.refused("ipfix collector 192.0.2.9 src 192.0.2.1 port 9 del");
    for port in 1..8 {
        router.cli(&format!("ipfix collector 192.0.2.9 src 192.0.2.1 port {port} del"));
    }
    assert!(!router.cli("show running-config").contains("ipfix collector"));
}
