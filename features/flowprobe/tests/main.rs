//! All tests of this crate, in one program.

mod commands;
mod reader;
mod records;
mod translated;
