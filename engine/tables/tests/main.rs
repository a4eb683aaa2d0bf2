//! All tests of this crate, in one program.

mod exact;
mod exact_beside;
mod mac;
mod prefix_match;
mod sessions;
