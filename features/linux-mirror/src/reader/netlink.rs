//! The kernel of a network namespace, by netlink.
//!
//! Storms and losses are one case. When changes were lost, or more wait than it is worth to read
//! one by one, all is dumped again: a dump has many objects in a datagram and is read four times as
//! fast. What is the same as before is no change.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quiver_linux::in_namespace;
use quiver_netlink::message::{Messages, flag, kind};
use quiver_netlink::{
    Group, NetlinkSocket, Received, Request, address, family, link, neighbour, next_hop, route,
};

use rustix::io::Errno;

use super::model::Model;
use super::own::{OwnChange, Wanted};
use super::{Counts, Order, Reader, Shared, WAIT, locked};

/// Changes that are read one by one before all is dumped again.
const BACKLOG_MAX: usize = 100_000;
/// How often a dump that Linux interrupted is asked for again.
const DUMP_TRIES: usize = 4;
/// A kernel that does not go on with a dump within this time has lost it.
const DUMP_WAIT_MS: i32 = 5_000;
/// Changes that do not end within this time are met by the next dump.
const SKIP_MAX: Duration = Duration::from_secs(1);
/// No change within this time: they have ended.
const QUIET_MS: i32 = 5;
/// Between two dumps that losses ask for: the time for the changes of a dump to be read.
const DUMP_PAUSE: Duration = Duration::from_millis(100);

/// Begin to follow the kernel of a namespace.
pub(super) fn start(namespace: Option<&str>, buffer_bytes: usize) -> io::Result<Reader> {
    let groups = Group::LINKS
        .union(Group::ADDRESSES)
        .union(Group::NEIGHBOURS)
        .union(Group::NEXT_HOPS)
        .union(Group::ROUTES)
        .union(Group::LABELS);
    let open = move || -> io::Result<(NetlinkSocket, NetlinkSocket)> {
        Ok((NetlinkSocket::open(groups)?, NetlinkSocket::open(Group::NONE)?))
    };
    let (changes, asks) = in_namespace(namespace, open)??;
    let given = changes.set_buffer(buffer_bytes)?;
    let (reader, shared) = Reader::new()?;
    shared.counts.buffer_bytes.store(given as u64, Ordering::Relaxed);
    let thread = Thread { shared, changes, asks, model: Model::new(), wanted: Wanted::default() };
    std::thread::Builder::new().name("quiver_netlink".into()).spawn(move || thread.run())?;
    Ok(reader)
}

/// The thread's own.
struct Thread {
    shared: Arc<Shared>,
    changes: NetlinkSocket,
    asks: NetlinkSocket,
    model: Model,
    wanted: Wanted,
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
        while !self.shared.is_over() {
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
            self.shared.report(&mut self.model);
            self.shared.wait(Some(self.changes.as_fd()), WAIT);
        }
    }

    /// Read what has changed.
    fn read_changes(&mut self) -> io::Result<Look> {
        let mut read = 0;
        loop {
            match self.changes.receive()? {
                Received::Nothing => match self.model.leaving.take() {
                    Some(link) => {
                        self.await_deletion(link);
                        continue;
                    }
                    None => return Ok(Look::Read),
                },
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
            self.report();
        }
    }

    /// Hand over what is known, also while more is read.
    fn report(&mut self) {
        if self.model.leaving.is_none() {
            self.shared.report(&mut self.model);
        }
    }

    /// Linux sets a link down and takes its addresses away before it deletes it, all under one
    /// lock (RTNL). A request that changes nothing about the link waits for that lock: when it is
    /// answered, what is left to be read says whether the link is gone. Until then nothing is
    /// reported.
    fn await_deletion(&mut self, link: u32) {
        if let Err(error) = self.answer_to(link::LinkChange::default().request(link)) {
            tracing::debug!("netlink: link {link}: {error}");
        }
    }

    /// Leave out changes until none comes for a while: a dump that begins then has what they say,
    /// and none interrupts it.
    fn skip_changes(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < SKIP_MAX {
            if self.changes.receive()? == Received::Nothing && !self.changes.wait(QUIET_MS)? {
                break;
            }
        }
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
        let begin = |model: &mut Model| {
            model.objects.begin_dump();
            model.far_objects.begin_dump();
        };
        if self.dump(&[next_hop::dump()], begin).is_ok() {
            self.model.sweep_objects();
            self.model.far_objects.sweep();
        }
        let routes = [route::dump(family::IP4), route::dump(family::IP6)];
        self.dump(&routes, |model| {
            model.routes.begin_dump();
            model.own_routes.clear();
        })?;
        self.model.routes.sweep();
        self.dump_labels()?;
        let repairs = self.wanted.repairs(&self.model.own_routes);
        repairs.iter().for_each(|change| self.write(change));
        let neighbours = [neighbour::dump(family::IP4), neighbour::dump(family::IP6)];
        self.dump(&neighbours, |model| {
            model.neighbours.begin_dump();
            model.own_neighbours.clear();
        })?;
        self.model.neighbours.sweep();
        let stale = self.wanted.stale_neighbours(&self.model.own_neighbours);
        stale.iter().for_each(|change| self.write(change));
        // Kernels without bridges have no such entries.
        let stations = [neighbour::dump(family::BRIDGE)];
        let begin = |model: &mut Model| {
            model.stations.begin_dump();
            model.far.begin_dump();
        };
        if self.dump(&stations, begin).is_ok() {
            self.model.stations.sweep();
            self.model.far.sweep();
        }
        Ok(())
    }

    /// Ask for the routes of labels. A kernel without MPLS would answer with all other routes.
    fn dump_labels(&mut self) -> io::Result<()> {
        const MPLS: &str = "/proc/sys/net/mpls";
        if std::path::Path::new(MPLS).exists() {
            let labels = [route::dump(family::MPLS)];
            self.dump(&labels, |model| model.labels.begin_dump())?;
            self.model.labels.sweep();
        }
        Ok(())
    }

    /// Take the answers to requests, from the beginning when something changes meanwhile. What is
    /// not in a dump that was interrupted is not gone: nothing may be swept then.
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
        Err(io::Error::new(io::ErrorKind::Interrupted, "what is dumped changes all the time"))
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
                self.report();
            }
            Counts::add(&self.shared.counts.dumped, read);
        }
    }

    fn carry_out_orders(&mut self) {
        for order in self.shared.take_orders() {
            match order {
                Order::Report(what) => self.model.report_again(what),
                Order::Dump => {
                    if let Err(error) = self.dump_all() {
                        tracing::warn!("netlink: {error}");
                    }
                }
                Order::Ask(what, request) => self.ask(&what, request),
                Order::Write(changes) => {
                    for change in &changes {
                        self.wanted.take(change);
                        self.write(change);
                        self.shared.counts.own_waiting.fetch_sub(1, Ordering::Relaxed);
                    }
                    let count = self.wanted.routes() as u64;
                    self.shared.counts.own_routes.store(count, Ordering::Relaxed);
                }
            }
        }
    }

    /// Have Linux change something, and hear whether it did.
    fn ask(&mut self, what: &str, request: Request) {
        if let Err(error) = self.answer_to(request) {
            tracing::warn!("Linux refuses {what}: {error}");
            self.refused(what, &error);
        }
    }

    /// Write or remove a route or neighbour of the router.
    fn write(&mut self, change: &OwnChange) {
        /// There is no such thing: no route, no neighbour, no link.
        const GONE: [Errno; 3] = [Errno::SRCH, Errno::NOENT, Errno::NODEV];
        match self.answer_to(change.request()) {
            Ok(()) => Counts::add(&self.shared.counts.own_written, 1),
            // Linux took it away before, with its link.
            Err(error)
                if change.removes()
                    && Errno::from_io_error(&error)
                        .is_some_and(|number| GONE.contains(&number)) => {}
            Err(error) => {
                tracing::debug!("Linux refuses {}: {error}", change.words());
                self.refused(&change.words(), &error);
            }
        }
    }

    fn refused(&self, what: &str, error: &io::Error) {
        Counts::add(&self.shared.counts.refused, 1);
        *locked(&self.shared.refusal) = Some(format!("{what}: {error}"));
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
