//! Messages that are kept, and where they are written.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::journal::Journal;
use super::settings::{Format, Level, Settings};

/// A message that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in UTC, as RFC 3339 writes it.
    pub time: String,
    /// How grave it is.
    pub level: Level,
    /// Who says so.
    pub class: String,
    /// What.
    pub message: String,
}

/// A message as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// When, in UTC, as RFC 3339 writes it.
    pub time: &'a str,
    /// How grave it is.
    pub level: Level,
    /// Who says so.
    pub class: &'a str,
    /// What, without the fields.
    pub text: &'a str,
    /// Names and values that belong to it.
    pub fields: &'a [(String, String)],
}

impl Message<'_> {
    /// The text, and the fields behind it.
    fn whole(&self) -> String {
        let mut whole = self.text.to_owned();
        for (name, value) in self.fields {
            let _ = write!(whole, " {name}={value}");
        }
        whole
    }

    /// As a line of the log.
    fn line(&self, format: Format) -> String {
        if format == Format::Json {
            let mut line = json!({
                "time": self.time,
                "level": self.level.word(),
                "class": self.class,
                "message": self.text,
            });
            if let Some(members) = line.as_object_mut() {
                for (name, value) in self.fields {
                    members.entry(name).or_insert(Value::from(value.as_str()));
                }
            }
            return format!("{line}\n");
        }
        let word = match self.level {
            Level::Err => "ERROR".to_owned(),
            level => level.word().to_uppercase(),
        };
        format!("{} {word:>5} {}\n", self.time, self.whole())
    }
}

/// How much a class says.
struct Throttle {
    since: Instant,
    count: u32,
    is_silent: bool,
}

#[derive(Default)]
struct State {
    settings: Settings,
    entries: VecDeque<Entry>,
    throttles: BTreeMap<String, Throttle>,
}

enum Sink {
    /// Nowhere; the log is only kept.
    None,
    StandardError,
    File {
        path: PathBuf,
        file: File,
    },
}

/// The log of one router. Any thread may write to it.
pub struct Log {
    state: Mutex<State>,
    sink: Mutex<Sink>,
    journal: Option<Journal>,
    /// The least grave level that anybody takes, so that the rest costs nothing.
    least: AtomicU8,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

impl Default for Log {
    fn default() -> Log {
        Log::to(Sink::None)
    }
}

impl Log {
    fn to(sink: Sink) -> Log {
        let state = State::default();
        let least = AtomicU8::new(state.settings.least() as u8);
        Log { state: Mutex::new(state), sink: Mutex::new(sink), journal: None, least }
    }

    /// A log that is written to this file, or to standard error without one.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: Option<&Path>) -> io::Result<Log> {
        Ok(Log::to(match path {
            Some(path) => Sink::File { path: path.to_owned(), file: open(path)? },
            None => Sink::StandardError,
        }))
    }

    /// Send messages to this journal, too: in place of standard error, which leads there.
    pub fn with_journal(self, journal: Option<Journal>) -> Log {
        Log { journal, ..self }
    }

    /// Open the file again, by its name: what logrotate moved away is not written to any more. When
    /// it cannot be opened, the log goes on where it is.
    ///
    /// # Errors
    /// The file cannot be opened; the log goes on where it is.
    pub fn reopen(&self) -> io::Result<()> {
        if let Sink::File { path, file } = &mut *held(&self.sink) {
            *file = open(path)?;
        }
        Ok(())
    }

    /// Does a message of this level interest anybody?
    pub fn takes(&self, level: Level) -> bool {
        level as u8 <= self.least.load(Ordering::Relaxed)
    }

    /// Look at the settings.
    pub fn settings(&self) -> Settings {
        held(&self.state).settings.clone()
    }

    /// Change the settings.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut state = held(&self.state);
        change(&mut state.settings);
        let most = state.settings.size;
        let more = state.entries.len().saturating_sub(most);
        state.entries.drain(..more);
        self.least.store(state.settings.least() as u8, Ordering::Relaxed);
    }

    /// Forget what is kept.
    pub fn clear(&self) {
        held(&self.state).entries.clear();
    }

    /// What is kept, the oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        held(&self.state).entries.iter().cloned().collect()
    }

    /// Take a message with its fields.
    pub fn add(
        &self,
        time: String,
        level: Level,
        class: &str,
        mut text: String,
        fields: &[(String, String)],
    ) {
        let mut state = held(&self.state);
        let taken = state.settings.of(class);
        if level > taken.level && level > taken.written {
            return;
        }
        match state.throttle(class, taken.rate_per_s) {
            Heard::Yes => {}
            Heard::Last => text += " (more of this class follows too fast and is left out)",
            Heard::No => return,
        }
        let message = Message { time: &time, level, class, text: &text, fields };
        if level <= taken.written {
            self.write(&message, state.settings.format);
        }
        if level <= taken.level && state.settings.size > 0 {
            let most = state.settings.size;
            if state.entries.len() >= most {
                state.entries.pop_front();
            }
            let message = message.whole();
            state.entries.push_back(Entry { time, level, class: class.to_owned(), message });
        }
    }

    /// One line. A log that cannot be written has nowhere to say so.
    fn write(&self, message: &Message<'_>, format: Format) {
        let is_sent = self.journal.as_ref().is_some_and(|journal| journal.send(message).is_ok());
        let line = message.line(format);
        let _ = match &mut *held(&self.sink) {
            Sink::None => Ok(()),
            Sink::StandardError if is_sent => Ok(()),
            Sink::StandardError => io::stderr().write_all(line.as_bytes()),
            Sink::File { file, .. } => file.write_all(line.as_bytes()),
        };
    }
}

/// Is a message heard?
enum Heard {
    Yes,
    /// And the next ones are not.
    Last,
    No,
}

impl State {
    /// As VPP has it: more than the rate in a second, and the class is silent until some seconds
    /// are over.
    fn throttle(&mut self, class: &str, rate_per_s: u32) -> Heard {
        let now = Instant::now();
        let silence = Duration::from_secs(self.settings.unthrottle_s.into());
        let new = || Throttle { since: now, count: 0, is_silent: false };
        if !self.throttles.contains_key(class) {
            self.throttles.insert(class.to_owned(), new());
        }
        let Some(own) = self.throttles.get_mut(class) else { return Heard::Yes };
        let over = if own.is_silent { silence } else { Duration::from_secs(1) };
        if now.duration_since(own.since) >= over {
            *own = new();
        }
        own.count = own.count.saturating_add(1);
        own.is_silent = own.count >= rate_per_s;
        match own.count {
            count if count < rate_per_s => Heard::Yes,
            count if count == rate_per_s => Heard::Last,
            _ => Heard::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(log: &Log, level: Level, class: &str, message: &str) {
        log.add("t".into(), level, class, message.into(), &[]);
    }

    #[test]
    fn the_newest_messages_are_kept_and_those_that_are_not_grave_enough_are_not() {
        let log = Log::default();
        log.change(|settings| settings.size = 2);
        ["a", "b", "c"].iter().for_each(|message| say(&log, Level::Warn, "memif", message));
        say(&log, Level::Debug, "memif", "d");
        let kept: Vec<String> = log.entries().into_iter().map(|entry| entry.message).collect();
        assert_eq!(kept, ["b", "c"]);
        assert!(!log.takes(Level::Debug));
        log.change(|settings| {
            settings.classes.entry("ip".into()).or_default().level = Some(Level::Debug);
        });
        assert!(log.takes(Level::Debug));
        say(&log, Level::Debug, "memif", "e");
        say(&log, Level::Debug, "ip", "f");
        assert_eq!(log.entries().last().map(|entry| entry.message.clone()), Some("f".into()));
    }

    #[test]
    fn a_class_that_says_too_much_is_silenced_and_says_so_and_the_others_are_heard() {
        let log = Log::default();
        log.change(|settings| (settings.usual.rate_per_s, settings.unthrottle_s) = (3, 1_000_000));
        (0..10).for_each(|n| say(&log, Level::Err, "loud", &n.to_string()));
        say(&log, Level::Err, "quiet", "once");
        let entries = log.entries();
        assert_eq!(entries.iter().filter(|entry| entry.class == "loud").count(), 3);
        assert!(entries[2].message.ends_with("is left out)"));
        assert_eq!(entries[3].message, "once");
    }

    #[test]
    fn a_line_is_text_or_json_with_the_fields_of_its_message() {
        let fields = [("peer", "a \"b\""), ("level", "x")].map(|(n, v)| (n.into(), v.into()));
        let (level, class) = (Level::Notice, "bfd");
        let message = Message { time: "t", level, class, text: "went down", fields: &fields };
        assert_eq!(message.line(Format::Text), "t NOTICE went down peer=a \"b\" level=x\n");
        let line: Value = serde_json::from_str(&message.line(Format::Json)).unwrap();
        let expected = json!({
            "time": "t", "level": "notice", "class": "bfd", "message": "went down",
            "peer": "a \"b\"",
        });
        assert_eq!(line, expected, "no field takes the place of what every line has");
    }

    #[test]
    fn the_file_is_opened_again_by_its_name() {
        let folder = std::env::temp_dir().join(format!("quiver-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, moved) = (folder.join("a.log"), folder.join("a.log.1"));
        let log = Log::open(Some(&path)).unwrap();
        say(&log, Level::Info, "x", "first");
        std::fs::rename(&path, &moved).unwrap();
        say(&log, Level::Info, "x", "second");
        log.reopen().unwrap();
        say(&log, Level::Info, "x", "third");
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "t  INFO first\nt  INFO second\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "t  INFO third\n");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
