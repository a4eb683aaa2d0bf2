//! All tests of this crate, in one program.

mod fuzz;
mod gate;
mod grammar;
mod quoting;
mod server;
mod toy;
