//! Next-hop objects, and groups of them: `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP` (linux/nexthop.h).

use std::net::IpAddr;

use crate::ip_address;
use crate::message::{Attributes, flag, number};
use crate::request::Request;

/// An object is there, or is another one now.
pub const NEW: u16 = 104;
/// An object is gone.
pub const DELETED: u16 = 105;
const GET: u16 = 106;

/// Bytes of an object's own header.
const HEADER_BYTES: usize = 8;
/// Bytes of one member of a group.
const MEMBER_BYTES: usize = 8;

const ID: u16 = 1;
const GROUP: u16 = 2;
const BLACKHOLE: u16 = 4;
const LINK: u16 = 5;
const GATEWAY: u16 = 6;
const ENCAP_TYPE: u16 = 7;
const ENCAP: u16 = 8;
const FDB: u16 = 11;

/// What an object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Packets are dropped.
    Blackhole,
    /// One next hop.
    Hop {
        /// Its address; none when hosts are on the link.
        gateway: Option<IpAddr>,
        /// The number of the link; 0 for none.
        link: u32,
        /// A lightweight tunnel's kind and attributes.
        encap: Option<(u16, &'a [u8])>,
    },
    /// Other objects, and the share of each, 1 or more.
    Group(Vec<(u32, u32)>),
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop<'a> {
    /// Its number.
    pub id: u32,
    /// What it says.
    pub kind: Kind<'a>,
    /// Is it a far end of VXLAN devices, or a group of such (`NHA_FDB`), and none of packets?
    pub is_far_end: bool,
}

fn members(value: &[u8]) -> Vec<(u32, u32)> {
    let member = |bytes: &[u8]| {
        let id = u32::from_ne_bytes(bytes.first_chunk().copied().unwrap_or_default());
        (id, u32::from(u16::from_le_bytes([bytes[4], bytes[5]])) + 1)
    };
    value.chunks_exact(MEMBER_BYTES).map(member).collect()
}

impl<'a> NextHop<'a> {
    /// What the body of a message says.
    pub fn read(body: &'a [u8]) -> Option<NextHop<'a>> {
        body.first_chunk::<HEADER_BYTES>()?;
        let (mut id, mut gateway, mut link, mut group) = (None, None, 0, None);
        let (mut encap_kind, mut encap, mut is_blackhole) = (None, None, false);
        let mut is_far_end = false;
        for (number_of, value) in Attributes::behind(body, HEADER_BYTES) {
            match number_of {
                ID => id = number(value),
                GROUP => group = Some(members(value)),
                BLACKHOLE => is_blackhole = true,
                LINK => link = number(value)?,
                GATEWAY => gateway = ip_address(value),
                ENCAP_TYPE => {
                    encap_kind = value.first_chunk().map(|kind| u16::from_ne_bytes(*kind));
                }
                ENCAP => encap = Some(value),
                FDB => is_far_end = true,
                _ => {}
            }
        }
        let encap = encap_kind.filter(|kind| *kind != 0).zip(encap);
        let kind = match group {
            _ if is_blackhole => Kind::Blackhole,
            Some(group) => Kind::Group(group),
            None => Kind::Hop { gateway, link, encap },
        };
        Some(NextHop { id: id?, kind, is_far_end })
    }
}

/// Ask for all objects.
pub fn dump() -> Request {
    Request::new(GET, flag::DUMP, &[0; HEADER_BYTES])
}
