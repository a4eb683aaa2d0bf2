//! IPv6.

pub(crate) mod echo;
pub(crate) mod fragment;
pub(crate) mod hop_by_hop;
pub(crate) mod icmp_error;
pub(crate) mod icmp_input;
pub(crate) mod local;
pub(crate) mod upper;

/// Hop limit of packets that the router makes.
pub(crate) const HOP_LIMIT: u8 = 64;
