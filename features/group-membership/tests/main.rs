//! All tests of this crate, in one program.

mod any_bytes;
mod commands;
mod golden;
mod routers;
