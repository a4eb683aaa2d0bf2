//! Packets for the router itself and from it: ping, traceroute, punt, limits of ICMP, path MTU.

pub(crate) mod claims;
pub(crate) mod done;
pub(crate) mod icmp_limits;
pub(crate) mod path_mtu;
pub(crate) mod pending_pings;
pub(crate) mod ping;
pub(crate) mod punt;
pub(crate) mod traceroute;

use quiver_core::graph::interface::InterfaceRow;

/// Does a host deal with packets for the router that came by the interface of this row?
#[cold]
pub(crate) fn has_host(rx: Option<&InterfaceRow>) -> bool {
    rx.is_some_and(|row| row.host.is_some())
}
