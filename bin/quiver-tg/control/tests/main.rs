//! All tests of this crate, in one program.

mod control;
mod transactions;
#[path = "../../measuring/tests/wire/mod.rs"]
mod wire;
