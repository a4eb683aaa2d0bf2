#![doc = include_str!("../README.md")]

pub mod control;
pub mod drivers;
pub mod gaps;
pub mod generator;
pub mod latency;
mod live;
pub mod measuring;
pub mod neighbours;
pub mod outcome;
pub mod pacer;
pub mod profile;
pub mod receiver;
pub mod reception;
pub mod report;
pub mod request;
pub mod run;
pub mod schedule;
pub mod self_test;
pub mod serve;
pub mod session;
pub mod stamp;
pub mod table;
pub mod traffic;
pub mod transmission;
pub mod transmitter;
pub mod window;
