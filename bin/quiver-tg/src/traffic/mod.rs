//! What is sent: frames made from templates, with fields that vary.

pub mod random;
pub mod source;
pub mod template;
pub mod values;

pub use source::Source;

#[cfg(test)]
mod tests;
