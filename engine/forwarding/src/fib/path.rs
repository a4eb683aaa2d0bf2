//! What a route says: its paths, and who it comes from.

use std::fmt;
use std::net::IpAddr;

use quiver_core::InterfaceId;

use super::next_hop_objects::NextHopObjectId;
use crate::next_hop_group::Hop;
use crate::out_labels::OutLabels;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::Ip4 } else { Family::Ip6 }
    }

    /// What commands about its tables begin with.
    pub fn word(self) -> &'static str {
        match self {
            Family::Ip4 => "ip",
            Family::Ip6 => "ip6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Ip4 => "IPv4",
            Family::Ip6 => "IPv6",
        })
    }
}

/// Who a route comes from. When several give the same prefix, the first of this list wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Source {
    /// The router's own: multicast, limited broadcast.
    Special = 0,
    /// An interface's address: connected and local.
    Interface = 1,
    /// A feature (SRv6, MPLS, VXLAN, …).
    Feature = 2,
    /// Configured by the operator.
    Static = 3,
    /// Given by a routing daemon (FPM).
    Dynamic = 4,
    /// Found in Linux's tables.
    Kernel = 5,
    /// A neighbour on a connected subnet.
    Neighbour = 6,
    /// Given with a lease by a DHCP server: a default route, a delegated prefix. Behind
    /// [`Neighbour`](Self::Neighbour): no such route takes a neighbour's packets.
    Leased = 7,
    /// Advertised by a router (RFC 4861 §6.3.4), behind neighbours, too.
    Advertised = 8,
}

impl Source {
    pub(super) fn from_number(number: u32) -> Source {
        const ALL: [Source; 9] = [
            Source::Special,
            Source::Interface,
            Source::Feature,
            Source::Static,
            Source::Dynamic,
            Source::Kernel,
            Source::Neighbour,
            Source::Leased,
            Source::Advertised,
        ];
        ALL[(number as usize).min(ALL.len() - 1)]
    }
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// To a next hop; without an interface the FIB itself says how to reach it.
    Via {
        /// The next hop's address, of either family (RFC 8950 lets IPv4 go via IPv6).
        next_hop: IpAddr,
        /// The interface, if given.
        interface: Option<InterfaceId>,
    },
    /// To a neighbour itself, with nothing behind it: also when a liveness protocol says that the
    /// neighbour forwards nothing ([`Fib::set_neighbour_alive`](super::Fib::set_neighbour_alive)).
    Neighbour {
        /// Its address.
        address: IpAddr,
        /// Its interface.
        interface: InterfaceId,
    },
    /// To a next hop that the FIB says how to reach, of another table or under a condition;
    /// [`Path::resolved`] makes it.
    Through {
        /// The next hop's address, of either family.
        next_hop: IpAddr,
        /// Small number of the table that says; without, the route's own.
        table: Option<u32>,
        /// What the route that covers the next hop must be.
        only: Option<Only>,
    },
    /// To hosts on this interface directly.
    Attached(InterfaceId),
    /// To all hosts of an interface's IPv4 subnet (RFC 1812 §5.3.5.2).
    Broadcast {
        /// The interface.
        interface: InterfaceId,
        /// Is it forwarded, when it comes from elsewhere (RFC 2644)?
        forward: bool,
    },
    /// To the router itself, by the operator's or a feature's choice.
    Local,
    /// To the router itself: an interface has this address.
    InterfaceAddress,
    /// To nobody.
    Drop,
    /// To nobody; the sender is told that the destination is unreachable.
    Unreachable,
    /// To nobody; the sender is told that it may not go there.
    Prohibit,
    /// To the control plane.
    Punt,
    /// Look the destination up in another table.
    LookupIn {
        /// That table's family.
        family: Family,
        /// Its small number.
        table: u32,
    },
    /// Look the source up in a table of the packet's family; its route decides.
    SourceLookupIn {
        /// The table's family.
        family: Family,
        /// Its small number.
        table: u32,
    },
    /// Take the label off, and look the next one up in another label table.
    LabelLookupIn {
        /// Its small number.
        table: u32,
    },
    /// As the route of a label does, without that label: the first segment of an SR-MPLS policy
    /// (RFC 8660 §2.10.1).
    ThroughLabel {
        /// The label.
        label: u32,
        /// Small number of the label table.
        table: u32,
    },
    /// Receive the packet once more, on this interface.
    InterfaceRx(InterfaceId),
    /// Take the label off, and receive the Ethernet frame behind it on this interface.
    FrameRx(InterfaceId),
    /// Where a next-hop object leads
    /// ([`Fib::set_next_hop_object`](super::Fib::set_next_hop_object)).
    NextHopObject(NextHopObjectId),
    /// A feature's own node, with what it needs.
    Feature(Hop),
}

/// What the route that covers a next hop must be, for the next hop to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Only {
    /// A route for that address alone (VPP: `resolve-via-host`): a less specific one, as the
    /// default route, does not count.
    Host,
    /// Attached: the next hop is a neighbour's address (VPP: `resolve-via-attached`).
    Attached,
}

/// One path of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Paths with the lowest number that can be used share the traffic; others wait.
    pub preference: u8,
    /// Where to.
    pub target: Target,
    /// The labels that packets get; of a label's route, those in place of the label.
    pub labels: OutLabels,
    /// Its share of the traffic, relative to the others (1 or more).
    pub weight: u32,
}

impl Path {
    /// A path of weight 1 and preference 0.
    pub fn new(target: Target) -> Path {
        Path { preference: 0, target, labels: OutLabels::NONE, weight: 1 }
    }

    /// A path to a next hop.
    pub fn via(next_hop: impl Into<IpAddr>, interface: Option<InterfaceId>) -> Path {
        Path::new(Target::Via { next_hop: next_hop.into(), interface })
    }

    /// A path to a next hop that the FIB says how to reach: that of table `table` (a small number)
    /// if given, and only if the route that says so is what `only` asks for.
    pub fn resolved(next_hop: impl Into<IpAddr>, table: Option<u32>, only: Option<Only>) -> Path {
        let next_hop = next_hop.into();
        match (table, only) {
            (None, None) => Path::via(next_hop, None),
            _ => Path::new(Target::Through { next_hop, table, only }),
        }
    }

    /// With another weight.
    pub fn weight(self, weight: u32) -> Path {
        Path { weight, ..self }
    }

    /// With another preference.
    pub fn preference(self, preference: u8) -> Path {
        Path { preference, ..self }
    }

    /// With these labels.
    pub fn labels(self, labels: OutLabels) -> Path {
        Path { labels, ..self }
    }

    /// Are both the same but for their weights?
    pub fn is_same(&self, other: &Path) -> bool {
        (self.preference, self.target, &self.labels)
            == (other.preference, other.target, &other.labels)
    }

    /// Does this path, by which another is taken away, mean that one? Without labels it means the
    /// path whatever its labels are.
    pub(super) fn means(&self, other: &Path) -> bool {
        (self.preference, self.target) == (other.preference, other.target)
            && (self.labels.is_empty() || self.labels == other.labels)
    }

    /// The interface whose hosts it reaches directly.
    pub(super) fn attached(&self) -> Option<InterfaceId> {
        match self.target {
            Target::Attached(interface) => Some(interface),
            _ => None,
        }
    }

    /// The interface that the path names.
    pub(super) fn named(&self) -> Option<InterfaceId> {
        match self.target {
            Target::Via { interface, .. } => interface,
            Target::Attached(on)
            | Target::Neighbour { interface: on, .. }
            | Target::Broadcast { interface: on, .. }
            | Target::InterfaceRx(on)
            | Target::FrameRx(on) => Some(on),
            _ => None,
        }
    }

    /// Does the path name this interface?
    pub(super) fn names(&self, interface: InterfaceId) -> bool {
        self.named() == Some(interface)
    }

    /// May it become several hops, though it is one path?
    pub(super) fn unfolds(&self) -> bool {
        matches!(
            self.target,
            Target::Through { .. } | Target::NextHopObject(_) | Target::ThroughLabel { .. }
        )
    }

    /// Does it look a label up in this label table?
    pub(super) fn looks_in_labels(&self, index: u32) -> bool {
        match self.target {
            Target::LabelLookupIn { table } | Target::ThroughLabel { table, .. } => table == index,
            _ => false,
        }
    }

    /// Does it look something up in this table?
    pub(super) fn looks_in(&self, of: Family, index: u32) -> bool {
        match self.target {
            Target::LookupIn { family, table } | Target::SourceLookupIn { family, table } => {
                (family, table) == (of, index)
            }
            Target::Through { next_hop, table, .. } => {
                table == Some(index) && Family::of(next_hop) == of
            }
            _ => false,
        }
    }

    /// Is its next hop looked up in the table that it belongs to?
    pub(super) fn is_recursive(&self) -> bool {
        matches!(
            self.target,
            Target::Via { interface: None, .. } | Target::Through { table: None, .. }
        )
    }
}
