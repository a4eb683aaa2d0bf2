#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod bounded_file;
pub mod check;
pub mod figures;
pub mod frames;
pub mod profile;
pub mod ready;
pub mod stamp;
