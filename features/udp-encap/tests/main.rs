//! All tests of this crate, in one program.

mod errors;
mod golden;
mod hostile;
