//! The commands of a generator, on wires without faults and a clock that is moved by hand.

use crate::wire;

use quiver_control::{Collected, Commands, Execution, Started, Step};
use quiver_tg_control::{Session, commands};
use serde_json::{Value as Json, json};
use wire::{BOTH_WAYS, Bench, ONE_WAY, cross, profile, profile_with, unlinked};

type Controlled = Session<Bench>;

/// A session with its commands and what is under way.
struct Fixture {
    session: Controlled,
    commands: Commands<Controlled>,
}

/// A command under way.
struct Under(Execution<Controlled>);

impl Fixture {
    fn new() -> Fixture {
        let make = |profile: &_| {
            Ok(unlinked(profile, usize::MAX, Box::new(|port, _, _| cross(port, 5_000))).into())
        };
        Fixture { session: Session::new(make), commands: commands() }
    }

    fn loaded() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.session.load(profile(BOTH_WAYS)).expect("a profile");
        assert!(fixture.session.links().expect("links"));
        fixture
    }

    /// Let time pass.
    fn pass(&mut self, seconds: f64) {
        let mut left_ns = (seconds * 1e9) as u64;
        while left_ns > 0 {
            let step_ns = left_ns.min(1_000_000);
            self.session.generator().expect("loaded").wait(step_ns);
            self.session.turn();
            left_ns -= step_ns;
        }
    }

    fn begin(&mut self, line: &str) -> Result<Started<Controlled>, String> {
        self.commands.start(&mut self.session, line).map_err(|refusal| refusal.to_string())
    }

    /// A command, while time passes, to its end.
    fn say(&mut self, line: &str) -> Result<Json, String> {
        match self.begin(line)? {
            Started::Done(output) => Ok(output.to_json()),
            Started::Running(execution) => self.finish(Under(execution)),
        }
    }

    fn finish(&mut self, Under(mut execution): Under) -> Result<Json, String> {
        let mut sink = Collected::default();
        for _ in 0..100_000 {
            match execution.step(&self.commands, &mut self.session, &mut sink) {
                Ok(Step::Done(output)) => return Ok(output.to_json()),
                Ok(_) => self.pass(0.001),
                Err(refusal) => return Err(refusal.to_string()),
            }
        }
        panic!("it does not end");
    }
}

#[test]
fn a_measurement_is_asked_for_and_answered_with_its_report() {
    let mut fixture = Fixture::loaded();
    let report = fixture.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!((&report["measurement"], &report["offered"]), (&json!(1), &json!(10_000)));
    assert_eq!((&report["received"], &report["lost"]), (&json!(10_000), &json!(0)));
    assert_eq!(fixture.say("show results").expect("results")[0], report);
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let mut fixture = Fixture::new();
    let refused = fixture.say("load /dev/zero").expect_err("a device is no profile");
    assert!(refused.contains("it is not a regular file"), "{refused}");
}

#[test]
fn rates_are_those_of_now_even_when_no_turn_came_in_between() {
    let mut fixture = Fixture::loaded();
    fixture.say("start rate 10kpps warmup 0").expect("started");
    fixture.session.turn();
    let generator = fixture.session.generator().expect("loaded");
    (0..1_000).for_each(|_| generator.wait(1_000_000));
    let rates = [0, 1].map(|stream| fixture.session.rates(stream).sent_pps);
    assert!(rates.iter().all(|rate| (rate - 5_000.0).abs() < 20.0), "{rates:?}");
}

#[test]
fn sending_goes_on_until_stop_and_is_looked_at_meanwhile() {
    let mut fixture = Fixture::loaded();
    assert_eq!(fixture.say("start rate 10kpps").expect("started")["measurement"], 1);
    fixture.pass(2.05);
    let seen = fixture.say("show statistics").expect("statistics");
    assert_eq!(seen["state"], "sending");
    let rates: Vec<f64> =
        (0..2).map(|n| seen["streams"][n]["sent_pps"].as_f64().expect("a rate")).collect();
    assert!(rates.iter().all(|rate| (rate - 5_000.0).abs() < 20.0), "{rates:?}");
    let report = fixture.say("stop").expect("a report");
    let offered = report["offered"].as_i64().expect("frames");
    assert!((19_900..=20_100).contains(&offered), "{offered}");
    assert!((offered - report["intended"].as_i64().expect("frames")).abs() <= 4, "{report}");
    assert_eq!(report["received"], offered);
    assert_eq!(fixture.say("show statistics").expect("statistics")["state"], "idle");
}

#[test]
fn the_rate_of_all_or_of_one_stream_changes_without_a_loss() {
    let mut fixture = Fixture::loaded();
    fixture.say("start rate 10kpps duration 4").expect("started");
    fixture.pass(1.05);
    fixture.say("rate 40kpps").expect("changed");
    fixture.pass(1.0);
    fixture.say("rate 1kpps stream 1").expect("changed");
    fixture.pass(1.0);
    let seen = fixture.say("show statistics").expect("statistics");
    assert_eq!(
        (&seen["streams"][0]["rate_pps"], &seen["streams"][1]["rate_pps"]),
        (&json!(20e3), &json!(1e3))
    );
    let report = fixture.say("wait").expect("a report");
    // 10,000 + 40,000 + 2 × 21,000.
    let frames = |key: &str| report[key].as_i64().expect("frames");
    assert!((frames("intended") - 92_000).abs() < 150, "{report}");
    assert!((frames("intended") - frames("offered")).abs() < 50, "{report}");
    assert_eq!((frames("lost"), &report["limit"]), (0, &Json::Null));
    assert!((report["duration_s"].as_f64().expect("seconds") - 4.0).abs() < 0.01, "{report}");
}

#[test]
fn a_rate_may_be_in_bits_and_in_per_cent_of_a_line() {
    let mut fixture = Fixture::loaded();
    // Frames of 64 B are 88 B on a wire and 68 B with FCS.
    for (rate, frames) in [("7.04Mbps", 10_000), ("5.44MbpsL2", 10_000), ("20k", 20_000)] {
        let report = fixture.say(&format!("measure rate {rate} duration 1")).expect(rate);
        assert_eq!((&report["offered"], &report["lost"]), (&json!(frames), &json!(0)), "{rate}");
    }
    let refused = fixture.say("start rate 50%").expect_err("no line rate is stated");
    assert!(refused.contains("`line_rate` of port 0"), "{refused}");
    fixture.session.load(profile_with(BOTH_WAYS, ", line_rate: 7.04M")).expect("a profile");
    assert!(fixture.session.links().expect("links"));
    fixture.say("start rate 10kpps").expect("started");
    fixture.pass(0.1);
    fixture.say("rate 50% stream 1").expect("changed");
    let seen = fixture.say("show statistics").expect("statistics");
    let rates = [0, 1].map(|n| seen["streams"][n]["rate_pps"].as_f64().expect("a rate").round());
    assert_eq!(rates, [5e3, 5e3]);
    fixture.say("rate 352kbps stream 0").expect("changed");
    let seen = fixture.say("show statistics").expect("statistics");
    assert_eq!(seen["streams"][0]["rate_pps"].as_f64().expect("a rate").round(), 500.0);
    let refused = fixture.say("rate 50% stream 0").expect_err("port 0 states none");
    assert!(refused.contains("line_rate"), "{refused}");
    assert!(fixture.say("rate 400%").expect_err("too much").contains("none of"));
    fixture.say("stop").expect("a report");
}

#[test]
fn a_profile_with_the_same_ports_keeps_them() {
    let mut fixture = Fixture::loaded();
    fixture.say("measure rate 1kpps duration 1").expect("a report");
    let sent = |fixture: &mut Fixture| {
        fixture.say("show statistics").expect("statistics")["ports"][0]["tx_frames"].clone()
    };
    let before = sent(&mut fixture);
    assert!(before.as_u64() >= Some(500), "{before}");
    // Ports that were made again would have counted nothing.
    fixture.session.load(profile(ONE_WAY)).expect("a profile");
    assert!(fixture.session.links().expect("links"));
    assert_eq!(sent(&mut fixture), before);
    let report = fixture.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!((&report["offered"], &report["received"]), (&json!(10_000), &json!(10_000)));
    assert_eq!(report["per_stream"].as_array().map(Vec::len), Some(1));
    let other = profile_with(BOTH_WAYS, ", line_rate: 10G");
    fixture.session.load(other).expect("a profile");
    assert_eq!(sent(&mut fixture), 0, "another port is made anew");
}

#[test]
fn streams_are_added_replaced_and_deleted_between_measurements() {
    let mut fixture = Fixture::loaded();
    let one = |name: &str| {
        format!(
            r#"{{"name": "{name}", "from": 1, "to": 0, "rate": 1000, "layers": {{
            "ethernet": {{"src": "02:00:00:00:00:02", "dst": "02:fe:00:00:00:02"}},
            "ip4": {{"src": "10.0.0.3", "dst": "10.1.0.0"}}, "udp": {{}}}}}}"#
        )
        .replace('\n', " ")
    };
    fixture.say(&format!("stream add {}", one("voice"))).expect("added");
    let report = fixture.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!(report["offered"], 11_000);
    assert_eq!((&report["per_stream"][2]["name"], &report["lost"]), (&json!("voice"), &json!(0)));
    fixture.say(&format!("stream replace 0 {}", one("video"))).expect("replaced");
    fixture.say("stream delete 1").expect("deleted");
    let names: Vec<Json> = fixture.say("show profile").expect("a profile")["streams"]
        .as_array()
        .map(|all| all.iter().map(|stream| stream["name"].clone()).collect())
        .expect("streams");
    assert_eq!(names, [json!("video"), json!("voice")]);
    for (line, words) in [
        ("stream delete 2", "there are 0 to 1"),
        ("stream add {\"from\": 9}", "to"),
        ("stream replace 0 {\"from\": 0, \"to\": 9}", "there are ports 0 to 1"),
        ("stream add nonsense", "stream"),
    ] {
        let refused = fixture.say(line).expect_err(line);
        assert!(refused.contains(words), "{line}: {refused}");
    }
    assert_eq!(fixture.say("measure rate 1kpps duration 1").expect("a report")["offered"], 2000);
    fixture.say("stream delete 1").expect("deleted");
    assert!(fixture.say("stream delete 0").expect_err("the last one").contains("0 streams"));
    fixture.say("start duration 10").expect("started");
    assert!(fixture.say("stream delete 0").expect_err("measured").contains("under way"));
}

#[test]
fn a_stream_that_waits_is_begun_and_ended_while_others_are_sent() {
    let mut fixture = Fixture::new();
    let text = BOTH_WAYS.replacen("  - from: 1\n", "  - from: 1\n    paused: true\n", 1);
    fixture.session.load(profile(&text)).expect("a profile");
    assert!(fixture.session.links().expect("links"));
    fixture.say("start rate 10kpps duration 3").expect("started");
    let sent = |fixture: &mut Fixture, stream: usize| {
        fixture.say("show statistics").expect("statistics")["streams"][stream]["sent"]
            .as_u64()
            .expect("frames")
    };
    fixture.pass(1.05);
    assert_eq!(sent(&mut fixture, 1), 0);
    fixture.say("resume stream 1").expect("begun");
    fixture.pass(1.0);
    fixture.say("pause stream 1").expect("ended");
    let report = fixture.say("wait").expect("a report");
    let offered = |stream: usize| report["per_stream"][stream]["offered"].as_i64().expect("frames");
    assert_eq!(offered(0), 15_000, "{report}");
    assert!((offered(1) - 5_000).abs() < 50, "{report}");
    assert_eq!((&report["lost"], &report["limit"]), (&json!(0), &Json::Null));
}

#[test]
fn what_pauses_sends_nothing_and_goes_on() {
    let mut fixture = Fixture::loaded();
    fixture.say("start rate 10kpps duration 3").expect("started");
    fixture.pass(1.05);
    fixture.say("pause").expect("paused");
    fixture.pass(0.1);
    let sent = |fixture: &mut Fixture| {
        let seen = fixture.say("show statistics").expect("statistics");
        (seen["state"].clone(), seen["streams"][0]["sent"].as_u64().expect("frames"))
    };
    let before = sent(&mut fixture);
    fixture.pass(0.9);
    assert_eq!(sent(&mut fixture), before);
    assert_eq!(before.0, "paused");
    fixture.say("resume").expect("resumed");
    let report = fixture.say("wait").expect("a report");
    let offered = report["offered"].as_i64().expect("frames");
    assert!((19_900..=20_100).contains(&offered), "{offered}");
    assert_eq!((&report["lost"], &report["limit"]), (&json!(0), &Json::Null));
}

#[test]
fn a_measurement_whose_client_leaves_is_stopped() {
    let mut fixture = Fixture::loaded();
    let Started::Running(execution) =
        fixture.begin("measure rate 10kpps duration 100").expect("begun")
    else {
        panic!("it must take a while");
    };
    fixture.pass(0.2);
    drop(execution);
    fixture.pass(0.2);
    assert!(!fixture.session.is_measuring());
    assert_eq!(
        fixture.say("measure rate 10kpps duration 0.1").expect("a report")["measurement"],
        2
    );
}

#[test]
fn what_cannot_be_now_is_refused_with_what_could_be() {
    let refused = |fixture: &mut Fixture, line: &str| fixture.say(line).expect_err(line);
    let mut fixture = Fixture::new();
    assert!(refused(&mut fixture, "start").contains("no profile is loaded: `load FILE` loads one"));
    assert!(refused(&mut fixture, "load /nowhere/profile.yaml").contains("/nowhere/profile.yaml"));
    let inline =
        refused(&mut fixture, r#"load inline {"ports": [{"tap": {"name": "a"}}], "stream": []}"#);
    assert!(inline.starts_with("inline:1: ") && inline.contains("stream"), "{inline}");
    let mut fixture = Fixture::loaded();
    assert!(refused(&mut fixture, "start rate fast").contains("500kpps"));
    assert!(refused(&mut fixture, "start rate 1e12").contains("none of"));
    assert!(refused(&mut fixture, "start rate 1 duration 0.1").contains("no frame"));
    assert!(refused(&mut fixture, "stop").contains("nothing is measured now"));
    assert!(refused(&mut fixture, "pause").contains("nothing is measured now"));
    fixture.say("start rate 10kpps").expect("started");
    fixture.pass(0.1);
    assert!(refused(&mut fixture, "start").contains("measurement 1 is under way"));
    assert!(refused(&mut fixture, "unload").contains("measurement 1 is under way"));
    let path = std::env::temp_dir().join(format!("quiver-tg-load-{}.json", std::process::id()));
    std::fs::write(&path, "{\"ports\": [{\"tap\": {\"name\": \"a\"}}], \"streams\": []}")
        .expect("a file");
    let text = refused(&mut fixture, &format!("load {}", path.display()));
    std::fs::remove_file(&path).expect("a file");
    assert!(text.contains("0 streams") || text.contains("under way"), "{text}");
    assert!(refused(&mut fixture, "rate 5kpps stream 2").contains("there are 0 to 1"));
    assert!(fixture.session.is_measuring(), "what is refused changes nothing");
    fixture.say("stop").expect("a report");
}

#[test]
fn every_example_is_a_command() {
    let commands = commands::<Bench>();
    let schema = commands.schema();
    for command in schema.as_array().expect("commands") {
        let session = Fixture::new().session;
        for line in command["examples"].as_array().expect("examples") {
            let line = line.as_str().expect("text");
            commands
                .parse(&session, line, |_| ())
                .unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
        }
    }
}
