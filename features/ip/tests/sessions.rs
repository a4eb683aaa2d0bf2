//! While one session changes very many routes, another is answered.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quiver_control::{Limits, Server, ServerConfig};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};
use quiver_testkit::Router;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            Folder(std::env::temp_dir().join(format!("quiver-{name}-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder for the test");
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Say something as one session, and hear the answer.
fn say(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("the router listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    writeln!(stream, "{line}").expect("the router reads");
    stream.shutdown(Shutdown::Write).expect("nothing more to say");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the router answers");
    answer
}

/// Let one session execute `line`, after which there are `more` more routes, while another says
/// `show version` again and again. Returns how often that was answered on the way.
fn answers_while(router: &mut Router, folder: &Folder, line: &str, more: isize) -> usize {
    let socket = folder.0.join("cli.sock");
    let config = ServerConfig {
        cli_socket: Some(socket.clone()),
        api_socket: None,
        group: None,
        read_only_group: None,
        limits: Limits::default(),
    };
    let (server, mut dispatcher) = Server::start::<Engine>(&config).expect("a server");
    let commands = router.commands();
    let (asked, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (before, after) = (routes(router), routes(router).saturating_add_signed(more));
    let mut on_the_way = 0;
    std::thread::scope(|threads| {
        let load = threads.spawn(|| {
            scopeguard::defer! { is_over.store(true, Ordering::SeqCst) }
            say(&socket, line)
        });
        let other = threads.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                assert!(say(&socket, "show version").starts_with("quiver v"));
                asked.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut began_at = None;
        while !(load.is_finished() && other.is_finished()) {
            dispatcher.turn(&commands.borrow(), router.engine());
            router.step();
            let (now, answered) = (routes(router), asked.load(Ordering::SeqCst));
            if now != before && now != after {
                on_the_way = answered - *began_at.get_or_insert(answered);
            }
        }
        assert_eq!(load.join().expect("the session ends"), "");
        other.join().expect("the other session is answered");
    });
    drop(server);
    assert_eq!(routes(router), after, "{line}");
    on_the_way
}

fn routes(router: &mut Router) -> usize {
    router.engine().get::<Fib>().expect("a FIB").route_count(Family::Ip4)
}

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router.cli("set interface ip address e0 10.0.0.1/24");
    router
}

#[test]
fn another_session_is_answered_while_a_file_of_routes_is_executed() {
    let (mut router, folder) = (router(), Folder::new("session-file"));
    let lines: String = (0..1_000_000u32)
        .map(|n| {
            format!("ip route add 20.{}.{}.{}/32 via 10.0.0.2\n", n >> 16, n >> 8 & 255, n & 255)
        })
        .collect();
    let file = folder.0.join("routes.cli");
    std::fs::write(&file, lines).expect("a file of routes");
    let answers =
        answers_while(&mut router, &folder, &format!("exec {}", file.display()), 1_000_000);
    assert!(answers >= 2, "answered {answers} times");
}

#[test]
fn another_session_is_answered_while_one_command_makes_and_takes_millions_of_routes() {
    let (mut router, folder) = (router(), Folder::new("session-count"));
    let make = "ip route add 20.0.0.0/32 count 2000000 via 10.0.0.2";
    let answers = answers_while(&mut router, &folder, make, 2_000_000);
    assert!(answers >= 2, "answered {answers} times");
    let take = "ip route del 20.0.0.0/32 count 2000000";
    let answers = answers_while(&mut router, &folder, take, -2_000_000);
    assert!(answers >= 2, "answered {answers} times");
}
