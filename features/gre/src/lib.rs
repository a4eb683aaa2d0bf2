#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod erspan;
mod header;
mod texts;

use quiver_control::Registry;
use quiver_encap::tunnel;

pub use crate::header::Gre;

/// `gre4-encap-ip4` and its siblings: the outer family, then the inner one.
pub type GreEncap<O, F> = tunnel::TunnelEncap<Gre, O, F>;
/// `gre4-encap-teb`, `gre6-encap-teb`.
pub type GreFrameEncap<O> = tunnel::FrameEncap<Gre, O>;
/// `gre4-input`, `gre6-input`.
pub type GreInput<O> = tunnel::TunnelInput<Gre, O>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry
        .feature("gre", "GRE tunnels: packets, frames and ERSPAN over IPv4 and IPv6, with keys");
    tunnel::register::<Gre>(registry);
}
