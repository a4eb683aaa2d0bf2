//! Neighbours, and the forwarding database of bridges: `RTM_NEWNEIGH`, `RTM_DELNEIGH`
//! (linux/neighbour.h).

use std::net::IpAddr;

use crate::message::{Attributes, flag, number};
use crate::request::Request;
use crate::route::protocol;
use crate::{family, ip_address};

/// A neighbour is known, or is known by something else.
pub const NEW: u16 = libc::RTM_NEWNEIGH;
/// A neighbour is known no more.
pub const DELETED: u16 = libc::RTM_DELNEIGH;

/// Bytes of a neighbour's own header.
const HEADER_BYTES: usize = 12;

const DESTINATION: u16 = 1;
const MAC: u16 = 2;
const VLAN: u16 = 5;
const MASTER: u16 = 9;
const PROTOCOL: u16 = 12;
const OBJECT: u16 = 13;

/// The entry is the bridge's that the link is a port of (`NTF_MASTER`).
const OF_MASTER: u8 = 4;
/// Somebody else has learned it (`NTF_EXT_LEARNED`).
const EXTERNAL: u8 = 16;

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The family; [`family::BRIDGE`](crate::family::BRIDGE) for an entry of a bridge.
    pub family: u8,
    /// The number of the link.
    pub link: u32,
    /// Whose it is.
    pub address: Option<IpAddr>,
    /// The layer 2 address.
    pub mac: Option<[u8; 6]>,
    /// The next-hop object that stands for several far ends of a VXLAN device (`NDA_NH_ID`).
    pub object: Option<u32>,
    /// The VLAN of a bridge's entry.
    pub vlan: Option<u16>,
    /// Linux's state, `NUD_…`.
    pub state: u16,
    /// The bridge that has the entry; none for one of the link itself.
    pub master: Option<u32>,
    /// Did somebody else than the kernel learn it (`NTF_EXT_LEARNED`)?
    pub is_external: bool,
    /// Who made it: one of [`route::protocol`](crate::route::protocol), 0 where nobody says.
    pub protocol: u8,
}

impl Neighbour {
    /// What the body of a message says.
    pub fn read(body: &[u8]) -> Option<Neighbour> {
        let header = body.first_chunk::<HEADER_BYTES>()?;
        let mut neighbour = Neighbour {
            family: header[0],
            link: u32::from_ne_bytes([header[4], header[5], header[6], header[7]]),
            address: None,
            mac: None,
            object: None,
            vlan: None,
            state: u16::from_ne_bytes([header[8], header[9]]),
            master: None,
            is_external: header[10] & EXTERNAL != 0,
            protocol: 0,
        };
        for (number_of, value) in Attributes::behind(body, HEADER_BYTES) {
            match number_of {
                DESTINATION => neighbour.address = ip_address(value),
                MAC => neighbour.mac = <[u8; 6]>::try_from(value).ok(),
                MASTER => neighbour.master = number(value),
                OBJECT => neighbour.object = number(value),
                PROTOCOL => neighbour.protocol = value.first().copied().unwrap_or(0),
                VLAN => neighbour.vlan = value.first_chunk().map(|vlan| u16::from_ne_bytes(*vlan)),
                _ => {}
            }
        }
        Some(neighbour)
    }

    /// Was it configured?
    pub fn is_permanent(&self) -> bool {
        self.state & libc::NUD_PERMANENT != 0
    }

    /// Does an entry of a bridge neither age nor move (`NUD_NOARP`)?
    pub fn is_static(&self) -> bool {
        self.state & libc::NUD_NOARP != 0
    }

    /// Is its layer 2 address good to send to?
    pub fn is_usable(&self) -> bool {
        let usable = libc::NUD_PERMANENT
            | libc::NUD_NOARP
            | libc::NUD_REACHABLE
            | libc::NUD_STALE
            | libc::NUD_DELAY
            | libc::NUD_PROBE;
        self.state & usable != 0
    }
}

/// A station behind a port of a bridge that somebody else has learned (`NTF_EXT_LEARNED`): it does
/// not age, and goes where the bridge sees it at another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedStation {
    /// The number of the port.
    pub link: u32,
    /// The layer 2 address.
    pub mac: [u8; 6],
}

impl LearnedStation {
    fn request(&self, kind: u16, flags: u16) -> Request {
        let mut header = [0; HEADER_BYTES];
        header[0] = family::BRIDGE;
        header[4..8].copy_from_slice(&self.link.to_ne_bytes());
        header[8..10].copy_from_slice(&libc::NUD_REACHABLE.to_ne_bytes());
        header[10] = OF_MASTER | EXTERNAL;
        Request::new(kind, flags | flag::ACK, &header).attribute(MAC, &self.mac)
    }

    /// Let the bridge have it.
    pub fn add(&self) -> Request {
        self.request(NEW, flag::CREATE | flag::REPLACE)
    }

    /// Remove it.
    pub fn remove(&self) -> Request {
        self.request(DELETED, 0)
    }
}

/// A neighbour of the router's that is to be made or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNeighbour {
    /// The number of the link.
    pub link: u32,
    /// Whose it is.
    pub address: IpAddr,
}

impl NewNeighbour {
    fn request(&self, kind: u16, flags: u16, state: u16) -> Request {
        let of = if self.address.is_ipv4() { family::IP4 } else { family::IP6 };
        let mut header = [0; HEADER_BYTES];
        header[0] = of;
        header[4..8].copy_from_slice(&self.link.to_ne_bytes());
        header[8..10].copy_from_slice(&state.to_ne_bytes());
        let request = Request::new(kind, flags | flag::ACK, &header);
        match self.address {
            IpAddr::V4(address) => request.attribute(DESTINATION, &address.octets()),
            IpAddr::V6(address) => request.attribute(DESTINATION, &address.octets()),
        }
    }

    /// Make it one with this layer 2 address, which does not age, whatever is known of it.
    pub fn add(&self, mac: [u8; 6]) -> Request {
        let flags = flag::CREATE | flag::REPLACE;
        let request = self.request(NEW, flags, libc::NUD_PERMANENT).attribute(MAC, &mac);
        request.attribute(PROTOCOL, &[protocol::QUIVER])
    }

    /// Remove it.
    pub fn remove(&self) -> Request {
        self.request(DELETED, 0, 0)
    }
}

/// Ask for all neighbours of a family; [`family::BRIDGE`](crate::family::BRIDGE) for entries of
/// bridges.
pub fn dump(of: u8) -> Request {
    let mut header = [0; HEADER_BYTES];
    header[0] = of;
    Request::new(libc::RTM_GETNEIGH, flag::DUMP, &header)
}
