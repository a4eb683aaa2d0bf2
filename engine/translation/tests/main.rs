//! All tests of this crate that are not beside the code, in one program.

mod fast;
mod versions;
