#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod checksum;
pub mod flow;
pub mod icmp_error;
pub mod ip6;
pub mod own_errors;
pub mod rewrite;
pub mod routing;
pub mod tcp;
pub mod versions;
