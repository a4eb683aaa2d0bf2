//! The state of the screen, and what keys do to it.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::grid::{Choice, Pane};
use super::poll::News;
use super::rates::Picture;
use super::snapshot::Snapshot;

/// Steps of the interval, milliseconds.
const INTERVALS_MS: [u64; 7] = [200, 500, 1000, 2000, 5000, 10_000, 30_000];
/// Characters of a filter.
const FILTER_CHARS_MAX: usize = 40;

/// What the user has before him.
pub struct App {
    /// Where the router is reached.
    pub socket: String,
    /// Does the terminal speak UTF-8?
    pub utf8: bool,
    pub pane: Pane,
    pub choice: Choice,
    /// Order of each pane, once the user has set one.
    orders: [Option<(usize, bool)>; Pane::ALL.len()],
    pub interval: Duration,
    /// The picture stands still.
    pub is_paused: bool,
    /// The keys are explained.
    pub shows_help: bool,
    /// A filter is being typed.
    pub types_filter: bool,
    /// First row that is shown, and how many fit; the drawing sets the second.
    pub top_row: usize,
    pub rows_shown: usize,
    pub picture: Option<Picture>,
    last: Option<Snapshot>,
    /// Why the router is not there.
    pub lost: Option<String>,
    /// It was gone, and is there again, for so many pictures.
    pub returned: bool,
    pub quits: bool,
}

impl App {
    /// Nothing is known yet.
    pub fn new(socket: String, interval: Duration, filter: String, utf8: bool) -> App {
        App {
            socket,
            utf8,
            pane: Pane::Nodes,
            choice: Choice { filter, ..Choice::default() },
            orders: [None; Pane::ALL.len()],
            interval,
            is_paused: false,
            shows_help: false,
            types_filter: false,
            top_row: 0,
            rows_shown: 0,
            picture: None,
            last: None,
            lost: None,
            returned: false,
            quits: false,
        }
    }

    /// The asking thread has something. Returns whether the screen changes.
    pub fn hear(&mut self, news: News) -> bool {
        match news {
            News::Lost(why) => {
                // What it counts begins anew when it is there again.
                self.last = None;
                self.returned = false;
                self.lost = Some(why);
                true
            }
            News::Counted(now) => {
                self.returned |= self.lost.take().is_some();
                let picture = self.last.as_ref().and_then(|last| Picture::between(last, &now));
                self.last = Some(*now);
                match picture {
                    Some(picture) if !self.is_paused => {
                        self.picture = Some(picture);
                        true
                    }
                    _ => self.returned,
                }
            }
        }
    }

    /// The user pressed a key.
    pub fn press(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.quits = true;
        } else if self.types_filter {
            self.type_filter(key.code);
        } else if self.shows_help {
            self.shows_help = false;
            self.quits = key.code == KeyCode::Char('q');
        } else {
            self.command(key.code);
        }
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.types_filter = false,
            KeyCode::Esc => {
                self.types_filter = false;
                self.choice.filter.clear();
            }
            KeyCode::Backspace => {
                self.choice.filter.pop();
            }
            KeyCode::Char(c) if self.choice.filter.chars().count() < FILTER_CHARS_MAX => {
                self.choice.filter.push(c);
            }
            _ => {}
        }
        self.top_row = 0;
    }

    fn command(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('q') => self.quits = true,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Tab | KeyCode::Right => self.turn_pane(1),
            KeyCode::BackTab | KeyCode::Left => self.turn_pane(Pane::ALL.len() - 1),
            KeyCode::Char(c @ '1'..='4') => self.show_pane(Pane::ALL[c as usize - '1' as usize]),
            KeyCode::Char('s') => self.sort_next(),
            KeyCode::Char('r') => {
                let (column, backwards) = self.order();
                self.set_order((column, !backwards));
            }
            KeyCode::Char('/') => self.types_filter = true,
            KeyCode::Esc => self.choice.filter.clear(),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('+') => self.step_interval(true),
            KeyCode::Char('-') => self.step_interval(false),
            KeyCode::Char('w') => self.next_worker(),
            KeyCode::Char('a') => self.choice.idle = !self.choice.idle,
            KeyCode::Char('e') => self.choice.events = !self.choice.events,
            KeyCode::Char('j') | KeyCode::Down => self.top_row += 1,
            KeyCode::Char('k') | KeyCode::Up => self.top_row = self.top_row.saturating_sub(1),
            KeyCode::PageDown => self.top_row += self.rows_shown.max(1),
            KeyCode::PageUp => self.top_row = self.top_row.saturating_sub(self.rows_shown.max(1)),
            KeyCode::Home => self.top_row = 0,
            KeyCode::End => self.top_row = usize::MAX,
            _ => {}
        }
    }

    fn index(&self) -> usize {
        Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0)
    }

    fn turn_pane(&mut self, by: usize) {
        self.show_pane(Pane::ALL[(self.index() + by) % Pane::ALL.len()]);
    }

    fn show_pane(&mut self, pane: Pane) {
        self.pane = pane;
        self.top_row = 0;
        self.choice.order = self.orders[self.index()];
    }

    /// The column that the pane is sorted by, and whether backwards.
    pub fn order(&self) -> (usize, bool) {
        self.choice.order.unwrap_or((self.pane.sorted_by(), false))
    }

    fn set_order(&mut self, order: (usize, bool)) {
        let index = self.index();
        self.orders[index] = Some(order);
        self.choice.order = Some(order);
    }

    /// The next column that has a title.
    fn sort_next(&mut self) {
        let columns = self.pane.columns();
        let next = (1..=columns.len()).map(|by| (self.order().0 + by) % columns.len());
        if let Some(column) = next.into_iter().find(|column| !columns[*column].title.is_empty()) {
            self.set_order((column, false));
        }
    }

    fn step_interval(&mut self, longer: bool) {
        let now = self.interval.as_millis() as u64;
        let step = if longer {
            INTERVALS_MS.iter().find(|ms| **ms > now)
        } else {
            INTERVALS_MS.iter().rev().find(|ms| **ms < now)
        };
        self.interval = Duration::from_millis(step.copied().unwrap_or(now));
    }

    /// All workers together, then one after the other.
    fn next_worker(&mut self) {
        let count = self.picture.as_ref().map_or(0, |picture| picture.workers.len());
        self.choice.worker = match self.choice.worker {
            None if count > 0 => Some(0),
            Some(worker) if worker + 1 < count => Some(worker + 1),
            _ => None,
        };
    }
}
