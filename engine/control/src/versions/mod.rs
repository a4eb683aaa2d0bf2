//! The versions of the configuration: what was applied and saved, which of them the router starts
//! with, and which waits for its confirmation.
//!
//! `script/document/` has the commands that change them; `versions/restore.rs` has the start.

pub(crate) mod commands;
pub(crate) mod record;
mod restore;
mod store;
pub(crate) mod time;

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::time::Instant;

pub use record::Version;
pub(crate) use record::{COMMANDS, Current, MESSAGE_BYTES_MAX, Waiting};
pub use restore::Restored;
pub(crate) use store::Prepared;
pub use store::{Store, VERSIONS_KEPT};

use crate::error::{Refusal, printable};

/// Refuse a text in a language that this router does not read.
pub(crate) fn readable(language: &str) -> Result<(), Refusal> {
    match language {
        COMMANDS => Ok(()),
        other => {
            let other = printable(other);
            Err(Refusal::new(format!(
                "it is written in '{other}', which this router does not read"
            )))
        }
    }
}

/// All that is known of versions on the control thread.
#[derive(Default)]
pub(crate) struct Versions {
    kept: RefCell<Option<Kept>>,
    /// Why none are kept.
    why_none: RefCell<Option<String>>,
    busy: Rc<RefCell<Option<Busy>>>,
    /// The configuration was this version when so many commands had been begun.
    running: Cell<Option<(u32, u64)>>,
}

/// What is on disk, as far as commands need it at once.
pub(crate) struct Kept {
    pub(crate) store: Store,
    pub(crate) current: Current,
    /// In their order.
    pub(crate) list: Vec<Version>,
    pub(crate) pending: Option<Pending>,
}

/// A version that waits for its confirmation.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) version: u32,
    pub(crate) until: Instant,
    pub(crate) until_s: u64,
    pub(crate) who: String,
    /// The configuration before it.
    pub(crate) before: Rc<str>,
    /// The router returns to it since the time is over, or tried to.
    pub(crate) is_over: bool,
}

/// Who changes the configuration as a whole just now.
#[derive(Clone, Debug)]
struct Busy {
    who: String,
    since_s: u64,
}

/// The right to change the configuration as a whole, given back when it is dropped.
pub(crate) struct Turn(Rc<RefCell<Option<Busy>>>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.borrow_mut().take();
    }
}

impl Kept {
    pub(crate) fn version(&self, number: u32) -> Option<&Version> {
        self.list.iter().find(|version| version.number == number)
    }

    /// The version that a rollback without a number leads to: the one before the saved one that was
    /// not returned from.
    pub(crate) fn before_saved(&self) -> Option<u32> {
        let saved = self.current.saved?;
        let numbers = self.list.iter().rev().map(|version| version.number);
        let was_kept = |number: &u32| !self.current.returned.contains(number);
        numbers.filter(|number| *number < saved).find(was_kept)
    }
}

impl Versions {
    pub(crate) fn keep(&self, kept: Kept) {
        *self.kept.borrow_mut() = Some(kept);
    }

    pub(crate) fn keep_none(&self, why: String) {
        *self.why_none.borrow_mut() = Some(why);
    }

    /// What is kept, if anything is.
    pub(crate) fn kept(&self) -> Option<Ref<'_, Kept>> {
        Ref::filter_map(self.kept.borrow(), Option::as_ref).ok()
    }

    /// The same, or why nothing is.
    pub(crate) fn needed(&self) -> Result<Ref<'_, Kept>, Refusal> {
        self.kept().ok_or_else(|| {
            let why = self.why_none.borrow().clone();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            Refusal::new(format!("this router keeps no versions of its configuration{why}"))
                .remedy("unix { state-dir PATH } in its start-up file")
        })
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Kept) -> R) -> Option<R> {
        self.kept.borrow_mut().as_mut().map(change)
    }

    /// Take the right to change the configuration as a whole.
    pub(crate) fn take_turn(&self, who: &str) -> Result<Turn, Refusal> {
        let mut busy = self.busy.borrow_mut();
        if let Some(Busy { who, since_s }) = &*busy {
            let since = time::utc(*since_s);
            return Err(Refusal::new(format!(
                "{who} applies a configuration just now, since {since}"
            ))
            .remedy("try again when that is done"));
        }
        *busy = Some(Busy { who: who.to_owned(), since_s: time::now_s() });
        Ok(Turn(self.busy.clone()))
    }

    /// Refuse while a version waits for its confirmation.
    pub(crate) fn refuse_while_pending(&self) -> Result<(), Refusal> {
        let kept = self.kept();
        let Some(pending) = kept.as_ref().and_then(|kept| kept.pending.as_ref()) else {
            return Ok(());
        };
        let Pending { version, who, until_s, .. } = pending;
        let (left, until) = (pending.left_s(), time::utc(*until_s));
        let what = format!(
            "version {version} of {who} waits for its confirmation until {until}, {left} s from now"
        );
        Err(Refusal::new(what)
            .remedy("`configuration confirm` keeps it, `configuration rollback` takes it back"))
    }

    /// When the version that waits is taken back; nothing while somebody is at work on it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.busy.borrow().is_some() {
            return None;
        }
        let kept = self.kept()?;
        kept.pending.as_ref().filter(|pending| !pending.is_over).map(|pending| pending.until)
    }

    /// The configuration is this version now.
    pub(crate) fn runs(&self, version: u32, begun: u64) {
        self.running.set(Some((version, begun)));
    }

    /// The version that the configuration is for sure.
    pub(crate) fn running(&self, begun: u64) -> Option<u32> {
        self.running.get().filter(|(_, then)| *then == begun).map(|(version, _)| version)
    }
}

impl Pending {
    pub(crate) fn left_s(&self) -> u64 {
        self.until.saturating_duration_since(Instant::now()).as_secs()
    }
}
