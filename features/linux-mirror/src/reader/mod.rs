//! Threads that follow what somebody configures: the kernel of a network namespace by netlink, or a
//! routing daemon by FPM. They hand it to the control thread in portions, each when the one before
//! was taken.

mod by_object;
mod far_objects;
mod fpm;
mod kept;
#[cfg(feature = "lab")]
pub mod lab;
mod model;
mod netlink;
mod orders;
mod own;
mod routes;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::model::Model;
pub(crate) use self::model::{
    AddressKey, FarKey, FarValue, LabelFacts, LinkFacts, NeighbourFacts, Object, ObjectHops,
    StationFacts, StationKey,
};
pub(crate) use self::orders::{Again, Order};
pub(crate) use self::own::{OwnChange, OwnRoute, neighbour};
pub(crate) use self::routes::{Encap, Hop, RouteKey, RouteValue};

/// Routes of a portion.
pub(crate) const PORTION_ROUTES: usize = 4096;
/// Other objects of a portion, of each kind.
pub(crate) const PORTION_OBJECTS: usize = 512;
/// Bytes of changes that may wait in the kernel unless the start-up file says otherwise.
pub(crate) const BUFFER_BYTES: usize = 256 << 20;
/// How long a thread waits at most before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(500);

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
    pub unreported: AtomicU64,
    /// Requests to Linux that it refused.
    pub refused: AtomicU64,
    /// Routes and neighbours of the router that are to be written or removed.
    pub own_waiting: AtomicU64,
    /// Those that were, without those that were refused.
    pub own_written: AtomicU64,
    /// Routes of the router that Linux is to have.
    pub own_routes: AtomicU64,
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
    pub stations: Vec<(StationKey, Option<StationFacts>)>,
    /// Stations behind far ends of VXLAN devices.
    pub far: Vec<(FarKey, Option<FarValue>)>,
    /// Next-hop objects that such stations name, and the far end to which frames go.
    pub far_objects: Vec<(u32, Option<std::net::IpAddr>)>,
    /// Next-hop objects, as the hops that they come to.
    pub objects: Vec<(u32, Option<ObjectHops>)>,
    pub routes: Vec<(RouteKey, Option<Arc<RouteValue>>)>,
    pub labels: Vec<(u32, Option<LabelFacts>)>,
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
    /// What Linux refused last, and why.
    refusal: Mutex<Option<String>>,
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
    fn new() -> io::Result<(Reader, Arc<Shared>)> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let shared = Arc::new(Shared {
            portion: Mutex::default(),
            orders: Mutex::default(),
            stop: AtomicBool::new(false),
            wake: eventfd(0, flags)?,
            ready: eventfd(0, flags)?,
            counts: Counts::default(),
            refusal: Mutex::default(),
        });
        Ok((Reader(shared.clone()), shared))
    }

    /// Begin to follow the kernel of a namespace. Nothing waits for the thread.
    ///
    /// # Errors
    /// There is no such namespace, or the system refuses sockets or the thread.
    pub fn of_kernel(namespace: Option<&str>, buffer_bytes: usize) -> io::Result<Reader> {
        netlink::start(namespace, buffer_bytes)
    }

    /// Begin to follow the routing daemon that connects to an address of a namespace.
    ///
    /// # Errors
    /// There is no such namespace, or the system refuses the socket or the thread.
    pub fn of_daemon(namespace: Option<&str>, address: SocketAddr) -> io::Result<Reader> {
        fpm::start(namespace, address)
    }

    /// Have the thread do something.
    pub fn order(&self, order: Order) {
        locked(&self.0.orders).push(order);
        raise(&self.0.wake);
    }

    /// Have the thread write and remove routes and neighbours of the router.
    pub fn write(&self, changes: Vec<OwnChange>) {
        Counts::add(&self.0.counts.own_waiting, changes.len() as u64);
        self.order(Order::Write(changes));
    }

    /// How many of these changes wait.
    pub fn own_waiting(&self) -> u64 {
        self.0.counts.own_waiting.load(Ordering::Relaxed)
    }

    /// What Linux refused last, and why.
    pub fn last_refusal(&self) -> Option<String> {
        locked(&self.0.refusal).clone()
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
    pub fn is_all_reported(&self) -> bool {
        locked(&self.0.orders).is_empty()
            && locked(&self.0.portion).is_none()
            && self.0.counts.unreported.load(Ordering::Acquire) == 0
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

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *locked(&self.orders))
    }

    /// Hand over a portion, if the last one was taken.
    fn report(&self, model: &mut Model) {
        let counts = &self.counts;
        counts.coalesced.store(model.coalesced(), Ordering::Relaxed);
        counts.routes.store(model.routes.used.len() as u64, Ordering::Relaxed);
        counts.unreported.store(model.unreported() as u64, Ordering::Release);
        if model.unreported() == 0 {
            return;
        }
        let mut place = locked(&self.portion);
        if place.is_none() {
            *place = Some(portion_of(model));
            counts.unreported.store(model.unreported() as u64, Ordering::Release);
            raise(&self.ready);
        }
    }

    /// Wait until something can be read, an order came or a portion was taken.
    fn wait(&self, source: Option<BorrowedFd<'_>>, timeout: Duration) {
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as i64 };
        let _ = match source.as_ref() {
            Some(source) => poll(&mut [PollFd::new(source, PollFlags::IN), wake], Some(&timeout)),
            None => poll(&mut [wake], Some(&timeout)),
        };
        clear(&self.wake);
    }
}

/// The next portion: links first, routes last, so that what they name is known.
fn portion_of(model: &mut Model) -> Portion {
    let objects = model.objects.take_unreported(PORTION_OBJECTS);
    let objects = objects.into_iter().map(|(id, object)| (id, object.map(|_| model.hops_of(id))));
    let objects = objects.collect();
    let addresses = model.addresses.take_unreported(PORTION_OBJECTS).into_iter();
    let routes = model.routes.used.take_unreported(PORTION_ROUTES).into_iter();
    Portion {
        links: model.links.take_unreported(PORTION_OBJECTS),
        addresses: addresses.map(|(key, value)| (key, value.is_some())).collect(),
        neighbours: model.neighbours.take_unreported(PORTION_OBJECTS),
        stations: model.stations.take_unreported(PORTION_ROUTES),
        far_objects: model.far_objects.take_unreported(PORTION_OBJECTS),
        far: model.far.take_unreported(PORTION_ROUTES),
        objects,
        routes: routes.map(|(key, reported)| (key, reported.map(|(_, value)| value))).collect(),
        labels: model.labels.take_unreported(PORTION_OBJECTS),
    }
}
