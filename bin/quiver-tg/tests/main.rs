//! All tests of this crate, in one program.

mod capture;
mod control;
mod faults;
mod measurement;
mod memif;
mod stalls;
mod stateful;
mod streams;
mod transactions;
mod wire;
