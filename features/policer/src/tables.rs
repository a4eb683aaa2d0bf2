//! What workers read: which policer meters an interface.

use std::sync::atomic::{AtomicU16, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_policing::NO_POLICER;

/// Where packets of an interface are metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// What it receives.
    Input,
    /// What it sends.
    Output,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Input, Direction::Output];

    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}

/// The policer of each interface and direction, by number.
pub(crate) struct Attached([Box<[AtomicU16]>; 2]);

impl Attached {
    pub fn new() -> Attached {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU16::new(NO_POLICER)).collect();
        Attached([none(), none()])
    }

    /// Let an interface's packets be metered by a policer, or by none.
    pub fn attach(&self, on: InterfaceId, direction: Direction, number: Option<u16>) {
        if let Some(place) = self.0[direction as usize].get(on.index()) {
            place.store(number.unwrap_or(NO_POLICER), Ordering::Release);
        }
    }

    /// The policer of an interface, or [`NO_POLICER`].
    #[inline]
    pub fn of(&self, on: InterfaceId, direction: Direction) -> u16 {
        let place = self.0[direction as usize].get(on.index());
        place.map_or(NO_POLICER, |place| place.load(Ordering::Acquire))
    }
}
