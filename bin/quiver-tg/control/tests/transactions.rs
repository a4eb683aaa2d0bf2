//! The commands of a generator that has transactions loaded: two memif ends, a worker on a core.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quiver_control::{Collected, Commands, Started, Step};
use quiver_tg_control::make;
use quiver_tg_control::{Session, commands};
use quiver_tg_measuring::drivers::Drivers;
use serde_json::{Value as Json, json};

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    session: Session<Drivers>,
    commands: Commands<Session<Drivers>>,
    socket: std::path::PathBuf,
}

impl Fixture {
    /// With a profile of these transactions.
    fn loaded(name: &str, stateful: Json) -> Fixture {
        let socket =
            std::env::temp_dir().join(format!("quiver-tg-{name}-{}.sock", std::process::id()));
        let session =
            Session::new(|profile| make::make_generator(profile, Rc::new(Cell::new(false))));
        let mut fixture = Fixture { session, commands: commands(), socket };
        let port = |role: &str, mac: &str| {
            json!({
                "memif": {"socket": fixture.socket, "role": role}, "gateway_mac": mac
            })
        };
        let ports = [port("master", "02:00:00:00:00:01"), port("slave", "02:00:00:00:00:00")];
        fixture
            .say(&format!("load inline {}", json!({"ports": ports, "stateful": stateful})))
            .expect("loaded");
        fixture
    }

    fn turn(&mut self) {
        self.session.turn();
        if let Some(machine) = self.session.generator() {
            machine.wait(1_000_000);
        }
    }

    /// A command to its end.
    fn say(&mut self, line: &str) -> Result<Json, String> {
        let started =
            self.commands.start(&mut self.session, line).map_err(|refusal| refusal.to_string())?;
        let mut execution = match started {
            Started::Done(output) => return Ok(output.to_json()),
            Started::Running(execution) => execution,
        };
        let (mut sink, until) = (Collected::default(), Instant::now() + PATIENCE);
        while Instant::now() < until {
            match execution.step(&self.commands, &mut self.session, &mut sink) {
                Ok(Step::Done(output)) => return Ok(output.to_json()),
                Ok(_) => self.turn(),
                Err(refusal) => return Err(refusal.to_string()),
            }
        }
        panic!("`{line}` does not end");
    }

    /// Statistics, once they are as wanted.
    fn until(&mut self, what: &str, is_so: impl Fn(&Json) -> bool) -> Json {
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = self.say("show statistics").expect("statistics");
            if is_so(&seen) {
                return seen;
            }
            assert!(Instant::now() < until, "{what}: {seen:#}");
            self.turn();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn tcp(more: &Json) -> Json {
    let mut stateful = json!({
        "kind": "tcp", "timeout_s": 60,
        "clients": {"on": 0, "first": "10.0.0.0", "count": 64},
        "servers": {"on": 1, "first": "20.0.0.0", "count": 64, "port": "same"},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        stateful[key] = value.clone();
    }
    stateful
}

fn begun(seen: &Json) -> u64 {
    seen["transactions"]["clients"]["transactions"]["attempted"].as_u64().unwrap_or(0)
}

#[test]
fn transactions_are_measured_and_answered_with_their_report() {
    let mut fixture = Fixture::loaded("measured", tcp(&json!({"limit": 300})));
    let report = fixture.say("measure rate 2000").expect("a report");
    let counts = &report["clients"]["transactions"];
    assert_eq!((&report["measurement"], &report["intended"]), (&json!(1), &json!(300)));
    assert_eq!(
        (&counts["attempted"], &counts["successful"]),
        (&json!(300), &json!(300)),
        "{report:#}"
    );
    for way in report["per_direction"].as_array().expect("ways") {
        let count = |key: &str| way[key].as_i64().expect("a count");
        assert_eq!(count("offered"), count("received") + count("lost"));
    }
    let kept = fixture.say("show results").expect("results");
    assert_eq!(kept[0], report);
    assert_eq!(fixture.say("show statistics").expect("statistics")["state"], "idle");
    let profile = fixture.say("show profile").expect("a profile");
    assert!(profile.to_string().contains("64 clients on port 0 with 63 ports each"), "{profile}");
}

#[test]
fn they_are_started_changed_paused_and_stopped_while_they_begin() {
    let mut fixture = Fixture::loaded("changed", tcp(&json!({})));
    assert_eq!(fixture.say("start rate 500").expect("started")["measurement"], 1);
    assert!(fixture.say("start").expect_err("refused").contains("measurement 1 is under way"));
    let seen = fixture.until("some have begun", |seen| begun(seen) >= 50);
    assert_eq!(
        (&seen["state"], &seen["transactions"]["rate_cps"]),
        (&json!("sending"), &json!(500.0))
    );
    fixture.say("rate 2000").expect("changed");
    assert!(fixture.say("rate 5 stream 0").expect_err("refused").contains("leave `stream` out"));
    let faster = fixture.until("rates are known", |seen| {
        seen["transactions"]["clients"]["rates"]["attempted_cps"]
            .as_f64()
            .is_some_and(|rate| rate > 600.0)
    });
    assert_eq!(faster["transactions"]["rate_cps"], 2000.0);
    fixture.say("pause").expect("paused");
    let paused = fixture.until("it pauses", |seen| seen["state"] == "paused");
    for _ in 0..50 {
        fixture.turn();
    }
    let later = fixture.say("show statistics").expect("statistics");
    // What had come due before the pause may still have begun.
    assert!(begun(&later) <= begun(&paused) + 200, "{later:#}");
    let rested = begun(&later);
    fixture.say("resume").expect("resumed");
    fixture.until("they begin again", |seen| begun(seen) > rested + 100);
    let report = fixture.say("stop").expect("a report");
    let counts = &report["clients"]["transactions"];
    assert_eq!((&counts["failed"], &counts["open"]), (&json!(0), &json!(0)), "{report:#}");
    assert_eq!(counts["attempted"], counts["successful"]);
    assert_eq!(report["interrupted"], true);
    assert!(fixture.say("stop").expect_err("refused").contains("nothing is measured now"));
}

#[test]
fn a_second_stop_does_not_wait_for_transactions_that_rest() {
    let mut fixture = Fixture::loaded("stopped", tcp(&json!({"hold_s": 600})));
    fixture.say("start rate 1000").expect("started");
    fixture.until("some are connected", |seen| {
        seen["transactions"]["clients"]["transactions"]["connected"]
            .as_u64()
            .is_some_and(|n| n >= 20)
    });
    fixture.session.stop().expect("stopped");
    fixture.until("it waits for the ends", |seen| seen["state"] == "waiting for ends");
    let report = fixture.say("stop").expect("a report");
    let counts = &report["clients"]["transactions"];
    assert!(counts["open"].as_u64().is_some_and(|open| open >= 20), "{report:#}");
    let sum = ["successful", "failed", "open"]
        .iter()
        .map(|key| counts[*key].as_u64().expect("a count"))
        .sum::<u64>();
    assert_eq!(counts["attempted"], sum);
    assert!(!fixture.session.is_measuring());
}
