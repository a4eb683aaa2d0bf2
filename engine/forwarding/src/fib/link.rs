//! What an adjacency or a list of paths is for: packets of one kind, as they come to it.

use std::fmt;

use super::path::Family;

/// Kind of packets that come to an adjacency or a next-hop group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// IPv4 packets.
    Ip4,
    /// IPv6 packets.
    Ip6,
    /// Ethernet frames, which leave behind labels.
    Ethernet,
    /// Labelled packets whose label stack stays as it is.
    Mpls,
    /// Labelled packets whose top label the route takes off.
    Label {
        /// Is it the last one of the stack?
        is_bottom: bool,
    },
}

impl Link {
    /// All kinds, in their order.
    pub const ALL: [Link; 6] = [
        Link::Ip4,
        Link::Ip6,
        Link::Ethernet,
        Link::Mpls,
        Link::Label { is_bottom: false },
        Link::Label { is_bottom: true },
    ];

    /// The family of IP packets; none of others.
    pub const fn family(self) -> Option<Family> {
        match self {
            Link::Ip4 => Some(Family::Ip4),
            Link::Ip6 => Some(Family::Ip6),
            Link::Ethernet | Link::Mpls | Link::Label { .. } => None,
        }
    }

    /// As a small number, below 8.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Link::Ip4 => 0,
            Link::Ip6 => 1,
            Link::Ethernet => 2,
            Link::Mpls => 3,
            Link::Label { is_bottom: false } => 4,
            Link::Label { is_bottom: true } => 5,
        }
    }
}

impl From<Family> for Link {
    fn from(family: Family) -> Link {
        match family {
            Family::Ip4 => Link::Ip4,
            Family::Ip6 => Link::Ip6,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Ip4 => "IPv4",
            Link::Ip6 => "IPv6",
            Link::Ethernet => "Ethernet",
            Link::Mpls => "MPLS",
            Link::Label { is_bottom: false } => "MPLS-non-eos",
            Link::Label { is_bottom: true } => "MPLS-eos",
        })
    }
}
