//! The work that packets leave to the transmitting device, done in software: super-frames cut into
//! segments, checksums completed. No I/O.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod checksum;
mod layers;
pub mod segment;
