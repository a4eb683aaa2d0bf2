#![doc = include_str!("../README.md")]

mod diff;
mod fields;
pub mod golden;
mod router;
mod wire;

pub use diff::{difference, hex};
pub use router::{Register, Router, Settings};
