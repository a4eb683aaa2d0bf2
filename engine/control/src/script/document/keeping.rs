//! What is done on disk before and after a configuration is executed. It runs on another thread.

use std::time::{Duration, Instant};

use crate::error::Refusal;
use crate::versions::{Current, Kept, Pending, Prepared, Store, Version, Waiting, time};

/// A version to be kept.
pub(super) struct New {
    pub(super) store: Store,
    pub(super) current: Current,
    pub(super) who: String,
    pub(super) message: String,
    pub(super) language: String,
    pub(super) text: String,
    /// The YAML document that says it, where it is one.
    pub(super) document: Option<String>,
    /// The configuration that runs, where no version says it.
    pub(super) before: Option<String>,
    /// It is taken back after this time unless it is confirmed.
    pub(super) confirm: Option<Duration>,
}

/// Written, and not yet the router's.
pub(super) struct Stored {
    store: Store,
    /// As it was.
    old: Current,
    prepared: Prepared,
    pub(super) versions: Vec<Version>,
    /// When it is taken back.
    pub(super) until: Option<(Instant, u64)>,
}

/// It is the router's.
pub(super) struct Committed {
    pub(super) current: Current,
    pub(super) versions: Vec<Version>,
    pub(super) until: Option<(Instant, u64)>,
    /// Versions that went to make room.
    pub(super) gone: Vec<u32>,
}

impl New {
    /// Write it, and the one before it.
    pub(super) fn store(self) -> Result<Stored, Refusal> {
        let (store, old) = (self.store.clone(), self.current.clone());
        let mut versions = Vec::new();
        match self.write(&mut versions) {
            Ok((prepared, until)) => Ok(Stored { store, old, prepared, versions, until }),
            Err(why) => {
                remove(&store, &versions);
                Err(Refusal::new(format!("the configuration cannot be kept: {why}"))
                    .remedy("nothing was changed"))
            }
        }
    }

    fn write(
        self,
        versions: &mut Vec<Version>,
    ) -> Result<(Prepared, Option<(Instant, u64)>), String> {
        let (who, now) = (time::user_of(&self.who), time::now_s());
        let mut current = self.current;
        let mut write = |message: String, language: String, text: &str, document: Option<&str>| {
            current.last += 1;
            let (number, who) = (current.last, who.clone());
            let document_bytes = document.map_or(0, str::len);
            let version = Version { number, when_s: now, who, message, language, document_bytes };
            versions.push(version);
            self.store.write(&versions[versions.len() - 1], text, document).map(|()| number)
        };
        let mut saved = None;
        if let Some(before) = &self.before {
            let message = "what ran before the next version, saved by itself".to_owned();
            saved = Some(write(message, crate::versions::COMMANDS.to_owned(), before, None)?);
        }
        let number = write(self.message, self.language, &self.text, self.document.as_deref())?;
        let until = self.confirm.map(|confirm| (Instant::now() + confirm, now + confirm.as_secs()));
        match until {
            Some((_, until_s)) => {
                current.saved = saved.or(current.saved);
                current.waiting = Some(Waiting { version: number, until_s });
            }
            None => current.saved = Some(number),
        }
        Ok((self.store.prepare(&current)?, until))
    }
}

fn remove(store: &Store, versions: &[Version]) {
    for version in versions {
        if let Err(why) = store.remove(version.number) {
            tracing::warn!("a version that did not come about stays until the next start: {why}");
        }
    }
}

impl Stored {
    /// Make it the router's. `kept` are the versions so far. When that fails, all is as before.
    pub(super) fn commit(self, kept: Vec<Version>) -> Result<Committed, Refusal> {
        let Stored { store, old, prepared, versions, until } = self;
        match store.put(prepared) {
            Ok(current) => {
                let all: Vec<Version> = kept.into_iter().chain(versions.iter().cloned()).collect();
                let gone = store.too_many(&all, &current).into_iter();
                let gone = gone.filter(|number| store.remove(*number).is_ok()).collect();
                Ok(Committed { current, versions, until, gone })
            }
            Err(why) => {
                // Perhaps the name was given, and only its way to the disk failed.
                let _ = store.prepare(&old).and_then(|old| store.put(old));
                remove(&store, &versions);
                Err(Refusal::new(format!("the configuration cannot be kept: {why}")))
            }
        }
    }

    /// It does not come about.
    pub(super) fn discard(self) {
        remove(&self.store, &self.versions);
    }
}

impl Committed {
    /// Enter it on the control thread. `before` is the configuration before it.
    pub(super) fn enter(self, kept: &mut Kept, before: &str) -> u32 {
        let Committed { current, versions, until, gone } = self;
        kept.list.extend(versions);
        kept.list.retain(|version| !gone.contains(&version.number));
        let number = current.last;
        let who = kept.version(number).map(|version| version.who.clone()).unwrap_or_default();
        kept.pending = until.map(|(until, until_s)| Pending {
            version: number,
            until,
            until_s,
            who,
            before: before.into(),
            is_over: false,
        });
        kept.current = current;
        number
    }
}

/// Change which version is which, and nothing else.
pub(super) fn put(store: &Store, current: &Current) -> Result<Current, Refusal> {
    let put = store.prepare(current).and_then(|prepared| store.put(prepared));
    put.map_err(|why| Refusal::new(format!("it cannot be kept: {why}")))
}
