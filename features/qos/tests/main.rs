//! All tests of this crate, in one program.

mod classes;
mod headers;
mod maps;
