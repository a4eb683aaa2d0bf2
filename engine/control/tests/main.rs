//! All tests of this crate, in one program.

mod fuzz;
mod gate;
mod grammar;
mod methods;
mod quoting;
mod server;
mod tls;
mod toy;
