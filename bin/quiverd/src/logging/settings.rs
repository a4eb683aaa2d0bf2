//! Levels and rates, for all classes of messages and for one.

use std::collections::BTreeMap;

/// How grave a message is, and how grave it must be to be taken. The gravest is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of syslog")]
pub enum Level {
    /// As a threshold: nothing is taken.
    Disabled,
    Emerg,
    Alert,
    Crit,
    Err,
    Warn,
    Notice,
    Info,
    Debug,
}

impl Level {
    /// All of them by their words, as syslog and VPP write them.
    pub const WORDS: [(&'static str, Level); 9] = [
        ("emerg", Level::Emerg),
        ("alert", Level::Alert),
        ("crit", Level::Crit),
        ("err", Level::Err),
        ("warn", Level::Warn),
        ("notice", Level::Notice),
        ("info", Level::Info),
        ("debug", Level::Debug),
        ("disabled", Level::Disabled),
    ];

    /// The word.
    pub fn word(self) -> &'static str {
        Level::WORDS.iter().find(|(_, level)| *level == self).map_or("", |(word, _)| word)
    }

    /// The level of this word.
    pub fn of(word: &str) -> Option<Level> {
        Level::WORDS.iter().find(|(known, _)| *known == word).map(|(_, level)| *level)
    }
}

/// What is taken of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kept for `show logging`.
    pub level: Level,
    /// Written to the log file or to standard error.
    pub written: Level,
    /// Messages in a second; what is more is left out.
    pub rate_per_s: u32,
}

/// What differs for one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differs {
    /// Its own [`Class::level`].
    pub level: Option<Level>,
    /// Its own [`Class::written`].
    pub written: Option<Level>,
    /// Its own [`Class::rate_per_s`].
    pub rate_per_s: Option<u32>,
}

/// What a line of the log file or of standard error is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Time, level and message.
    #[default]
    Text,
    /// A JSON object with a member for each field.
    Json,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Messages that are kept.
    pub size: usize,
    /// Seconds after which a class that was throttled is heard again.
    pub unthrottle_s: u32,
    /// What a line of the log file is.
    pub format: Format,
    /// For classes of which nothing else is said.
    pub usual: Class,
    /// Classes of which something is.
    pub classes: BTreeMap<String, Differs>,
}

/// Messages that are kept unless another number is set.
pub const SIZE: usize = 512;
/// Seconds of silence unless other are set.
pub const UNTHROTTLE_S: u32 = 3;
/// Classes unless something is said of them.
pub const USUAL: Class = Class { level: Level::Info, written: Level::Info, rate_per_s: 50 };

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            size: SIZE,
            unthrottle_s: UNTHROTTLE_S,
            format: Format::Text,
            usual: USUAL,
            classes: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// What is taken of this class.
    pub fn of(&self, class: &str) -> Class {
        let own = self.classes.get(class).copied().unwrap_or_default();
        Class {
            level: own.level.unwrap_or(self.usual.level),
            written: own.written.unwrap_or(self.usual.written),
            rate_per_s: own.rate_per_s.unwrap_or(self.usual.rate_per_s),
        }
    }

    /// The least grave level that any class takes.
    pub fn least(&self) -> Level {
        let own = self.classes.values().flat_map(|class| [class.level, class.written]).flatten();
        own.chain([self.usual.level, self.usual.written]).max().unwrap_or(Level::Disabled)
    }
}
