//! `quiverctl top`: what a router does, live, by differences between two looks at its counters.

mod app;
mod draw;
mod grid;
mod plain;
mod poll;
mod rates;
mod snapshot;

use std::env;
use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde_json::json;

use crate::connection::Failure;
use crate::print::Printer;
use app::App;
use poll::Poller;
use rates::Picture;

/// How long the screen waits for a key before it looks for news.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the router does, live: nodes, interfaces, workers, drops.
///
/// On a terminal, a screen; keys are explained by `?`. Elsewhere, or with --once, one picture as text.
#[derive(Parser)]
#[command(name = "quiverctl top")]
struct Arguments {
    /// The router's API socket
    #[arg(short, long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print one picture and end
    #[arg(short = '1', long)]
    once: bool,
    /// Print one picture as JSON and end
    #[arg(short, long)]
    json: bool,
    /// Seconds between two looks at the counters
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Show only names that contain this
    #[arg(short, long, value_name = "NAME", default_value = "")]
    filter: String,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("0.1 to 3600 seconds".into()) }
}

/// Run it with the words behind `top`.
pub fn run(words: &[String], socket: PathBuf, as_json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let arguments =
        Arguments::parse_from(std::iter::once("quiverctl top".to_owned()).chain(words.iter().cloned()));
    let socket = arguments.socket.clone().unwrap_or(socket);
    let interval = Duration::from_secs_f64(arguments.interval);
    let as_json = as_json || arguments.json;
    let is_screen =
        stdout().is_terminal() && stdin().is_terminal() && env::var("TERM").is_ok_and(|t| t != "dumb");
    if as_json || arguments.once || !is_screen {
        return once(&socket, interval, as_json, &arguments.filter, printer);
    }
    screen(&socket, interval, arguments.filter)
}

/// Does the terminal speak UTF-8? The first of these variables that says something decides.
fn speaks_utf8() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env::var(name).ok());
    let locale = said.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Two looks, and what happened between them.
fn once(
    socket: &Path,
    interval: Duration,
    as_json: bool,
    filter: &str,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let mut connection = None;
    let before = poll::ask(socket, &mut connection).map_err(Failure::Unreachable)?;
    std::thread::sleep(interval);
    let now = poll::ask(socket, &mut connection).map_err(Failure::Unreachable)?;
    let unusable = || Failure::Unreachable("the router's clock stands still".into());
    let picture = Picture::between(&before, &now).ok_or_else(unusable)?;
    if as_json {
        return printer.text(&format!("{:#}\n", json!(picture)));
    }
    let choice = grid::Choice { filter: filter.to_owned(), ..grid::Choice::default() };
    printer.text(&plain::text(&picture, &choice, speaks_utf8()))
}

/// The screen, until the user leaves or the terminal does.
fn screen(socket: &Path, interval: Duration, filter: String) -> Result<(), Failure> {
    let unusable =
        |error: std::io::Error| Failure::Unreachable(format!("the terminal cannot be used: {error}"));
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let _ = signal_hook::flag::register(signal, ends.clone());
    }
    let poller = Poller::start(socket, interval);
    let mut app = App::new(socket.display().to_string(), interval, filter, speaks_utf8());
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    let done = (|| {
        let mut is_stale = true;
        while !app.quits && !ends.load(Ordering::Relaxed) {
            if is_stale {
                terminal.draw(|frame| draw::draw(frame, &mut app))?;
            }
            is_stale = false;
            if event::poll(LOOK_EVERY)? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => app.press(key),
                    _ => {}
                }
                poller.set_interval(app.interval);
                is_stale = true;
            }
            while let Ok(news) = poller.news.try_recv() {
                is_stale |= app.hear(news);
            }
        }
        Ok(())
    })();
    let _ = ratatui::try_restore();
    done.map_err(unusable)
}

#[cfg(test)]
mod tests;
