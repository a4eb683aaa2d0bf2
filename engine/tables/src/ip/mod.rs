//! What IP nodes of all features read: the forwarding tables, what is known of interfaces, and the choice
//! among the paths of a route. `quiver-ip` keeps it, and shares it as [`IpTables`].

mod addresses;
mod choice;
mod family;
mod interfaces;

pub use addresses::Addresses;
pub use choice::{choose4, choose6, destination4, destination6};
pub use family::{Ip4, Ip6, IpFamily, Sources};
pub use interfaces::{IpInterfaces, IpTables, NOT_ENABLED};
