//! The traffic generator: loads a router, and tells the truth about it and about itself.

pub mod latency;
pub mod pacer;
pub mod profile;
pub mod stamp;
pub mod traffic;
pub mod window;
