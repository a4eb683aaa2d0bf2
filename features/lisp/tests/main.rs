//! All tests of this crate, in one program.

mod control;
mod golden;
mod hostile;
mod mappings;
