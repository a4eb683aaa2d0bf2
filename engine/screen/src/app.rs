//! The state of the screen, and what keys do to it.

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::View;
use crate::poll::News;
use crate::table::Choice;

/// Steps of the interval, milliseconds.
const INTERVALS_MS: [u64; 7] = [200, 500, 1000, 2000, 5000, 10_000, 30_000];
/// Points of the plot that are kept.
const HISTORY_MAX: usize = 512;
/// Characters of a filter.
const FILTER_CHARS_MAX: usize = 40;

/// What the user has before him.
pub struct App<V: View> {
    /// Where the figures come from.
    pub place: String,
    /// Does the terminal speak UTF-8?
    pub utf8: bool,
    /// The pane that is shown, by its place.
    pub pane: usize,
    /// What of it.
    pub choice: Choice,
    /// Order of each pane, once the user has set one.
    orders: Vec<Option<(usize, bool)>>,
    /// Between two looks.
    pub interval: Duration,
    /// The picture stands still.
    pub is_paused: bool,
    /// The keys are explained.
    pub shows_help: bool,
    /// A filter is being typed.
    pub types_filter: bool,
    /// First row that is shown, and how many fit; the drawing sets the second.
    pub top_row: usize,
    pub(crate) rows_shown: usize,
    /// What is shown.
    pub picture: Option<V>,
    /// What the plot shows, the newest last.
    pub history: VecDeque<(f64, f64)>,
    last: Option<V::Snapshot>,
    /// Why nobody answers.
    pub lost: Option<String>,
    /// Who answers was gone, and is there again.
    pub returned: bool,
    /// The user leaves.
    pub quits: bool,
}

impl<V: View> App<V> {
    /// Nothing is known yet.
    pub fn new(place: String, interval: Duration, filter: String, utf8: bool) -> App<V> {
        App {
            place,
            utf8,
            pane: 0,
            choice: Choice { filter, ..Choice::default() },
            orders: vec![None; V::PANES.len()],
            interval,
            is_paused: false,
            shows_help: false,
            types_filter: false,
            top_row: 0,
            rows_shown: 0,
            picture: None,
            history: VecDeque::new(),
            last: None,
            lost: None,
            returned: false,
            quits: false,
        }
    }

    /// The asking thread has something. Returns whether the screen changes.
    pub fn hear(&mut self, news: News<V::Snapshot>) -> bool {
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
                let picture = self.last.as_ref().and_then(|last| V::between(last, &now));
                self.last = Some(*now);
                if let Some(point) = picture.as_ref().and_then(V::plotted) {
                    if self.history.len() == HISTORY_MAX {
                        self.history.pop_front();
                    }
                    self.history.push_back(point);
                }
                match picture {
                    Some(picture) if !self.is_paused => {
                        self.picture = Some(picture);
                        self.leave_missing_pane();
                        true
                    }
                    _ => self.returned,
                }
            }
        }
    }

    /// The pane before one that the picture does not have; before the first stands the last.
    fn leave_missing_pane(&mut self) {
        if !self.has(self.pane) {
            self.turn_pane(V::PANES.len() - 1);
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
            KeyCode::BackTab | KeyCode::Left => self.turn_pane(V::PANES.len() - 1),
            KeyCode::Char(c @ '1'..='9') => self.show_pane(c as usize - '1' as usize),
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
            KeyCode::Char('w') => self.next_part(),
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

    fn turn_pane(&mut self, by: usize) {
        let panes = V::PANES.len();
        let turned =
            (1..=panes).map(|times| (self.pane + times * by) % panes).find(|pane| self.has(*pane));
        self.show_pane(turned.unwrap_or(self.pane));
    }

    fn has(&self, pane: usize) -> bool {
        self.picture.as_ref().is_none_or(|picture| picture.has(pane))
    }

    fn show_pane(&mut self, pane: usize) {
        if pane < V::PANES.len() && self.has(pane) {
            self.pane = pane;
            self.top_row = 0;
            self.choice.order = self.orders[pane];
        }
    }

    /// The column that the pane is sorted by, and whether backwards.
    pub fn order(&self) -> (usize, bool) {
        self.choice.order.unwrap_or((V::PANES[self.pane].sorted_by, false))
    }

    fn set_order(&mut self, order: (usize, bool)) {
        self.orders[self.pane] = Some(order);
        self.choice.order = Some(order);
    }

    /// The next column that has a title.
    fn sort_next(&mut self) {
        let columns = V::PANES[self.pane].columns;
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

    /// All parts together, then one after the other.
    fn next_part(&mut self) {
        let count = self.picture.as_ref().map_or(0, View::parts);
        self.choice.part = match self.choice.part {
            None if count > 0 => Some(0),
            Some(part) if part + 1 < count => Some(part + 1),
            _ => None,
        };
    }
}
