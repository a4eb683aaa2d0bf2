//! Golden packets: folders that say what goes in, what comes out and what is counted. The format is
//! described in this crate's README.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use quiver_core::pcap_file::PcapReader;
use serde_json::{Map, Value};

use crate::diff::{difference, hex};
use crate::fields::flow;
use crate::offloads::{self, GoldenFrame};
use crate::router::{Register, Router, Settings};

/// Frames of one interface that a report shows in full.
const FRAMES_PRINTED_MAX: usize = 4;

/// What one folder holds, sorted by step.
#[derive(Debug, Default)]
struct Step {
    /// Commands before the packets.
    commands: Option<PathBuf>,
    /// Frames to put in, by interface.
    input: BTreeMap<String, PathBuf>,
    /// Frames that must come out, by interface.
    output: BTreeMap<String, PathBuf>,
    /// Counters that must be there afterwards.
    counters: Option<PathBuf>,
}

/// Run every case in `folder`; all that is wrong is told in one panic. Returns how many there were.
#[track_caller]
pub fn run_all(folder: &Path, features: &[Register]) -> usize {
    run_all_with(Settings::default(), folder, features)
}

/// As [`run_all`], in a router set up otherwise.
#[track_caller]
pub fn run_all_with(settings: Settings, folder: &Path, features: &[Register]) -> usize {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut cases: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    cases.sort();
    let mut report = String::new();
    let mut failed = 0;
    for case in &cases {
        let wrong = check(case, settings, features);
        failed += usize::from(!wrong.is_empty());
        wrong.iter().for_each(|text| {
            let _ = writeln!(report, "{}: {text}", case.display());
        });
    }
    assert!(failed == 0, "{failed} of {} golden cases differ\n{report}", cases.len());
    assert!(!cases.is_empty(), "{}: no golden case in it", folder.display());
    cases.len()
}

/// The frames that come in, of all cases in `folder`: what tests of changed frames begin with.
#[track_caller]
pub fn frames_in(folder: &Path) -> Vec<Vec<u8>> {
    let entries_of = |folder: &Path| {
        let entries = std::fs::read_dir(folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        paths
    };
    let is_input = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("-in.") && name.ends_with(".pcap")
    };
    let cases = entries_of(folder).into_iter().filter(|path| path.is_dir());
    let files = cases.flat_map(|case| entries_of(&case)).filter(|path| is_input(path));
    let frames: Vec<_> =
        files.flat_map(|file| frames(&file).unwrap_or_else(|error| panic!("{error}"))).collect();
    assert!(!frames.is_empty(), "{}: no golden frames in it", folder.display());
    frames
}

/// A case as tests of changed frames begin with it.
#[derive(Clone, Debug)]
pub struct Seed {
    /// `feature/case`.
    pub name: String,
    /// `setup.cli`.
    pub setup: String,
    /// The commands of its steps.
    pub commands: Vec<String>,
    /// The frames that come in, with the names of their interfaces.
    pub frames: Vec<(String, Vec<u8>)>,
}

/// All cases of all features, sorted by name. `features` is the folder of the features.
#[track_caller]
pub fn seeds(features: &Path) -> Vec<Seed> {
    let folders_in = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let paths =
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir());
        paths.collect::<BTreeSet<PathBuf>>()
    };
    let cases = folders_in(features)
        .into_iter()
        .flat_map(|feature| folders_in(&feature.join("tests/golden")));
    let seeds =
        cases.map(|case| seed_of(features, &case).unwrap_or_else(|error| panic!("{error}")));
    let seeds: Vec<Seed> = seeds.collect();
    assert!(!seeds.is_empty(), "{}: no golden case in it", features.display());
    seeds
}

fn seed_of(features: &Path, case: &Path) -> Result<Seed, String> {
    let text = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let inside = case.strip_prefix(features).unwrap_or(case).display().to_string();
    let mut seed = Seed {
        name: inside.replace("/tests/golden", ""),
        setup: text(&case.join("setup.cli"))?,
        commands: Vec::new(),
        frames: Vec::new(),
    };
    for step in steps_of(case)?.into_values() {
        if let Some(path) = step.commands {
            seed.commands.extend(text(&path)?.lines().map(str::to_owned));
        }
        for (interface, path) in step.input {
            seed.frames.extend(frames(&path)?.into_iter().map(|frame| (interface.clone(), frame)));
        }
    }
    Ok(seed)
}

/// Run one case; what is wrong, in words.
pub fn check(case: &Path, settings: Settings, features: &[Register]) -> Vec<String> {
    let mut wrong = Vec::new();
    match steps_of(case) {
        Ok(steps) => {
            let mut router = Router::with(settings, features);
            let setup = case.join("setup.cli");
            if let Err(text) = commands(&mut router, &setup) {
                return vec![text];
            }
            router.run();
            for name in router.interfaces() {
                router.sent(&name); // what the set-up made it say belongs to no step
            }
            for (number, step) in &steps {
                run_step(&mut router, number, step, &mut wrong);
            }
        }
        Err(text) => wrong.push(text),
    }
    wrong
}

/// Sort the files of a case into steps. A name that is none of them is an error: a slip of the
/// keyboard must not make a check disappear.
fn steps_of(case: &Path) -> Result<BTreeMap<String, Step>, String> {
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    let entries = std::fs::read_dir(case).map_err(|error| error.to_string())?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        if path.is_dir() || name == "setup.cli" || name.ends_with(".py") || name.ends_with(".md") {
            continue;
        }
        if let Some(start) = name.strip_suffix(offloads::ENDING) {
            if case.join(format!("{start}pcap")).exists() {
                continue; // read with the frames that it is of
            }
            return Err(format!("{name}: {start}pcap is missing"));
        }
        let (number, rest) = split_number(&name).ok_or_else(|| {
            format!(
                "what is {name}? setup.cli, NN.cli, NN-in.IF.pcap, NN-out.IF.pcap and \
                     NN-counters.json are known"
            )
        })?;
        let step = steps.entry(number.to_owned()).or_default();
        let interface_of = |prefix: &str| {
            Some(rest.strip_prefix(prefix)?.strip_suffix(".pcap")?.replace('+', "/"))
                .filter(|n| !n.is_empty())
        };
        if rest == ".cli" {
            step.commands = Some(path);
        } else if rest == "-counters.json" {
            step.counters = Some(path);
        } else if let Some(interface) = interface_of("-in.") {
            step.input.insert(interface, path);
        } else if let Some(interface) = interface_of("-out.") {
            step.output.insert(interface, path);
        } else {
            return Err(format!(
                "what is {name}? a step has NN.cli, NN-in.IF.pcap, NN-out.IF.pcap and \
                 NN-counters.json"
            ));
        }
    }
    if steps.is_empty() {
        Err("no step in it: 01-in.IF.pcap is missing".to_owned())
    } else {
        Ok(steps)
    }
}

/// `01-in.e0.pcap` is step `01` and `-in.e0.pcap`.
fn split_number(name: &str) -> Option<(&str, &str)> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| name.split_at(digits))
}

fn commands(router: &mut Router, path: &Path) -> Result<(), String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    router.script(&name, &text).map(drop).map_err(|refusal| refusal.to_string())
}

fn run_step(router: &mut Router, number: &str, step: &Step, wrong: &mut Vec<String>) {
    router.cli("clear errors");
    router.cli("clear interfaces");
    if let Some(path) = &step.commands
        && let Err(text) = commands(router, path)
    {
        wrong.push(text);
    }
    router.run();
    let names: BTreeSet<String> = router.interfaces().into_iter().collect();
    for interface in
        step.input.keys().chain(step.output.keys()).filter(|name| !names.contains(*name))
    {
        wrong.push(format!("step {number}: setup.cli creates no test interface {interface}"));
    }
    for (interface, path) in step.input.iter().filter(|(name, _)| names.contains(*name)) {
        match golden_frames(path) {
            Ok(frames) => {
                for (bytes, offload) in &frames {
                    router.inject_unfinished(interface, bytes, *offload);
                }
            }
            Err(text) => wrong.push(text),
        }
    }
    router.run();
    for interface in &names {
        let mut expected = match step.output.get(interface).map(|path| golden_frames(path)) {
            Some(Ok(frames)) => frames,
            Some(Err(text)) => {
                wrong.push(text);
                continue;
            }
            None => Vec::new(),
        };
        let mut sent = router.sent_unfinished(interface);
        if router.engine().config().block_driver {
            // Blocks go through the graph in one pass: packets may be overtaken by those of other
            // flows, never by their own.
            expected.sort_by_cached_key(|(frame, _)| flow(frame));
            sent.sort_by_cached_key(|(frame, _)| flow(frame));
        }
        if let Some(text) = compare(&expected, &sent) {
            wrong.push(format!("step {number}, out of {interface}:\n{text}"));
        }
    }
    if let Err(text) = compare_counters(router, step.counters.as_deref()) {
        wrong.push(format!("step {number}, counters: {text}"));
    }
}

fn frames(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let reader = PcapReader::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let records = reader.map(|record| record.map(|r| r.bytes));
    records.collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", path.display()))
}

/// As [`frames`], with what they leave to the transmitting device.
fn golden_frames(path: &Path) -> Result<Vec<GoldenFrame>, String> {
    offloads::beside(path, frames(path)?)
}

/// Compare frame by frame, in order.
fn compare(expected: &[GoldenFrame], sent: &[GoldenFrame]) -> Option<String> {
    let mut out = String::new();
    let mut shown = 0;
    for number in 0..expected.len().max(sent.len()) {
        let text = match (expected.get(number), sent.get(number)) {
            (Some((expected, left)), Some((sent, leaves))) => difference(expected, sent)
                .or((left != leaves).then(|| format!("  leaves {leaves:?}, not {left:?}\n"))),
            (Some((missing, _)), None) => Some(format!("  is missing:\n{}", hex(missing))),
            (None, Some((surplus, _))) => Some(format!("  was not expected:\n{}", hex(surplus))),
            (None, None) => None,
        };
        let Some(text) = text else { continue };
        if shown == FRAMES_PRINTED_MAX {
            let _ = writeln!(out, " (and more)");
            break;
        }
        shown += 1;
        let _ = write!(out, " frame {}:\n{text}", number + 1);
    }
    if out.is_empty() {
        return None;
    }
    Some(format!(" {} frames expected, {} sent\n{out}", expected.len(), sent.len()))
}

/// Deaths must be those of the file and no others; of events and interface counters, those that the
/// file names must be as it says.
fn compare_counters(router: &mut Router, path: Option<&Path>) -> Result<(), String> {
    let expected: Value = match path {
        None => Value::Object(Map::new()),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    let known = ["drops", "events", "interfaces"];
    let Some(object) = expected.as_object() else { return Err("an object is expected".to_owned()) };
    if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("what is {key}? drops, events and interfaces are known"));
    }
    let wanted = counts(&expected["drops"])?;
    let happened: BTreeMap<(String, String), u64> =
        router.dropped().into_iter().map(|(node, reason, count)| ((node, reason), count)).collect();
    let mut wrong = Vec::new();
    for key in wanted.keys().chain(happened.keys()).collect::<BTreeSet<_>>() {
        let (want, have) =
            (wanted.get(key).copied().unwrap_or(0), happened.get(key).copied().unwrap_or(0));
        if want != have {
            wrong.push(format!("{want} drops expected by {}, {}; there are {have}", key.0, key.1));
        }
    }
    let events: BTreeMap<(String, String), u64> =
        router.events().into_iter().map(|(node, event, count)| ((node, event), count)).collect();
    for (key, want) in counts(&expected["events"])? {
        let have = events.get(&key).copied().unwrap_or(0);
        if want != have {
            wrong.push(format!("{want} events expected at {}, {}; there are {have}", key.0, key.1));
        }
    }
    for ((interface, counter), want) in counts(&expected["interfaces"])? {
        match interface_counter(router, &interface, &counter) {
            Some(have) if have == want => {}
            Some(have) => {
                wrong.push(format!("{interface} {counter}: {want} expected, {have} counted"))
            }
            None => {
                wrong.push(format!("there is no counter {counter} of an interface {interface}"))
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}

/// One counter, by its name in `show interface` with `_` for spaces.
fn interface_counter(router: &mut Router, interface: &str, counter: &str) -> Option<u64> {
    let id = router.engine().interface_id(interface)?;
    let fields = router.engine().interface_totals(id).fields();
    fields.iter().find(|(name, _)| name.replace(' ', "_") == counter).map(|(_, value)| *value)
}

/// `{"a": {"b": 1}}` by both names.
fn counts(value: &Value) -> Result<BTreeMap<(String, String), u64>, String> {
    let mut out = BTreeMap::new();
    let outer = match value {
        Value::Null => return Ok(out),
        Value::Object(outer) => outer,
        other => return Err(format!("{other} is not an object of objects of counts")),
    };
    for (first, inner) in outer {
        let inner = inner
            .as_object()
            .ok_or_else(|| format!("{first}: {inner} is not an object of counts"))?;
        for (second, count) in inner {
            let count = count
                .as_u64()
                .ok_or_else(|| format!("{first}, {second}: {count} is not a count"))?;
            out.insert((first.clone(), second.clone()), count);
        }
    }
    Ok(out)
}
