//! A thread that follows what Linux configures in a network namespace, and hands it to the control
//! thread in portions, each when the one before was taken.
//!
//! Storms and losses are one case. When changes were lost, or more wait than it is worth to read
//! one by one, all is dumped again: a dump has many objects in a datagram and is read four times as
//! fast. What is the same as before is no change.

mod kept;
mod model;
mod orders;
mod routes;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quiver_linux::in_namespace;
use quiver_netlink::message::{Messages, flag, kind};
use quiver_netlink::{
    Group, NetlinkSocket, Received, Request, address, family, link, neighbour, next_hop, route,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::model::Model;
pub(crate) use self::model::{AddressKey, LinkFacts, NeighbourFacts, Object};
pub(crate) use self::orders::Order;
pub(crate) use self::routes::{Hop, RouteKey, RouteValue};

/// Routes of a portion.
pub(crate) const PORTION_ROUTES: usize = 4096;
/// Other objects of a portion, of each kind.
pub(crate) const PORTION_OBJECTS: usize = 512;
/// Bytes of changes that may wait in the kernel unless the start-up file says otherwise.
pub(crate) const BUFFER_BYTES: usize = 256 << 20;
/// Changes that are read one by one before all is dumped again.
const BACKLOG_MAX: usize = 100_000;
/// How often a dump that Linux interrupted is asked for again.
const DUMP_TRIES: usize = 4;
/// A kernel that does not go on with a dump within this time has lost it.
const DUMP_WAIT_MS: i32 = 5_000;
/// Changes that come faster than they can be left out are met by the next dump.
const SKIP_MAX: Duration = Duration::from_secs(1);
/// Between two dumps that losses ask for: the time for the changes of a dump to be read.
const DUMP_PAUSE: Duration = Duration::from_millis(100);

/// What the thread counts, for `show lcp sync`.
#[derive(Default)]
pub(crate) struct Counts {
    /// Messages read, of changes.
    pub messages: AtomicU64,
    /// Messages read, of dumps.
    pub dumped: AtomicU64,
    /// How often changes were lost.
    pub overruns: AtomicU64,
    /// How often all was dumped.
    pub dumps: AtomicU64,
    /// Changes that went into others before they were told.
    pub coalesced: AtomicU64,
    /// Routes that are known.
    pub routes: AtomicU64,
    /// Changes that are to be told.
    pub untold: AtomicU64,
    /// Requests to Linux that it refused.
    pub refused: AtomicU64,
    /// Bytes that the kernel gives for changes that wait.
    pub buffer_bytes: AtomicU64,
}

impl Counts {
    fn add(place: &AtomicU64, number: u64) {
        place.fetch_add(number, Ordering::Relaxed);
    }
}

/// What is told at once. No value is what is gone.
#[derive(Default)]
pub(crate) struct Portion {
    pub links: Vec<(u32, Option<LinkFacts>)>,
    pub addresses: Vec<(AddressKey, bool)>,
    pub neighbours: Vec<((u32, std::net::IpAddr), Option<NeighbourFacts>)>,
    /// Next-hop objects, as the hops that they come to.
    pub objects: Vec<(u32, Option<Vec<(Object, u32)>>)>,
    pub routes: Vec<(RouteKey, Option<Arc<RouteValue>>)>,
}

/// What both threads have.
struct Shared {
    portion: Mutex<Option<Portion>>,
    orders: Mutex<Vec<Order>>,
    stop: AtomicBool,
    /// Readable for the thread: an order, or a portion was taken.
    wake: OwnedFd,
    /// Readable for the control thread: a portion is there.
    ready: OwnedFd,
    counts: Counts,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raise(fd: &OwnedFd) {
    // A counter that is full is readable already.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

fn clear(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0u8; 8]);
}

/// The control thread's end of it. Dropped, the thread ends.
pub(crate) struct Reader(Arc<Shared>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
        raise(&self.0.wake);
    }
}

impl Reader {
    /// Begin to follow a namespace. Nothing waits for the thread.
    ///
    /// # Errors
    /// There is no such namespace, or the system refuses sockets or the thread.
    pub fn start(namespace: Option<&str>, buffer_bytes: usize) -> io::Result<Reader> {
        let groups = Group::LINKS
            .union(Group::ADDRESSES)
            .union(Group::NEIGHBOURS)
            .union(Group::NEXT_HOPS)
            .union(Group::ROUTES);
        let open = move || -> io::Result<(NetlinkSocket, NetlinkSocket)> {
            Ok((NetlinkSocket::open(groups)?, NetlinkSocket::open(Group::NONE)?))
        };
        let (changes, asks) = in_namespace(namespace, open)??;
        let given = changes.set_buffer(buffer_bytes)?;
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let shared = Arc::new(Shared {
            portion: Mutex::default(),
            orders: Mutex::default(),
            stop: AtomicBool::new(false),
            wake: eventfd(0, flags)?,
            ready: eventfd(0, flags)?,
            counts: Counts::default(),
        });
        shared.counts.buffer_bytes.store(given as u64, Ordering::Relaxed);
        let thread = Thread { shared: shared.clone(), changes, asks, model: Model::new() };
        std::thread::Builder::new().name("quiver_netlink".into()).spawn(move || thread.run())?;
        Ok(Reader(shared))
    }

    /// Have the thread do something.
    pub fn order(&self, order: Order) {
        locked(&self.0.orders).push(order);
        raise(&self.0.wake);
    }

    /// The portion that waits, if there is one; the next one may come.
    pub fn take(&self) -> Option<Portion> {
        clear(&self.0.ready);
        let portion = locked(&self.0.portion).take();
        if portion.is_some() {
            raise(&self.0.wake);
        }
        portion
    }

    /// Is nothing left to be told, and nothing that the thread should do?
    pub fn is_all_told(&self) -> bool {
        locked(&self.0.orders).is_empty()
            && locked(&self.0.portion).is_none()
            && self.0.counts.untold.load(Ordering::Acquire) == 0
    }

    /// Readable when a portion waits.
    pub fn fd(&self) -> RawFd {
        self.0.ready.as_raw_fd()
    }

    /// What the thread has counted.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }
}

/// The thread's own.
struct Thread {
    shared: Arc<Shared>,
    changes: NetlinkSocket,
    asks: NetlinkSocket,
    model: Model,
}

/// What a look at the changes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// All that waited was read.
    Read,
    /// Changes were lost, or too many wait.
    Behind,
}

impl Thread {
    fn run(mut self) {
        let mut dumped = Instant::now();
        let mut result = self.dump_all();
        while !self.shared.stop.load(Ordering::Acquire) {
            match result.and_then(|()| self.read_changes()) {
                Ok(Look::Read) => result = Ok(()),
                Ok(Look::Behind) => {
                    std::thread::sleep(DUMP_PAUSE.saturating_sub(dumped.elapsed()));
                    dumped = Instant::now();
                    result = self.skip_changes().and_then(|()| self.dump_all());
                }
                Err(error) => {
                    tracing::warn!("netlink: {error}; all is asked for again");
                    std::thread::sleep(DUMP_PAUSE);
                    result = self.dump_all();
                }
            }
            self.carry_out_orders();
            self.tell();
            self.wait();
        }
    }

    fn wait(&self) {
        let mut fds = [
            PollFd::new(&self.changes, PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut fds, Some(&second));
        clear(&self.shared.wake);
    }

    /// Read what has changed.
    fn read_changes(&mut self) -> io::Result<Look> {
        let mut read = 0;
        loop {
            match self.changes.receive()? {
                Received::Nothing => return Ok(Look::Read),
                Received::Overrun => {
                    Counts::add(&self.shared.counts.overruns, 1);
                    return Ok(Look::Behind);
                }
                Received::Datagrams(count) => {
                    for number in 0..count {
                        for message in Messages::of(self.changes.datagram(number)) {
                            self.model.take(&message);
                            read += 1;
                        }
                    }
                    Counts::add(&self.shared.counts.messages, count as u64);
                }
            }
            if read > BACKLOG_MAX {
                return Ok(Look::Behind);
            }
            self.tell();
        }
    }

    /// Leave out all changes that wait: a dump that begins now has what they say.
    fn skip_changes(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < SKIP_MAX && self.changes.receive()? != Received::Nothing {}
        Ok(())
    }

    /// Ask Linux for all there is.
    fn dump_all(&mut self) -> io::Result<()> {
        Counts::add(&self.shared.counts.dumps, 1);
        self.dump(&[link::dump()], |model| model.links.begin_dump())?;
        self.model.links.sweep();
        self.dump(&[address::dump()], |model| model.addresses.begin_dump())?;
        self.model.addresses.sweep();
        // Kernels before 5.3 have no next-hop objects.
        if self.dump(&[next_hop::dump()], |model| model.objects.begin_dump()).is_ok() {
            self.model.objects.sweep();
        }
        let routes = [route::dump(family::IP4), route::dump(family::IP6)];
        self.dump(&routes, |model| model.routes.begin_dump())?;
        self.model.routes.sweep();
        let neighbours = [neighbour::dump(family::IP4), neighbour::dump(family::IP6)];
        self.dump(&neighbours, |model| model.neighbours.begin_dump())?;
        self.model.neighbours.sweep();
        Ok(())
    }

    /// Take the answers to requests, from the beginning when something changes meanwhile.
    fn dump(&mut self, requests: &[Request], begin: impl Fn(&mut Model)) -> io::Result<()> {
        for _ in 0..DUMP_TRIES {
            begin(&mut self.model);
            let mut whole = true;
            for request in requests {
                whole &= self.take_dump(request.clone())?;
            }
            if whole {
                return Ok(());
            }
        }
        Ok(()) // what changed meanwhile is heard as a change
    }

    /// Take the answer to one request. False when something changed meanwhile.
    fn take_dump(&mut self, request: Request) -> io::Result<bool> {
        let sequence = self.asks.send(request)?;
        let mut whole = true;
        loop {
            if !self.asks.wait(DUMP_WAIT_MS)? {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            let count = match self.asks.receive()? {
                Received::Nothing => continue,
                Received::Overrun => return Ok(false),
                Received::Datagrams(count) => count,
            };
            let mut read = 0;
            for number in 0..count {
                for message in Messages::of(self.asks.datagram(number)) {
                    if message.sequence != sequence {
                        continue;
                    }
                    whole &= message.flags & flag::DUMP_INTERRUPTED == 0;
                    match message.kind {
                        kind::DONE => return Ok(whole),
                        kind::ERROR => {
                            let number = message.error().unwrap_or(0);
                            return Err(io::Error::from_raw_os_error(number));
                        }
                        _ => self.model.take(&message),
                    }
                    read += 1;
                }
            }
            Counts::add(&self.shared.counts.dumped, read);
        }
    }

    /// Hand over a portion, if the last one was taken.
    fn tell(&mut self) {
        let counts = &self.shared.counts;
        counts.coalesced.store(self.model.coalesced(), Ordering::Relaxed);
        counts.routes.store(self.model.routes.used.len() as u64, Ordering::Relaxed);
        counts.untold.store(self.model.untold() as u64, Ordering::Relaxed);
        if self.model.untold() == 0 {
            return;
        }
        let mut place = locked(&self.shared.portion);
        if place.is_none() {
            *place = Some(portion_of(&mut self.model));
            counts.untold.store(self.model.untold() as u64, Ordering::Release);
            raise(&self.shared.ready);
        }
    }

    fn carry_out_orders(&mut self) {
        let orders = std::mem::take(&mut *locked(&self.shared.orders));
        for order in orders {
            match order {
                Order::TellLinkAgain(link) => self.model.tell_link_again(link),
                Order::TellObjectAgain(id) => self.model.tell_object_again(id),
                Order::TellAllAgain => self.model.tell_all_again(),
                Order::Dump => {
                    if let Err(error) = self.dump_all() {
                        tracing::warn!("netlink: {error}");
                    }
                }
                Order::Ask(what, request) => self.ask(&what, request),
            }
        }
    }

    /// Have Linux change something, and hear whether it did.
    fn ask(&mut self, what: &str, request: Request) {
        let answer = self.answer_to(request);
        if let Err(error) = answer {
            Counts::add(&self.shared.counts.refused, 1);
            tracing::warn!("Linux refuses {what}: {error}");
        }
    }

    fn answer_to(&mut self, request: Request) -> io::Result<()> {
        let sequence = self.asks.send(request)?;
        while self.asks.wait(DUMP_WAIT_MS)? {
            let Received::Datagrams(count) = self.asks.receive()? else { continue };
            for number in 0..count {
                let mut answers = Messages::of(self.asks.datagram(number));
                if let Some(answer) = answers.find(|answer| answer.sequence == sequence) {
                    return match answer.error() {
                        Some(0) | None => Ok(()),
                        Some(number) => Err(io::Error::from_raw_os_error(number)),
                    };
                }
            }
        }
        Err(io::Error::from(io::ErrorKind::TimedOut))
    }
}

/// The next portion: links first, routes last, so that what they name is known.
fn portion_of(model: &mut Model) -> Portion {
    let objects = model.objects.take_untold(PORTION_OBJECTS);
    let objects = objects.into_iter().map(|(id, object)| (id, object.map(|_| model.hops_of(id))));
    let objects = objects.collect();
    let addresses = model.addresses.take_untold(PORTION_OBJECTS).into_iter();
    let routes = model.routes.used.take_untold(PORTION_ROUTES).into_iter();
    Portion {
        links: model.links.take_untold(PORTION_OBJECTS),
        addresses: addresses.map(|(key, value)| (key, value.is_some())).collect(),
        neighbours: model.neighbours.take_untold(PORTION_OBJECTS),
        objects,
        routes: routes.map(|(key, told)| (key, told.map(|(_, value)| value))).collect(),
    }
}
