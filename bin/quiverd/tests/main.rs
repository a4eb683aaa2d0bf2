//! All tests of this crate, in one program.

mod answers;
mod arcs;
mod bare_interfaces;
mod circles;
mod configurations;
mod document;
mod document_yaml;
mod features_on_arcs;
mod guide;
mod memory_limits;
mod operators;
mod rewritten_headers;
mod shows;
mod simulation;
mod start;
mod versions;
