//! The commands of a generator, on wires without faults and a clock that is moved by hand.

use crate::wire;

use quiver_control::{Collected, Commands, Execution, Started, Step};
use quiver_tg_control::{Station, commands};
use serde_json::{Value as Json, json};
use wire::{BOTH_WAYS, Bench, ONE_WAY, cross, profile, profile_with, unlinked};

type Bench2 = Station<Bench>;

/// A station with its commands and what is under way.
struct Desk {
    station: Bench2,
    commands: Commands<Bench2>,
}

/// A command under way.
struct Under(Execution<Bench2>);

impl Desk {
    fn new() -> Desk {
        let make = |profile: &_| {
            Ok(unlinked(profile, usize::MAX, Box::new(|port, _, _| cross(port, 5_000))).into())
        };
        Desk { station: Station::new(make), commands: commands() }
    }

    fn loaded() -> Desk {
        let mut desk = Desk::new();
        desk.station.load(profile(BOTH_WAYS)).expect("a profile");
        assert!(desk.station.links().expect("links"));
        desk
    }

    /// Let time pass.
    fn pass(&mut self, seconds: f64) {
        let mut left_ns = (seconds * 1e9) as u64;
        while left_ns > 0 {
            let step_ns = left_ns.min(1_000_000);
            self.station.generator().expect("loaded").wait(step_ns);
            self.station.turn();
            left_ns -= step_ns;
        }
    }

    fn begin(&mut self, line: &str) -> Result<Started<Bench2>, String> {
        self.commands.start(&mut self.station, line).map_err(|refusal| refusal.to_string())
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
            match execution.step(&self.commands, &mut self.station, &mut sink) {
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
    let mut desk = Desk::loaded();
    let report = desk.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!((&report["measurement"], &report["offered"]), (&json!(1), &json!(10_000)));
    assert_eq!((&report["received"], &report["lost"]), (&json!(10_000), &json!(0)));
    assert_eq!(desk.say("show results").expect("results")[0], report);
}

#[test]
fn sending_goes_on_until_stop_and_is_looked_at_meanwhile() {
    let mut desk = Desk::loaded();
    assert_eq!(desk.say("start rate 10kpps").expect("started")["measurement"], 1);
    desk.pass(2.05);
    let seen = desk.say("show statistics").expect("statistics");
    assert_eq!(seen["state"], "sending");
    let rates: Vec<f64> =
        (0..2).map(|n| seen["streams"][n]["sent_pps"].as_f64().expect("a rate")).collect();
    assert!(rates.iter().all(|rate| (rate - 5_000.0).abs() < 20.0), "{rates:?}");
    let report = desk.say("stop").expect("a report");
    let offered = report["offered"].as_i64().expect("frames");
    assert!((19_900..=20_100).contains(&offered), "{offered}");
    assert!((offered - report["intended"].as_i64().expect("frames")).abs() <= 4, "{report}");
    assert_eq!(report["received"], offered);
    assert_eq!(desk.say("show statistics").expect("statistics")["state"], "idle");
}

#[test]
fn the_rate_of_all_or_of_one_stream_changes_without_a_loss() {
    let mut desk = Desk::loaded();
    desk.say("start rate 10kpps duration 4").expect("started");
    desk.pass(1.05);
    desk.say("rate 40kpps").expect("changed");
    desk.pass(1.0);
    desk.say("rate 1kpps stream 1").expect("changed");
    desk.pass(1.0);
    let seen = desk.say("show statistics").expect("statistics");
    assert_eq!(
        (&seen["streams"][0]["rate_pps"], &seen["streams"][1]["rate_pps"]),
        (&json!(20e3), &json!(1e3))
    );
    let report = desk.say("wait").expect("a report");
    // 10,000 + 40,000 + 2 × 21,000.
    let frames = |key: &str| report[key].as_i64().expect("frames");
    assert!((frames("intended") - 92_000).abs() < 150, "{report}");
    assert!((frames("intended") - frames("offered")).abs() < 50, "{report}");
    assert_eq!((frames("lost"), &report["limit"]), (0, &Json::Null));
    assert!((report["duration_s"].as_f64().expect("seconds") - 4.0).abs() < 0.01, "{report}");
}

#[test]
fn a_rate_may_be_in_bits_and_in_per_cent_of_a_line() {
    let mut desk = Desk::loaded();
    // Frames of 64 B are 88 B on a wire and 68 B with FCS.
    for (rate, frames) in [("7.04Mbps", 10_000), ("5.44MbpsL2", 10_000), ("20k", 20_000)] {
        let report = desk.say(&format!("measure rate {rate} duration 1")).expect(rate);
        assert_eq!((&report["offered"], &report["lost"]), (&json!(frames), &json!(0)), "{rate}");
    }
    let refused = desk.say("start rate 50%").expect_err("no line rate is stated");
    assert!(refused.contains("`line_rate` of port 0"), "{refused}");
    desk.station.load(profile_with(BOTH_WAYS, ", line_rate: 7.04M")).expect("a profile");
    assert!(desk.station.links().expect("links"));
    desk.say("start rate 10kpps").expect("started");
    desk.pass(0.1);
    desk.say("rate 50% stream 1").expect("changed");
    let seen = desk.say("show statistics").expect("statistics");
    let rates = [0, 1].map(|n| seen["streams"][n]["rate_pps"].as_f64().expect("a rate").round());
    assert_eq!(rates, [5e3, 5e3]);
    desk.say("rate 352kbps stream 0").expect("changed");
    let seen = desk.say("show statistics").expect("statistics");
    assert_eq!(seen["streams"][0]["rate_pps"].as_f64().expect("a rate").round(), 500.0);
    let refused = desk.say("rate 50% stream 0").expect_err("port 0 states none");
    assert!(refused.contains("line_rate"), "{refused}");
    assert!(desk.say("rate 400%").expect_err("too much").contains("none of"));
    desk.say("stop").expect("a report");
}

#[test]
fn a_profile_with_the_same_ports_keeps_them() {
    let mut desk = Desk::loaded();
    desk.say("measure rate 1kpps duration 1").expect("a report");
    let sent = |desk: &mut Desk| {
        desk.say("show statistics").expect("statistics")["ports"][0]["tx_frames"].clone()
    };
    let before = sent(&mut desk);
    assert!(before.as_u64() >= Some(500), "{before}");
    // Ports that were made again would have counted nothing.
    desk.station.load(profile(ONE_WAY)).expect("a profile");
    assert!(desk.station.links().expect("links"));
    assert_eq!(sent(&mut desk), before);
    let report = desk.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!((&report["offered"], &report["received"]), (&json!(10_000), &json!(10_000)));
    assert_eq!(report["per_stream"].as_array().map(Vec::len), Some(1));
    let other = profile_with(BOTH_WAYS, ", line_rate: 10G");
    desk.station.load(other).expect("a profile");
    assert_eq!(sent(&mut desk), 0, "another port is made anew");
}

#[test]
fn streams_are_added_replaced_and_deleted_between_measurements() {
    let mut desk = Desk::loaded();
    let one = |name: &str| {
        format!(
            r#"{{"name": "{name}", "from": 1, "to": 0, "rate": 1000, "layers": {{"ethernet": {{"src": "02:00:00:00:00:02",
            "dst": "02:fe:00:00:00:02"}}, "ip4": {{"src": "10.0.0.3", "dst": "10.1.0.0"}}, "udp": {{}}}}}}"#
        )
        .replace('\n', " ")
    };
    desk.say(&format!("stream add {}", one("voice"))).expect("added");
    let report = desk.say("measure rate 10kpps duration 1").expect("a report");
    assert_eq!(report["offered"], 11_000);
    assert_eq!((&report["per_stream"][2]["name"], &report["lost"]), (&json!("voice"), &json!(0)));
    desk.say(&format!("stream replace 0 {}", one("video"))).expect("replaced");
    desk.say("stream delete 1").expect("deleted");
    let names: Vec<Json> = desk.say("show profile").expect("a profile")["streams"]
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
        let refused = desk.say(line).expect_err(line);
        assert!(refused.contains(words), "{line}: {refused}");
    }
    assert_eq!(desk.say("measure rate 1kpps duration 1").expect("a report")["offered"], 2000);
    desk.say("stream delete 1").expect("deleted");
    assert!(desk.say("stream delete 0").expect_err("the last one").contains("0 streams"));
    desk.say("start duration 10").expect("started");
    assert!(desk.say("stream delete 0").expect_err("measured").contains("under way"));
}

#[test]
fn a_stream_that_waits_is_begun_and_ended_while_others_are_sent() {
    let mut desk = Desk::new();
    let text = BOTH_WAYS.replacen("  - from: 1\n", "  - from: 1\n    paused: true\n", 1);
    desk.station.load(profile(&text)).expect("a profile");
    assert!(desk.station.links().expect("links"));
    desk.say("start rate 10kpps duration 3").expect("started");
    let sent = |desk: &mut Desk, stream: usize| {
        desk.say("show statistics").expect("statistics")["streams"][stream]["sent"]
            .as_u64()
            .expect("frames")
    };
    desk.pass(1.05);
    assert_eq!(sent(&mut desk, 1), 0);
    desk.say("resume stream 1").expect("begun");
    desk.pass(1.0);
    desk.say("pause stream 1").expect("ended");
    let report = desk.say("wait").expect("a report");
    let offered = |stream: usize| report["per_stream"][stream]["offered"].as_i64().expect("frames");
    assert_eq!(offered(0), 15_000, "{report}");
    assert!((offered(1) - 5_000).abs() < 50, "{report}");
    assert_eq!((&report["lost"], &report["limit"]), (&json!(0), &Json::Null));
}

#[test]
fn what_pauses_sends_nothing_and_goes_on() {
    let mut desk = Desk::loaded();
    desk.say("start rate 10kpps duration 3").expect("started");
    desk.pass(1.05);
    desk.say("pause").expect("paused");
    desk.pass(0.1);
    let sent = |desk: &mut Desk| {
        let seen = desk.say("show statistics").expect("statistics");
        (seen["state"].clone(), seen["streams"][0]["sent"].as_u64().expect("frames"))
    };
    let before = sent(&mut desk);
    desk.pass(0.9);
    assert_eq!(sent(&mut desk), before);
    assert_eq!(before.0, "paused");
    desk.say("resume").expect("resumed");
    let report = desk.say("wait").expect("a report");
    let offered = report["offered"].as_i64().expect("frames");
    assert!((19_900..=20_100).contains(&offered), "{offered}");
    assert_eq!((&report["lost"], &report["limit"]), (&json!(0), &Json::Null));
}

#[test]
fn a_measurement_whose_client_leaves_is_stopped() {
    let mut desk = Desk::loaded();
    let Started::Running(execution) =
        desk.begin("measure rate 10kpps duration 100").expect("begun")
    else {
        panic!("it must take a while");
    };
    desk.pass(0.2);
    drop(execution);
    desk.pass(0.2);
    assert!(!desk.station.is_measuring());
    assert_eq!(desk.say("measure rate 10kpps duration 0.1").expect("a report")["measurement"], 2);
}

#[test]
fn what_cannot_be_now_is_refused_with_what_could_be() {
    let refused = |desk: &mut Desk, line: &str| desk.say(line).expect_err(line);
    let mut desk = Desk::new();
    assert!(refused(&mut desk, "start").contains("no profile is loaded: `load FILE` loads one"));
    assert!(refused(&mut desk, "load /nowhere/profile.yaml").contains("/nowhere/profile.yaml"));
    let inline =
        refused(&mut desk, r#"load inline {"ports": [{"tap": {"name": "a"}}], "stream": []}"#);
    assert!(inline.starts_with("inline:1: ") && inline.contains("stream"), "{inline}");
    let mut desk = Desk::loaded();
    assert!(refused(&mut desk, "start rate fast").contains("500kpps"));
    assert!(refused(&mut desk, "start rate 1e12").contains("none of"));
    assert!(refused(&mut desk, "start rate 1 duration 0.1").contains("no frame"));
    assert!(refused(&mut desk, "stop").contains("nothing is measured now"));
    assert!(refused(&mut desk, "pause").contains("nothing is measured now"));
    desk.say("start rate 10kpps").expect("started");
    desk.pass(0.1);
    assert!(refused(&mut desk, "start").contains("measurement 1 is under way"));
    assert!(refused(&mut desk, "unload").contains("measurement 1 is under way"));
    let path = std::env::temp_dir().join(format!("quiver-tg-load-{}.json", std::process::id()));
    std::fs::write(&path, "{\"ports\": [{\"tap\": {\"name\": \"a\"}}], \"streams\": []}")
        .expect("a file");
    let text = refused(&mut desk, &format!("load {}", path.display()));
    std::fs::remove_file(&path).expect("a file");
    assert!(text.contains("0 streams") || text.contains("under way"), "{text}");
    assert!(refused(&mut desk, "rate 5kpps stream 2").contains("there are 0 to 1"));
    assert!(desk.station.is_measuring(), "what is refused changes nothing");
    desk.say("stop").expect("a report");
}

#[test]
fn every_example_is_a_command() {
    let commands = commands::<Bench>();
    let schema = commands.schema();
    for command in schema.as_array().expect("commands") {
        let station = Desk::new().station;
        for line in command["examples"].as_array().expect("examples") {
            let line = line.as_str().expect("text");
            commands
                .parse(&station, line, |_| ())
                .unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
        }
    }
}
