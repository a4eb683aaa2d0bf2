//! Asks again and again, on a thread of its own, so that the screen never waits for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::time::Duration;

/// Between the first two questions, so that there is something to see soon.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Between two attempts to reach who is gone.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Who is asked; connects, and connects again, by itself.
pub trait Ask<S>: Send + 'static {
    /// Ask once; the error says in words why there is no answer.
    ///
    /// # Errors
    /// There is no answer; the text says why.
    fn ask(&mut self) -> Result<S, String>;
}

/// What the asking thread has to say.
pub enum News<S> {
    /// The counters.
    Counted(Box<S>),
    /// Nobody answers, in words; the thread keeps trying.
    Lost(String),
}

/// The asking thread. It ends when this is dropped.
pub(crate) struct Poller<S> {
    pub(crate) news: Receiver<News<S>>,
    interval_ms: Arc<AtomicU64>,
    _alive: Sender<()>,
}

impl<S: Send + 'static> Poller<S> {
    /// Begin to ask, every `interval`.
    pub(crate) fn start(ask: impl Ask<S>, interval: Duration) -> Poller<S> {
        let (tell, news) = sync_channel(1);
        let (alive, end) = channel();
        let interval_ms = Arc::new(AtomicU64::new(interval.as_millis() as u64));
        let pace = interval_ms.clone();
        std::thread::spawn(move || run(ask, &tell, &end, &pace));
        Poller { news, interval_ms, _alive: alive }
    }

    /// From the next question on.
    pub(crate) fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Ordering::Relaxed);
    }
}

fn run<S>(
    mut ask: impl Ask<S>,
    tell: &SyncSender<News<S>>,
    end: &Receiver<()>,
    interval_ms: &AtomicU64,
) {
    let mut asked = 0u32;
    loop {
        let (news, pause) = match ask.ask() {
            Ok(snapshot) => {
                asked = asked.saturating_add(1);
                let interval = Duration::from_millis(interval_ms.load(Ordering::Relaxed));
                let pause = if asked == 1 { interval.min(FIRST_PAUSE) } else { interval };
                (News::Counted(Box::new(snapshot)), pause)
            }
            Err(why) => {
                asked = 0;
                (News::Lost(why), RETRY_PAUSE)
            }
        };
        // A screen that is slow misses a snapshot; differences are of those that it gets.
        if let Err(TrySendError::Disconnected(_)) = tell.try_send(news) {
            return;
        }
        if end.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}
