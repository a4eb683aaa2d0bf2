//! What the tests of the FIB stand on: node numbers, and a router with one port.
#![allow(dead_code)] // each test file takes what it needs

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::{FamilyNodes, Fib, FibNodes, InterfaceInfo, LabelledNodes};
use quiver_wire::MacAddress;

const fn family_nodes(first: u16) -> FamilyNodes {
    FamilyNodes {
        rewrite: NodeId(first),
        local: NodeId(first + 1),
        incomplete: NodeId(first + 2),
        glean: NodeId(first + 3),
        drop: NodeId(first + 4),
        punt: NodeId(first + 5),
        lookup: NodeId(first + 6),
        confirm: NodeId(first + 7),
        count: NodeId(first + 10),
        source_lookup: NodeId(first + 8),
        interface_rx: NodeId(first + 9),
    }
}

/// The nodes that hops name: IPv4's from 10 on, IPv6's from 40 on.
pub const NODES: FibNodes = FibNodes {
    ip4: family_nodes(10),
    ip6: family_nodes(40),
    ip6_link_local: NodeId(60),
    ip4_broadcast: NodeId(61),
    labelled: LabelledNodes { incomplete: NodeId(62), confirm: NodeId(63), count: NodeId(64) },
};

/// The port of [`router`].
pub const PORT: InterfaceId = InterfaceId(1);

/// A router whose port is 10.0.0.1/`length`.
pub fn router(length: u8) -> Fib {
    let mut fib = Fib::new(&Epochs::new(0), NODES).expect("memory");
    let info = InterfaceInfo {
        id: PORT,
        output: NodeId(100),
        mac: Some(MacAddress([2, 0, 0, 0, 0, 1])),
        vlan_tags: Vec::new(),
        mtu_bytes: 1500,
        family_mtu_bytes: [None; 2],
        mpls_mtu_bytes: None,
        up: true,
        ip4_table: 0,
        ip6_table: 0,
    };
    fib.set_interface(info).expect("port");
    fib.add_address(PORT, [10, 0, 0, 1].into(), length).expect("address");
    fib
}
