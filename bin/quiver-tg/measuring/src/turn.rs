//! Progress of a measurement, as the control thread sees it.

use crate::report::Report;

/// How far a measurement is.
#[derive(Debug)]
pub enum Turn<R = Report> {
    /// None is under way.
    Idle,
    /// There is nothing to do before this time of the engine's clock.
    Until(u64),
    /// It is finished.
    Done(Box<R>),
}
