//! The server through real sockets: plain lines, JSON-RPC, and clients that misbehave.

mod toy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quiver_control::*;
use serde_json::{Value, json};
use toy::{Toy, commands};

/// A toy router with its sockets and its control thread.
struct Running {
    folder: PathBuf,
    tcp: SocketAddr,
    /// A client that was there before the server.
    handed: UnixStream,
    stop: Arc<AtomicBool>,
    jobs_dropped: Arc<AtomicUsize>,
    control: Option<JoinHandle<()>>,
}

impl Running {
    fn start(name: &str, limits: Limits) -> Running {
        let folder = std::env::temp_dir().join(format!("quiver-server-{name}-{}", std::process::id()));
        let config = ServerConfig {
            cli_socket: Some(folder.join("cli.sock")),
            api_socket: Some(folder.join("api.sock")),
            group: None,
            limits,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let jobs_dropped = Arc::new(AtomicUsize::new(0));
        let (stopping, dropped) = (stop.clone(), jobs_dropped.clone());
        let (ready, wait) = std::sync::mpsc::channel();
        let (own, handed) = UnixStream::pair().unwrap();
        let control = std::thread::spawn(move || {
            let more = MoreDoors { tcp: Some(([127, 0, 0, 1], 0).into()), clients: vec![handed] };
            let (server, mut desk) = Server::start_with::<Toy>(&config, more).unwrap();
            ready.send(server.tcp().unwrap()).unwrap();
            let (commands, mut toy) = (commands(), Toy { jobs_dropped: dropped, ..Toy::new() });
            while !stopping.load(Ordering::SeqCst) {
                desk.turn(&commands, &mut toy);
                std::thread::sleep(Duration::from_micros(200));
            }
            drop(server);
        });
        let tcp = wait.recv().unwrap();
        Running { folder, tcp, handed: own, stop, jobs_dropped, control: Some(control) }
    }

    fn plain(&self) -> UnixStream {
        connect(self.folder.join("cli.sock"))
    }

    fn api(&self) -> BufReader<UnixStream> {
        BufReader::new(connect(self.folder.join("api.sock")))
    }

    /// One-shot, as socat with a pipe does it.
    fn say(&self, text: &[u8]) -> String {
        let mut stream = self.plain();
        let _ = stream.write_all(text);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(control) = self.control.take() {
            control.join().unwrap();
        }
        assert!(!self.folder.join("cli.sock").exists(), "the sockets are removed at the end");
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn connect(path: PathBuf) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn call(api: &mut BufReader<UnixStream>, id: u64, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    writeln!(api.get_mut(), "{request}").unwrap();
    loop {
        let message = receive(api);
        if message.get("method").is_none() {
            return message;
        }
    }
}

fn receive(api: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    api.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
}

#[test]
fn commands_in_outputs_out_then_close() {
    let router = Running::start("plain", Limits::default());
    let answer = router.say(b"set int st e1 up\nset int st e9 up\r\n\nsh int");
    assert_eq!(
        answer,
        "error: no interface 'e9' (word 4): did you mean e0 or e1?\nName  Idx  State\ne0      0  down\ne1      1  up\n"
    );
}

#[test]
fn a_prompt_comes_only_when_it_is_asked_for() {
    let router = Running::start("prompt", Limits::default());
    assert_eq!(router.say(b"interactive\nsh run\nquit\nset int st e0 up\n"), "quiver# runtime\nquiver# ");
    assert!(router.say(b"show interface e0\n").contains("down"), "nothing is executed after quit");
}

#[test]
fn binary_and_endless_lines_get_an_error_and_are_dropped() {
    let router = Running::start("binary", Limits { command_bytes_max: 4096, ..Limits::default() });
    assert!(router.say(b"\x16\x03\x01\x02\x00\xff\xfe\n").starts_with("error: the input is not text"));
    assert!(router.say(b"a\0b\n").starts_with("error: the input is not text"));
    let endless = router.say(&[b'x'; 100_000]);
    assert!(endless.starts_with("error: the command is longer than"), "{endless}");
    let open = router.say("{\n".repeat(10).as_bytes());
    assert!(open.starts_with("error: a brace is not closed"), "{open}");
    assert_eq!(router.say(b"sh run\n"), "runtime\n", "and the router goes on");
}

#[test]
fn a_client_that_leaves_cancels_its_ping() {
    let router = Running::start("leave", Limits::default());
    let mut stream = router.plain();
    stream.write_all(b"ping 192.0.2.1 repeat 100000 interval 1ms\n").unwrap();
    let mut first = [0; 10];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(router.jobs_dropped.load(Ordering::SeqCst), 0);
    drop(stream);
    let start = Instant::now();
    while router.jobs_dropped.load(Ordering::SeqCst) == 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "the job goes on for nobody");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_that_says_something_and_leaves_is_heard() {
    let router = Running::start("heard", Limits::default());
    for _ in 0..20 {
        let mut stream = router.plain();
        stream.write_all(b"set interface state e0 up\n").unwrap();
        drop(stream);
        std::thread::sleep(Duration::from_millis(5));
        assert!(router.say(b"show interface e0\n").contains("up"));
        router.say(b"set interface state e0 down\n");
    }
}

#[test]
fn a_client_that_reads_nothing_blocks_nobody_and_is_dropped() {
    let router = Running::start("deaf", Limits { unread_bytes_max: 1 << 20, ..Limits::default() });
    let mut deaf = router.plain();
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let shows = "show interface\n".repeat(17_000);
    let _ = deaf.write_all(shows.as_bytes());
    assert_eq!(router.say(b"sh run\n"), "runtime\n");
}

/// Clients come and go in the router's own time: ask until it answers so.
fn until_said(router: &Running, line: &[u8], answer: &str) {
    let start = Instant::now();
    while !router.say(line).starts_with(answer) {
        assert!(start.elapsed() < Duration::from_secs(20), "it never answers {answer}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_client_too_many_is_told_so() {
    let router = Running::start("many", Limits { clients_max: 2, ..Limits::default() });
    let held = [router.plain(), router.plain()];
    until_said(&router, b"", "error: too many clients");
    drop(held);
    until_said(&router, b"sh run\n", "runtime\n");
}

#[test]
fn the_api_answers_text_and_json() {
    let router = Running::start("api", Limits::default());
    let mut api = router.api();
    let shown = call(&mut api, 1, "cli", json!({"line": "show interface"}));
    assert_eq!((&shown["id"], &shown["result"]["json"][1]["name"]), (&json!(1), &json!("e1")));
    assert!(shown["result"]["text"].as_str().unwrap().starts_with("Name"));
    let form = json!({"command": "set interface state", "args": {"interface": "e0", "state": "up"}});
    assert_eq!(call(&mut api, 2, "command", form)["result"]["json"], Value::Null);
    let refused = call(&mut api, 3, "cli", json!({"line": "set int st e0 upp"}));
    assert_eq!(refused["error"]["code"], -32000);
    assert_eq!(refused["error"]["data"]["word"], 5);
    assert_eq!(refused["error"]["data"]["remedy"], "did you mean up?");
    let completed = call(&mut api, 4, "complete", json!({"line": "set int st e", "cursor": 12}));
    assert_eq!(completed["result"]["candidates"][0]["text"], "e0");
    let help = call(&mut api, 5, "help", json!({"command": "set interface state"}));
    assert_eq!(help["result"]["json"]["usage"], "set interface state <interface> up|down");
    let schema = call(&mut api, 6, "commands", json!({}));
    assert!(schema["result"].as_array().unwrap().len() > 8);
    let script = json!({"text": "set int st e1 up\nset int st e9 up\n", "name": "stdin", "line": 41});
    let stopped = call(&mut api, 7, "script", script);
    assert_eq!(
        (&stopped["error"]["data"]["line"], &stopped["error"]["data"]["applied"]),
        (&json!(42), &json!(1))
    );
}

#[test]
fn what_is_not_json_rpc_gets_the_error_that_the_standard_says() {
    let router = Running::start("rpc", Limits { message_bytes_max: 8192, ..Limits::default() });
    let mut api = router.api();
    let mut code = |text: &str| {
        // What is too long may be refused, and the connection closed, before all of it is written.
        let _ = writeln!(api.get_mut(), "{text}");
        receive(&mut api)["error"]["code"].clone()
    };
    assert_eq!(code("\u{7f}ELF"), -32700);
    assert_eq!(code("[]"), -32600);
    assert_eq!(code(r#"{"id": 1, "method": "cli"}"#), -32600);
    assert_eq!(code(r#"{"jsonrpc": "2.0", "id": 1, "method": "reboot"}"#), -32601);
    assert_eq!(code(r#"{"jsonrpc": "2.0", "id": 1, "method": "cli", "params": {"line": 7}}"#), -32602);
    assert_eq!(code(&format!("{}1{}", "[".repeat(4000), "]".repeat(4000))), -32700);
    assert_eq!(code(&"x".repeat(20_000)), -32600);
    let mut rest = String::new();
    assert_eq!(api.read_line(&mut rest).unwrap_or(0), 0, "and then the connection is closed: {rest}");
}

#[test]
fn a_ping_streams_over_the_api() {
    let router = Running::start("stream", Limits::default());
    let mut api = router.api();
    let request = json!({"jsonrpc": "2.0", "id": "p", "method": "cli", "params": {"line": "ping 192.0.2.1 repeat 2 interval 1ms"}});
    writeln!(api.get_mut(), "{request}").unwrap();
    for _ in 0..2 {
        let message = receive(&mut api);
        assert_eq!((&message["method"], &message["params"]["id"]), (&json!("output"), &json!("p")));
        assert_eq!(message["params"]["text"], "reply from 192.0.2.1\n");
    }
    assert_eq!(receive(&mut api)["result"]["text"], "done\n");
}

#[test]
fn a_big_file_shows_its_progress_while_others_are_served() {
    let router = Running::start("load", Limits::default());
    let path = router.folder.join("routes.cli");
    let mut text = String::new();
    for i in 0..300_000u32 {
        text +=
            &format!("ip route add {}.{}.{}.0/24 via 192.0.2.1\n", 20 + (i >> 16), (i >> 8) & 255, i & 255);
    }
    std::fs::write(&path, text).unwrap();
    let mut api = router.api();
    let line = format!("exec {}", path.display());
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "cli", "params": {"line": line}});
    writeln!(api.get_mut(), "{request}").unwrap();
    assert_eq!(router.say(b"sh run\n"), "runtime\n");
    let mut seen_progress = false;
    let end = loop {
        let message = receive(&mut api);
        match message.get("method") {
            Some(method) => seen_progress |= method == "progress",
            None => break message,
        }
    };
    assert_eq!(end["result"]["json"]["commands"], 300_000);
    assert!(seen_progress);
}

/// The first `show version`-like answer of a door.
fn says_hello(mut stream: impl Read + Write) -> Value {
    stream
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cli\",\"params\":{\"line\":\"help\"}}\n")
        .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn the_same_requests_come_over_tcp_and_over_a_connection_that_was_there() {
    let router = Running::start("doors", Limits::default());
    let over_unix = says_hello(connect(router.folder.join("api.sock")));
    assert_eq!(over_unix["id"], 7);
    assert_eq!(says_hello(TcpStream::connect(router.tcp).unwrap()), over_unix);
    assert_eq!(says_hello(router.handed.try_clone().unwrap()), over_unix);
}

#[test]
fn a_web_page_cannot_speak_to_the_port() {
    let router = Running::start("http", Limits::default());
    let mut stream = TcpStream::connect(router.tcp).unwrap();
    let request = "POST / HTTP/1.1\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"commands\"}\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.contains("not JSON") && !text.contains("\"id\":7"), "{text}");
}

#[test]
fn only_the_loopback_is_listened_to() {
    let config = ServerConfig { cli_socket: None, api_socket: None, group: None, limits: Limits::default() };
    let more = MoreDoors { tcp: Some(([0, 0, 0, 0], 0).into()), clients: Vec::new() };
    let refused = Server::start_with::<Toy>(&config, more).err().unwrap().to_string();
    assert!(refused.contains("not an address of the loopback"), "{refused}");
}
