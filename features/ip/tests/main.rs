//! All tests of this crate, in one program.

mod any_bytes;
mod attached;
mod commands;
mod counters;
mod duplicate_detection;
mod errors;
mod golden;
mod held;
mod many;
mod neighbours;
mod ping;
mod proxies;
mod punt;
mod replace;
mod routes;
mod sessions;
mod stand;
mod subscriptions;
mod traceroute;
mod unnumbered;
