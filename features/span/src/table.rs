//! What workers read: where copies of an interface's frames go.

use quiver_core::InterfaceId;

/// Interfaces that one interface is mirrored to at most, in each direction.
pub const DESTINATIONS_MAX: usize = 8;

/// Replaced whole by the control thread.
pub type Published = quiver_core::memory::epoch::Published<Mirrors>;

/// Which frames are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those that are received.
    Rx,
    /// Those that are sent.
    Tx,
}

/// The destinations of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirror {
    /// Of what it receives.
    pub rx: Vec<InterfaceId>,
    /// Of what it sends.
    pub tx: Vec<InterfaceId>,
}

impl Mirror {
    /// The destinations of one direction.
    #[inline]
    pub fn of(&self, direction: Direction) -> &[InterfaceId] {
        match direction {
            Direction::Rx => &self.rx,
            Direction::Tx => &self.tx,
        }
    }

    pub(crate) fn of_mut(&mut self, direction: Direction) -> &mut Vec<InterfaceId> {
        match direction {
            Direction::Rx => &mut self.rx,
            Direction::Tx => &mut self.tx,
        }
    }
}

/// All mirrors, by the interface that is mirrored.
#[derive(Clone, Debug, Default)]
pub struct Mirrors(Vec<Mirror>);

impl Mirrors {
    /// Those of these interfaces.
    pub(crate) fn new<'a>(all: impl Iterator<Item = (&'a InterfaceId, &'a Mirror)>) -> Mirrors {
        let mut mirrors = Vec::new();
        for (id, mirror) in all {
            if mirrors.len() <= id.index() {
                mirrors.resize(id.index() + 1, Mirror::default());
            }
            mirrors[id.index()] = mirror.clone();
        }
        Mirrors(mirrors)
    }

    /// Where copies of what passes an interface go.
    #[inline]
    pub fn destinations(&self, id: InterfaceId, direction: Direction) -> &[InterfaceId] {
        self.0.get(id.index()).map_or(&[], |mirror| mirror.of(direction))
    }
}
