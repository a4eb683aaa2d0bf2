#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod bound;
pub mod capture;
pub mod drivers;
pub mod faults;
pub mod gaps;
pub mod generator;
pub mod latency;
pub mod neighbours;
pub mod ordering;
pub mod outcome;
pub mod own_share;
pub mod pacing;
pub mod plan;
pub mod rates;
pub mod receiver;
pub mod reception;
pub mod report;
pub mod request;
pub mod schedule;
pub mod self_test;
pub mod session;
pub mod spread;
pub mod stall;
pub mod surroundings;
pub mod table;
pub mod timing;
pub mod transmission;
pub mod transmitter;
pub mod turn;
pub mod window;
