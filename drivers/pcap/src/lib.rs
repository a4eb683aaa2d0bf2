//! Files as devices.
