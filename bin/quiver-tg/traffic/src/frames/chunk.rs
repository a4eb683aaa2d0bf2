//! Frames are made in chunks; a column has one value for each frame of a chunk.

/// Frames made ahead.
pub const CHUNK: usize = 64;

/// One value for each of the next frames.
pub type Column = [u64; CHUNK];
