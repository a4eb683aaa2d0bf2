//! All tests of this crate, in one program.

mod keys;
mod masks;
mod policers;
mod routes;
mod tables;
