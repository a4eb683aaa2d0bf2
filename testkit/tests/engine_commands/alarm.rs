//! A timer that follows what is due.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quiver_core::Engine;
use quiver_core::control::reactor::Alarm;
use quiver_testkit::Router;

/// What is due when, and what has fired.
#[derive(Default)]
struct Due {
    at_ns: Vec<u64>,
    fired_ns: Rc<RefCell<Vec<u64>>>,
    alarm: Alarm,
}

fn set(engine: &mut Engine, change: impl FnOnce(&mut Due)) {
    engine.with(|engine, due: &mut Due| {
        change(due);
        let next = due.at_ns.iter().min().copied();
        due.alarm.set(engine, next, fire);
    });
}

fn fire(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    set(engine, |due| {
        due.alarm.fired();
        due.at_ns.retain(|at| *at > now_ns);
        due.fired_ns.borrow_mut().push(now_ns);
    });
}

#[test]
fn an_alarm_fires_once_for_each_thing_that_is_due_and_for_nothing_that_is_no_more() {
    let mut router = Router::new(&[]);
    let start_ns = router.now_ns();
    let seconds = |seconds: u64| start_ns + seconds * 1_000_000_000;
    let fired = Rc::default();
    let due =
        Due { at_ns: vec![seconds(9), seconds(5)], fired_ns: Rc::clone(&fired), ..Due::default() };
    router.engine().insert(due);
    set(router.engine(), |_| {});
    set(router.engine(), |due| due.at_ns.push(seconds(2)));
    router.advance(Duration::from_secs(3));
    assert_eq!(fired.borrow().len(), 1);
    // What was due next is not; what comes later is.
    set(router.engine(), |due| due.at_ns.retain(|at| *at != seconds(5)));
    router.advance(Duration::from_secs(5));
    assert_eq!(fired.borrow().len(), 1);
    router.advance(Duration::from_secs(2));
    assert_eq!(fired.borrow().len(), 2);
    router.advance(Duration::from_secs(20));
    assert_eq!(fired.borrow().len(), 2);
    assert!(fired.borrow().iter().zip([2, 9]).all(|(at, due)| *at >= seconds(due)));
}
