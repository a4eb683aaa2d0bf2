//! All tests of this crate, in one program.

mod any_classes;
mod classes;
mod families;
mod policers;
mod subscribers;
