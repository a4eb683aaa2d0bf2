//! What operators type.

use quiver_testkit::configuration::running;

use crate::reader::Collector;
use crate::records::router;

#[test]
fn what_is_configured_is_written_down_and_taken_back() {
    let mut router = router(&Collector::new());
    let before = running(&mut router);
    for (line, undo) in [
        ("flowprobe params record l2 l3 active 60 passive 30 domain 7", "flowprobe params default"),
        ("flowprobe table max-entries 1000", "flowprobe table max-entries 65536"),
        ("flowprobe feature add-del e1 l2 both", "flowprobe feature add-del e1 l2 disable"),
    ] {
        router.cli(line);
        assert!(router.cli("show running-config").contains(line), "{line}");
        router.cli(undo);
        assert_eq!(running(&mut router), before, "{undo}");
    }
    router.cli("flowprobe feature add-del e1 ip4 tx");
    router.cli("flowprobe feature add-del e1 ip6");
    let shown = router.json("show flowprobe feature");
    assert_eq!((&shown[0]["direction"], &shown[1]["packets"]), (&"tx".into(), &"ip6".into()));
    let e1 = router.id("e1");
    router.engine().delete_interface(e1).expect("it is there");
    assert_eq!(router.json("show flowprobe feature"), serde_json::json!([]));
}

#[test]
fn a_refusal_names_what_is_wrong_and_changes_nothing() {
    let mut router = router(&Collector::new());
    let before = running(&mut router);
    for (line, says) in [
        ("flowprobe params record", "no fields"),
        ("flowprobe params record l4", "record l3 l4"),
        ("flowprobe params record l3 active 0", "1"),
        ("flowprobe table max-entries 3", "64"),
        ("flowprobe feature add-del e1 ip5", "ip5"),
        ("flowprobe feature add-del e9 ip4", "e9"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}
