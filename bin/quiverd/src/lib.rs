//! The router's list of features, for programs and tests that run the whole router in one process.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod features;
pub mod logging;
