#![doc = include_str!("../README.md")]

pub mod answers;
mod diff;
mod fields;
pub mod golden;
mod router;
mod wire;

pub use diff::{difference, hex};
pub use fields::flow;
pub use router::{Register, Router, Settings};
