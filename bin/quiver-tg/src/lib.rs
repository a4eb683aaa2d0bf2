//! The traffic generator: loads a router, and tells the truth about it and about itself.

pub mod generator;
pub mod latency;
pub mod neighbours;
pub mod pacer;
pub mod profile;
pub mod receiver;
pub mod reception;
pub mod report;
pub mod request;
pub mod stamp;
pub mod traffic;
pub mod transmission;
pub mod transmitter;
pub mod window;
