//! Addresses of links: `RTM_NEWADDR`, `RTM_DELADDR` (linux/if_addr.h).

use std::net::IpAddr;

use crate::message::{Attributes, flag, number};
use crate::request::Request;
use crate::{family, ip_address};

/// A link has an address.
pub const NEW: u16 = libc::RTM_NEWADDR;
/// A link has an address no more.
pub const DELETED: u16 = libc::RTM_DELADDR;

/// Bytes of an address's own header.
const HEADER_BYTES: usize = 8;

const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const FLAGS: u16 = 8;

/// Somebody else has it too (RFC 4862 §5.4).
const DUPLICATE: u32 = libc::IFA_F_DADFAILED;

/// An address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkAddress {
    /// The number of the link.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix.
    pub length: u8,
    /// Somebody else has it too.
    pub is_duplicate: bool,
}

impl LinkAddress {
    /// What the body of a message says.
    pub fn read(body: &[u8]) -> Option<LinkAddress> {
        let &[of, length, flags, _, a, b, c, d] = body.first_chunk::<HEADER_BYTES>()?;
        let (mut address, mut local, mut flags) = (None, None, u32::from(flags));
        for (number_of, value) in Attributes::behind(body, HEADER_BYTES) {
            match number_of {
                ADDRESS => address = ip_address(value),
                // Of a point-to-point link the other one is the peer's.
                LOCAL => local = ip_address(value),
                FLAGS => flags = number(value)?,
                _ => {}
            }
        }
        let address = local.or(address)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (length <= bits).then_some(())?;
        ((of == family::IP4) == address.is_ipv4()).then_some(LinkAddress {
            link: u32::from_ne_bytes([a, b, c, d]),
            address,
            length,
            is_duplicate: flags & DUPLICATE != 0,
        })
    }

    fn request(&self, kind: u16, flags: u16) -> Request {
        let of = if self.address.is_ipv4() { family::IP4 } else { family::IP6 };
        let [a, b, c, d] = self.link.to_ne_bytes();
        let octets = match self.address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        Request::new(kind, flags | flag::ACK, &[of, self.length, 0, 0, a, b, c, d])
            .attribute(LOCAL, &octets)
            .attribute(ADDRESS, &octets)
    }

    /// Give the link this address.
    pub fn add(&self) -> Request {
        self.request(NEW, flag::CREATE | flag::REPLACE)
    }

    /// Take this address from the link.
    pub fn remove(&self) -> Request {
        self.request(DELETED, 0)
    }
}

/// Ask for all addresses of both families.
pub fn dump() -> Request {
    Request::new(libc::RTM_GETADDR, flag::DUMP, &[0; HEADER_BYTES])
}
