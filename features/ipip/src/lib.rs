#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod header;
mod texts;

use quiver_control::Registry;
use quiver_encap::tunnel;

pub use crate::header::Ipip;

/// `ipip4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type IpipEncap<O, F> = tunnel::TunnelEncap<Ipip, O, F>;
/// `ipip4-input`, `ipip6-input`.
pub type IpipInput<O> = tunnel::TunnelInput<Ipip, O>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("ipip", "IP in IP tunnels: IPv4 and IPv6 packets over IPv4 and IPv6");
    tunnel::register::<Ipip>(registry);
}
