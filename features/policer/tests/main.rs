//! All tests of this crate, in one program.

mod meters;
mod policers;
