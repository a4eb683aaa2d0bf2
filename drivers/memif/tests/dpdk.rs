//! DPDK's net_memif as the peer, in both roles: `dpdk-testpmd` sends back what it receives.
//! Skipped, with a printed reason, where it is not installed.

use crate::router;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use quiver_core::InterfaceId;
use quiver_memif::{MemifConfig, Role};
use router::{Router, frame};

/// Two of them at once would fight over the cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// How long things may take where other programs have the cores first.
const PATIENCE: Duration = Duration::from_secs(120);

/// A testpmd that sends back what it receives; killed on drop.
struct Testpmd(Child, PathBuf);

impl Testpmd {
    /// `None`, and a printed reason, when it cannot run here.
    fn start(test: &str, device: &str, extra: &[&str]) -> Option<Testpmd> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        if cores < 2 {
            println!("SKIPPED {test}: testpmd wants two cores, here is one");
            return None;
        }
        let log =
            std::env::temp_dir().join(format!("quiver-memif-{test}-{}.log", std::process::id()));
        let child = Command::new("dpdk-testpmd")
            .args([
                "-l",
                "0,1",
                "--no-huge",
                "-m",
                "256",
                "--no-pci",
                "--no-telemetry",
                "--single-file-segments",
            ])
            .arg(format!("--file-prefix=quiver-{test}-{}", std::process::id()))
            .arg(format!("--vdev=net_memif0,{device}"))
            // Without a period of statistics it would end with its empty standard input.
            .args([
                "--",
                "--no-mlockall",
                "--stats-period=3600",
                "--forward-mode=io",
                "--total-num-mbufs=8192",
            ])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&log).expect("log"))
            .stderr(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Testpmd(child, log)),
            Err(error) => {
                println!(
                    "SKIPPED {test}: dpdk-testpmd cannot be started: {error} (Debian: apt-get \
                     install dpdk)"
                );
                None
            }
        }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_file(&self.1);
    }
}

/// Go on in real time until `done`.
fn wait(
    router: &mut Router,
    id: InterfaceId,
    what: &str,
    mut done: impl FnMut(&mut Router) -> bool,
) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if done(router) {
            return;
        }
        router.pass_ms(1);
        std::thread::sleep(Duration::from_micros(200));
    }
    let memif = router.engine.interface_totals(id);
    panic!("never happened: {what}; {memif:?}; last end of a connection: {}", router.reason(id));
}

/// testpmd needs a moment after the connection: it gives its buffers and empties its queues. Send
/// until something comes back, then until all that is under way is back.
fn wait_for_echo(router: &mut Router, id: InterfaceId) {
    wait(router, id, "an echo", |router| {
        router.send(id, &frame(0, 60));
        !router.take().is_empty()
    });
    for _ in 0..300 {
        router.pass_ms(1);
        std::thread::sleep(Duration::from_millis(1));
    }
    router.take();
}

fn echo(router: &mut Router, id: InterfaceId, frames: &[Vec<u8>]) {
    frames.iter().for_each(|bytes| router.send(id, bytes));
    let mut back = Vec::new();
    wait(router, id, "all came back", |router| {
        back.extend(router.take());
        back.len() >= frames.len()
    });
    back.sort();
    let mut sent = frames.to_vec();
    sent.sort();
    assert!(back == sent, "what came back is not what was sent");
}

fn lengths() -> Vec<Vec<u8>> {
    [60, 64, 65, 128, 1500, 1514, 2047, 2048]
        .into_iter()
        .enumerate()
        .map(|(n, l)| frame(n, l))
        .collect()
}

/// Our role against the other role of testpmd.
fn talk(
    test: &str,
    role: Role,
    device: &str,
    extra: &[&str],
    change: impl Fn(&mut MemifConfig),
    jumbo_rounds: usize,
) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path =
        std::env::temp_dir().join(format!("quiver-memif-{test}-{}.sock", std::process::id()));
    let path = path.to_str().expect("a path in UTF-8");
    let _ = std::fs::remove_file(path);
    let mut router = Router::new(2);
    // A DPDK client tries once only, so its server has to be there first.
    let id = router.add(path, role, &change);
    let device = format!("{device},id=0,socket={path},socket-abstract=no,rsize=8");
    let Some(mut testpmd) = Testpmd::start(test, &device, extra) else { return };
    wait(&mut router, id, "connected", |r| {
        assert!(
            testpmd.0.try_wait().expect("child").is_none(),
            "testpmd ended; does it run by hand?"
        );
        r.is_up(id)
    });
    wait_for_echo(&mut router, id);
    for _ in 0..50 {
        echo(&mut router, id, &lengths());
    }
    let many: Vec<_> = (0..100).map(|n| frame(n, 64)).collect();
    for _ in 0..50 {
        echo(&mut router, id, &many);
    }
    for number in 0..jumbo_rounds {
        echo(&mut router, id, &[frame(number, 9000)]);
        echo(&mut router, id, &lengths());
    }
    println!(
        "{test}: {} connected with {:?}",
        router.engine.interface_name(id),
        router.engine.interface_totals(id)
    );
    // The peer dies without a word.
    drop(testpmd);
    wait(&mut router, id, "down", |router| !router.is_up(id));
    assert!(router.reason(id).contains("the peer is gone"), "{}", router.reason(id));
    router.assert_balance();
    // And another one comes; the file that a DPDK server leaves behind is in its way.
    if role == Role::Slave {
        let _ = std::fs::remove_file(path);
    }
    let Some(testpmd) = Testpmd::start(test, &device, extra) else { return };
    wait(&mut router, id, "connected again", |router| router.is_up(id));
    wait_for_echo(&mut router, id);
    echo(&mut router, id, &lengths());
    quiver_memif::delete(&mut router.engine, id).expect("deleted");
    router.assert_balance();
    drop(testpmd);
    let _ = std::fs::remove_file(path);
}

#[test]
fn our_slave_talks_with_a_dpdk_server() {
    talk("slave", Role::Slave, "role=server", &[], |_| {}, 20);
}

#[test]
fn our_master_talks_with_a_dpdk_client() {
    // A DPDK 22.11 client never clears a descriptor's NEXT flag: after a frame of several
    // descriptors, its ring is not to be trusted once it has come round.
    talk("master", Role::Master, "role=client", &[], |_| {}, 1);
}

#[test]
fn queues_and_a_secret_work_with_a_dpdk_server() {
    let change = |c: &mut MemifConfig| {
        (c.rx_queues, c.tx_queues) = (Some(2), Some(2));
        c.secret = Some("sesame".into());
        c.ring_size = 512;
    };
    talk(
        "queues-slave",
        Role::Slave,
        "role=server,secret=sesame",
        &["--rxq=2", "--txq=2"],
        change,
        0,
    );
}

#[test]
fn queues_and_a_secret_work_with_a_dpdk_client() {
    let change = |c: &mut MemifConfig| c.secret = Some("sesame".into());
    talk(
        "queues-master",
        Role::Master,
        "role=client,secret=sesame",
        &["--rxq=2", "--txq=2"],
        change,
        0,
    );
}

#[test]
fn our_master_reads_the_memory_of_a_dpdk_client_without_copies() {
    talk("zero-copy", Role::Master, "role=client,zero-copy=yes", &[], |_| {}, 0);
}

#[test]
fn our_slave_lends_its_buffers_to_a_dpdk_server() {
    talk("lending-slave", Role::Slave, "role=server", &[], |c| c.zero_copy = true, 20);
}
