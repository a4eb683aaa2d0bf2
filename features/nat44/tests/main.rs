//! All tests of this crate, in one program.

mod any_packets;
mod golden;
mod mappings;
mod provider;
mod sessions;
