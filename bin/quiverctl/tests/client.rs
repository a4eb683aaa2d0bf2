//! The client as a user runs it, against the toy router of the control crate.

#[path = "../../../engine/control/tests/toy/mod.rs"]
mod toy;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use quiver_control::{Limits, Server, ServerConfig};
use toy::{Toy, commands};

struct Router {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    control: Option<JoinHandle<()>>,
}

impl Router {
    fn start(name: &str) -> Router {
        let socket =
            std::env::temp_dir().join(format!("quiverctl-{name}-{}.sock", std::process::id()));
        let config = ServerConfig {
            cli_socket: None,
            api_socket: Some(socket.clone()),
            group: None,
            read_only_group: None,
            limits: Limits::default(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let (ready, wait) = std::sync::mpsc::channel();
        let control = std::thread::spawn(move || {
            let (_server, mut desk) = Server::start::<Toy>(&config).unwrap();
            ready.send(()).unwrap();
            let (commands, mut toy) = (commands(), Toy::new());
            while !stopping.load(Ordering::SeqCst) {
                desk.turn(&commands, &mut toy);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        wait.recv().unwrap();
        Router { socket, stop, control: Some(control) }
    }

    fn ctl(&self, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
        finished(run(&self.socket, arguments, input))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(control) = self.control.take() {
            control.join().unwrap();
        }
    }
}

fn run(socket: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quiverctl"))
        .arg("--socket")
        .arg(socket)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn finished(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_command_may_be_one_argument_or_several() {
    let router = Router::start("shot");
    let shown = (Some(0), "runtime\n".to_string(), String::new());
    assert_eq!(router.ctl(&["show run"], ""), shown);
    assert_eq!(router.ctl(&["show", "run"], ""), shown);
}

#[test]
fn a_refused_command_is_told_on_standard_error_with_exit_code_1() {
    let router = Router::start("refused");
    let (code, out, err) = router.ctl(&["set", "int", "st", "e9", "up"], "");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "error: no interface 'e9' (word 4): did you mean e0 or e1?\n");
}

#[test]
fn json_is_printed_when_asked_for() {
    let router = Router::start("json");
    let (code, out, _) = router.ctl(&["--json", "show", "interface"], "");
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()[0]["name"], "e0");
}

#[test]
fn a_pipe_prints_no_prompt_and_stops_at_the_first_refusal() {
    let router = Router::start("pipe");
    let (code, out, err) =
        router.ctl(&[], "set int st e1 up\nshow interface e1\nset int st e9 up\nshow run\n");
    assert_eq!((code, out.as_str()), (Some(1), "Name  Idx  State\ne1      1  up\n"));
    assert!(err.starts_with("error: stdin:3: no interface 'e9'"), "{err}");
    assert!(err.ends_with("2 commands before it were applied\n"), "{err}");
    let (code, out, err) = router.ctl(&["--keep-going"], "set int st e9 up\nshow run");
    assert_eq!((code, out.as_str()), (Some(1), "runtime\n"));
    assert!(err.starts_with("error: stdin:1: no interface 'e9'"), "{err}");
}

#[test]
fn a_long_pipe_counts_lines_and_commands_over_all_of_its_pieces() {
    let router = Router::start("long");
    let mut text = String::new();
    for i in 0..100_000u32 {
        text += &format!(
            "ip route add {}.{}.{}.0/24 via 192.0.2.1\n",
            20 + (i >> 16),
            (i >> 8) & 255,
            i & 255
        );
    }
    text += "nonsense\n";
    let (code, _, err) = router.ctl(&[], &text);
    assert_eq!(code, Some(1));
    assert_eq!(
        err,
        "error: stdin:100001: no command begins with 'nonsense' (word 1): `help` lists the \
         commands; 100000 commands before it were applied\n"
    );
}

#[test]
fn a_long_command_streams_what_it_says() {
    let router = Router::start("ping");
    let (code, out, _) = router.ctl(&["ping", "192.0.2.1", "repeat", "3", "interval", "1ms"], "");
    assert_eq!((code, out), (Some(0), "reply from 192.0.2.1\n".repeat(3) + "done\n"));
}

#[test]
fn without_a_router_the_message_names_the_socket_and_how_to_start() {
    let (code, _, err) = finished(run(Path::new("/nowhere/api.sock"), &["show", "run"], ""));
    assert_eq!(code, Some(3));
    assert_eq!(
        err,
        "error: cannot reach the router at /nowhere/api.sock: there is no such socket; start it \
         with `quiverd -c startup.conf`, or name its socket with --socket\n"
    );
}
