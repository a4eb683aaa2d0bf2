//! Captures hold what was sent and what came, those frames that the filter wants, and say what they
//! lack.

use crate::wire;

use std::path::{Path, PathBuf};

use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::report::Report;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::NoObserver;
use wire::{BOTH_WAYS, Bench, check_balance, check_counts, cross, generator};

/// A file that goes away with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("quiver-tg-{}-{name}.pcapng", std::process::id())))
    }

    /// Frames in it by direction: received, sent.
    fn frames(&self) -> (usize, usize) {
        let bytes = std::fs::read(&self.0).expect("the capture's file");
        let (mut at, mut received, mut sent, mut before) = (0, 0, 0, 0);
        let word =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            if word(at) == 6 {
                let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
                assert!(time >= before, "frames are in the order of time");
                before = time;
                // The flags are the last option but one: code, length, value, end, length of the
                // block.
                match word(at + length - 12) & 3 {
                    1 => received += 1,
                    2 => sent += 1,
                    other => panic!("direction {other}"),
                }
            }
            at += length;
        }
        assert_eq!(at, bytes.len(), "the file ends with a whole block");
        (received, sent)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn capturing(captures: &str) -> Generator<Bench> {
    let text = format!("{BOTH_WAYS}\ncaptures: [{captures}]");
    generator(
        &text,
        usize::MAX,
        Box::new(
            |port, number, _| {
                if port == 0 && number % 10 == 0 { vec![] } else { cross(port, 5_000) }
            },
        ),
    )
}

fn measure(generator: &mut Generator<Bench>) -> Report {
    let request = Measure { warmup_s: 0.0, ..Measure::new(Rate::Pps(10_000.0), 0.1) };
    let report = generator.measure(&request, &mut NoObserver).expect("report");
    check_counts(&report);
    check_balance(generator);
    report
}

fn spec(file: &Path, rest: &str) -> String {
    format!("{{file: \"{}\", {rest}}}", file.display())
}

#[test]
fn a_capture_has_every_frame_that_was_sent_and_every_one_that_came() {
    let file = File::new("both");
    let mut generator = capturing(&spec(&file.0, "port: 1, filter: \"not arp and not icmp6\""));
    let report = measure(&mut generator);
    // 500 each way, of which 50 to port 1 are lost.
    let capture = &report.captures[0];
    assert_eq!((capture.wanted, capture.written, capture.dropped), (950, 950, 0));
    assert_eq!(file.frames(), (450, 500));
    assert_eq!(report.lost, 50);
}

#[test]
fn a_filter_a_direction_and_a_limit_choose_frames() {
    let (some, few) = (File::new("filter"), File::new("limit"));
    let filter = "port: 0, direction: received, filter: \"udp and src host 10.0.0.3 and stream 1\"";
    let limit = "port: 0, direction: sent, limit: 7";
    let report =
        measure(&mut capturing(&format!("{}, {}", spec(&some.0, filter), spec(&few.0, limit))));
    assert_eq!(some.frames(), (500, 0));
    assert_eq!(few.frames(), (0, 7));
    assert_eq!((report.captures[0].is_full, report.captures[1].is_full), (false, true));
}

#[test]
fn a_device_that_is_always_full_costs_no_frame_and_is_told() {
    let report = measure(&mut capturing(&spec(Path::new("/dev/full"), "port: 0")));
    assert_eq!(report.received, 950);
    let capture = &report.captures[0];
    assert_eq!((capture.written, capture.dropped), (0, capture.wanted));
    assert!(capture.error.as_deref().is_some_and(|error| error.contains("space")), "{capture:?}");
}

#[test]
fn a_capture_that_cannot_be_is_refused_with_its_line() {
    let refused = |capture: &str| {
        let text = format!(
            "ports: [{{tap: {{name: a}}}}]\nstreams: [{{from: 0, to: 0}}]\ncaptures:\n  - \
             {capture}\n"
        );
        quiver_tg_traffic::profile::Profile::parse(&text, Path::new("p.yaml"))
            .expect_err("must be refused")
            .to_string()
    };
    let message = refused("{port: 0, file: x, filter: \"udp prt 53\"}");
    assert!(message.starts_with("p.yaml:4: ") && message.contains("column 5"), "{message}");
    assert!(refused("{port: 3, file: x}").contains("there are ports 0 to 0"));
    assert!(refused("{port: 0, file: x, limit: 0}").contains("limit 0"));
    assert!(refused("{port: 0, file: x, snap_bytes: 70000}").contains("snap_bytes"));
    assert!(refused("{port: 0, file: x, direction: up}").contains("up"));
}
