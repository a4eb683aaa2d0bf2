//! Streams of made packets.
