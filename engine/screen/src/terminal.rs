//! The terminal: whether there is one, and the screen on it until the user leaves.

use std::env;
use std::io::{self, IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::View;
use crate::app::App;
use crate::draw::draw;
use crate::poll::{Ask, Poller};

/// How long the screen waits for a key before it looks for news.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Can a screen be drawn?
pub fn is_screen() -> bool {
    stdout().is_terminal() && stdin().is_terminal() && env::var("TERM").is_ok_and(|t| t != "dumb")
}

/// Does the terminal speak UTF-8? The first of these variables that says something decides.
pub fn speaks_utf8() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env::var(name).ok());
    let locale =
        said.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The screen, until the user leaves or the terminal does.
///
/// # Errors
/// Standard input or output is no terminal, or the system refuses its settings.
pub fn show<V: View>(
    ask: impl Ask<V::Snapshot>,
    place: String,
    interval: Duration,
    filter: String,
) -> io::Result<()> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let _ = signal_hook::flag::register(signal, ends.clone());
    }
    let poller = Poller::start(ask, interval);
    let mut app: App<V> = App::new(place, interval, filter, speaks_utf8());
    let mut terminal = ratatui::try_init()?;
    let done = (|| {
        let mut is_stale = true;
        while !app.quits && !ends.load(Ordering::Relaxed) {
            if is_stale {
                terminal.draw(|frame| draw(frame, &mut app))?;
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
    done
}
