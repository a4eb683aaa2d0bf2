//! A peer with `zero-copy` can write into packets while the router looks at them: what was checked
//! is another thing when it is used. A thread rewrites headers in the pool's memory while the whole
//! graph forwards. Packets may go wherever they then say, or die; no index made of their bytes
//! leads out of a buffer, nothing panics, and no buffer is lost.

use std::fs::{File, OpenOptions};
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quiver_core::memory::buffer::DATA_OFFSET;
use quiver_testkit::Router;

const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];
/// Vectors that are forwarded meanwhile.
const VECTORS: usize = 2000;
/// Packets in each.
const PACKETS: usize = 128;

const LINES: [&str; 25] = [
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e0 fd00::1/64",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e1 fd00:1::1/64",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip neighbor e1 fd00:1::2 02:00:00:00:00:b1 static",
    "ip route add 0.0.0.0/0 via 10.0.1.2 e1",
    "ip route add ::/0 via fd00:1::2 e1",
    "set interface mtu packet 1400 e1",
    "set interface reassembly e0 virtual on",
    "set urpf ip4 rx loose e0",
    "set sr encaps source addr fd00:1::1",
    "sr localsid address fc00::1 behavior end",
    "sr localsid address fc00::2 behavior end.dt4 0",
    "sr localsid address fc00::3 behavior end.dt6 0",
    "sr localsid address fc00::4 behavior end.x e1 fd00:1::2 psp",
    "sr localsid address fc01::/48 behavior un",
    "sr localsid address fc02::/32 behavior end.m.gtp4.e",
    "sr policy add bsid fc00:f::1 next fc09::1 next fc09::2 encap",
    "sr steer l3 20.0.0.0/8 via bsid fc00:f::1",
    "sr steer l3 2001:db8:20::/48 via bsid fc00:f::1",
    "create bridge-domain 1",
    "set interface l2 bridge e2 1",
    "set interface l2 bridge e3 1",
    "set interface l2 tag-rewrite e2 push dot1q 7",
];

/// Good enough to wander about.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// The frames of the captures that features are tested with.
fn frames(folder: &Path, frames: &mut Vec<Vec<u8>>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            self::frames(&path, frames);
        } else if path.to_string_lossy().contains("-in.") {
            let bytes = std::fs::read(&path).expect("a capture");
            let mut rest = bytes.get(24..).unwrap_or_default();
            while let Some((head, behind)) = rest.split_first_chunk::<16>() {
                let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
                let Some((frame, others)) = behind.split_at_checked(length) else { break };
                frames.push(frame.to_vec());
                rest = others;
            }
        }
    }
}

/// Write frames, and parts of them, over the packets in all buffers, until it is time to stop.
fn rewrite(
    pool: &File,
    (buffers, stride): (usize, usize),
    frames: &[Vec<u8>],
    stop: &AtomicBool,
) -> u64 {
    let (mut random, mut written) = (Random(0x5eed), 0);
    while !stop.load(Ordering::Relaxed) {
        let frame = &frames[random.below(frames.len())];
        let from = random.below(frame.len().max(2) - 1);
        let count = 1 + random.below(64).min(frame.len() - from - 1);
        let place = random.below(buffers) * stride + usize::from(DATA_OFFSET) + from;
        pool.write_at(&frame[from..from + count], place as u64).expect("inside of the pool");
        written += 1;
    }
    written
}

/// The memory of the pool, as a peer has it.
fn shared(pool: RawFd) -> File {
    OpenOptions::new().write(true).open(format!("/proc/self/fd/{pool}")).expect("our own memfd")
}

#[test]
fn headers_that_change_while_they_are_looked_at_lead_nowhere_outside() {
    let mut router = Router::new(&[quiverd::features::built_in]);
    for port in PORTS {
        router.cli(&format!("create test interface {port}"));
        router.cli(&format!("set interface state {port} up"));
    }
    for line in LINES {
        router.cli(line);
    }
    let mut all = Vec::new();
    frames(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../features"), &mut all);
    all.retain(|frame| (15..1800).contains(&frame.len()));
    assert!(all.len() > 200, "{} frames of captures", all.len());
    let pool = router.engine().pool();
    let (memory, layout) = (shared(pool.memory().fd()), (pool.total(), pool.stride_bytes()));
    let stop = AtomicBool::new(false);
    let (written, sent) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| rewrite(&memory, layout, &all, &stop));
        let (mut random, mut sent) = (Random(1), 0);
        for _ in 0..VECTORS {
            for _ in 0..PACKETS {
                let port = PORTS[random.below(PORTS.len())];
                router.inject(port, &all[random.below(all.len())]);
            }
            router.run();
            sent += PORTS.iter().map(|port| router.sent(port).len()).sum::<usize>();
        }
        stop.store(true, Ordering::Relaxed);
        (writer.join().expect("it writes"), sent)
    });
    assert!(written > 0 && sent > 0, "{written} written, {sent} sent");
    // What waits for other fragments and for neighbours gives up.
    (0..4).for_each(|_| router.advance(Duration::from_secs(60)));
    assert_eq!(router.buffers_in_use(), 0);
}
