//! All tests of this crate, in one program.

mod hostile;
mod network;
mod transfer;
