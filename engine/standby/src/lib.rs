#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod link;
mod receiver;
mod replay;
mod sender;
pub mod socket;
pub mod wire;

pub use crate::receiver::Item;
