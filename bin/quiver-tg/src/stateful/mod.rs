#![doc = include_str!("README.md")]

mod check;
pub mod counters;
pub mod flow;
pub mod frame;
pub mod generator;
pub mod hosts;
pub mod index;
pub mod io;
pub mod key;
pub mod link;
pub mod measuring;
pub mod next_hop;
pub mod pattern;
pub mod plan;
pub mod profile;
pub mod program;
pub mod rates;
pub mod readiness;
pub mod report;
pub mod schedule;
pub mod side;
pub mod stage;
pub mod table;
pub mod tcp;
pub mod udp;
pub mod wheel;

pub use profile::Stateful;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
