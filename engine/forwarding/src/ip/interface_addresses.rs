//! Addresses of interfaces for features that configure them beside the operator.

use std::net::{IpAddr, Ipv4Addr};

use quiver_core::{Engine, InterfaceId};
use quiver_wire::Ip6InterfaceAddress;

/// A leased address and the length of its prefix, if there is one.
pub type Leased = Option<(Ipv4Addr, u8)>;

/// Calls into `quiver-ip`, which puts them into the engine when it starts. An error is a sentence
/// for the operator, and changes nothing.
#[derive(Clone, Copy)]
pub struct InterfaceAddresses {
    /// Give an interface an address with the length of its prefix. A link-local address takes the
    /// place of the one that it has.
    pub add: fn(&mut Engine, InterfaceId, IpAddr, u8) -> Result<(), String>,
    /// Take an address from an interface.
    pub remove: fn(&mut Engine, InterfaceId, IpAddr, u8) -> Result<(), String>,
    /// Let an interface have this leased IPv4 address, or none. `show running-config` leaves it
    /// out.
    pub lease: fn(&mut Engine, InterfaceId, Leased) -> Result<(), String>,
    /// Give an interface a leased IPv6 address, which is deprecated (RFC 4862 §5.5.4) or not;
    /// change that of one that it has. `show running-config` leaves it out. It is not used before
    /// duplicate address detection. An operator who configures the address takes it from the lease.
    pub lease6: fn(&mut Engine, InterfaceId, Ip6InterfaceAddress, bool) -> Result<(), String>,
    /// Take a leased IPv6 address from an interface, if it has it.
    pub release6: fn(&mut Engine, InterfaceId, Ip6InterfaceAddress) -> Result<(), String>,
    /// Has an interface this leased IPv6 address?
    pub is_leased6: fn(&Engine, InterfaceId, Ip6InterfaceAddress) -> bool,
    /// Let an interface speak IPv6 because a DHCPv6 client is on it, or for that no more.
    pub serve_client6: fn(&mut Engine, InterfaceId, bool) -> Result<(), String>,
    /// Was somebody else heard to use an address of an interface (RFC 5227 §2)?
    pub is_claimed: fn(&Engine, InterfaceId, IpAddr) -> bool,
    /// The configured and leased addresses of an interface, with the lengths of their prefixes.
    pub of: fn(&Engine, InterfaceId) -> Vec<(IpAddr, u8)>,
    /// The IDs of an interface's IPv4 and IPv6 tables.
    pub tables: fn(&Engine, InterfaceId) -> [u32; 2],
    /// How often addresses of any interface were changed.
    pub changes: fn(&Engine) -> u64,
}
