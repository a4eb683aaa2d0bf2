#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod commands;
mod header;
mod session;
mod texts;

use quiver_control::Registry;
use quiver_encap::tunnel;

pub use crate::header::L2tpv3;
pub use crate::session::{Cookie, Session};

/// `l2tpv3-4-encap`, `l2tpv3-6-encap`.
pub type L2tpv3Encap<O> = tunnel::FrameEncap<L2tpv3, O>;
/// `l2tpv3-4-input`, `l2tpv3-6-input`.
pub type L2tpv3Input<O> = tunnel::TunnelInput<L2tpv3, O>;

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("l2tpv3", "L2TPv3: pseudowires that carry Ethernet frames over IP");
    tunnel::register::<L2tpv3>(registry);
    commands::register(registry);
}
