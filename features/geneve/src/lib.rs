#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod header;
mod texts;

use quiver_control::Registry;
use quiver_encap::tunnel::{self, AcceptedWords};

pub use crate::header::Geneve;

/// `geneve4-encap`, `geneve6-encap`.
pub type GeneveEncap<O> = tunnel::FrameEncap<Geneve, O>;
/// `geneve4-input`, `geneve6-input`.
pub type GeneveInput<O> = tunnel::TunnelInput<Geneve, O>;

const BYPASS: [AcceptedWords; 2] = [
    AcceptedWords {
        command: "set interface ip geneve-bypass",
        syntax: "set interface ip geneve-bypass <interface> [del]",
        undo: "set interface ip geneve-bypass <interface> del",
        entry: "interfaces.<interface>.geneve-bypass.ip4: true",
        help: "Accept the words of VPP for a short path of Geneve packets over IPv4",
        example: "set interface ip geneve-bypass e0",
    },
    AcceptedWords {
        command: "set interface ip6 geneve-bypass",
        syntax: "set interface ip6 geneve-bypass <interface> [del]",
        undo: "set interface ip6 geneve-bypass <interface> del",
        entry: "interfaces.<interface>.geneve-bypass.ip6: true",
        help: "Accept the words of VPP for a short path of Geneve packets over IPv6",
        example: "set interface ip6 geneve-bypass e0",
    },
];

/// Register nodes and commands.
pub fn register(registry: &mut Registry) {
    registry.feature("geneve", "Geneve tunnels: Ethernet frames and packets in UDP, with options");
    tunnel::register_in_udp::<Geneve>(registry);
    BYPASS.into_iter().for_each(|words| tunnel::accept(registry, words));
}
