//! Files that come in and files that go out, through a whole router.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::pcap_file::{LINK_ETHERNET, LINK_RAW, PcapReader, PcapWriter};
use quiver_testkit::{Router, Settings};

const FEATURES: [quiver_testkit::Register; 3] =
    [quiver_pcap::register, quiver_ethernet::register, quiver_ip::register];

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("quiver-pcap-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, link_type: u32, packets: &[Vec<u8>]) -> PathBuf {
        let mut writer = PcapWriter::new(Vec::new(), link_type).expect("header");
        packets.iter().for_each(|bytes| writer.write(1, bytes).expect("record"));
        std::fs::write(self.path(name), writer.into_inner()).expect("file");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    PcapReader::open(path).expect("file").map(|record| record.expect("record").bytes).collect()
}

fn frames(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let mut frame = vec![2; bytes];
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame[14..18].copy_from_slice(&(number as u32).to_be_bytes());
            frame
        })
        .collect()
}

/// Set `pcap0` up and let it receive. While the file was opened its queue has fallen asleep, and a
/// worker looks at sleeping queues once in 64 passes.
fn receive(router: &mut Router) {
    router.cli("set interface state pcap0 up");
    for _ in 0..64 {
        router.step();
    }
    router.run();
}

/// `pcap0` receives, `pcap1` sends.
fn patched(router: &mut Router, rx: &Path, tx: &Path) {
    router.cli(&format!("create pcap id 0 rx {}", rx.display()));
    router.cli(&format!("create pcap id 1 tx {}", tx.display()));
    router.cli("test l2patch rx pcap0 tx pcap1");
    router.cli("set interface state pcap1 up");
    router.run(); // pcap0 is down: its packets wait
    assert_eq!(router.totals("pcap0").rx_packets, 0);
    receive(router);
}

#[test]
fn what_is_in_a_file_comes_in_once_and_goes_out_to_another() {
    let folder = Folder::new();
    let mut all = frames(700, 60);
    all.extend(frames(3, 9014));
    all.push(frames(1, 65_549).remove(0));
    let rx = folder.write("in.pcap", LINK_ETHERNET, &all);
    let tx = folder.path("out.pcap");
    let mut router = Router::new(&FEATURES);
    patched(&mut router, &rx, &tx);
    assert_eq!(router.totals("pcap0").rx_packets, 704);
    assert_eq!(read(&tx), all);
    let shown = router.json("show pcap");
    assert!(shown.to_string().contains("\"done\""), "{shown}");
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    let config = router.cli("show running-config");
    assert!(config.contains(&format!("create pcap id 0 rx {}\n", rx.display())), "{config}");
    router.cli("delete pcap pcap0");
    router.cli("delete pcap pcap1");
    assert_eq!(read(&tx), all);
}

#[test]
fn a_file_is_continued_where_it_ends() {
    let folder = Folder::new();
    let rx = folder.write("in.pcap", LINK_ETHERNET, &frames(5, 60));
    let tx = folder.path("out.pcap");
    for round in 1..=2 {
        let mut router = Router::new(&FEATURES);
        patched(&mut router, &rx, &tx);
        assert_eq!(read(&tx).len(), round * 5);
    }
}

#[test]
fn a_file_in_a_loop_never_ends_and_few_buffers_lose_nothing() {
    let folder = Folder::new();
    let all = frames(3, 9014);
    let rx = folder.write("in.pcap", LINK_ETHERNET, &all);
    let tx = folder.path("out.pcap");
    let mut router = Router::with(Settings { buffers: 128, ..Settings::default() }, &FEATURES);
    router.cli(&format!("create pcap id 0 rx {} loop", rx.display()));
    router.cli(&format!("create pcap id 1 tx {}", tx.display()));
    router.cli("test l2patch rx pcap0 tx pcap1");
    router.cli("set interface state pcap1 up");
    router.cli("set interface state pcap0 up");
    for _ in 0..84 {
        router.step();
    }
    router.cli("set interface state pcap0 down");
    router.run();
    let out = read(&tx);
    assert!(out.len() > 100, "{}", out.len());
    assert!(out.iter().zip(all.iter().cycle()).all(|(seen, sent)| seen == sent));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn packets_without_layer_2_enter_at_ip_input() {
    let folder = Folder::new();
    let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    packet[10] = 0xff; // a wrong checksum
    let rx = folder.write("ip.pcap", LINK_RAW, &[packet]);
    let mut router = Router::new(&FEATURES);
    router.cli(&format!("create pcap id 7 rx {}", rx.display()));
    router.cli("set interface ip address pcap7 192.0.2.9/24");
    router.cli("set interface state pcap7 up");
    router.run();
    assert!(
        router.dropped().iter().any(|(node, _, _)| node.starts_with("ip4-input")),
        "{:?}",
        router.dropped()
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_file_and_the_place_and_leaves_nothing() {
    let folder = Folder::new();
    let good = folder.write("good.pcap", LINK_ETHERNET, &frames(2, 60));
    let mut bytes = std::fs::read(&good).expect("file");
    bytes.pop();
    let cut = folder.path("cut.pcap");
    std::fs::write(&cut, &bytes).expect("file");
    let other = folder.path("other.pcap");
    bytes[0] = 0xd4;
    bytes[1] = 0xc3;
    std::fs::write(&other, &bytes).expect("file");
    let (good, cut, other) = (good.display(), cut.display(), other.display());
    let missing = folder.path("no/such/file").display().to_string();
    let mut router = Router::new(&FEATURES);
    for (line, expected) in [
        ("create pcap id 0".to_owned(), "needs a file".to_owned()),
        (format!("create pcap id 0 tx {missing} loop"), "needs `rx FILE`".into()),
        (format!("create pcap id 0 rx {missing}"), format!("{missing}: No such file")),
        (format!("create pcap id 0 tx {missing}"), format!("{missing}: No such file")),
        ("create pcap id 0 rx /dev/zero".into(), "/dev/zero is not a regular file".into()),
        (format!("create pcap id 0 rx {}", folder.0.display()), "is not a regular file".into()),
        (format!("create pcap id 0 rx {cut}"), "inside a record that begins at byte 100".into()),
        (format!("create pcap id 0 tx {cut}"), "inside a record that begins at byte 100".into()),
        (format!("create pcap id 0 tx {other}"), "written in another way".into()),
        ("delete pcap pcap0".into(), "no interface 'pcap0'".into()),
    ] {
        let refused = router.refused(&line);
        assert!(refused.contains(&expected), "{line}: {refused}");
    }
    router.cli(&format!("create pcap id 0 rx {good}"));
    assert!(router.refused(&format!("create pcap id 0 rx {good}")).contains("exists already"));
    router.interface("t0");
    assert!(router.refused("delete pcap t0").contains("t0 is not a pcap interface"));
}

#[test]
fn what_is_sent_without_a_file_is_counted() {
    let folder = Folder::new();
    let rx = folder.write("in.pcap", LINK_ETHERNET, &frames(5, 60));
    let mut router = Router::new(&FEATURES);
    router.cli(&format!("create pcap id 0 rx {}", rx.display()));
    router.cli(&format!("create pcap id 1 rx {}", rx.display()));
    router.cli("test l2patch rx pcap0 tx pcap1");
    router.cli("set interface state pcap1 up");
    receive(&mut router);
    assert_eq!(router.count("pcap1-tx", "tx-refused"), 5);
    assert_eq!(router.totals("pcap1").tx_errors, 5);
}

#[test]
fn a_disk_that_is_full_takes_the_link_and_nothing_else() {
    let folder = Folder::new();
    let rx = folder.write("in.pcap", LINK_ETHERNET, &frames(300, 60));
    if !mount_tiny(&folder.path("tiny")) {
        println!("skipped: a small file system cannot be mounted here (not root)");
        return;
    }
    let tx = folder.path("tiny").join("out.pcap");
    let mut router = Router::new(&FEATURES);
    patched(&mut router, &rx, &tx);
    let refused = router.count("pcap1-tx", "tx-refused");
    let state = router.cli("show pcap");
    drop(router);
    let unmounted = std::process::Command::new("umount").arg(folder.path("tiny")).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert!(refused > 0, "{refused}");
    assert!(state.contains("cannot be written"), "{state}");
}

/// A file system of 8 KiB.
fn mount_tiny(at: &Path) -> bool {
    std::fs::create_dir(at).expect("folder");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"])
        .arg(at)
        .stderr(std::process::Stdio::null())
        .status();
    mount.is_ok_and(|status| status.success())
}
