//! Layer 2 for features that configure it beside the operator: addresses behind the ports of bridge
//! domains, and sub-interfaces by VLAN. An error is a sentence for the operator, and changes
//! nothing.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};

/// An address behind a port of a bridge domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FdbEntry {
    /// The port.
    pub port: InterfaceId,
    /// The address.
    pub mac: [u8; 6],
}

/// What is called with each station.
pub type Visit<'a> = &'a mut dyn FnMut(FdbEntry);

/// Calls into `quiver-bridge`, which puts them into the engine when it starts.
#[derive(Clone, Copy)]
pub struct BridgeFdb {
    /// The number of the bridge domain that an interface is a port of; the domain's own routed
    /// interface is none.
    pub domain: fn(&Engine, InterfaceId) -> Option<u32>,
    /// Add an entry for a station, which is no part of the configuration. A static one stands
    /// until it is removed, another one until its address is seen at another port.
    pub add: fn(&mut Engine, FdbEntry, bool) -> Result<(), String>,
    /// As [`add`](Self::add), behind one of the far ends of the port.
    pub add_behind: fn(&mut Engine, FdbEntry, bool, u16) -> Result<(), String>,
    /// Remove an entry that was added, if it still is as it was added.
    pub remove: fn(&mut Engine, FdbEntry),
    /// Let the domain of a port answer for an address (ARP, neighbour discovery) with a MAC
    /// address, or no more. It answers while its `arp-term` is on.
    pub answer: fn(&mut Engine, InterfaceId, IpAddr, Option<[u8; 6]>),
    /// Visit stations that were learned, in a part of the table that begins at a place (0 at
    /// first). Returns where the next part begins; none at the end.
    pub learned: fn(&Engine, u32, Visit<'_>) -> Option<u32>,
}

/// The network that a port with many far ends belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The VNI.
    pub vni: u32,
    /// The outer source.
    pub source: IpAddr,
    /// The UDP port at which far ends take packets.
    pub port: u16,
}

/// The place of a station behind a port with many far ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarPlace {
    /// Behind the far end with this outer address.
    Vtep(IpAddr),
    /// Behind several far ends, which have this number (an Ethernet segment, RFC 7432 §5). The
    /// frames of all its stations go to one of them, or are dropped while there is none.
    Group(u32, Option<IpAddr>),
}

/// Calls into `quiver-vxlan`, which puts them into the engine when it starts: ports of bridge
/// domains whose far ends a control plane names.
#[derive(Clone, Copy)]
pub struct FarEnds {
    /// The port of a VNI.
    pub port: fn(&Engine, u32) -> Option<InterfaceId>,
    /// The network of a port.
    pub network: fn(&Engine, InterfaceId) -> Option<Network>,
    /// Let a station be behind a far end of its port, wherever it was. The far end of a group that
    /// has stations already stays as [`redirect`](Self::redirect) has left it.
    pub add: fn(&mut Engine, FdbEntry, FarPlace) -> Result<(), String>,
    /// Let the frames for all stations behind a group of a port go to a far end, or be dropped: one
    /// store, however many stations there are.
    pub redirect: fn(&mut Engine, InterfaceId, u32, Option<IpAddr>) -> Result<(), String>,
    /// A station is behind no far end of its port any more.
    pub remove: fn(&mut Engine, FdbEntry),
    /// Let frames to all stations of a port go to a far end, or no more.
    pub flood: fn(&mut Engine, InterfaceId, IpAddr, bool) -> Result<(), String>,
}

/// A sub-interface that takes the frames of one VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanOf {
    /// The interface that it is a part of.
    pub parent: InterfaceId,
    /// The EtherType of the tag: 0x8100, or 0x88a8.
    pub ether_type: u16,
    /// The VLAN, 1 to 4094.
    pub vlan: u16,
}

/// Calls into `quiver-ethernet`, which puts them into the engine when it starts.
#[derive(Clone, Copy)]
pub struct VlanInterfaces {
    /// The sub-interface that takes the frames of a VLAN, exactly these.
    pub find: fn(&Engine, VlanOf) -> Option<InterfaceId>,
    /// Make it. Its number is that of the VLAN.
    pub create: fn(&mut Engine, VlanOf) -> Result<InterfaceId, String>,
    /// Delete a sub-interface.
    pub delete: fn(&mut Engine, InterfaceId) -> Result<(), String>,
}
