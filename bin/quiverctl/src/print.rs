//! What the user sees: answers on standard output, errors and progress on standard error.

use std::io::{IsTerminal, Write, stderr, stdout};

use serde_json::Value as Json;

use crate::connection::Failure;

/// Prints answers, as text or as JSON.
pub struct Printer {
    json: bool,
    /// Standard error is a terminal: progress may draw over itself.
    draws: bool,
    /// Progress stands on the line.
    drawn: bool,
    /// A command was refused while others went on.
    pub any_refused: bool,
}

impl Printer {
    /// Print JSON, or text.
    pub fn new(json: bool) -> Printer {
        Printer { json, draws: stderr().is_terminal(), drawn: false, any_refused: false }
    }

    /// Print an answer, `{text, json}`.
    pub fn answer(&mut self, answer: &Json) -> Result<(), Failure> {
        self.progress_end();
        let mut out = stdout().lock();
        let written = match (self.json, &answer["json"]) {
            (false, _) => out.write_all(answer["text"].as_str().unwrap_or_default().as_bytes()),
            (true, Json::Null) => Ok(()),
            (true, value) => writeln!(out, "{value:#}"),
        };
        written.and_then(|()| out.flush()).map_err(|_| Failure::Closed)
    }

    /// Print text that is nobody's answer.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let mut out = stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| Failure::Closed)
    }

    /// Show how far a command is.
    pub fn progress(&mut self, progress: &Json) {
        if !self.draws {
            return;
        }
        let (done, total) = (progress["done"].as_u64().unwrap_or(0), progress["total"].as_u64().unwrap_or(0));
        let percent = match total {
            0 => String::new(),
            total => format!("{:3} % ", 100 * u128::from(done) / u128::from(total)),
        };
        let what: String = progress["what"].as_str().unwrap_or_default().chars().take(70).collect();
        let _ = write!(stderr(), "\r\x1b[K{percent}{what}");
        let _ = stderr().flush();
        self.drawn = true;
    }

    /// Take the progress off the line.
    pub fn progress_end(&mut self) {
        if self.drawn {
            let _ = write!(stderr(), "\r\x1b[K");
            self.drawn = false;
        }
    }

    /// A command of many was refused, and the others go on.
    pub fn refused(&mut self, refusal: &Json) {
        self.progress_end();
        self.any_refused = true;
        let _ = writeln!(stderr(), "error: {}", refusal["message"].as_str().unwrap_or_default());
    }

    /// Print why something did not work.
    pub fn failure(&mut self, failure: &Failure) {
        self.progress_end();
        let _ = match failure {
            Failure::Refused(error) if self.json => writeln!(stderr(), "{error}"),
            Failure::Refused(error) => {
                writeln!(stderr(), "error: {}", error["message"].as_str().unwrap_or_default())
            }
            Failure::Unreachable(why) => writeln!(stderr(), "error: {why}"),
            Failure::Interrupted => writeln!(stderr(), "interrupted"),
            Failure::Told | Failure::Closed => Ok(()),
        };
    }
}
