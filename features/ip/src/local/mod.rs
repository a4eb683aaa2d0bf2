//! Packets for the router itself and from it: ping, traceroute, punt, limits of ICMP, path MTU.

pub(crate) mod claims;
pub(crate) mod done;
pub(crate) mod icmp_limits;
pub(crate) mod path_mtu;
pub(crate) mod pending_pings;
pub(crate) mod ping;
pub(crate) mod punt;
pub(crate) mod traceroute;
