//! All tests of this crate, in one program.

mod client6;
mod golden;
mod relay;
