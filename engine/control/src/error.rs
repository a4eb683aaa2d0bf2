//! How a command is refused: what was wrong, where, and what would be right, in one line.

use std::fmt;
use std::path::Path;

use quiver_core::Engine;
use serde_json::{Value, json};

use crate::names::with_interface_names;

/// Why a command was not done. Nothing was applied.
///
/// It is not a `std::error::Error` itself, so that `?` turns every error of a feature into one.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Box<Parts>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    what: String,
    place: Option<Place>,
    remedy: String,
    source: Option<(String, u32)>,
    column: Option<u32>,
    applied: Option<u64>,
    kind: Kind,
    /// What was wrong and what would be right, without text of the command.
    unquoted: Option<(String, String)>,
}

/// What a program makes of a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command cannot be done.
    #[default]
    Refused,
    /// There is no such method.
    NoMethod,
    /// The configuration is not the one that the client has read.
    Stale,
    /// The client's role does not allow it.
    Forbidden,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which word, counted from 1.
    pub word: u32,
    /// The word as it was written; empty when it is missing.
    pub text: String,
}

/// Text of a user that goes into a message is cut after this many characters.
const QUOTED_CHARS_MAX: usize = 60;

impl Refusal {
    /// Refuse because of `what`, a sentence without a full stop that names the object.
    pub fn new(what: impl Into<String>) -> Refusal {
        Refusal(Box::new(Parts { what: what.into(), ..Parts::default() }))
    }

    /// Refuse because a table does, which knows interfaces by their numbers: the text has their
    /// names.
    pub fn of_table(engine: &Engine, error: impl fmt::Display) -> Refusal {
        Refusal::new(with_interface_names(engine, error))
    }

    /// Say what would be right.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Refusal {
        self.0.remedy = remedy.into();
        self
    }

    /// Say which word of the command was wrong, counted from 1.
    pub fn at_word(mut self, word: u32, text: &str) -> Refusal {
        self.0.place = Some(Place { word, text: printable(text) });
        self
    }

    /// Say which file and line (from 1) the command came from.
    pub fn in_file(mut self, file: impl Into<String>, line: u32) -> Refusal {
        if self.0.source.is_none() {
            self.0.source = Some((file.into(), line));
        }
        self
    }

    /// Say at which column (from 1) of its line it is.
    pub fn at_column(mut self, column: u32) -> Refusal {
        self.0.column = Some(column).filter(|column| *column > 0);
        self
    }

    /// Say how many commands before it were applied; adds to what was said before.
    pub fn after(mut self, applied: u64) -> Refusal {
        *self.0.applied.get_or_insert(0) += applied;
        self
    }

    /// Say of which command it speaks, where several were to be executed.
    pub(crate) fn of_command(mut self, command: &str) -> Refusal {
        self.0.what = format!("`{command}` is refused: {}", self.0.what);
        self
    }

    /// What was done before it was taken back.
    pub(crate) fn taken_back(mut self) -> Refusal {
        self.0.what += "; what was done before it was taken back";
        self
    }

    /// And something could not be taken back.
    pub(crate) fn but(mut self, other: &Refusal) -> Refusal {
        self.0.what += &format!("; this was not taken back: {}", other.what());
        self
    }

    /// Say what a program is to make of it.
    pub(crate) fn of_kind(mut self, kind: Kind) -> Refusal {
        self.0.kind = kind;
        self
    }

    /// What a program is to make of it.
    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Say this where the text of the command must not be repeated.
    pub(crate) fn or_unquoted(
        mut self,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refusal {
        self.0.unquoted = Some((what.into(), remedy.into()));
        self
    }

    /// Its sentences hold no text of the command.
    pub(crate) fn quoting_nothing(self) -> Refusal {
        let (what, remedy) = (self.0.what.clone(), self.0.remedy.clone());
        self.or_unquoted(what, remedy)
    }

    /// The same refusal without text of the command: what was expected, and at which word.
    pub(crate) fn unquoted(mut self) -> Refusal {
        let general =
            || ("this is not a command".to_owned(), "`help` lists the commands".to_owned());
        (self.0.what, self.0.remedy) = self.0.unquoted.take().unwrap_or_else(general);
        if let Some(place) = &mut self.0.place {
            place.text.clear();
        }
        self
    }

    /// What was wrong.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What would be right; may be empty.
    pub fn remedy_text(&self) -> &str {
        &self.0.remedy
    }

    /// Which word was wrong, when one was.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// File and line, when the command came from a file.
    pub fn source(&self) -> Option<(&str, u32)> {
        self.0.source.as_ref().map(|(file, line)| (file.as_str(), *line))
    }

    /// For the JSON API.
    pub fn to_json(&self) -> Value {
        let mut out = json!({ "message": self.to_string(), "what": self.0.what });
        if let Some(place) = &self.0.place {
            out["word"] = json!(place.word);
            out["text"] = json!(place.text);
        }
        if !self.0.remedy.is_empty() {
            out["remedy"] = json!(self.0.remedy);
        }
        if let Some((file, line)) = &self.0.source {
            out["file"] = json!(file);
            out["line"] = json!(line);
        }
        if let Some(column) = self.0.column {
            out["column"] = json!(column);
        }
        if let Some(applied) = self.0.applied {
            out["applied"] = json!(applied);
        }
        out
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &*self.0;
        if let Some((file, line)) = &parts.source {
            write!(f, "{file}:{line}:")?;
            if let Some(column) = parts.column {
                write!(f, "{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&parts.what)?;
        if let Some(place) = &parts.place {
            write!(f, " (word {})", place.word)?;
        }
        if !parts.remedy.is_empty() {
            write!(f, ": {}", parts.remedy)?;
        }
        match parts.applied {
            Some(0) => f.write_str("; nothing was applied"),
            Some(1) => f.write_str("; 1 command before it was applied"),
            Some(n) => write!(f, "; {n} commands before it were applied"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal({self})")
    }
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        let mut what = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            what = format!("{what}: {inner}");
            cause = inner.source();
        }
        Refusal::new(what)
    }
}

/// Text of a user, safe to print in a message: short, and without control characters.
pub fn printable(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}

/// A file's path, safe to print in a message, and whole: what is cut names no file.
pub fn printable_path(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

/// The words of `known` that `word` could be a slip of the keyboard of, nearest first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    if word.len() > QUOTED_CHARS_MAX {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|candidate| candidate.len() <= QUOTED_CHARS_MAX)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, candidate)| candidate).take(3).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) that lead from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// `a`, `a or b`, `a, b or c`.
pub fn either<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_string(),
        [head @ .., last] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", head.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_that_says_what_where_and_how() {
        let refusal = Refusal::new("no interface 'e9'")
            .at_word(4, "e9")
            .remedy("interfaces are e0 and e1")
            .in_file("boot.cli", 7)
            .after(6);
        assert_eq!(
            refusal.to_string(),
            "boot.cli:7: no interface 'e9' (word 4): interfaces are e0 and e1; 6 commands before \
             it were applied"
        );
    }

    #[test]
    fn without_its_quotations_a_refusal_says_where_and_what_was_expected() {
        let refusal = Refusal::new("unknown word 'correct-horse'").at_word(2, "correct-horse");
        let refusal = refusal
            .remedy("did you mean correct?")
            .or_unquoted("a word does not fit", "expected up");
        let unquoted = refusal.in_file("x.cli", 3).unquoted();
        assert_eq!(unquoted.to_string(), "x.cli:3: a word does not fit (word 2): expected up");
        assert!(!unquoted.to_json().to_string().contains("horse"));
        let general = Refusal::new("'correct-horse'").unquoted();
        assert_eq!(general.to_string(), "this is not a command: `help` lists the commands");
    }

    #[test]
    fn the_nearest_word_is_found_through_a_swap_of_letters() {
        assert_eq!(nearest("interafce", ["interface", "ip", "memif"]), ["interface"]);
        assert!(nearest("zebra", ["interface", "ip"]).is_empty());
    }

    #[test]
    fn hostile_text_is_cut_and_cleaned_before_it_is_shown() {
        let text = printable(&"\x1b[31m".repeat(100));
        assert!(text.chars().count() <= 61 && !text.contains('\x1b'));
    }
    #[test]
    fn the_path_of_a_file_is_cleaned_but_never_cut() {
        let long = format!("/{}/startup.conf", "folder/".repeat(40));
        assert_eq!(printable_path(Path::new(&long)), long);
        assert!(!printable_path(Path::new("a\x1b[31m")).contains('\x1b'));
    }
}
