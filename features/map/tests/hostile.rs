//! Hostile packets.
