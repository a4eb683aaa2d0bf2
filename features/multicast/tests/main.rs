//! All tests of this crate, in one program.

mod any_bytes;
mod behaviour;
mod golden;
