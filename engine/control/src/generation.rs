//! Which state the configuration is in: two programs that read, decide and write notice each other.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Kind, Refusal, printable};
use crate::grammar::Commands;
use crate::names::Names;

/// Commands that may have changed something, counted from the start of the process.
pub(crate) struct Changes {
    /// Tells this process from the one before it.
    process: u64,
    begun: Cell<u64>,
}

impl Default for Changes {
    fn default() -> Changes {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Changes { process: since.as_micros() as u64, begun: Cell::new(0) }
    }
}

impl Changes {
    /// A command begins that may change something.
    pub(crate) fn begin(&self) {
        self.begun.set(self.begun.get() + 1);
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

    /// Refuse when the configuration is not in this state any more.
    pub(crate) fn check_generation(&self, known: &str) -> Result<(), Refusal> {
        let generation = self.generation();
        if known == generation {
            return Ok(());
        }
        let what = format!(
            "the configuration was changed: generation {generation}, not {}",
            printable(known)
        );
        Err(Refusal::new(what).remedy("read it again, and decide anew").of_kind(Kind::Stale))
    }
}
