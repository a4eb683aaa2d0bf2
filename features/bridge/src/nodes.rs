//! The names of the nodes of bridges.

/// Receives frames on a bridge's ports.
pub(crate) const INPUT: &str = "l2-input";
/// Learns senders.
pub(crate) const LEARN: &str = "l2-learn";
/// Learns senders in domains that flood every frame.
pub(crate) const FLOOD_LEARN: &str = "l2-flood-learn";
/// Looks destinations up.
pub(crate) const FORWARD: &str = "l2-fwd";
/// Sends frames to groups by all ports.
pub(crate) const FLOOD: &str = "l2-flood";
/// Sends frames to unknown stations by all ports.
pub(crate) const UU_FLOOD: &str = "l2-uu-flood";
/// Answers ARP and ND for stations that the domain knows.
pub(crate) const ARP_TERMINATION: &str = "arp-term-l2bd";
/// Receives frames on a bridge's routed interface.
pub(crate) const BVI_INPUT: &str = "bvi-input";
/// Takes what is sent by a bridge's routed interface into the bridge.
pub(crate) const BVI_OUTPUT: &str = "bvi-output";
