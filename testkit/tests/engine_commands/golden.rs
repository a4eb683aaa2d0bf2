//! The runner of golden packets, on cases that are right and on cases that are wrong in each way.

use std::fs;
use std::path::Path;

use quiver_core::pcap_file::{LINK_ETHERNET, PcapWriter};
use quiver_testkit::{Settings, golden};

use crate::folder::Folder;
use crate::toy::{frame, register};

const SETUP: &str = "\
create test interface e0
create test interface e1/2
set interface state e0 up
set interface state e1/2 up
";

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), LINK_ETHERNET).expect("header");
    frames.iter().for_each(|frame| writer.write(0, frame).expect("record"));
    writer.into_inner()
}

/// A case in which one frame goes through and one dies, then one comes back.
fn case(folder: &Path) {
    for (name, content) in [
        ("setup.cli", SETUP.as_bytes().to_vec()),
        ("01-in.e0.pcap", pcap(&[frame(1, 60), frame(9, 60)])),
        ("01-out.e1+2.pcap", pcap(&[frame(1, 60)])),
        (
            "01-counters.json",
            br#"{"drops": {"toy-forward": {"no-interface": 1}},
                "interfaces": {"e0": {"rx_packets": 2}}}"#
                .to_vec(),
        ),
        ("02.cli", b"test advance 2\n".to_vec()),
        ("02-in.e1+2.pcap", pcap(&[frame(0, 3000)])),
        ("02-out.e0.pcap", pcap(&[frame(0, 3000)])),
        ("02-counters.json", br#"{"events": {"ethernet-input": {"long": 1}}}"#.to_vec()),
        ("make.py", b"# scapy\n".to_vec()),
    ] {
        fs::write(folder.join(name), content).expect("written");
    }
}

/// What is wrong with the case when one of its files is otherwise.
fn wrong_with(test: &str, file: &str, content: Option<&[u8]>) -> String {
    let folder = Folder::new(&format!("golden-{test}"));
    case(&folder.0);
    match content {
        Some(content) => fs::write(folder.file(file), content).expect("written"),
        None => fs::remove_file(folder.file(file)).expect("removed"),
    }
    golden::check(&folder.0, Settings::default(), &[register]).join("\n")
}

#[test]
fn a_case_that_comes_out_as_it_says_passes() {
    let folder = Folder::new("golden-right");
    case(&folder.0);
    assert_eq!(golden::check(&folder.0, Settings::default(), &[register]), [""; 0]);
}

#[test]
fn all_cases_of_a_folder_are_run() {
    let folder = Folder::new("golden-all");
    for name in ["one", "two"] {
        fs::create_dir(folder.0.join(name)).expect("a folder");
        case(&folder.0.join(name));
    }
    assert_eq!(golden::run_all(&folder.0, &[register]), 2);
}

#[test]
fn a_frame_that_differs_is_shown_by_field() {
    let mut other = frame(1, 60);
    other[7] ^= 0xff;
    let text = wrong_with("differs", "01-out.e1+2.pcap", Some(&pcap(&[other])));
    assert!(text.contains("step 01, out of e1/2:"), "{text}");
    assert!(
        text.contains("ethernet source (byte 6): expected 06f808090a0b, sent 060708090a0b"),
        "{text}"
    );
    assert!(text.contains("[f8]") && text.contains("[07]"), "{text}");
}

#[test]
fn frames_too_many_and_too_few_are_told() {
    let text = wrong_with("few", "01-out.e1+2.pcap", Some(&pcap(&[frame(1, 60), frame(1, 60)])));
    assert!(text.contains("2 frames expected, 1 sent") && text.contains("is missing"), "{text}");
    let text = wrong_with("many", "01-out.e1+2.pcap", None);
    assert!(
        text.contains("0 frames expected, 1 sent") && text.contains("was not expected"),
        "{text}"
    );
}

#[test]
fn counters_that_differ_are_told() {
    let text = wrong_with("no-counters", "01-counters.json", None);
    assert!(text.contains("0 drops expected by toy-forward, no-interface; there are 1"), "{text}");
    let counters = br#"{"drops": {"toy-forward": {"no-interface": 1, "other": 2}},
        "interfaces": {"e0": {"rx_packets": 7, "x": 1}}}"#;
    let text = wrong_with("counters", "01-counters.json", Some(counters));
    assert!(text.contains("2 drops expected by toy-forward, other; there are 0"), "{text}");
    assert!(text.contains("e0 rx_packets: 7 expected, 2 counted"), "{text}");
    assert!(text.contains("there is no counter x of an interface e0"), "{text}");
    let text = wrong_with(
        "event",
        "02-counters.json",
        Some(br#"{"events": {"ethernet-input": {"long": 3}}}"#),
    );
    assert!(text.contains("3 events expected at ethernet-input, long; there are 1"), "{text}");
}

#[test]
fn a_slip_of_the_keyboard_is_no_check_that_passes() {
    for (test, file, content, says) in [
        ("name", "01-ou.e0.pcap", &b""[..], "what is 01-ou.e0.pcap?"),
        ("key", "01-counters.json", br#"{"drop": {}}"#, "what is drop?"),
        ("json", "01-counters.json", b"{", "EOF while parsing"),
        ("pcap", "01-in.e0.pcap", b"hello, no pcap", "not a pcap file"),
        ("interface", "01-out.e7.pcap", &pcap(&[]), "creates no test interface e7"),
        (
            "setup",
            "setup.cli",
            b"create test interface e0\nset int sate e0 up\n",
            "setup.cli:2: unknown word 'sate'",
        ),
        ("step", "02.cli", b"\nshow nothing\n", "02.cli:2: "),
    ] {
        let text = wrong_with(test, file, Some(content));
        assert!(text.contains(says), "{test}: {text}");
    }
}
