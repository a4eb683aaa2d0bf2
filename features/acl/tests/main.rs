//! All tests of this crate, in one program.

mod any_edits;
mod any_flows;
mod any_lists;
mod any_packets;
mod any_sets;
mod commands;
mod ethertypes;
mod families;
mod golden;
mod macip;
mod sessions;
mod sets;
