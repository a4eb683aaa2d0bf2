#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod check;
pub mod figures;
pub mod frames;
pub mod profile;
pub mod ready;
pub mod stamp;
