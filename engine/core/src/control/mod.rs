//! The control thread: it owns the configuration, and workers never wait for it.

pub mod engine;
pub mod interfaces;
pub mod reactor;
pub mod session_states;
pub mod statistics;
pub mod sub_interface;
pub mod tunnel_interface;
pub mod watchdog;
