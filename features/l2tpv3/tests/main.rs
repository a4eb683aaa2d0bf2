//! All tests of this crate, in one program.

mod cookies;
mod golden;
mod hostile;
