//! All tests of this crate, in one program.

mod drops;
mod reader;
mod samples;
