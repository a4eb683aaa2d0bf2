//! The names of the nodes of IPv4 and IPv6, which features lead packets to and place themselves
//! before.

/// Sorts packets of either family, without a link header.
pub const IP_INPUT: &str = "ip-input";
/// Frees packets that the router itself has dealt with.
pub const IP_DONE: &str = "ip-done";
/// Receives ARP.
pub const ARP_INPUT: &str = "arp-input";

/// Nodes of labelled packets.
pub mod mpls {
    /// Checks label stacks.
    pub const INPUT: &str = "mpls-input";
    /// Looks the top label up.
    pub const LOOKUP: &str = "mpls-lookup";
    /// Takes the top label off, and looks the next one up.
    pub const LOOKUP_IN_TABLE: &str = "mpls-lookup-in-table";
    /// Puts labels on IPv4 packets.
    pub const IMPOSE_IP4: &str = "ip4-mpls-label-imposition";
    /// Puts labels on IPv6 packets.
    pub const IMPOSE_IP6: &str = "ip6-mpls-label-imposition";
    /// Puts labels on Ethernet frames.
    pub const IMPOSE_ETHERNET: &str = "l2-mpls-label-imposition";
    /// Puts labels, or none, and the neighbour's link header on labelled packets.
    pub const OUTPUT: &str = "mpls-output";
    /// Puts labels in place of the top label, and the neighbour's link header in front.
    pub const SWAP: &str = "mpls-swap";
    /// Takes the last label off, and puts the neighbour's link header in front.
    pub const POP: &str = "mpls-pop";
    /// Takes the last label off, and looks the IPv4 packet up.
    pub const POP_IP4: &str = "mpls-pop-ip4-lookup";
    /// Takes the last label off, and looks the IPv6 packet up.
    pub const POP_IP6: &str = "mpls-pop-ip6-lookup";
    /// Takes the last label off, and receives the packet on another interface.
    pub const INTERFACE_RX: &str = "mpls-interface-rx";
    /// Takes the last label off, and receives the frame behind it.
    pub const FRAME_RX: &str = "mpls-l2-rx";
    /// Drops what no label's route takes.
    pub const DROP: &str = "mpls-drop";
    /// Resolves the next hops of labelled packets by ARP or neighbour discovery.
    pub const RESOLVE_NEIGHBOR: &str = "mpls-resolve-neighbor";
    /// Has neighbours of labelled packets confirmed.
    pub const CONFIRM_NEIGHBOR: &str = "mpls-confirm-neighbor";
    /// Counts packets by labelled adjacency.
    pub const ADJACENCY_COUNTER: &str = "mpls-adjacency-counter";
}

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
