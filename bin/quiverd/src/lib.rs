//! The router's list of features, for programs and tests that run the whole router in one process.

#![forbid(unsafe_code)]

pub mod features;
pub mod logging;
