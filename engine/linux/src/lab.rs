//! For tests of drivers: network namespaces with Linux hosts in them, and what runs there. It only
//! ever touches namespaces and processes of its own making.

pub mod traffic;

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something that a test waits for may take on a machine with much else to do: a bound,
/// not a time that is waited.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Why namespaces cannot be made here, if they cannot: tests print it and skip.
pub fn why_not() -> Option<String> {
    let name = unique("probe");
    match Command::new("ip").args(["netns", "add", &name]).output() {
        Ok(output) if output.status.success() => {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
            None
        }
        Ok(output) => {
            Some(format!("`ip netns add`: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
        Err(error) => Some(format!("`ip`: {error}")),
    }
}

/// Look until something holds; panics, and says what it was, when it does not.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited {} s in vain: {what}", PATIENCE.as_secs());
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A name that no other test has.
pub fn unique(stem: &str) -> String {
    format!("qv{}-{}-{stem}", std::process::id() % 100_000, NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A namespace, deleted when dropped.
pub struct Namespace {
    /// Its name.
    pub name: String,
}

impl Namespace {
    /// Make one; its loopback is up.
    pub fn new(stem: &str) -> Namespace {
        let namespace = Namespace { name: unique(stem) };
        run("ip", &["netns", "add", &namespace.name]);
        namespace.ip("link set lo up");
        namespace
    }

    /// `ip …` in it.
    pub fn ip(&self, arguments: &str) -> String {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments.split_whitespace());
        run("ip", &all)
    }

    /// Run a command in it to its end.
    pub fn output(&self, command: &str) -> Output {
        let mut all = vec!["netns", "exec", &self.name];
        all.extend(command.split_whitespace());
        Command::new("ip").args(all).output().unwrap_or_else(|e| panic!("{command}: {e}"))
    }

    /// Run a command in it to its end, which must be a success; what it printed.
    pub fn run(&self, command: &str) -> String {
        let output = self.output(command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {}\n{text}\n{errors}", output.status);
        text
    }

    /// Wait until something in it listens at a TCP port.
    pub fn wait_for_listener(&self, port: u16) {
        let place = format!(":{port} ");
        wait_until(&format!("somebody listens at {port}"), || {
            self.run("ss -Hltn").contains(&place)
        });
    }

    /// Wait until something in it, such as tcpdump, has a packet socket.
    pub fn wait_for_packet_socket(&self) {
        wait_until("there is a packet socket", || {
            self.run("cat /proc/net/packet").lines().count() > 1
        });
    }

    /// Wait until one of its interfaces has received so many bytes.
    pub fn wait_for_bytes(&self, interface: &str, bytes: u64) {
        let file = format!("cat /sys/class/net/{interface}/statistics/rx_bytes");
        wait_until(&format!("{interface} has received {bytes} bytes"), || {
            self.run(&file).trim().parse::<u64>().is_ok_and(|received| received >= bytes)
        });
    }

    /// Start a command in it.
    pub fn start(&self, command: &str) -> Process {
        let mut all = vec!["netns", "exec", &self.name];
        all.extend(command.split_whitespace());
        let child =
            Command::new("ip").args(all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap_or_else(|e| panic!("{command}: {e}"));
        let stdout = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Process { child, reader: Some(reader) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// A process of ours, ended when dropped. What it prints is read all the time, so that it never
/// waits for us.
pub struct Process {
    child: Child,
    reader: Option<JoinHandle<String>>,
}

impl Process {
    /// Ask it to end; what it printed.
    pub fn stop(mut self) -> String {
        self.end()
    }

    /// Wait until it ends by itself; what it printed.
    pub fn finish(mut self) -> String {
        wait_until("a program ends by itself", || !matches!(self.child.try_wait(), Ok(None)));
        self.end()
    }

    fn end(&mut self) -> String {
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).output();
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reader.is_some() {
            self.end();
        }
    }
}

/// Run a command to its end, which must be a success; what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {errors}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Is there such a program?
pub fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).exists())
}
