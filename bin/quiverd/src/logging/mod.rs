//! The router's log: kept for `show logging`, and written to the journal of systemd, to a file, or
//! to standard error.
//!
//! Messages have a class, which is the crate that they come from, and a level. Levels, rates and
//! the number that is kept are set by VPP's words (`set logging …`, the section `logging` of the
//! start-up file).

mod commands;
mod journal;
mod layer;
mod settings;
mod store;

pub use commands::{register, startup};
pub use journal::Journal;
pub use layer::{install, now};
pub use settings::{Level, Settings};
pub use store::{Entry, Log};
