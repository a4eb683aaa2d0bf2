#![doc = include_str!("../README.md")]
#![warn(clippy::missing_errors_doc)]

pub mod answers;
pub mod choices;
pub mod configuration;
mod diff;
mod fields;
pub mod frames;
pub mod golden;
pub mod hostile;
mod offloads;
mod router;
pub mod sources;
mod wire;

pub use diff::{difference, hex};
pub use fields::flow;
pub use router::{Register, Router, Settings};
