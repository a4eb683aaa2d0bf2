//! All tests of this crate, in one program.

mod golden;
mod pause;
mod rewrite;
mod sub_interfaces;
