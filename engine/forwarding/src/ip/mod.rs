//! What IP nodes of all features read: the forwarding tables, what is known of interfaces, and the
//! choice among the paths of a route. `quiver-ip` keeps it, and shares it as [`IpTables`].

mod addresses;
mod autoconfig;
mod choice;
mod family;
mod group_membership;
mod in_frame;
mod interface_addresses;
mod interfaces;
mod neighbour_counts;
mod traffic_class;
mod udp_ports;

pub use addresses::Addresses;
pub use autoconfig::{AutoAddress, AutoAddressState, AutoSettings, Autoconfiguration};
pub use choice::{choose, destination, flow_hash, noted, one_hop, take_hop};
pub use family::{Ip4, Ip6, IpFamily, Sources};
pub use group_membership::GroupMembership;
pub use in_frame::{ip_header, packet_in_frame};
pub use interface_addresses::{InterfaceAddresses, Leased};
pub use interfaces::{IpInterfaces, IpTables, Listener, NOT_ENABLED};
pub use neighbour_counts::{Direction, NeighbourCounts, NeighbourMessage, NeighbourProtocol};
pub use traffic_class::{set_traffic_class, traffic_class};
pub use udp_ports::{OpenPort, UdpPorts};
