//! All tests of this crate, in one program.

mod any_classes;
mod classes;
mod policers;
mod subscribers;
