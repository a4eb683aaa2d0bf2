//! What the user sees: answers on standard output, errors and progress on standard error.

use std::io::{IsTerminal, Write, stderr, stdout};

use serde_json::Value as Json;

use crate::connection::Failure;
use crate::pager::Pager;

/// Prints answers, as text or as JSON.
pub struct Printer {
    json: bool,
    /// Standard error is a terminal: progress may draw over itself.
    draws: bool,
    /// Progress stands on the line.
    drawn: bool,
    /// A command was refused while others went on.
    pub any_refused: bool,
    pager: Option<Pager>,
}

impl Printer {
    /// Print JSON, or text.
    pub fn new(json: bool) -> Printer {
        Printer {
            json,
            draws: stderr().is_terminal(),
            drawn: false,
            any_refused: false,
            pager: None,
        }
    }

    /// From now on this shows long answers.
    pub fn page_by(&mut self, pager: Option<Pager>) {
        self.pager = pager;
    }

    /// An answer has ended: go on when the user has read it.
    pub fn answered(&mut self) {
        if let Some(pager) = &mut self.pager {
            pager.end();
        }
    }

    /// How long answers are to come.
    pub fn pages(&self) -> &'static str {
        if self.json { "json" } else { "text" }
    }

    /// Print an answer, `{text, json}`.
    pub fn answer(&mut self, answer: &Json) -> Result<(), Failure> {
        self.progress_end();
        // A page of a long answer is text in the form that was asked for.
        let is_page = answer.get("page").is_some();
        match (self.json && !is_page, &answer["json"]) {
            (false, _) => self.text(answer["text"].as_str().unwrap_or_default()),
            (true, Json::Null) => Ok(()),
            (true, value) => self.text(&format!("{value:#}\n")),
        }
    }

    /// Print text that is nobody's answer.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(pager) = &mut self.pager
            && pager.take(text).map_err(|_| Failure::PagerLeft)?
        {
            return Ok(());
        }
        let mut out = stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| Failure::Closed)
    }

    /// Show how far a command is.
    pub fn progress(&mut self, progress: &Json) {
        if !self.draws || self.pager.as_ref().is_some_and(Pager::is_open) {
            return;
        }
        let (done, total) =
            (progress["done"].as_u64().unwrap_or(0), progress["total"].as_u64().unwrap_or(0));
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
            Failure::Told | Failure::Closed | Failure::PagerLeft => Ok(()),
        };
    }
}
