//! The server through real sockets: plain lines, JSON-RPC, and clients that misbehave.

use crate::toy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quiver_control::*;
use serde_json::{Value, json};
use toy::{Toy, commands};

/// A toy router with its sockets and its control thread.
pub(crate) struct Running {
    folder: PathBuf,
    tcp: SocketAddr,
    pub(crate) tls: Option<SocketAddr>,
    /// A client that was there before the server.
    handed: UnixStream,
    stop: Arc<AtomicBool>,
    jobs_dropped: Arc<AtomicUsize>,
    rows_made: Arc<AtomicUsize>,
    /// The most units of work of a turn, and how often a command rested.
    units_most: Arc<AtomicU64>,
    rests: Arc<AtomicU64>,
    control: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(name: &str, limits: Limits) -> Running {
        Running::start_with(name, limits, None, None)
    }

    pub(crate) fn start_with(
        name: &str,
        limits: Limits,
        token: Option<Token>,
        tls: Option<TlsDoor>,
    ) -> Running {
        let folder =
            std::env::temp_dir().join(format!("quiver-server-{name}-{}", std::process::id()));
        let config = ServerConfig {
            cli_socket: Some(folder.join("cli.sock")),
            api_socket: Some(folder.join("api.sock")),
            group: None,
            read_only_group: None,
            limits,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let jobs_dropped = Arc::new(AtomicUsize::new(0));
        let (stopping, dropped) = (stop.clone(), jobs_dropped.clone());
        let (rows_made, units_most, rests) =
            <(Arc<AtomicUsize>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let (rows, units, rested) =
            (Arc::clone(&rows_made), Arc::clone(&units_most), Arc::clone(&rests));
        let (ready, wait) = std::sync::mpsc::channel();
        let (own, handed) = UnixStream::pair().unwrap();
        let control = std::thread::spawn(move || {
            let tcp = Some(([127, 0, 0, 1], 0).into());
            let more = MoreDoors { tcp, token, tls, clients: vec![handed] };
            let (server, mut dispatcher) = Server::start_with::<Toy>(&config, more).unwrap();
            ready.send((server.tcp().unwrap(), server.tls())).unwrap();
            let (commands, mut toy) =
                (commands(), Toy { jobs_dropped: dropped, rows_made: rows, ..Toy::new() });
            while !stopping.load(Ordering::SeqCst) {
                dispatcher.turn(&commands, &mut toy);
                units.store(dispatcher.load().borrow().units_most, Ordering::SeqCst);
                rested.store(dispatcher.load().borrow().rests, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(200));
            }
            drop(server);
        });
        let (tcp, tls) = wait.recv().unwrap();
        let control = Some(control);
        Running {
            folder,
            tcp,
            tls,
            handed: own,
            stop,
            jobs_dropped,
            rows_made,
            units_most,
            rests,
            control,
        }
    }

    fn plain(&self) -> UnixStream {
        connect(self.folder.join("cli.sock"))
    }

    pub(crate) fn api(&self) -> BufReader<UnixStream> {
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

pub(crate) fn call(api: &mut BufReader<UnixStream>, id: u64, method: &str, params: Value) -> Value {
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
        "error: no interface 'e9' (word 4): did you mean e0 or e1?\nName  Idx  State\n\
         e0      0  down\ne1      1  up\n"
    );
}

#[test]
fn a_prompt_comes_only_when_it_is_asked_for() {
    let router = Running::start("prompt", Limits::default());
    assert_eq!(
        router.say(b"interactive\nsh run\nquit\nset int st e0 up\n"),
        "quiver# runtime\nquiver# "
    );
    assert!(router.say(b"show interface e0\n").contains("down"), "nothing is executed after quit");
}

#[test]
fn binary_and_endless_lines_get_an_error_and_are_dropped() {
    let router = Running::start("binary", Limits { command_bytes_max: 4096, ..Limits::default() });
    assert!(
        router.say(b"\x16\x03\x01\x02\x00\xff\xfe\n").starts_with("error: the input is not text")
    );
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
        assert!(start.elapsed() < Duration::from_secs(60), "the job goes on for nobody");
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
fn what_a_client_does_not_read_is_not_made() {
    let router = Running::start("deaf", Limits { unread_bytes_max: 64 << 10, ..Limits::default() });
    let mut deaf = router.plain();
    deaf.write_all(b"show numbers 1000000\nshow numbers 3 | count\n").unwrap();
    while router.rests.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(router.say(b"sh run\n"), "runtime\n", "others are served");
    let made = router.rows_made.load(Ordering::SeqCst);
    assert!(made < 100_000, "{made} rows were made for nobody");
    let mut lines = BufReader::new(deaf).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "Name        Number");
    let numbers: Vec<String> = lines.by_ref().take(1_000_000).collect();
    assert_eq!(numbers[999_999], "number 999999  999999");
    assert_eq!(lines.next().unwrap(), "4 lines", "and a client that reads gets all of it");
}

#[test]
fn a_script_of_many_shows_waits_for_its_reader() {
    let router =
        Running::start("shows", Limits { unread_bytes_max: 16 << 10, ..Limits::default() });
    let file = router.folder.join("shows.cli");
    std::fs::write(&file, "show numbers 100\n".repeat(3000)).unwrap();
    let mut stream = router.plain();
    writeln!(stream, "exec {}", file.display()).unwrap();
    while router.rests.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(router.rows_made.load(Ordering::SeqCst) < 300_000);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(BufReader::new(stream).lines().count(), 3000 * 101);
}

#[test]
fn a_turn_of_the_control_loop_does_little_whatever_clients_ask_for() {
    let router = Running::start("turn", Limits::default());
    let file = router.folder.join("routes.cli");
    let route =
        |i: u32| format!("ip route add 20.{}.{}.0/24 via 192.0.2.1\n", i >> 8 & 255, i & 255);
    std::fs::write(&file, (0..50_000).map(route).collect::<String>()).unwrap();
    let readers: Vec<_> =
        ["show numbers 200000\n".to_owned(), format!("exec {}\n", file.display())]
            .into_iter()
            .chain([
                "set interface state e0 up\n".repeat(20_000),
                "show numbers 90000 json\n".to_owned(),
            ])
            .map(|text| {
                let mut stream = router.plain();
                std::thread::spawn(move || {
                    let mut writer = stream.try_clone().unwrap();
                    let said = std::thread::spawn(move || {
                        writer.write_all(text.as_bytes()).unwrap();
                        writer.shutdown(Shutdown::Write).unwrap();
                    });
                    std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                    said.join().unwrap();
                })
            })
            .collect();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    let most = router.units_most.load(Ordering::SeqCst);
    assert!(most > 100, "work is counted: {most}");
    // The last thing that is begun in a turn may be a page of a listing.
    assert!(most <= UNITS_PER_TURN_MAX + PAGE_ROWS_MAX as u64 + 1, "{most} units in one turn");
}

#[test]
fn input_is_dealt_with_in_time_that_grows_with_its_length() {
    // Quadratic work on these would be some 10^12 bytes looked at: minutes, not fractions of a
    // second.
    let router = Running::start("newlines", Limits::default());
    let mut api = router.api();
    api.get_mut().write_all(&vec![b'\n'; 4 << 20]).unwrap();
    assert_eq!(
        call(&mut api, 1, "cli", json!({"line": "show run"}))["result"]["text"],
        "runtime\n"
    );
    let sessions = "interactive\n".repeat(20_000);
    let said = router.say(format!("{sessions}show run\n").as_bytes());
    assert!(said.ends_with("runtime\nquiver# "));
    // A brace that stays open, a line at a time.
    let mut stream = router.plain();
    stream.write_all(b"packet-generator new {\n").unwrap();
    for _ in 0..20_000 {
        stream.write_all(b"\n").unwrap();
    }
    stream.write_all(b"name x }\nshow run\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert_eq!(line, "runtime\n");
}

/// Clients come and go in the router's own time: ask until it answers so.
fn until_said(router: &Running, line: &[u8], answer: &str) {
    let start = Instant::now();
    while !router.say(line).starts_with(answer) {
        assert!(start.elapsed() < Duration::from_secs(120), "it never answers {answer}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_idle_client_gives_way_to_the_operator() {
    let router = Running::start("many", Limits { clients_max: 4, ..Limits::default() });
    let mut idle: Vec<UnixStream> = (0..4).map(|_| router.plain()).collect();
    // The client that spoke last stays.
    for stream in &mut idle[1..] {
        stream.write_all(b"show run\n").unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
    }
    until_said(&router, b"sh run\n", "runtime\n");
    let mut told = String::new();
    idle.remove(0).read_to_string(&mut told).unwrap();
    assert!(told.is_empty() || told.contains("idle for the longest"), "{told}");
    for _ in 0..100 {
        assert_eq!(router.say(b"sh run\n"), "runtime\n", "and always");
    }
    assert_eq!(
        says_hello(router.handed.try_clone().unwrap())["id"],
        7,
        "who was there first stays"
    );
}

#[test]
fn a_long_answer_is_whole_in_every_form() {
    let router = Running::start("long", Limits { unread_bytes_max: 1, ..Limits::default() });
    let text = router.say(b"show numbers 2000\n");
    assert_eq!((text.lines().count(), text.matches("Name").count()), (2001, 1));
    let rows = |value: &Value| {
        let rows = value.as_array().unwrap();
        assert!(rows.iter().enumerate().all(|(index, row)| row["number"] == index), "in order");
        rows.len()
    };
    let array: Value = serde_json::from_str(&router.say(b"show numbers 2000 json\n")).unwrap();
    assert_eq!(rows(&array), 2000);
    let object: Value =
        serde_json::from_str(&router.say(b"show numbers 2000 total json\n")).unwrap();
    assert_eq!((rows(&object["numbers"]), &object["total"]), (2000, &json!(2000)));
    let mut api = router.api();
    let whole = call(&mut api, 1, "cli", json!({"line": "show numbers 150000"}));
    assert_eq!(rows(&whole["result"]["json"]), 150_000, "not 100,000");
    let short = call(&mut api, 2, "cli", json!({"line": "show numbers 2"}));
    assert!(rows(&short["result"]["json"]) == 2 && short["result"]["text"].is_string());
    let script = json!({"text": "show numbers 1000\nshow run\n"});
    writeln!(
        api.get_mut(),
        "{}",
        json!({"jsonrpc": "2.0", "id": 3, "method": "script", "params": script})
    )
    .unwrap();
    let first = receive(&mut api);
    assert_eq!((rows(&first["params"]["json"]), &first["params"]["id"]), (1000, &json!(3)));
    assert_eq!(receive(&mut api)["params"]["text"], "runtime\n");
    assert_eq!(receive(&mut api)["result"]["json"]["commands"], 2);
}

#[test]
fn a_client_can_have_a_long_answer_in_pages() {
    let router = Running::start("pages", Limits::default());
    let mut api = router.api();
    for (pages, line) in [("text", "show numbers 2000"), ("json", "show numbers 2000 total")] {
        let params = json!({"line": line, "pages": pages});
        writeln!(
            api.get_mut(),
            "{}",
            json!({"jsonrpc": "2.0", "id": 1, "method": "cli", "params": params})
        )
        .unwrap();
        let (mut text, mut places) = (String::new(), Vec::new());
        loop {
            let message = receive(&mut api);
            let is_last = message.get("result").is_some();
            let page = if is_last { &message["result"] } else { &message["params"] };
            text += page["text"].as_str().unwrap();
            places.push(page["page"].as_str().unwrap().to_owned());
            if is_last {
                break;
            }
        }
        assert_eq!(
            (places.first().unwrap().as_str(), places.last().unwrap().as_str()),
            ("first", "last")
        );
        assert!(places.len() > 3);
        match pages {
            "text" => assert_eq!(text.lines().count(), 2001),
            _ => {
                let whole: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(whole["numbers"].as_array().unwrap().len(), 2000);
            }
        }
    }
}

#[test]
fn answers_are_filtered_in_sessions_and_in_scripts() {
    let router = Running::start("filters", Limits::default());
    assert_eq!(router.say(b"show interface | include e1\n"), "e1      1  down\n");
    assert_eq!(router.say(b"show interface | exclude e | count\n"), "0 lines\n");
    assert_eq!(router.say(b"show numbers 100000 | begin 99998\n").lines().count(), 2);
    assert_eq!(router.say(b"show numbers 100000 json | count\n"), "100002 lines\n");
    let file = router.folder.join("filters.cli");
    std::fs::write(&file, "echo a text\ncomment a | b\n# c\nshow run | count\nquit\nshow run\n")
        .unwrap();
    assert_eq!(router.say(format!("exec {}\n", file.display()).as_bytes()), "a text\n1 line\n");
    assert_eq!(
        router.say(format!("exec {} | include te\n", file.display()).as_bytes()),
        "a text\n"
    );
    assert!(router.say(b"show run | grep x\n").contains("include, exclude, begin or count"));
    assert_eq!(router.say(b"show run\nhistory\n"), "runtime\n    1  show run\n    2  history\n");
}

#[test]
fn lists_of_commands_are_without_secrets() {
    let router = Running::start("history", Limits::default());
    let said = router.say(b"create interface memif id 0 master secret correct-horse\nhistory\n");
    assert!(said.contains("    1  create interface memif id 0 master secret <hidden>\n"), "{said}");
    let mut api = router.api();
    let lines = json!(["create interface memif id 1 secret \"correct horse\" master", "show run"]);
    let listed = call(&mut api, 1, "history", json!({ "lines": lines }));
    let expected = json!(["create interface memif id 1 secret <hidden> master", "show run"]);
    assert_eq!(listed["result"]["json"], expected);
    assert_eq!(call(&mut api, 2, "history", json!({"lines": [7]}))["error"]["code"], -32602);
    assert_eq!(
        call(&mut api, 3, "history", json!({"lines": vec![""; 257]}))["error"]["code"],
        -32602
    );
}

/// A socket whose last close waits until its peer has read: it lingers, with data on the way.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&own, Some(Duration::from_secs(3600))).unwrap();
    own.set_nonblocking(true).unwrap();
    while own.write(&[0; 1 << 16]).is_ok() {}
    own.set_nonblocking(false).unwrap();
    (own, peer)
}

#[test]
fn a_descriptor_whose_close_blocks_holds_up_nobody() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let router = Running::start("rights", Limits::default());
    let (own, mut peer) = lingering();
    for path in ["cli.sock", "api.sock"] {
        let hostile = connect(router.folder.join(path));
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sent = [std::os::fd::AsFd::as_fd(&own)];
        assert!(control.push(SendAncillaryMessage::ScmRights(&sent)));
        let bytes = [std::io::IoSlice::new(b"show run\n")];
        match rustix::net::sendmsg(&hostile, &bytes, &mut control, SendFlags::empty()) {
            Err(error) => assert_eq!(error, rustix::io::Errno::PERM),
            Ok(_) => println!("this kernel lets descriptors through"),
        }
        drop(hostile);
    }
    // From here on the router has the last ones, if it has any.
    let closes = std::thread::spawn(move || drop(own));
    for _ in 0..5 {
        assert_eq!(router.say(b"show run\n"), "runtime\n");
    }
    std::io::copy(&mut peer, &mut std::io::sink()).unwrap();
    closes.join().unwrap();
}

#[test]
fn only_regular_files_are_executed_and_nothing_waits_for_them() {
    let router = Running::start("exec", Limits::default());
    for (name, why) in [
        ("/proc/kmsg", "regular file"),
        ("/dev/zero", "regular file"),
        ("/proc/self/environ", "regular file"),
        ("/tmp", "regular file"),
        ("/nosuch.cli", "No such file"),
    ] {
        let said = router.say(format!("exec {name}\n").as_bytes());
        assert!(said.starts_with("error: ") && said.contains(name) && said.contains(why), "{said}");
    }
}

#[test]
fn over_tcp_a_client_says_the_token_first() {
    let path = std::env::temp_dir().join(format!("quiver-server-token-{}", std::process::id()));
    let token = Token::in_file(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap().trim().to_owned();
    std::fs::remove_file(&path).unwrap();
    let router = Running::start_with("token", Limits::default(), Some(token), None);
    let talk = |first: Value| {
        let mut stream = TcpStream::connect(router.tcp).unwrap();
        let second =
            json!({"jsonrpc": "2.0", "id": 2, "method": "cli", "params": {"line": "show run"}});
        let _ = stream.write_all(format!("{first}\n{second}\n").as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let say = |token: &str| {
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "authenticate", "params": {"token": token}
        })
    };
    let right = talk(say(&text));
    assert!(right.contains("\"id\":1") && right.contains("runtime"), "{right}");
    for wrong in [
        say(""),
        say(&text[1..]),
        say(&format!("{text}0")),
        say(&text.to_uppercase().replace('A', "B")),
    ] {
        let said = talk(wrong);
        assert!(said.contains("has not said the token") && !said.contains("runtime"), "{said}");
    }
    let none =
        talk(json!({"jsonrpc": "2.0", "id": 1, "method": "cli", "params": {"line": "show run"}}));
    assert!(none.contains("has not said the token") && !none.contains("runtime"), "{none}");
    assert_eq!(
        says_hello(connect(router.folder.join("api.sock")))["id"],
        7,
        "the socket needs none"
    );
}

#[test]
fn the_api_answers_text_and_json() {
    let router = Running::start("api", Limits::default());
    let mut api = router.api();
    let shown = call(&mut api, 1, "cli", json!({"line": "show interface"}));
    assert_eq!((&shown["id"], &shown["result"]["json"][1]["name"]), (&json!(1), &json!("e1")));
    assert!(shown["result"]["text"].as_str().unwrap().starts_with("Name"));
    let form =
        json!({"command": "set interface state", "args": {"interface": "e0", "state": "up"}});
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
    let script =
        json!({"text": "set int st e1 up\nset int st e9 up\n", "name": "stdin", "line": 41});
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
    assert_eq!(
        code(r#"{"jsonrpc": "2.0", "id": 1, "method": "cli", "params": {"line": 7}}"#),
        -32602
    );
    assert_eq!(code(&format!("{}1{}", "[".repeat(4000), "]".repeat(4000))), -32700);
    assert_eq!(code(&"x".repeat(20_000)), -32600);
    let mut rest = String::new();
    assert_eq!(
        api.read_line(&mut rest).unwrap_or(0),
        0,
        "and then the connection is closed: {rest}"
    );
}

#[test]
fn a_ping_streams_over_the_api() {
    let router = Running::start("stream", Limits::default());
    let mut api = router.api();
    let request = json!({
        "jsonrpc": "2.0", "id": "p", "method": "cli",
        "params": {"line": "ping 192.0.2.1 repeat 2 interval 1ms"}
    });
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
        text += &format!(
            "ip route add {}.{}.{}.0/24 via 192.0.2.1\n",
            20 + (i >> 16),
            (i >> 8) & 255,
            i & 255
        );
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
        .write_all(
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"cli\",\"params\":{\"line\":\"help\"}}\n",
        )
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
    let config = ServerConfig {
        cli_socket: None,
        api_socket: None,
        group: None,
        read_only_group: None,
        limits: Limits::default(),
    };
    let more = MoreDoors { tcp: Some(([0, 0, 0, 0], 0).into()), ..MoreDoors::default() };
    let refused = Server::start_with::<Toy>(&config, more).err().unwrap().to_string();
    assert!(refused.contains("not an address of the loopback"), "{refused}");
}
