//! A pager for answers that are longer than the terminal, as `less` is one.

use std::env;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Says which pager to use; empty or `cat`: none.
const VARIABLES: [&str; 2] = ["QUIVER_PAGER", "PAGER"];

/// `-F`: end when it fits, `-R`: colours, `-S`: long lines are cut, `-X`: what was shown stays.
const DEFAULT: &str = "less -FRSX";

/// Shows what is too long for a terminal of so many rows.
pub struct Pager {
    words: Vec<String>,
    rows: usize,
    child: Option<Child>,
}

impl Pager {
    /// The user's pager, if the user wants one.
    pub fn of_user(rows: usize) -> Option<Pager> {
        let named = VARIABLES.iter().find_map(|name| env::var(name).ok());
        Pager::named(&named.unwrap_or_else(|| DEFAULT.to_owned()), rows)
    }

    fn named(command: &str, rows: usize) -> Option<Pager> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let is_none = words.first().is_none_or(|program| program == "cat");
        (!is_none).then_some(Pager { words, rows, child: None })
    }

    /// Does it show something?
    pub fn is_open(&self) -> bool {
        self.child.is_some()
    }

    /// Take a text that is too long for the terminal, or that follows one that was. Returns whether
    /// it did.
    pub fn take(&mut self, text: &str) -> io::Result<bool> {
        if self.child.is_none() {
            if text.lines().take(self.rows).count() < self.rows {
                return Ok(false);
            }
            let (program, arguments) = (&self.words[0], &self.words[1..]);
            // Without the pager the text goes to the terminal as it is.
            let Ok(child) = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn()
            else {
                return Ok(false);
            };
            self.child = Some(child);
        }
        let input = self.child.as_mut().and_then(|child| child.stdin.as_mut());
        input.map_or(Ok(()), |input| input.write_all(text.as_bytes()))?;
        Ok(true)
    }

    /// The answer has ended: wait until the user has read it.
    pub fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_long_is_paged() {
        let file = env::temp_dir().join(format!("quiverctl-pager-{}", std::process::id()));
        let mut pager = Pager::named(&format!("tee {}", file.display()), 3).unwrap();
        assert!(!pager.take("a\nb\n").unwrap() && !pager.is_open());
        assert!(pager.take("a\nb\nc\n").unwrap() && pager.is_open());
        assert!(pager.take("d\n").unwrap(), "and what follows");
        pager.end();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\nb\nc\nd\n");
        assert!(!pager.take("a\n").unwrap());
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn who_leaves_the_pager_wants_no_more() {
        let mut pager = Pager::named("true", 1).unwrap();
        let line = "x\n".repeat(1 << 16);
        while pager.take(&line).is_ok() {}
        pager.end();
        assert!(Pager::named("cat", 1).is_none() && Pager::named("", 1).is_none());
        assert!(!Pager::named("/nosuch/pager", 1).unwrap().take(&line).unwrap());
    }
}
