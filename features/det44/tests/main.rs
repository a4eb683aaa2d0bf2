//! All tests of this crate, in one program.

mod golden;
mod hostile;
mod sessions;
