//! Frames made from templates, with fields that vary.

pub mod chunk;
pub mod column;
pub mod program;
pub mod random;
pub mod reciprocal;
pub mod recording;
pub mod replay;
pub mod source;
pub mod values;

pub use random::Random;
pub use source::Source;

#[cfg(test)]
mod tests;
