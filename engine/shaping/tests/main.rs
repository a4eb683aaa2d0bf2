//! All tests of this crate, in one program.

mod fair_model;
mod fairness;
mod packets;
mod trees;
