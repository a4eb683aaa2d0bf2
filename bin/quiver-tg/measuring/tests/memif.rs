//! The real thing: two memif ends of one generator, a worker on a core, time that passes by itself.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::session;
use quiver_tg_measuring::surroundings::NoObserver;
use quiver_tg_traffic::profile::Profile;

const STREAMS: &str = r#"
streams:
  - from: 0
    to: 1
    frame: imix
    layers:
      ethernet: {src: "02:00:00:00:00:01", dst: "02:fe:00:00:00:01"}
      ip4: {src: 198.18.0.2, dst: {first: 20.0.0.0, count: 100000, order: random}}
      udp: {}
  - from: 1
    to: 0
    frame: [{size: 78, weight: 20}, {size: 9000, weight: 1}]
    layers:
      ethernet: {src: "02:00:00:00:01:01", dst: "02:fe:00:00:00:02"}
      ip6: {src: "2001:2:0:1::2", dst: {first: "2001:db8::", count: 1000}}
      udp: {dst_port: {first: 1, count: 1000}}
"#;

/// How often a worker may find its core taken by others.
const TRIES: usize = 50;

#[test]
fn what_goes_in_at_one_end_comes_out_at_the_other() {
    let socket = std::env::temp_dir().join(format!("quiver-tg-test-{}.sock", std::process::id()));
    let port = |role| format!("  - memif: {{socket: \"{}\", role: {role}}}\n", socket.display());
    let text = format!("ports:\n{}{}{STREAMS}", port("master"), port("slave"));
    let profile = Profile::parse(&text, Path::new("test.yaml")).expect("profile");
    let mut session = session::open_profile(&profile).expect("session");
    // Twice, so that nothing of the first is seen in the second.
    for rate in [Rate::Pps(20_000.0), Rate::Max] {
        let request = Measure { drain_s: 0.1, ..Measure::new(rate, 0.2) };
        // A worker that has no core in all this time holds all packets up.
        let mut reports =
            (0..TRIES).map(|_| session.measure(&request, &mut NoObserver).expect("report"));
        let report = reports.find(|report| report.offered > 0).expect("some packets go");
        assert_eq!(report.lost, 0, "{report:?}");
        let not_sent = report.not_sent;
        assert_eq!(
            report.intended,
            report.offered + not_sent.ring_full + not_sent.held_up,
            "{not_sent:?}"
        );
        assert_eq!((report.reordered, report.duplicated, report.corrupted), (0, 0, 0));
        assert_eq!((report.misdelivered, report.foreign), (0, 0));
        assert!(report.latency_ns.is_some());
    }
    drop(session);
    let _ = std::fs::remove_file(&socket);
}

#[test]
fn before_a_profile_is_opened_the_generator_measures_itself_and_results_say_what_it_can() {
    let socket = std::env::temp_dir().join(format!("quiver-tg-own-{}.sock", std::process::id()));
    let port = |role| format!("  - memif: {{socket: \"{}\", role: {role}}}\n", socket.display());
    let text = format!("ports:\n{}{}{STREAMS}", port("master"), port("slave"));
    let profile = Profile::parse(&text, Path::new("test.yaml")).expect("profile");
    let mut session =
        quiver_tg_measuring::self_test::make_tested(&profile, Rc::new(Cell::new(false)))
            .expect("session");
    session.wait_for_links().expect("links");
    let report =
        session.measure(&Measure::new(Rate::Pps(20_000.0), 0.1), &mut NoObserver).expect("report");
    let own = report.self_test.as_ref().expect("a self-test");
    assert!(own.transmit_pps > 20_000.0 && own.loop_pps > 20_000.0, "{own:?}");
    let latency = report.own_latency.as_ref().expect("an own latency");
    assert!(
        latency.offered_pps >= 0.99 * report.offered_pps && latency.latency_ns.count > 0,
        "{latency:?}"
    );
    // Loaded again, it is remembered.
    let again = quiver_tg_measuring::self_test::own_share(&profile).expect("own share");
    assert_eq!((again.transmit_pps, again.loop_pps), (own.transmit_pps, own.loop_pps));
    // Flat out over a wire that takes everything, the generator is the limit, and says its ceiling.
    let report = session.measure(&Measure::new(Rate::Max, 0.1), &mut NoObserver).expect("report");
    let bound = report.generator_bound.as_ref();
    assert_eq!(bound.is_some(), report.limited_by_generator);
    assert!(bound.is_none_or(|bound| bound.ceiling_pps == Some(own.loop_pps)), "{bound:?}");
    drop(session);
    let _ = std::fs::remove_file(&socket);
}
