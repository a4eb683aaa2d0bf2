//! IPv6 settings of an interface that routers on its link advertise (RFC 4861 §6.3.4, RFC 4862
//! §5.5): what the feature that receives the advertisements asks of `quiver-ip`, which keeps
//! addresses.

use std::net::Ipv6Addr;

use quiver_core::{Engine, InterfaceId};
use quiver_wire::MacAddress;

/// An address made of an advertised prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoAddress {
    /// The address. It gets a host route; whether its prefix is on the link is another matter.
    pub address: Ipv6Addr,
    /// Its preferred lifetime is over: it is a source only where no other address will do (RFC 4862
    /// §5.5.4).
    pub deprecated: bool,
}

/// What advertisements say of an interface, or made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoSettings {
    /// Addresses, each once.
    pub addresses: Vec<AutoAddress>,
    /// MTU of the link for IPv6, bytes.
    pub mtu_bytes: Option<u16>,
    /// Hop limit of packets that the router makes; not 0.
    pub hop_limit: Option<u8>,
}

/// What became of an address of [`AutoSettings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoAddressState {
    /// Others are being asked for it (RFC 4862 §5.4); it is not used.
    Tentative,
    /// In use.
    Preferred,
    /// In use where no other address will do.
    Deprecated,
    /// Somebody else has it; it is not used.
    Duplicate(MacAddress),
    /// It is configured, here or on another interface of the table, or there is no room for it.
    Refused,
}

impl AutoAddressState {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            AutoAddressState::Tentative => "tentative",
            AutoAddressState::Preferred => "preferred",
            AutoAddressState::Deprecated => "deprecated",
            AutoAddressState::Duplicate(_) => "duplicate",
            AutoAddressState::Refused => "refused",
        }
    }
}

/// Calls into `quiver-ip`, which puts them into the engine when it starts.
#[derive(Clone, Copy)]
pub struct Autoconfiguration {
    /// Make these the advertised settings of an interface, which speaks IPv6 from then on; `None`
    /// takes all of them back. Configured addresses stand before advertised ones. An error is a
    /// sentence for the operator, and changes nothing.
    pub set: fn(&mut Engine, InterfaceId, Option<AutoSettings>) -> Result<(), String>,
    /// What became of an address.
    pub state: fn(&Engine, InterfaceId, Ipv6Addr) -> AutoAddressState,
    /// The interface's link-local address, when it is there and not tentative.
    pub link_local: fn(&Engine, InterfaceId) -> Option<Ipv6Addr>,
}
