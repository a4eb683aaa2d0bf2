//! Clients hear of routes.

use std::time::Duration;

use quiver_control::{Collected, Started, Step};
use quiver_testkit::Router;
use serde_json::Value as Json;

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("ip table add 7");
    router
}

/// Subscribe to routes, do `work`, and hear what was told of it.
fn heard(router: &mut Router, work: impl FnOnce(&mut Router)) -> Vec<Json> {
    let commands = router.commands();
    let started = commands.borrow().start(router.engine(), "subscribe event route");
    let Ok(Started::Running(mut job)) = started else { panic!("it goes on") };
    let mut sink = Collected::default();
    let mut step = |router: &mut Router, sink: &mut Collected| {
        job.step(&commands.borrow(), router.engine(), sink).expect("goes on")
    };
    step(router, &mut sink);
    router.advance(Duration::from_millis(1));
    work(router);
    router.advance(Duration::from_millis(1));
    while matches!(step(router, &mut sink), Step::Again) {}
    sink.outputs.iter().map(|output| output.to_json()).collect()
}

#[test]
fn a_client_hears_of_routes_that_are_set_changed_and_removed() {
    let mut router = router();
    router.cli("ip route add 192.0.2.0/24 via 10.0.0.9 e0"); // before
    let turns = |router: &mut Router, lines: &[&str]| {
        for line in lines {
            router.cli(line);
            router.advance(Duration::from_millis(1));
        }
    };
    let events = heard(&mut router, |router| {
        turns(
            router,
            &[
                "ip route add 192.0.3.0/24 table 7 via 10.0.0.2 e0",
                "ip route add 192.0.3.0/24 table 7 via drop",
                "ip route del 192.0.3.0/24 table 7",
                "ip neighbor e0 10.0.0.5 02:00:00:00:00:05", // of another topic
                "ip route add 2001:db8::/32 via unreachable",
            ],
        );
    });
    let said = |event: &Json| {
        ["event", "prefix", "source", "paths"]
            .map(|key| event[key].as_str().unwrap_or("-").to_owned())
    };
    let expected = [
        ["set", "192.0.3.0/24", "static", "via 10.0.0.2 e0"],
        ["set", "192.0.3.0/24", "static", "via 10.0.0.2 e0, via drop"],
        ["removed", "192.0.3.0/24", "-", "-"],
        ["set", "2001:db8::/32", "static", "via unreachable"],
    ];
    assert_eq!(events.iter().map(said).collect::<Vec<_>>(), expected);
    assert_eq!((&events[0]["table_id"], &events[3]["table_id"]), (&7.into(), &0.into()));
}

#[test]
fn many_routes_at_once_come_a_part_in_each_turn() {
    let mut router = router();
    let events = heard(&mut router, |router| {
        router.cli("ip route add 20.0.0.0/32 count 1000 via 10.0.0.2 e0");
        for _ in 0..10 {
            router.advance(Duration::from_millis(1));
        }
    });
    assert_eq!(events.len(), 1000);
}

#[test]
fn who_is_overrun_hears_that_routes_were_lost() {
    let mut router = router();
    let events = heard(&mut router, |router| {
        router.cli("ip route add 20.0.0.0/32 count 100000 via 10.0.0.2 e0");
    });
    assert!(events[0]["lost"].as_u64() >= Some(65_536), "{}", events[0]);
}
