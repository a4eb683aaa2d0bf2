#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod bypass;
mod gpe;
mod header;
mod texts;

use quiver_control::{Registry, order};
use quiver_encap::tunnel;

pub use crate::gpe::VxlanGpe;
pub use crate::header::Vxlan;

/// `vxlan4-encap`, `vxlan6-encap`.
pub type VxlanEncap<O> = tunnel::FrameEncap<Vxlan, O>;
/// `vxlan4-input`, `vxlan6-input`.
pub type VxlanInput<O> = tunnel::TunnelInput<Vxlan, O>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("vxlan", "VXLAN and VXLAN-GPE tunnels: Ethernet frames and packets in UDP");
    tunnel::register_in_udp::<Vxlan>(registry);
    tunnel::register_in_udp::<VxlanGpe>(registry);
    tunnel::register_far_ends::<Vxlan>(registry);
    bypass::register(registry);
    registry.running_config(order::FEATURES, bypass::write_config);
}
