//! All tests of this crate, in one program.

mod any_order;
mod defects;
mod inside;
mod local;
mod own;
mod stand;
mod transit;
