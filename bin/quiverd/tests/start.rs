//! The program's start and end: what it refuses, what it bears, what it says and where.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A folder for one test, gone when it ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("quiver-start-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A start-up file: `unix` has these entries besides the usual ones, and these sections follow.
    pub(crate) fn config(&self, unix: &str, sections: &str) -> PathBuf {
        let folder = self.0.display();
        self.write(
            "startup.conf",
            &format!(
                "unix {{\n nodaemon runtime-dir {folder}\n {unix}\n}}\n{sections}\n\
                 buffers {{ buffers-per-numa 2048 page-size 4K }}\n"
            ),
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn quiverd(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quiverd"));
    command
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A router that runs, killed when the test ends.
pub(crate) struct Running {
    pub(crate) child: Child,
    socket: PathBuf,
}

impl Running {
    /// Start it, and wait until it answers or ends.
    pub(crate) fn start(folder: &Folder, config: &Path) -> Running {
        let mut child = quiverd(config).spawn().unwrap();
        let socket = folder.path("cli.sock");
        while UnixStream::connect(&socket).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                let mut said = String::new();
                let _ = child.stderr.take().unwrap().read_to_string(&mut said);
                panic!("the router ended: {status}: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Running { child, socket }
    }

    pub(crate) fn says(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// End it, and return what it said on standard error.
    pub(crate) fn end(mut self) -> String {
        self.signal(rustix::process::Signal::TERM);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ended(config: &Path, arguments: &[&str]) -> Output {
    quiverd(config).args(arguments).output().unwrap()
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn one_refused_line_at_the_start_is_said_loudly_and_the_rest_is_applied() {
    let folder = Folder::new("refused");
    let commands = folder.write(
        "setup.cli",
        "create loopback interface instance 1\nset interface state nothing up\n\
         set interface state loop1 up\n",
    );
    let log = folder.path("quiverd.log");
    let config = folder.config(&format!("log {} exec {}", log.display(), commands.display()), "");
    let router = Running::start(&folder, &config);
    assert!(router.says("show interface loop1").contains("up"));
    let version = router.says("show version verbose");
    assert!(version.contains("Refused at start: 1 command"), "{version}");
    assert!(version.contains("setup.cli:2: no interface 'nothing'"), "{version}");
    let kept = router.says("show log");
    assert!(kept.contains("err") && kept.contains("setup.cli:2: no interface 'nothing'"), "{kept}");
    let said = router.end();
    assert!(said.contains("1 command was refused at the start"), "{said}");
    assert!(said.contains("setup.cli:2: no interface 'nothing'"), "{said}");
    assert!(fs::read_to_string(log).unwrap().contains("ERROR refused: "));
}

#[test]
fn with_exec_strict_one_refused_line_ends_the_start_and_the_error_has_a_time() {
    let folder = Folder::new("strict");
    let commands =
        folder.write("setup.cli", "create loopback interface\nset interface state nothing up\n");
    let config = folder.config(&format!("exec-strict exec {}", commands.display()), "");
    let output = ended(&config, &[]);
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(1));
    let line =
        said.lines().find(|line| line.contains(" quiverd: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("20") && line.contains("Z quiverd: exec: "), "{line}");
    assert!(line.contains("setup.cli:2: no interface 'nothing'"), "{line}");
    assert!(line.ends_with("1 command before it was applied"), "{line}");
}

#[test]
fn a_second_daemon_on_one_folder_fails_with_a_message_and_a_code_and_leaves_the_first_alone() {
    let folder = Folder::new("second");
    let config = folder.config("", "");
    let router = Running::start(&folder, &config);
    let number = fs::read_to_string(folder.path("quiverd.pid")).unwrap();
    assert_eq!(number.trim(), router.child.id().to_string());
    let second = ended(&config, &[]);
    assert_eq!(second.status.code(), Some(3));
    let expected = format!("another quiverd (process {}) has the folder", number.trim());
    assert!(error_text(&second).contains(&expected), "{}", error_text(&second));
    assert!(router.says("show version").contains("quiver"));
    router.end();
    assert!(!folder.path("quiverd.pid").exists());
}

#[test]
fn sighup_opens_the_log_again() {
    let folder = Folder::new("hangup");
    let log = folder.path("quiverd.log");
    let config = folder.config(&format!("log {}", log.display()), "");
    let router = Running::start(&folder, &config);
    fs::rename(&log, folder.path("quiverd.log.1")).unwrap();
    router.signal(rustix::process::Signal::HUP);
    while !log.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    while !fs::read_to_string(&log).unwrap().contains("the log is opened again") {
        std::thread::sleep(Duration::from_millis(10));
    }
    router.end();
    assert!(fs::read_to_string(&log).unwrap().contains("ended"));
}

#[test]
fn changes_and_refusals_of_clients_and_links_are_logged_without_secrets() {
    let folder = Folder::new("journal");
    let router = Running::start(&folder, &folder.config("", ""));
    let socket = folder.path("m.sock");
    router.says("create loopback interface instance 3\nset interface state loop3 up");
    router.says("set interface state loop9 up");
    router.says(&format!("create memif socket id 1 filename {}", socket.display()));
    router.says("create interface memif id 0 socket-id 1 master secret hidden-word");
    router.says("show interface");
    let log = router.says("show logging");
    let uid = rustix::process::getuid().as_raw();
    assert!(log.contains(&format!("uid {uid} pid ")), "{log}");
    assert!(log.contains(": set interface state loop3 up"), "{log}");
    assert!(log.contains("refused: set interface state loop9 up: no interface 'loop9'"), "{log}");
    assert!(log.contains("loop3: up, set up, link up"), "{log}");
    assert!(log.contains("secret <hidden>") && !log.contains("hidden-word"), "{log}");
    assert!(!log.contains("show interface"), "{log}");
    router.says("set logging class cli level disabled");
    router.says("clear logging");
    assert!(!router.says("show logging").contains("clear logging"));
    assert!(router.says("show running-config").contains("set logging class cli level disabled"));
    router.end();
}

#[test]
fn no_line_of_a_start_up_script_is_repeated_that_is_no_command() {
    let folder = Folder::new("quotes");
    let script = folder.write("any", "create loopback interface\nroot:correct-horse:20000::\n");
    let log = folder.path("quiverd.log");
    let config = folder.config(&format!("exec {} log {}", script.display(), log.display()), "");
    let checked = ended(&config, &["--check"]);
    assert!(error_text(&checked).contains("any:2: ") && !error_text(&checked).contains("horse"));
    let router = Running::start(&folder, &config);
    assert!(router.says("show version verbose").contains("any:2: "));
    let said = router.says(&format!("exec {}", script.display()));
    assert!(said.contains("any:2: ") && !said.contains("horse"), "{said}");
    router.end();
    let log = fs::read_to_string(&log).unwrap();
    assert!(
        log.contains(&format!("line 2 of {}", script.display())) && !log.contains("horse"),
        "{log}"
    );
}

#[test]
fn check_looks_into_exec_files_groups_logs_and_cores() {
    let folder = Folder::new("check");
    let inner =
        folder.write("inner.cli", "create loopback interface\nset interfce state loop0 up\n");
    let outer = folder
        .write("outer.cli", &format!("show version\nexec {}\nip route add\n", inner.display()));
    let unix = format!(
        "exec {} gid no-such-group log {}/no/where.log",
        outer.display(),
        folder.0.display()
    );
    let config = folder
        .config(&unix, "cpu { corelist-workers 4000 }\nlogging { class memif { level debug } }");
    let output = ended(&config, &["--check"]);
    assert_eq!(output.status.code(), Some(1));
    let said = error_text(&output);
    for part in [
        "5 faults",
        "inner.cli:2: ",
        "outer.cli:3: ",
        "no group 'no-such-group'",
        "there is no folder",
        "core 4000 for a worker is not there",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let config = folder.config("", "");
    assert_eq!(ended(&config, &["--check"]).status.code(), Some(0));
}

#[test]
fn a_start_up_file_of_vpp_starts_the_router_and_says_once_what_does_nothing() {
    let folder = Folder::new("vpp");
    let sections = "api-trace { on }\napi-segment { gid vpp }\nsocksvr { default }\nheapsize 2G\n\
                    statseg { size 32M per-node-counters on }\n\
                    plugins { plugin default { disable }\n plugin dpdk_plugin.so { enable } }\n\
                    dpdk { dev default { num-rx-queues 3 }\n no-multi-seg }\n\
                    nat { endpoint-dependent }\n\
                    ip6 { hash-buckets 65536 heap-size 64M }\nl2learn { limit 1000 }\n\
                    logging { default-log-level debug size 100 }";
    let config = folder.config("full-coredump cli-no-pager poll-sleep-usec 100", sections);
    let router = Running::start(&folder, &config);
    let log = router.says("show logging");
    for word in
        ["api-trace", "heapsize", "dpdk", "plugins", "nat", "unix poll-sleep-usec", "ip6 heap-size"]
    {
        let said = format!("{word} does nothing here: ");
        assert_eq!(log.matches(&said).count(), 1, "{word}: {log}");
    }
    let config = router.says("show running-config");
    assert!(config.contains("set l2 learn limit 1000"), "{config}");
    assert!(config.contains("set logging default level debug"), "{config}");
    router.end();
}
