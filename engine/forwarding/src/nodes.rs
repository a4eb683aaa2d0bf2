//! The names of the nodes of IPv4 and IPv6, which features lead packets to and place themselves
//! before.

/// Sorts packets of either family, without a link header.
pub const IP_INPUT: &str = "ip-input";
/// Frees packets that the router itself has dealt with.
pub const IP_DONE: &str = "ip-done";
/// Receives ARP.
pub const ARP_INPUT: &str = "arp-input";

/// Nodes of IPv4.
pub mod ip4 {
    /// Checks headers.
    pub const INPUT: &str = "ip4-input";
    /// Looks destinations up.
    pub const LOOKUP: &str = "ip4-lookup";
    /// Looks destinations up in the table that a route names.
    pub const LOOKUP_IN_TABLE: &str = "ip4-lookup-in-table";
    /// Looks sources up in the table that a route names.
    pub const SOURCE_LOOKUP_IN_TABLE: &str = "ip4-source-lookup-in-table";
    /// Receives packets once more, on the interface that a route names.
    pub const INTERFACE_RX: &str = "ip4-interface-rx";
    /// Puts the neighbour's link header in front.
    pub const REWRITE: &str = "ip4-rewrite";
    /// Takes packets longer than the outgoing MTU.
    pub const TOO_BIG: &str = "ip4-too-big";
    /// Fragments packets.
    pub const FRAG: &str = "ip4-frag";
    /// Sorts packets for the router itself.
    pub const LOCAL: &str = "ip4-local";
    /// Receives ICMP.
    pub const ICMP_INPUT: &str = "ip4-icmp-input";
    /// Answers echo requests.
    pub const ICMP_ECHO_REQUEST: &str = "ip4-icmp-echo-request";
    /// Sends ICMP errors.
    pub const ICMP_ERROR: &str = "ip4-icmp-error";
    /// Resolves next hops by ARP.
    pub const ARP: &str = "ip4-arp";
    /// Resolves connected destinations.
    pub const GLEAN: &str = "ip4-glean";
    /// Has neighbours confirmed.
    pub const CONFIRM_NEIGHBOR: &str = "ip4-confirm-neighbor";
    /// Counts packets by adjacency.
    pub const ADJACENCY_COUNTER: &str = "ip4-adjacency-counter";
    /// Sends broadcasts into a subnet.
    pub const DIRECTED_BROADCAST: &str = "ip4-directed-broadcast";
    /// Drops what no route takes.
    pub const DROP: &str = "ip4-drop";
    /// Hands packets to the host.
    pub const PUNT: &str = "ip4-punt";
}

/// Nodes of IPv6.
pub mod ip6 {
    /// Checks headers.
    pub const INPUT: &str = "ip6-input";
    /// Looks destinations up.
    pub const LOOKUP: &str = "ip6-lookup";
    /// Looks destinations up in the table that a route names.
    pub const LOOKUP_IN_TABLE: &str = "ip6-lookup-in-table";
    /// Looks sources up in the table that a route names.
    pub const SOURCE_LOOKUP_IN_TABLE: &str = "ip6-source-lookup-in-table";
    /// Receives packets once more, on the interface that a route names.
    pub const INTERFACE_RX: &str = "ip6-interface-rx";
    /// Looks link-local destinations up, in the table of the interface.
    pub const LINK_LOCAL: &str = "ip6-link-local";
    /// Puts the neighbour's link header in front.
    pub const REWRITE: &str = "ip6-rewrite";
    /// Fragments packets.
    pub const FRAG: &str = "ip6-frag";
    /// Sorts packets for the router itself.
    pub const LOCAL: &str = "ip6-local";
    /// Receives ICMP.
    pub const ICMP_INPUT: &str = "ip6-icmp-input";
    /// Answers echo requests.
    pub const ICMP_ECHO_REQUEST: &str = "ip6-icmp-echo-request";
    /// Sends ICMP errors.
    pub const ICMP_ERROR: &str = "ip6-icmp-error";
    /// Resolves next hops by neighbour discovery.
    pub const DISCOVER_NEIGHBOR: &str = "ip6-discover-neighbor";
    /// Resolves connected destinations.
    pub const GLEAN: &str = "ip6-glean";
    /// Has neighbours confirmed.
    pub const CONFIRM_NEIGHBOR: &str = "ip6-confirm-neighbor";
    /// Counts packets by adjacency.
    pub const ADJACENCY_COUNTER: &str = "ip6-adjacency-counter";
    /// Drops what no route takes.
    pub const DROP: &str = "ip6-drop";
    /// Hands packets to the host.
    pub const PUNT: &str = "ip6-punt";
    /// Receives neighbour solicitations.
    pub const NEIGHBOR_SOLICITATION: &str = "icmp6-neighbor-solicitation";
    /// Receives neighbour advertisements.
    pub const NEIGHBOR_ADVERTISEMENT: &str = "icmp6-neighbor-advertisement";
}
