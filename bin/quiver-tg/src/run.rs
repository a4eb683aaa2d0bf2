//! `quiver-tg run`: measure once, show how it goes, print what came out.

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;

use crate::generator::Onlooker;
use crate::request::Measure;
use crate::session;
use crate::table::{grouped, render, scaled};

/// A line on stderr, about once a second.
struct LiveLine {
    is_terminal: bool,
    last: (f64, u64, u64),
}

impl Onlooker for LiveLine {
    fn see(&mut self, at_s: f64, of_s: f64, sent: u64, received: u64) {
        let seconds = at_s - self.last.0;
        if seconds < 0.5 {
            return;
        }
        let rate = |now: u64, before: u64| scaled(now.saturating_sub(before) as f64 / seconds, "pps");
        let line = format!(
            "{at_s:6.1} of {of_s:.1} s  sent {} ({})  back {} ({})",
            grouped(sent),
            rate(sent, self.last.1),
            grouped(received),
            rate(received, self.last.2)
        );
        let _ =
            if self.is_terminal { write!(stderr(), "\r{line}\x1b[K") } else { writeln!(stderr(), "{line}") };
        self.last = (at_s, sent, received);
    }
}

/// Measure once.
pub fn run(profile: &Path, core: Option<usize>, request: &Measure, json: bool) -> anyhow::Result<()> {
    request.check().map_err(anyhow::Error::msg)?;
    let mut session = session::open(profile, core)?;
    let is_terminal = stderr().is_terminal();
    let report = session.measure(request, &mut LiveLine { is_terminal, last: (0.0, 0, 0) });
    if is_terminal {
        let _ = writeln!(stderr(), "\r\x1b[K");
    }
    let report = report?;
    let text = if json { serde_json::to_string_pretty(&report)? + "\n" } else { render(&report) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
