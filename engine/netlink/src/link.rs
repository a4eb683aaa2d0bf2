//! Links: `RTM_NEWLINK`, `RTM_DELLINK` (linux/if_link.h).

use std::net::IpAddr;

use crate::family;
use crate::message::{Attributes, flag, number, text};
use crate::request::{Request, attribute_bytes};

/// A link is there, or has changed.
pub const NEW: u16 = libc::RTM_NEWLINK;
/// A link is gone.
pub const DELETED: u16 = libc::RTM_DELLINK;

/// Bytes of a link's own header.
const HEADER_BYTES: usize = 16;

const ADDRESS: u16 = 1;
const NAME: u16 = 3;
const MTU: u16 = 4;
const PARENT: u16 = 5;
const MASTER: u16 = 10;
const KIND_AND_DATA: u16 = 18;
const PARENT_NAMESPACE: u16 = 37;
/// Attributes of [`KIND_AND_DATA`].
const KIND: u16 = 1;
const DATA: u16 = 2;
const MASTER_KIND: u16 = 4;
/// Attributes of a VLAN's data.
const VLAN_ID: u16 = 1;
const VLAN_PROTOCOL: u16 = 5;
/// Attributes of a VXLAN device's data (linux/if_link.h).
const VXLAN_ID: u16 = 1;
const VXLAN_LOCAL: u16 = 4;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_LOCAL6: u16 = 17;
/// What a bridge says of its port, and what it has (linux/if_link.h, `IFLA_BRPORT_…`).
const OF_PORT: u16 = 12;
const NESTED: u16 = libc::NLA_F_NESTED as u16;
const PORT_LEARNS: u16 = 8;
const PORT_FLOODS: [u16; 3] = [9, 27, 30];
/// What a family says of a link, and how IPv6 makes its link-local address.
const OF_FAMILIES: u16 = 26;
const IP6_ADDRESS_MODE: u16 = 8;
/// It makes none (`IN6_ADDR_GEN_MODE_NONE`).
const NO_ADDRESS: u8 = 1;
/// 802.1Q, in network byte order.
const DOT1Q: u16 = 0x8100;

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The family that the message is about; [`family::BRIDGE`](crate::family::BRIDGE) for what a
    /// bridge says of its port.
    pub family: u8,
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: Option<&'a str>,
    /// Is it administratively up?
    pub is_up: bool,
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: Option<u32>,
    /// Its layer 2 address.
    pub mac: Option<[u8; 6]>,
    /// The link that it belongs to: a bridge, a bond, a VRF.
    pub master: Option<u32>,
    /// The kind of that link (`IFLA_INFO_SLAVE_KIND`).
    pub master_kind: Option<&'a str>,
    /// Can it send and receive (`IFF_RUNNING`)?
    pub is_running: bool,
    /// The link of the same namespace that it stands on.
    pub parent: Option<u32>,
    /// Its kind: `macvlan`, `vlan`, ….
    pub kind: Option<&'a str>,
    /// The EtherType and the ID of a VLAN.
    pub vlan: Option<(u16, u16)>,
    /// The VNI of a VXLAN device.
    pub vni: Option<u32>,
}

/// What a link is by its kind.
#[derive(Default)]
struct KindOf<'a> {
    kind: Option<&'a str>,
    /// The EtherType and ID of a VLAN.
    vlan: Option<(u16, u16)>,
    vni: Option<u32>,
    /// The kind of the link's master.
    master_kind: Option<&'a str>,
}

fn kind_of(value: &[u8]) -> KindOf<'_> {
    let (mut kind, mut data, mut master_kind) = (None, None, None);
    for (number_of, value) in Attributes::of(value) {
        match number_of {
            KIND => kind = text(value),
            DATA => data = Some(value),
            MASTER_KIND => master_kind = text(value),
            _ => {}
        }
    }
    let (mut id, mut ether_type) = (None, DOT1Q);
    for (number_of, value) in
        data.filter(|_| kind == Some("vlan")).map(Attributes::of).into_iter().flatten()
    {
        match (number_of, value.first_chunk()) {
            (VLAN_ID, Some(bytes)) => id = Some(u16::from_ne_bytes(*bytes)),
            (VLAN_PROTOCOL, Some(bytes)) => ether_type = u16::from_be_bytes(*bytes),
            _ => {}
        }
    }
    let data = data.filter(|_| kind == Some("vxlan")).map(Attributes::of).into_iter().flatten();
    let mut vnis = data.filter(|(number_of, _)| *number_of == VXLAN_ID);
    let vni = vnis.next().and_then(|(_, value)| number(value));
    KindOf { kind, vlan: id.map(|id| (ether_type, id)), vni, master_kind }
}

impl<'a> Link<'a> {
    /// What the body of a message says.
    pub fn read(body: &'a [u8]) -> Option<Link<'a>> {
        let header = body.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let mut link = Link {
            family: header[0],
            index: word(4),
            name: None,
            is_up: word(8) & libc::IFF_UP as u32 != 0,
            mtu_bytes: None,
            mac: None,
            master: None,
            master_kind: None,
            is_running: word(8) & libc::IFF_RUNNING as u32 != 0,
            parent: None,
            kind: None,
            vlan: None,
            vni: None,
        };
        let mut is_parent_elsewhere = false;
        for (number_of, value) in Attributes::behind(body, HEADER_BYTES) {
            match number_of {
                ADDRESS => link.mac = <[u8; 6]>::try_from(value).ok(),
                NAME => link.name = text(value),
                MTU => link.mtu_bytes = number(value),
                MASTER => link.master = number(value),
                PARENT => link.parent = number(value).filter(|parent| *parent != 0),
                PARENT_NAMESPACE => is_parent_elsewhere = true,
                KIND_AND_DATA => {
                    let KindOf { kind, vlan, vni, master_kind } = kind_of(value);
                    (link.kind, link.vlan, link.vni) = (kind, vlan, vni);
                    link.master_kind = master_kind;
                }
                _ => {}
            }
        }
        if is_parent_elsewhere {
            link.parent = None;
        }
        Some(link)
    }
}

/// Ask for all links.
pub fn dump() -> Request {
    Request::new(libc::RTM_GETLINK, flag::DUMP, &[0; HEADER_BYTES])
}

/// What is to change about a link; nothing about what is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// Administratively up or down.
    pub up: Option<bool>,
    /// MTU, bytes.
    pub mtu_bytes: Option<u32>,
    /// Layer 2 address.
    pub mac: Option<[u8; 6]>,
}

impl LinkChange {
    /// The request for the link of this number.
    pub fn request(&self, index: u32) -> Request {
        let up_bit = libc::IFF_UP as u32;
        let (flags, mask) = match self.up {
            Some(true) => (up_bit, up_bit),
            Some(false) => (0, up_bit),
            None => (0, 0),
        };
        let mut header = header_of(index);
        header[8..12].copy_from_slice(&u32::to_ne_bytes(flags));
        header[12..16].copy_from_slice(&u32::to_ne_bytes(mask));
        let mut request = Request::new(NEW, flag::ACK, &header);
        if let Some(mtu_bytes) = self.mtu_bytes {
            request = request.attribute(MTU, &mtu_bytes.to_ne_bytes());
        }
        if let Some(mac) = self.mac {
            request = request.attribute(ADDRESS, &mac);
        }
        request
    }
}

/// A link that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// What it is.
    pub kind: NewKind,
    /// The bridge that it becomes a port of.
    pub bridge: Option<u32>,
}

/// What a link is that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewKind {
    /// A bridge.
    Bridge,
    /// A device that sends nothing, and has a layer 2 address (`ifb`).
    Silent,
    /// A VXLAN device that learns nothing by itself.
    Vxlan {
        /// The VNI.
        vni: u32,
        /// The outer source.
        local: IpAddr,
        /// The UDP port.
        port: u16,
    },
}

impl NewLink {
    /// Make it, unless a link has its name.
    pub fn create(&self) -> Request {
        let (kind, data) = match self.kind {
            NewKind::Bridge => ("bridge", Vec::new()),
            NewKind::Silent => ("ifb", Vec::new()),
            NewKind::Vxlan { vni, local, port } => {
                let local = match local {
                    IpAddr::V4(local) => attribute_bytes(VXLAN_LOCAL, &local.octets()),
                    IpAddr::V6(local) => attribute_bytes(VXLAN_LOCAL6, &local.octets()),
                };
                let id = attribute_bytes(VXLAN_ID, &vni.to_ne_bytes());
                let port = attribute_bytes(VXLAN_PORT, &port.to_be_bytes());
                ("vxlan", [id, local, port, attribute_bytes(VXLAN_LEARNING, &[0])].concat())
            }
        };
        let mut about = attribute_bytes(KIND, kind.as_bytes());
        if !data.is_empty() {
            about.extend(attribute_bytes(DATA, &data));
        }
        let flags = flag::CREATE | flag::EXCLUSIVE | flag::ACK;
        let name = [self.name.as_bytes(), &[0]].concat();
        let mut request = Request::new(NEW, flags, &[0; HEADER_BYTES]).attribute(NAME, &name);
        if let Some(bridge) = self.bridge {
            request = request.attribute(MASTER, &bridge.to_ne_bytes());
        }
        request.attribute(KIND_AND_DATA, &about)
    }
}

/// Let a link be a port of a bridge.
pub fn join(index: u32, bridge: u32) -> Request {
    Request::new(NEW, flag::ACK, &header_of(index)).attribute(MASTER, &bridge.to_ne_bytes())
}

/// What a bridge does by one of its ports, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortUse {
    /// It learns stations there.
    Learning(bool),
    /// It sends frames there that are for all, or for a station that it does not know.
    Flood(bool),
}

impl PortUse {
    /// The request for the link of this number, which is a port.
    pub fn request(self, index: u32) -> Request {
        let (attributes, is_on) = match self {
            PortUse::Learning(is_on) => (&[PORT_LEARNS][..], is_on),
            PortUse::Flood(is_on) => (&PORT_FLOODS[..], is_on),
        };
        let what = attributes.iter().flat_map(|kind| attribute_bytes(*kind, &[is_on.into()]));
        let mut header = header_of(index);
        header[0] = family::BRIDGE;
        let request = Request::new(libc::RTM_SETLINK, flag::ACK, &header);
        request.attribute(OF_PORT | NESTED, &what.collect::<Vec<u8>>())
    }
}

/// Let a link have no IPv6 address of its own making.
pub fn without_own_address(index: u32) -> Request {
    let header = header_of(index);
    let mode = attribute_bytes(IP6_ADDRESS_MODE, &[NO_ADDRESS]);
    let of_family = attribute_bytes(family::IP6.into(), &mode);
    Request::new(NEW, flag::ACK, &header).attribute(OF_FAMILIES, &of_family)
}

/// Delete a link.
pub fn delete(index: u32) -> Request {
    Request::new(DELETED, flag::ACK, &header_of(index))
}

/// The header of a message about the link of this number.
fn header_of(index: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header
}
