//! The client that owns a measurement: a measurement that only one client asked for ends when that
//! client leaves.

use std::rc::{Rc, Weak};

/// Held by the job that answers the client; dropped with the job when the client leaves.
pub struct Owner(Rc<()>);

/// Tells whether the owner of a measurement is still connected.
pub struct OwnerWatch(Weak<()>);

impl Owner {
    /// An owner of one measurement.
    pub fn new() -> Owner {
        Owner(Rc::new(()))
    }

    /// A watch on this owner.
    pub fn watch(&self) -> OwnerWatch {
        OwnerWatch(Rc::downgrade(&self.0))
    }
}

impl OwnerWatch {
    /// The owner left before it had its answer.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
