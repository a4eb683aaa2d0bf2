//! Letting go of what a peer chose. Closing a descriptor can take as long as its maker wants: the
//! last close of a TCP socket waits for its linger time, a file on FUSE for the answer of its
//! server, an eventfd for the removal of every waiter, and a Unix socket does the same for what
//! waits in it unread. So no thread that others wait for closes such a thing, nor unmaps a peer's
//! memory: a thread of its own does, which holds nothing else.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of stack of a thread that only lets go.
const STACK_BYTES: usize = 64 << 10;
/// Things of one account that are being closed at a time before it is full.
const CLOSING_MAX: usize = 64;

/// What could not be given to a thread yet, because the system refused one.
static LEFT: Mutex<Vec<Task>> = Mutex::new(Vec::new());

/// Something to let go of, and the account that it counts in until then.
struct Task {
    thing: Option<Box<dyn Send>>,
    account: Account,
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.thing.take());
        self.account.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many things of one listening socket are being closed. Peers of other sockets do not notice.
#[derive(Clone, Default)]
pub struct Account(Arc<AtomicUsize>);

impl Account {
    /// Are so many being closed that no more peers should be let in?
    pub fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= CLOSING_MAX
    }

    /// Let go of `thing` on a thread of its own.
    pub fn dispose(&self, thing: impl Send + 'static) {
        self.0.fetch_add(1, Ordering::Relaxed);
        start(Task { thing: Some(Box::new(thing)), account: self.clone() });
    }
}

/// A descriptor from a peer, of which nothing is known yet. It is closed elsewhere, unless it turns
/// out to be something that can be closed here.
pub struct Unchecked {
    fd: Option<OwnedFd>,
    account: Account,
}

impl Unchecked {
    /// A descriptor that just came.
    pub fn new(fd: OwnedFd, account: &Account) -> Unchecked {
        Unchecked { fd: Some(fd), account: account.clone() }
    }

    /// Its number, to look at it; -1 once it is checked.
    pub fn raw(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// It is known now what it is.
    pub fn into_checked(mut self) -> Option<OwnedFd> {
        self.fd.take()
    }
}

impl Drop for Unchecked {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            self.account.dispose(fd);
        }
    }
}

/// Let go of something whose release ends by itself, but may take long.
pub fn dispose(thing: impl Send + 'static) {
    Account::default().dispose(thing);
}

/// Try again what the system had no thread for.
pub fn retry() {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    left.into_iter().for_each(start);
}

fn start(task: Task) {
    // In a place that outlives a refusal: what `spawn` is given, it drops on this thread.
    let place = Arc::new(Mutex::new(Some(task)));
    let theirs = place.clone();
    let spawned = std::thread::Builder::new()
        .name("quiver-close".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let task = theirs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            drop(task);
        });
    if spawned.is_err() {
        let task = place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        LEFT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Takes as long to drop as somebody else wants.
    struct Slow(mpsc::Receiver<()>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn nobody_waits_for_what_is_slow_to_go_and_an_account_fills_up_alone() {
        let (account, other) = (Account::default(), Account::default());
        let (let_go, things): (Vec<_>, Vec<_>) = (0..CLOSING_MAX).map(|_| mpsc::channel()).unzip();
        things.into_iter().for_each(|end| account.dispose(Slow(end)));
        assert!(account.is_full() && !other.is_full());
        drop(let_go);
        while account.is_full() {
            std::thread::yield_now();
        }
    }
}
