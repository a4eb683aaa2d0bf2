//! How fast changes of routes are read: a kernel's table is filled while nobody reads, then the
//! waiting changes are read into a reader's knowledge, and the table is dumped. Prints messages a
//! second. It needs a network namespace of its own, in which it fills the main table:
//!
//! `unshare -n cargo run --release -p quiver-linux-mirror --features lab --example reader_rate`

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quiver_linux_mirror::lab::Knowledge;
use quiver_netlink::message::{Messages, kind};
use quiver_netlink::{Group, NetlinkSocket, Received, family, route};

/// Changes, unless a number is given.
const ROUTES: u32 = 300_000;
/// A change takes 832 bytes in the kernel.
const BUFFER_BYTES: usize = 1 << 30;

/// Let `ip` carry out lines.
fn ip(lines: &str) {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("ip of iproute2 starts");
    ip.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("it reads");
    assert!(ip.wait().expect("it ends").success(), "ip refuses a line");
}

/// Read until nothing waits, or a dump is over. Returns how many messages of routes there were.
fn read(socket: &mut NetlinkSocket, is_dump: bool, mut each: impl FnMut(&[u8])) -> usize {
    let mut messages = 0;
    loop {
        match socket.receive().expect("a netlink socket") {
            Received::Nothing if is_dump => std::thread::yield_now(),
            Received::Nothing => return messages,
            Received::Overrun => panic!("changes were lost: the buffer is too small"),
            Received::Datagrams(count) => {
                for number in 0..count {
                    let datagram = socket.datagram(number);
                    each(datagram);
                    for message in Messages::of(datagram) {
                        if message.kind == kind::DONE {
                            return messages;
                        }
                        messages += 1;
                    }
                }
            }
        }
    }
}

fn print(what: &str, messages: usize, time: Duration) {
    let rate = messages as f64 / time.as_secs_f64();
    println!("{what}: {messages} messages in {:.3} s, {rate:.0}/s", time.as_secs_f64());
}

fn main() {
    let routes = std::env::args().nth(1).map_or(ROUTES, |word| word.parse().expect("a number"));
    let lines = |verb: &str| {
        let line = |n: u32| {
            format!("route {verb} {}.{}.{}.0/24 dev lo\n", 16 + (n >> 16), n >> 8 & 255, n & 255)
        };
        (0..routes).map(line).collect::<String>()
    };
    ip("link set lo up\n");
    let mut changes = NetlinkSocket::open(Group::ROUTES).expect("a netlink socket");
    changes.set_buffer(BUFFER_BYTES).expect("room for what waits");

    ip(&lines("add"));
    let start = Instant::now();
    let messages = read(&mut changes, false, |_| {});
    print("read", messages, start.elapsed());

    ip(&lines("del"));
    ip(&lines("add"));
    let mut knowledge = Knowledge::default();
    let start = Instant::now();
    let messages = read(&mut changes, false, |datagram| knowledge.take_messages(datagram));
    print("read, understood and coalesced", messages, start.elapsed());

    let mut asks = NetlinkSocket::open(Group::NONE).expect("a netlink socket");
    let mut knowledge = Knowledge::default();
    let start = Instant::now();
    asks.send(route::dump(family::IP4)).expect("the kernel is asked");
    knowledge.begin_dump();
    let messages = read(&mut asks, true, |datagram| knowledge.take_messages(datagram));
    knowledge.end_dump();
    print("dumped and understood", messages, start.elapsed());
}
