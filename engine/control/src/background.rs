//! Work that may wait for a file system, on a thread of its own: the control thread never does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::error::Refusal;
use crate::grammar::Work;
use crate::job::{Job, Sink, Step};
use crate::output::Output;

/// Threads at once. A file system that never answers keeps its thread.
const THREADS_MAX: usize = 8;

/// How often a command looks whether the work is done.
const LOOK: Duration = Duration::from_millis(1);

/// Threads at work.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread as long as it is there.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let more = |count| (count < THREADS_MAX).then_some(count + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Work under way on another thread.
pub struct Elsewhere<T>(Receiver<Result<T, Refusal>>);

impl<T: Send + 'static> Elsewhere<T> {
    /// Do it on a thread of its own, where it may read and write files.
    ///
    /// # Errors
    /// Too many threads are at work already, or the system refuses one.
    pub fn begin(
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Elsewhere<T>, Refusal> {
        let place = Place::take().ok_or_else(|| {
            Refusal::new(format!("{THREADS_MAX} threads work in the background already"))
                .remedy("try again later")
        })?;
        let (send, done) = channel();
        std::thread::Builder::new().name("quiver-files".into()).spawn(move || {
            let result = work();
            drop(place);
            let _ = send.send(result);
        })?;
        Ok(Elsewhere(done))
    }

    /// The same, but what finds no thread is done at once: for what must be done now.
    pub(crate) fn surely(
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Elsewhere<T>, Refusal> {
        if THREADS.load(Ordering::Relaxed) < THREADS_MAX {
            return Elsewhere::begin(work);
        }
        work().map(Elsewhere::done)
    }

    /// It is done already.
    pub(crate) fn done(result: T) -> Elsewhere<T> {
        let (send, done) = channel();
        let _ = send.send(Ok(result));
        Elsewhere(done)
    }

    /// What came of it, once it is done.
    ///
    /// # Errors
    /// Those of the work, or it broke off.
    pub fn look(&self) -> Result<Option<T>, Refusal> {
        match self.0.try_recv() {
            Ok(result) => result.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Refusal::new("the work on a file broke off")),
        }
    }

    /// When to look again.
    pub(crate) fn pause() -> Step {
        Step::Until(Instant::now() + LOOK)
    }
}

type Then<S, T> = Box<dyn FnOnce(&mut S, T) -> Result<Output, Refusal>>;

struct Background<S, T> {
    work: Elsewhere<T>,
    then: Option<Then<S, T>>,
}

impl<S, T: Send + 'static> Job<S> for Background<S, T> {
    fn step(&mut self, state: &mut S, _: &mut dyn Sink) -> Result<Step, Refusal> {
        let Some(done) = self.work.look()? else { return Ok(Elsewhere::<T>::pause()) };
        match self.then.take() {
            Some(then) => then(state, done).map(Step::Done),
            None => Ok(Step::Done(Output::none())),
        }
    }
}

/// Do `work` on a thread of its own, where it may read and write files; then `then` on the control
/// thread.
///
/// # Errors
/// Too many threads are at work already, or the system refuses a thread.
pub fn in_background<S: 'static, T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    then: impl FnOnce(&mut S, T) -> Result<Output, Refusal> + 'static,
) -> Result<Work<S>, Refusal> {
    let work = Elsewhere::begin(work)?;
    Ok(Work::Begun(Box::new(Background { work, then: Some(Box::new(then)) })))
}
