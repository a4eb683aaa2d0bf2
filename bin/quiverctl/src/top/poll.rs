//! Asks the router again and again, on a thread of its own, so that the screen never waits for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use super::snapshot::{COMMANDS, Snapshot};
use crate::connection::{Connection, Failure};

/// Between the first two questions, so that there is something to see soon.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Between two attempts to reach a router that is gone.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What the asking thread has to say.
pub enum News {
    /// The counters.
    Counted(Box<Snapshot>),
    /// The router is not there, in words; the thread keeps trying.
    Lost(String),
}

/// The asking thread. It ends when this is dropped.
pub struct Poller {
    pub news: Receiver<News>,
    interval_ms: Arc<AtomicU64>,
    _alive: Sender<()>,
}

impl Poller {
    /// Begin to ask, every `interval`.
    pub fn start(socket: &Path, interval: Duration) -> Poller {
        let (tell, news) = sync_channel(1);
        let (alive, end) = channel();
        let interval_ms = Arc::new(AtomicU64::new(interval.as_millis() as u64));
        let asker = Asker { socket: socket.to_owned(), tell, end, interval_ms: interval_ms.clone() };
        std::thread::spawn(move || asker.run());
        Poller { news, interval_ms, _alive: alive }
    }

    /// From the next question on.
    pub fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Ordering::Relaxed);
    }
}

struct Asker {
    socket: PathBuf,
    tell: SyncSender<News>,
    end: Receiver<()>,
    interval_ms: Arc<AtomicU64>,
}

impl Asker {
    fn run(self) {
        let mut connection = None;
        let mut asked = 0u32;
        loop {
            let (news, pause) = match ask(&self.socket, &mut connection) {
                Ok(snapshot) => {
                    asked = asked.saturating_add(1);
                    let interval = Duration::from_millis(self.interval_ms.load(Ordering::Relaxed));
                    let pause = if asked == 1 { interval.min(FIRST_PAUSE) } else { interval };
                    (News::Counted(Box::new(snapshot)), pause)
                }
                Err(why) => {
                    (connection, asked) = (None, 0);
                    (News::Lost(why), RETRY_PAUSE)
                }
            };
            // A screen that is slow misses a snapshot; differences are of those that it gets.
            if let Err(TrySendError::Disconnected(_)) = self.tell.try_send(news) {
                return;
            }
            if self.end.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}

/// Ask once, over the connection that there is, or a new one.
pub fn ask(socket: &Path, connection: &mut Option<Connection>) -> Result<Snapshot, String> {
    let words = |failure| match failure {
        Failure::Refused(error) => error["message"].as_str().unwrap_or("refused").to_owned(),
        Failure::Unreachable(why) => why,
        Failure::Told | Failure::Closed | Failure::Interrupted => "interrupted".to_owned(),
    };
    if connection.is_none() {
        *connection = Some(Connection::open(socket).map_err(words)?);
    }
    let Some(open) = connection else { return Err("not connected".into()) };
    let answers = open.answers(COMMANDS).map_err(words)?;
    Snapshot::read(&answers).ok_or_else(|| "the router's answers are not those of this version".into())
}
