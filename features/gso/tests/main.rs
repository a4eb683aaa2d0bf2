//! All tests of this crate, in one program.

mod equality;
mod golden;
mod segments;
mod super_frames;
mod switches;
mod whole;
