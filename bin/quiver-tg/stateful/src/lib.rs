#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod counters;
pub mod flow;
pub mod frame;
pub mod generator;
pub mod index;
pub mod io;
pub mod key;
pub mod link;
pub mod next_hop;
pub mod pattern;
pub mod plan;
pub mod program;
pub mod rates;
pub mod readiness;
pub mod report;
pub mod schedule;
pub mod session;
pub mod side;
pub mod snapshot;
pub mod stateful_node;
pub mod table;
pub mod tcp;
pub mod udp;
pub mod wheel;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod test_profiles;
#[cfg(test)]
mod tests;
