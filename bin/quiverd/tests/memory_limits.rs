//! The router under a limit of its address space: it starts, or it says what it has no memory for
//! and ends. It is never ended by a signal, and it never hangs. One that runs goes on when it is
//! refused memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("quiverd-limits-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(folder: &Folder, limit_kib: u64) -> Child {
    let path = folder.0.display();
    let config = format!(
        "unix {{ runtime-dir {path} cli-listen {path}/cli.sock }}\n\
         cpu {{ workers 1 }}\nbuffers {{ buffers-per-numa 1024 }}\n"
    );
    let file = folder.0.join("startup.conf");
    std::fs::write(&file, config).expect("written");
    // The limit is the shell's, who becomes the router.
    let line =
        format!("ulimit -c 0; ulimit -v {limit_kib} && exec \"$0\" --foreground -c \"$1\" 2>&1");
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_quiverd")])
        .arg(&file)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

#[test]
fn without_memory_the_router_says_so_and_ends() {
    let folder = Folder::new();
    let mut refused = 0;
    let mut limit_kib = 48 << 10;
    loop {
        assert!(limit_kib < 64 << 20, "it starts with 64 GiB");
        let mut child = start(&folder, limit_kib);
        let mut said = String::new();
        let mut is_ready = false;
        for line in
            BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok)
        {
            is_ready |= line.contains("ready");
            said.push_str(&line);
            said.push('\n');
            if is_ready {
                break;
            }
        }
        if is_ready {
            child.kill().expect("it runs");
            child.wait().expect("it ran");
            break;
        }
        let status = child.wait().expect("it ran");
        assert_eq!(
            (status.signal(), status.success()),
            (None, false),
            "{limit_kib} KiB: {status}\n{said}"
        );
        let of_memory = ["memory", "address space", "allocate", "shared object", "libraries"];
        assert!(of_memory.iter().any(|word| said.contains(word)), "{limit_kib} KiB:\n{said}");
        refused += 1;
        limit_kib += limit_kib / 4;
    }
    assert!(refused > 3, "so little memory is not enough");
}

/// An address space that is enough for it, KiB.
const ENOUGH_KIB: u64 = 64 << 20;

/// A router that runs, ended with the test.
struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    fn start(folder: &Folder) -> Running {
        let mut child = start(folder, ENOUGH_KIB);
        let mut lines =
            BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("ready")));
        // What it says later is read too, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Running { child, socket: folder.0.join("cli.sock") }
    }

    fn says(&self, lines: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.write_all(lines.as_bytes()).expect("it reads");
        stream.shutdown(Shutdown::Write).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Limit its address space to what it has and so much more.
    fn leave(&self, more_bytes: u64) {
        let pid = Pid::from_child(&self.child);
        let pages =
            std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).expect("it runs");
        let pages: u64 =
            pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
        let current = Some(pages * 4096 + more_bytes);
        let maximum = Some(ENOUGH_KIB << 10);
        prlimit(Some(pid), Resource::As, Rlimit { current, maximum }).expect("ours");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_router_that_is_refused_memory_goes_on_and_makes_nothing_more() {
    const SHORT: &str = "short of memory";
    let folder = Folder::new();
    let router = Running::start(&folder);
    assert!(router.says("show memory\n").contains("reserve"));
    router.leave(1 << 20);
    let mut made = 0;
    let refused = loop {
        let lines: String = (made..made + 100)
            .map(|table| format!("ip table add {}\nip6 table add {0}\n", table + 1))
            .collect();
        let answer = router.says(&lines);
        if answer.contains(SHORT) {
            break answer;
        }
        made += 100;
        assert!(made < 100_000, "it takes all: {answer}");
    };
    assert!(refused.contains("delete something"), "{refused}");
    let reserve =
        |answer: &str| answer.lines().find(|line| line.starts_with("reserve")).map(str::to_owned);
    assert!(reserve(&router.says("show memory\n")).is_some_and(|line| line.contains("0.0 MiB")));
    // What takes away is done, and what only looks.
    assert!(!router.says("ip table del 1\n").contains(SHORT));
    while !router.says("show log\n").contains("memory was refused") {
        std::thread::sleep(Duration::from_millis(50));
    }
    router.leave(256 << 20);
    while router.says("create loopback interface instance 7\n").contains(SHORT) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(router.says("show interface\n").contains("loop7"));
    assert!(reserve(&router.says("show memory\n")).is_some_and(|line| line.contains("16.0 MiB")));
}
