//! What IP nodes of all features read: the forwarding tables, what is known of interfaces, and the
//! choice among the paths of a route. `quiver-ip` keeps it, and shares it as [`IpTables`].

mod addresses;
mod autoconfig;
mod choice;
mod family;
mod interfaces;
mod neighbour_counts;

/// Before `ip4-local` and `ip6-local`, in a packet's index: its multicast route leads to the router
/// itself, whether or not the interface listens to the group.
pub const GROUP_ACCEPTED: u32 = u32::MAX;

pub use addresses::Addresses;
pub use autoconfig::{AutoAddress, AutoAddressState, AutoSettings, Autoconfiguration};
pub use choice::{choose, destination, flow_hash, noted, one_hop, take_hop};
pub use family::{Ip4, Ip6, IpFamily, Sources};
pub use interfaces::{IpInterfaces, IpTables, NOT_ENABLED};
pub use neighbour_counts::{Direction, NeighbourCounts, NeighbourMessage, NeighbourProtocol};
