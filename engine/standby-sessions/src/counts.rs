//! What a link counts, declared once: the labels of shows and the words of metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_standby::link;

use crate::outcome::Outcome;
use crate::state::{Counts, Standby};
use crate::translator::Translator;

/// All that is counted, at one time.
pub(crate) struct Numbers<'s> {
    link: link::Counts,
    /// Datagrams that the socket did not take.
    unsent: u64,
    own: &'s Counts,
    overflows: u64,
    outcome: &'s Outcome,
}

impl<'s> Numbers<'s> {
    /// Of a translator's link.
    pub fn of<T: Translator>(standby: &'s Standby<T>) -> Numbers<'s> {
        let open = standby.open.as_ref();
        Numbers {
            link: open.map(|open| open.link.counts()).unwrap_or_default(),
            unsent: open.map_or(0, |open| open.socket.unsent),
            own: &standby.counts,
            overflows: standby.lost(),
            outcome: &standby.outcome,
        }
    }
}

/// A number.
pub(crate) struct Number {
    /// Its label in shows.
    pub label: &'static str,
    /// Its word in metrics, where they have it.
    pub word: Option<Word>,
    pub read: fn(&Numbers<'_>) -> u64,
}

/// A word in one of the families of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// What becomes of records.
    Record(&'static str),
    /// Why a datagram is not taken.
    Refusal(&'static str),
}

const fn number(label: &'static str, read: fn(&Numbers<'_>) -> u64) -> Number {
    Number { label, word: None, read }
}

const fn record(label: &'static str, word: &'static str, read: fn(&Numbers<'_>) -> u64) -> Number {
    Number { word: Some(Word::Record(word)), ..number(label, read) }
}

const fn refusal(label: &'static str, word: &'static str, read: fn(&Numbers<'_>) -> u64) -> Number {
    Number { word: Some(Word::Refusal(word)), ..number(label, read) }
}

fn read(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}

/// All numbers, in the order of shows.
pub(crate) static ALL: [Number; 26] = [
    record("Records sent", "sent", |of| of.link.records_sent),
    record("Records acknowledged", "acknowledged", |of| of.link.records_acknowledged),
    record("Records lost", "lost", |of| of.link.records_lost),
    record("Records received", "received", |of| of.link.records_received),
    number("Datagrams sent", |of| of.link.datagrams_sent),
    number("Datagrams received", |of| of.link.datagrams_received),
    number("Datagrams resent", |of| of.link.datagrams_resent),
    number("Datagrams not sent", |of| of.unsent),
    number("Duplicates", |of| of.link.duplicates),
    number("No room", |of| of.link.no_room),
    refusal("Malformed", "malformed", |of| of.link.malformed),
    refusal("Other version", "other-version", |of| of.link.other_version),
    refusal("Unauthentic", "unauthentic", |of| of.link.unauthentic),
    refusal("Replayed", "replayed", |of| of.link.replayed),
    refusal("Disagreeing", "disagreeing", |of| of.link.disagreeing),
    record("Missed", "missed", |of| of.own.missed),
    record("Overflows", "overflow", |of| of.overflows),
    number("Resyncs sent", |of| of.own.bulks_sent),
    number("Resyncs received", |of| of.own.bulks_received),
    number("Sessions made", |of| read(&of.outcome.made)),
    number("Sessions refreshed", |of| read(&of.outcome.refreshed)),
    number("Sessions ended", |of| read(&of.outcome.ended)),
    number("Sessions swept", |of| read(&of.outcome.swept)),
    number("Kept", |of| read(&of.outcome.kept)),
    number("Refused", |of| read(&of.outcome.refused)),
    number("Unreadable records", |of| of.own.malformed),
];
