//! Which state the configuration is in: two programs that read, decide and write notice each other.

use std::cell::{Cell, RefCell};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Kind, Refusal, printable};
use crate::grammar::Commands;
use crate::names::Names;
use crate::versions::time;

/// Commands that may have changed something, counted from the start of the process.
pub(crate) struct Changes {
    /// Tells this process from the one before it.
    process: u64,
    begun: Cell<u64>,
    /// Who began the last one, and when, in seconds since 1970.
    last: RefCell<Option<(String, u64)>>,
}

impl Default for Changes {
    fn default() -> Changes {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Changes { process: since.as_micros() as u64, begun: Cell::new(0), last: RefCell::default() }
    }
}

impl Changes {
    /// A command of somebody's begins that may change something.
    fn begin(&self, who: Option<&str>) {
        self.begun.set(self.begun.get() + 1);
        let Some(who) = who else { return };
        let now = time::now_s();
        match &mut *self.last.borrow_mut() {
            Some((last, when)) if last == who => *when = now,
            last => *last = Some((who.to_owned(), now)),
        }
    }

    /// How many have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.get()
    }
}

impl<S: Names + 'static> Commands<S> {
    /// The state of the configuration: another text after every command that may have changed it,
    /// and after a restart. What Linux or a peer changes does not count.
    pub fn generation(&self) -> String {
        format!("{:x}-{}", self.changes.process, self.changes.begun())
    }

    /// A command begins that may change something.
    pub(crate) fn note_change(&self) {
        self.journal.with_who(|who| self.changes.begin(who));
    }

    /// Refuse when the configuration is not in this state any more.
    pub(crate) fn check_generation(&self, known: &str) -> Result<(), Refusal> {
        let generation = self.generation();
        if known == generation {
            return Ok(());
        }
        let by = self.changes.last.borrow().as_ref().map_or_else(String::new, |(who, when)| {
            format!(" by {} at {}", time::user_of(who), time::utc(*when))
        });
        let what = format!(
            "the configuration was changed{by}: generation {generation}, not {}",
            printable(known)
        );
        Err(Refusal::new(what).remedy("read it again, and decide anew").of_kind(Kind::Stale))
    }
}
