//! No show keeps the control loop: its answer is made in slices, however much there is to show.

use std::fmt::Write as _;

use quiver_control::{Collected, Output, PAGE_ROWS_MAX, Refusal, Sink, Started, Step};
use quiver_testkit::{Router, Settings};
use quiverd::features;
use serde_json::Value;

/// Things of each kind: several pages.
const COUNT: usize = 2 * PAGE_ROWS_MAX + 200;

/// Units of a step, before it is told to pause.
const UNITS_MAX: u64 = 64;

/// What a show may make without counting it, and a step beyond its units.
const UNCOUNTED_MAX: usize = 2 * PAGE_ROWS_MAX;

/// Rows that a unit may be: the reasons of a node are one unit.
const ROWS_OF_UNIT_MAX: usize = 4;

/// Shows whose length has a bound of its own, which no configuration moves.
const BOUNDED: [&str; 1] = ["show schema"];

/// Keeps the answer, and counts the work.
#[derive(Default)]
struct Counting {
    collected: Collected,
    units: u64,
    step: u64,
}

impl Sink for Counting {
    fn output(&mut self, output: Output) {
        self.collected.output(output);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.collected.refused(refusal);
    }

    fn spend(&mut self, units: u64) {
        self.units += units;
        self.step += units;
    }

    fn must_pause(&self) -> bool {
        self.step >= UNITS_MAX
    }
}

/// The longest list in an answer.
fn longest(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len().max(items.iter().map(longest).max().unwrap_or(0)),
        Value::Object(members) => members.values().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

/// A router with many things of every kind that clients can make many of.
fn router() -> Router {
    let mut router = Router::whole(Settings::default(), features::register);
    ["e0", "e1", "e2"].into_iter().for_each(|port| _ = router.interface(port));
    let mut script = "set interface ip address e0 10.0.0.1/16\n\
                      set interface ip address e0 2001:db8::1/64\n\
                      set interface state e0 up\nset interface state e1 up\n\
                      create bridge-domain 10\n\
                      set interface l2 bridge e2 10\nset sr encaps source addr fc00:0:1::1\n"
        .to_owned();
    for n in 1..=COUNT {
        let (high, low) = (n >> 8, n & 255);
        let _ = writeln!(script, "create loopback interface instance {n}");
        let _ = writeln!(script, "set interface ip address loop{n} 172.16.{high}.{low}/32");
        let _ = writeln!(script, "set interface tag loop{n} customer-{n}");
        let _ = writeln!(script, "create sub-interfaces e1 {n}");
        let _ = writeln!(script, "set interface l2 tag-rewrite e1.{n} pop 1");
        let _ = writeln!(script, "create bond mode active-backup id {n}");
        let _ = writeln!(script, "create bridge-domain {}", 10 + n);
        let _ = writeln!(script, "set interface l2 bridge e1.{n} 10");
        let _ = writeln!(
            script,
            "set bridge-domain arp entry 10 10.1.{high}.{low} 02:fe:00:02:{high:02x}:{low:02x}"
        );
        let _ = writeln!(script, "create packet-generator interface pg{n}");
        let _ = writeln!(script, "create memif socket id {n} filename /tmp/quiver-shows-{n}.sock");
        let _ = writeln!(script, "create interface memif id 1 socket-id {n} slave");
        let _ = writeln!(
            script,
            "ip neighbor e0 10.0.{high}.{low} 02:fe:00:00:{high:02x}:{low:02x} static"
        );
        let _ = writeln!(
            script,
            "ip neighbor e0 2001:db8::{n:x} 02:fe:00:00:{high:02x}:{low:02x} static"
        );
        let _ = writeln!(script, "ip route add 20.{high}.{low}.0/24 via 10.0.{high}.{low}");
        let _ = writeln!(script, "ip route add 2001:db8:{n:x}::/48 via 2001:db8::{n:x}");
        let _ = writeln!(script, "ip mroute add 232.1.{high}.{low} via e0 Accept");
        let _ = writeln!(script, "ip mroute add ff0e::{n:x} via e0 Forward");
        let _ = writeln!(script, "l2fib add 02:fe:01:00:{high:02x}:{low:02x} 10 e2 static");
        let _ = writeln!(script, "sr localsid address fc00:0:1::{n:x} behavior end");
        let _ = writeln!(script, "sr policy add bsid fc00:0:f::{n:x} next fc00:0:2::{n:x} encap");
        let _ = writeln!(script, "sr steer l3 30.{high}.{low}.0/24 via bsid fc00:0:f::{n:x}");
        let _ = writeln!(script, "abf policy add id {n} match dscp 46 via 10.0.{high}.{low} e0");
        let _ = writeln!(script, "set interface span loop{n} destination e2 rx");
        let _ = writeln!(script, "set urpf ip4 rx loose loop{n}");
        let _ = writeln!(script, "set ip pmtu peer 10.0.{high}.{low} path-mtu 1400");
    }

    if let Err(refusal) = router.script("many", &script) {
        panic!("{refusal}");
    }
    router
}

/// Do it as the control loop does. Returns the answer, the units that it was counted as, and the
/// most units of a step.
fn stepped(router: &mut Router, line: &str) -> Result<(Output, u64, u64), Refusal> {
    let commands = router.commands();
    let commands = commands.borrow();
    let engine = router.engine();
    let mut execution = match commands.start(engine, line)? {
        Started::Done(output) => return Ok((output, 0, 0)),
        Started::Running(execution) => execution,
    };
    let (mut sink, mut most) = (Counting::default(), 0);
    loop {
        sink.step = 0;
        let step = execution.step(&commands, engine, &mut sink)?;
        most = most.max(sink.step);
        if let Step::Done(output) = step {
            sink.output(output);
            let all = sink.collected.outputs;
            let whole = all.into_iter().next().unwrap_or_default();
            return Ok((whole, sink.units, most));
        }
    }
}

#[test]
fn every_show_is_made_in_slices_however_long_its_answer_is() {
    let mut router = router();
    let lines: Vec<String> = {
        let commands = router.commands();
        let commands = commands.borrow();
        let all = commands.samples().into_iter().chain(commands.shows().map(str::to_owned));
        let mut lines: Vec<String> = all.filter(|line| line.starts_with("show ")).collect();
        lines.sort();
        lines.dedup();
        lines
    };
    let (mut faults, mut long) = (Vec::new(), 0);
    for line in lines {
        if BOUNDED.iter().any(|bounded| line.starts_with(bounded)) {
            continue;
        }
        let Ok((output, units, most)) = stepped(&mut router, &line) else { continue };
        let rows = longest(&output.to_json());
        long += usize::from(rows >= COUNT);
        if rows > ROWS_OF_UNIT_MAX * units as usize + UNCOUNTED_MAX {
            faults.push(format!("{line}: {rows} rows for {units} units of work"));
        }
        if most as usize > UNITS_MAX as usize + UNCOUNTED_MAX {
            faults.push(format!("{line}: {most} units of work in one step"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(long > 20, "{long} answers are long");
}
