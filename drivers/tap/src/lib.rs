//! Network devices that Linux sees, one end of which is ours.
