//! All tests of this crate, in one program.

mod capture;
mod faults;
mod measurement;
mod memif;
mod stalls;
mod streams;
mod wire;
