//! Captures.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use quiver_core::pcap_file::PcapReader;

use crate::folder::Folder;
use crate::toy::{frame, router};

fn frames(path: &str) -> Vec<Vec<u8>> {
    let reader = PcapReader::open(Path::new(path)).expect("a pcap file");
    reader.map(|record| record.expect("a record").bytes).collect()
}

#[test]
fn packets_are_written_down_at_rx_tx_and_drop() {
    let (folder, mut router) = (Folder::new("points"), router());
    for (points, expected) in [
        ("rx", vec![frame(1, 60), frame(9, 61), frame(0, 62)]),
        ("tx", vec![frame(1, 60), frame(0, 62)]),
        ("drop", vec![frame(9, 61)]),
        ("rx intfc e1", vec![frame(0, 62)]),
        ("tx intfc e1", vec![frame(1, 60)]),
        ("rx max 1", vec![frame(1, 60)]),
        ("rx tx drop intfc any max 100", vec![]),
    ] {
        let file = folder.file("points.pcap");
        router.cli(&format!("pcap trace {points} file {file}"));
        router.send("e0", &frame(1, 60));
        router.send("e0", &frame(9, 61));
        router.send("e1", &frame(0, 62));
        let answer = router.cli("pcap trace off");
        let written = frames(&file);
        let s = if written.len() == 1 { "" } else { "s" };
        assert_eq!(answer, format!("{} packet{s} written to {file}\n", written.len()));
        if expected.is_empty() {
            assert_eq!(written.len(), 6, "{points}");
        } else {
            assert_eq!(written, expected, "{points}");
        }
    }
}

#[test]
fn a_long_frame_is_captured_whole() {
    let (folder, mut router) = (Folder::new("long"), router());
    let file = folder.file("long.pcap");
    router.cli(&format!("pcap trace tx file {file}"));
    router.send("e0", &frame(1, 9000));
    router.cli("pcap trace off");
    assert_eq!(frames(&file), [frame(1, 9000)]);
}

#[test]
fn a_capture_never_writes_through_a_link() {
    let (folder, mut router) = (Folder::new("links"), router());
    let (precious, link, other) =
        (folder.file("precious"), folder.file("link"), folder.file("other"));
    fs::write(&precious, "precious").expect("written");
    symlink(&precious, &link).expect("a link");
    let refusal = router.refused(&format!("pcap trace rx file {link}"));
    assert!(refusal.contains("is a symbolic link"), "{refusal}");
    fs::hard_link(&precious, &other).expect("a link");
    let refusal = router.refused(&format!("pcap trace rx file {other}"));
    assert!(refusal.contains("hard links"), "{refusal}");
    assert!(router.refused("pcap trace rx file /dev/null").contains("is not a regular file"));
    assert!(
        router
            .refused("pcap trace rx file /does/not/exist.pcap")
            .contains("/does/not/exist.pcap: ")
    );
    assert_eq!(fs::read(&precious).expect("read"), b"precious");
    assert!(router.refused("pcap trace off").contains("no capture is under way"));
}

#[test]
fn a_capture_that_cannot_be_is_refused() {
    let (folder, mut router) = (Folder::new("refused"), router());
    assert!(router.refused("pcap trace max 5").contains("say rx, tx or drop"));
    assert!(router.refused("pcap trace rx max 0").contains("from 1 to 1000000"));
    assert!(router.refused("pcap trace rx intfc e9").contains("no interface 'e9'"));
    let file = folder.file("first.pcap");
    router.cli(&format!("pcap trace rx file {file}"));
    let refusal = router.refused("pcap trace tx");
    assert!(refusal.contains("is under way: `pcap trace off` ends it"), "{refusal}");
    router.cli("pcap trace off");
    assert_eq!(frames(&file).len(), 0);
}

#[test]
fn an_older_file_is_written_over_when_the_capture_ends() {
    let (folder, mut router) = (Folder::new("older"), router());
    let file = folder.file("older.pcap");
    fs::write(&file, vec![7; 10_000]).expect("written");
    router.cli(&format!("pcap trace rx file {file}"));
    assert_eq!(fs::read(&file).expect("read").len(), 10_000);
    router.send("e0", &frame(1, 60));
    router.cli("pcap trace off");
    assert_eq!(frames(&file), [frame(1, 60)]);
}
