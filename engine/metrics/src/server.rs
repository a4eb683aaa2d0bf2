//! The thread that listens for scrapers. It moves bytes, never waits for one client, and asks the
//! control thread for the document.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::client::{Client, PLACE_MIN, Then};
use crate::http::Status;
use crate::text::Format;

/// Clients at once. For the next one, the client that makes no progress for the longest time gives
/// way.
pub const CLIENTS_MAX: usize = 64;
/// Clients that are accepted before the others have their turn.
const ACCEPTED_MAX: usize = 16;
/// How long the server waits after a client could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How often it looks for clients that are late.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// A flag that wakes a thread which polls.
#[derive(Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wake the other side. It is awake already when its counter is full.
    fn ring(&self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Forget that it rang.
    pub fn silence(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A client that waits for the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrapeRequest {
    /// Which client.
    pub client: u64,
    /// What the document is written in.
    pub format: Format,
}

/// What the server counts.
#[derive(Default)]
pub struct Counts {
    /// Clients now.
    pub clients: AtomicU64,
    /// Clients that were accepted.
    pub accepted: AtomicU64,
    /// Clients that were turned away or gave way because all places were taken.
    pub turned_away: AtomicU64,
    /// Clients that were too slow.
    pub late: AtomicU64,
}

/// The server thread; dropping it ends the connections and frees the port.
pub struct Server {
    stop: Arc<AtomicBool>,
    /// Wakes the thread.
    thread_bell: Bell,
    /// Wakes the control thread.
    bell: Bell,
    asked: Receiver<ScrapeRequest>,
    answers: Sender<(u64, Arc<str>)>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listen.
    ///
    /// # Errors
    /// The address is not free or not this machine's, or the system refuses a thread.
    pub fn start(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (thread_bell, bell) = (Bell::new()?, Bell::new()?);
        let (ask, asked) = channel();
        let (answers, answered) = channel();
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let serving = Serving {
            listener,
            clients: BTreeMap::new(),
            next_client: 0,
            cannot_accept: false,
            ask,
            answered,
            bell: thread_bell.clone(),
            control_bell: bell.clone(),
            counts: counts.clone(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("quiver-metrics".into())
            .spawn(move || serving.serve())?;
        Ok(Server { stop, thread_bell, bell, asked, answers, counts, thread: Some(thread) })
    }

    /// Rings when clients ask.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The next client that asks.
    pub fn next(&self) -> Option<ScrapeRequest> {
        self.asked.try_recv().ok()
    }

    /// Give a client the document.
    pub fn answer(&self, client: u64, document: &Arc<str>) {
        // A thread that is gone has no clients.
        let _ = self.answers.send((client, document.clone()));
        self.thread_bell.ring();
    }

    /// What it counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread_bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct Serving {
    listener: TcpListener,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    /// The last client could not be accepted, and the log says so.
    cannot_accept: bool,
    ask: Sender<ScrapeRequest>,
    answered: Receiver<(u64, Arc<str>)>,
    bell: Bell,
    control_bell: Bell,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
}

impl Serving {
    fn serve(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!("the server of metrics stops: poll: {error}");
                    return;
                }
            };
            self.bell.silence();
            let now = Instant::now();
            while let Ok((id, document)) = self.answered.try_recv() {
                let then = self.clients.get_mut(&id).map(|client| client.answer(&document, now));
                self.follow(id, then.unwrap_or(Then::Stays));
            }
            for (id, flags) in ready {
                let then = self.clients.get_mut(&id).map(|client| client.go_on(flags, now));
                self.follow(id, then.unwrap_or(Then::Stays));
            }
            self.end_late(now);
            self.accept(now);
            self.counts.clients.store(self.clients.len() as u64, Ordering::Relaxed);
        }
    }

    fn wait(&self) -> Result<Vec<(u64, PollFlags)>, rustix::io::Errno> {
        let mut fds = vec![
            PollFd::new(&self.bell, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        let others = fds.len();
        fds.extend(self.clients.values().map(|client| PollFd::new(client, client.interest())));
        poll(&mut fds, (!self.clients.is_empty()).then_some(&LOOK))?;
        let ready = self.clients.keys().copied().zip(fds[others..].iter().map(PollFd::revents));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn follow(&mut self, client: u64, then: Then) {
        match then {
            Then::Stays => {}
            Then::Wants(format) => {
                let _ = self.ask.send(ScrapeRequest { client, format });
                self.control_bell.ring();
            }
            Then::Ends => {
                self.clients.remove(&client);
            }
        }
    }

    fn end_late(&mut self, now: Instant) {
        let before = self.clients.len();
        self.clients.retain(|_, client| !client.is_late(now));
        let late = (before - self.clients.len()) as u64;
        self.counts.late.fetch_add(late, Ordering::Relaxed);
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    self.cannot_accept = false;
                    self.admit(stream, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors: the listener stays readable.
                    if !std::mem::replace(&mut self.cannot_accept, true) {
                        tracing::warn!("clients of metrics cannot be accepted: {error}");
                    }
                    std::thread::sleep(ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    /// Take a client in, if there is a place or another gives way.
    fn admit(&mut self, stream: TcpStream, now: Instant) {
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        let Ok(mut client) = Client::new(stream, now) else { return };
        if self.clients.len() >= CLIENTS_MAX {
            self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
            let idle = self.clients.iter().filter_map(|(id, one)| Some((one.idle_since()?, *id)));
            match idle.min().filter(|(since, _)| now.duration_since(*since) >= PLACE_MIN) {
                Some((_, id)) => drop(self.clients.remove(&id)),
                None => {
                    client.refuse_at_once(Status::Unavailable);
                    return;
                }
            }
        }
        self.clients.insert(self.next_client, client);
        self.next_client += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    const DOCUMENT: &str = "quiver_drops_total 7\n";

    /// A server on a free port, and where it is.
    fn started() -> (Server, SocketAddr) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        (Server::start(address).unwrap(), address)
    }

    fn connected(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Be the control thread until so many clients were answered.
    fn answer(server: &Server, clients: usize, document: &str) {
        let (document, until) = (Arc::from(document), Instant::now() + Duration::from_secs(20));
        let mut answered = 0;
        while answered < clients {
            assert!(Instant::now() < until, "{answered} of {clients} clients have asked");
            match server.next() {
                Some(asked) => {
                    server.answer(asked.client, &document);
                    answered += 1;
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Read one answer whole.
    fn read(stream: &mut TcpStream) -> String {
        let (mut text, mut byte) = (Vec::new(), [0]);
        while !text.ends_with(b"\r\n\r\n") {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "the connection ended");
            text.extend(byte);
        }
        let head = String::from_utf8(text).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        head + &String::from_utf8(body).unwrap()
    }

    #[test]
    fn requests_on_one_connection_are_answered_one_after_the_other() {
        let (server, address) = started();
        let mut client = connected(address);
        client.write_all(&REQUEST.repeat(3)).unwrap();
        for _ in 0..3 {
            answer(&server, 1, DOCUMENT);
            assert!(read(&mut client).ends_with(DOCUMENT));
        }
    }

    #[test]
    fn a_refused_request_is_told_why_and_the_connection_ends() {
        let (_server, address) = started();
        let mut client = connected(address);
        client.write_all(b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        client.write_all(&[b'x'; 40_000]).unwrap();
        let answer = read(&mut client);
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn clients_that_do_nothing_give_way_to_one_that_asks() {
        let (server, address) = started();
        let mut idle: Vec<TcpStream> = (0..CLIENTS_MAX).map(|_| connected(address)).collect();
        idle.iter_mut().for_each(|client| client.write_all(&REQUEST[..9]).unwrap());
        std::thread::sleep(PLACE_MIN + Duration::from_millis(100));
        let mut scraper = connected(address);
        scraper.write_all(REQUEST).unwrap();
        answer(&server, 1, DOCUMENT);
        assert!(read(&mut scraper).ends_with(DOCUMENT));
        assert_eq!(server.counts().turned_away.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_client_that_does_not_read_keeps_nobody_waiting() {
        let (server, address) = started();
        let long = "x".repeat(16 << 20);
        let mut silent = connected(address);
        silent.write_all(REQUEST).unwrap();
        answer(&server, 1, &long);
        for _ in 0..3 {
            let mut scraper = connected(address);
            scraper.write_all(REQUEST).unwrap();
            answer(&server, 1, DOCUMENT);
            assert!(read(&mut scraper).ends_with(DOCUMENT));
        }
        assert_eq!(read(&mut silent).len(), long.len() + head_bytes(long.len()));
    }

    fn head_bytes(length: usize) -> usize {
        let now = std::time::SystemTime::now();
        crate::http::head(Format::Text, length, true, now).len()
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_and_a_server_that_ends_frees_its_port() {
        let (server, address) = started();
        assert!(Server::start(address).is_err());
        drop(server);
        assert!(Server::start(address).is_ok());
    }
}
