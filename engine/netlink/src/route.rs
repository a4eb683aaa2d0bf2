//! Routes: `RTM_NEWROUTE`, `RTM_DELROUTE` (linux/rtnetlink.h).

use std::net::IpAddr;

use quiver_tables::prefix::{IpPrefix, Prefix};

use crate::message::{Attributes, flag, number};
use crate::request::{Request, attribute_bytes};
use crate::{family, ip_address};

/// A route is there, or is another one now.
pub const NEW: u16 = libc::RTM_NEWROUTE;
/// A route is gone.
pub const DELETED: u16 = libc::RTM_DELROUTE;

/// Bytes of a route's own header.
const HEADER_BYTES: usize = 12;
/// Bytes of the header of one hop of several.
const HOP_HEADER_BYTES: usize = 8;

const DESTINATION: u16 = 1;
const LINK: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const MULTIPATH: u16 = 9;
const TABLE: u16 = 15;
const VIA: u16 = 18;
const ENCAP_TYPE: u16 = 21;
const ENCAP: u16 = 22;
const NEXT_HOP_OBJECT: u16 = 30;

/// What becomes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// They go to a next hop.
    Unicast,
    /// They are dropped.
    Blackhole,
    /// They are dropped, and their sender is told that the destination is unreachable.
    Unreachable,
    /// They are dropped, and their sender is told that it is not allowed.
    Prohibit,
}

/// Who made a route: `RTPROT_…`.
pub mod protocol {
    /// The kernel, for an address.
    pub const KERNEL: u8 = 2;
    /// This router, so that it knows its own again.
    pub const QUIVER: u8 = 81;
}

/// A hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteHop<'a> {
    /// The next hop, of either family; none when hosts are on the link.
    pub gateway: Option<IpAddr>,
    /// The number of the link; 0 for none.
    pub link: u32,
    /// Its share of the traffic, 1 or more.
    pub weight: u32,
    /// A lightweight tunnel's kind and attributes.
    pub encap: Option<(u16, &'a [u8])>,
}

/// A route.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    /// The table's number.
    pub table: u32,
    /// For which destinations.
    pub prefix: IpPrefix,
    /// Who made it.
    pub protocol: u8,
    /// What becomes of packets.
    pub kind: RouteKind,
    /// Routes of one prefix differ in it; the lowest is used.
    pub metric: u32,
    /// The number of the next-hop object that it uses.
    pub next_hop_object: Option<u32>,
    single: RouteHop<'a>,
    multipath: Option<&'a [u8]>,
}

/// What attributes say of one hop.
fn hop_of(attributes: Attributes<'_>, link: u32, weight: u32) -> RouteHop<'_> {
    let mut hop = RouteHop { gateway: None, link, weight, encap: None };
    let (mut encap_kind, mut encap) = (None, None);
    for (number_of, value) in attributes {
        match number_of {
            GATEWAY => hop.gateway = ip_address(value),
            VIA => hop.gateway = value.get(2..).and_then(ip_address),
            LINK => hop.link = number(value).unwrap_or(hop.link),
            ENCAP_TYPE => encap_kind = value.first_chunk().map(|kind| u16::from_ne_bytes(*kind)),
            ENCAP => encap = Some(value),
            _ => {}
        }
    }
    hop.encap = encap_kind.filter(|kind| *kind != 0).zip(encap);
    hop
}

/// The hops of a route with several.
struct Hops<'a>(&'a [u8]);

impl<'a> Iterator for Hops<'a> {
    type Item = RouteHop<'a>;

    fn next(&mut self) -> Option<RouteHop<'a>> {
        let bytes = self.0;
        let header = bytes.first_chunk::<HOP_HEADER_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let weight = u32::from(header[3]) + 1;
        let link = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let own = bytes.get(HOP_HEADER_BYTES..length)?;
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop_of(Attributes::of(own), link, weight))
    }
}

/// A prefix of a family.
fn prefix_of(of: u8, address: Option<&[u8]>, length: u8) -> Option<IpPrefix> {
    let address = match address {
        Some(bytes) => ip_address(bytes)?,
        None if of == family::IP4 => IpAddr::from([0; 4]),
        None => IpAddr::from([0; 16]),
    };
    match address {
        IpAddr::V4(address) if of == family::IP4 && length <= 32 => {
            Some(IpPrefix::V4(Prefix::new(address.to_bits(), length)))
        }
        IpAddr::V6(address) if of == family::IP6 && length <= 128 => {
            Some(IpPrefix::V6(Prefix::new(address.to_bits(), length)))
        }
        _ => None,
    }
}

impl<'a> Route<'a> {
    /// What the body of a message says; none when it is no route that a router follows: local
    /// addresses, broadcast, multicast, clones, source-specific ones.
    pub fn read(body: &'a [u8]) -> Option<Route<'a>> {
        let &[of, length, source_length, tos, table, protocol, _, kind, f0, f1, f2, f3] =
            body.first_chunk::<HEADER_BYTES>()?;
        let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
        let is_clone = flags & libc::RTM_F_CLONED != 0;
        if source_length != 0 || tos != 0 || is_clone {
            return None;
        }
        let kind = match kind {
            libc::RTN_UNICAST => RouteKind::Unicast,
            libc::RTN_BLACKHOLE => RouteKind::Blackhole,
            libc::RTN_UNREACHABLE => RouteKind::Unreachable,
            libc::RTN_PROHIBIT => RouteKind::Prohibit,
            _ => return None,
        };
        let attributes = Attributes::behind(body, HEADER_BYTES);
        let mut route = Route {
            table: table.into(),
            prefix: prefix_of(of, None, 0)?,
            protocol,
            kind,
            metric: 0,
            next_hop_object: None,
            single: hop_of(attributes.clone(), 0, 1),
            multipath: None,
        };
        let mut destination = None;
        for (number_of, value) in attributes {
            match number_of {
                DESTINATION => destination = Some(value),
                PRIORITY => route.metric = number(value)?,
                TABLE => route.table = number(value)?,
                MULTIPATH => route.multipath = Some(value),
                NEXT_HOP_OBJECT => route.next_hop_object = number(value),
                _ => {}
            }
        }
        route.prefix = prefix_of(of, destination, length)?;
        Some(route)
    }

    /// Its hops; none of a route that drops.
    pub fn hops(&self) -> impl Iterator<Item = RouteHop<'a>> {
        let is_unicast = self.kind == RouteKind::Unicast;
        let several = Hops(self.multipath.unwrap_or_default()).filter(move |_| is_unicast);
        let single = Some(self.single).filter(|hop| {
            is_unicast && self.multipath.is_none() && (hop.link != 0 || hop.gateway.is_some())
        });
        single.into_iter().chain(several)
    }
}

/// A hop of a route that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewHop {
    /// The next hop, of either family; none when hosts are on the link. It need not be in a subnet
    /// of the link.
    pub gateway: Option<IpAddr>,
    /// The number of the link.
    pub link: u32,
    /// Its share of the traffic, 1 to 256.
    pub weight: u16,
}

/// A route that is to be made or removed. Of several hops each packet takes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoute<'a> {
    /// The table's number.
    pub table: u32,
    /// For which destinations.
    pub prefix: IpPrefix,
    /// Who makes it.
    pub protocol: u8,
    /// What becomes of packets.
    pub kind: RouteKind,
    /// Routes of one prefix differ in it; the lowest is used.
    pub metric: u32,
    /// Its hops; not looked at of a route that drops.
    pub hops: &'a [NewHop],
}

/// The octets of an address.
fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The attribute of a gateway, for a route of a family: `RTA_VIA` names a gateway of the other one.
fn gateway_attribute(gateway: IpAddr, of: u8) -> (u16, Vec<u8>) {
    let own = if gateway.is_ipv4() { family::IP4 } else { family::IP6 };
    match own == of {
        true => (GATEWAY, octets(gateway)),
        false => (VIA, [&u16::from(own).to_ne_bytes()[..], &octets(gateway)].concat()),
    }
}

impl NewRoute<'_> {
    fn family(&self) -> u8 {
        if self.prefix.is_ip6() { family::IP6 } else { family::IP4 }
    }

    /// The request as far as making and removing have it in common.
    fn request(&self, kind: u16, flags: u16, [scope, what]: [u8; 2], route_flags: u32) -> Request {
        let (first, length) = match self.prefix {
            IpPrefix::V4(prefix) => (octets(IpAddr::V4(prefix.first().into())), prefix.len()),
            IpPrefix::V6(prefix) => (octets(IpAddr::V6(prefix.first().into())), prefix.len()),
        };
        let table = u8::try_from(self.table).unwrap_or(libc::RT_TABLE_UNSPEC);
        let header = [self.family(), length, 0, 0, table, self.protocol, scope, what];
        let header = [&header[..], &route_flags.to_ne_bytes()].concat();
        Request::new(kind, flags | flag::ACK, &header)
            .attribute(DESTINATION, &first)
            .attribute(PRIORITY, &self.metric.to_ne_bytes())
            .attribute(TABLE, &self.table.to_ne_bytes())
    }

    /// Make the route, or put it in place of the one with its prefix and metric.
    pub fn add(&self) -> Request {
        /// The gateway is on the link, whatever the link's subnets are (`RTNH_F_ONLINK`).
        const ON_LINK: u8 = 4;
        let what = match self.kind {
            RouteKind::Unicast => libc::RTN_UNICAST,
            RouteKind::Blackhole => libc::RTN_BLACKHOLE,
            RouteKind::Unreachable => libc::RTN_UNREACHABLE,
            RouteKind::Prohibit => libc::RTN_PROHIBIT,
        };
        let hops = if self.kind == RouteKind::Unicast { self.hops } else { &[] };
        let is_attached = !hops.is_empty() && hops.iter().all(|hop| hop.gateway.is_none());
        let scope = if is_attached { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let flags_of = |hop: &NewHop| if hop.gateway.is_some() { ON_LINK } else { 0 };
        let route_flags = if let [only] = hops { flags_of(only).into() } else { 0 };
        let flags = flag::CREATE | flag::REPLACE;
        let request = self.request(NEW, flags, [scope, what], route_flags);
        match hops {
            [] => request,
            [hop] => {
                let request = request.attribute(LINK, &hop.link.to_ne_bytes());
                match hop.gateway.map(|gateway| gateway_attribute(gateway, self.family())) {
                    Some((number_of, value)) => request.attribute(number_of, &value),
                    None => request,
                }
            }
            several => {
                let mut bytes = Vec::new();
                for hop in several {
                    let via = hop.gateway.map(|via| gateway_attribute(via, self.family()));
                    let own = via.map(|(number_of, value)| attribute_bytes(number_of, &value));
                    let own = own.unwrap_or_default();
                    let length = (HOP_HEADER_BYTES + own.len()) as u16;
                    bytes.extend(length.to_ne_bytes());
                    bytes.extend([flags_of(hop), (hop.weight.clamp(1, 256) - 1) as u8]);
                    bytes.extend(hop.link.to_ne_bytes());
                    bytes.extend(own);
                }
                request.attribute(MULTIPATH, &bytes)
            }
        }
    }

    /// Remove the route with this table, prefix, protocol and metric, whatever its hops are.
    pub fn remove(&self) -> Request {
        self.request(DELETED, 0, [libc::RT_SCOPE_NOWHERE, libc::RTN_UNSPEC], 0)
    }
}

/// Ask for all routes of a family.
pub fn dump(of: u8) -> Request {
    let mut header = [0; HEADER_BYTES];
    header[0] = of;
    Request::new(libc::RTM_GETROUTE, flag::DUMP, &header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(request: Request) -> Vec<u8> {
        request.finish(1).split_off(crate::message::HEADER_BYTES)
    }

    #[test]
    fn a_route_that_is_made_reads_as_it_was_meant() {
        let four = IpAddr::from([10, 0, 0, 2]);
        let six: IpAddr = "fe80::2".parse().expect("an address");
        let hop = |gateway, link, weight| NewHop { gateway, link, weight };
        let prefix = IpPrefix::V4(Prefix::new(0xc000_0200, 24));
        for hops in [
            vec![hop(Some(four), 3, 1)],
            vec![hop(None, 3, 1)],
            vec![hop(Some(six), 3, 1)],
            vec![hop(Some(four), 3, 256), hop(Some(six), 70_000, 2)],
            vec![],
        ] {
            let kind = if hops.is_empty() { RouteKind::Prohibit } else { RouteKind::Unicast };
            let protocol = protocol::QUIVER;
            let new = NewRoute { table: 1000, prefix, protocol, kind, metric: 7, hops: &hops };
            let body = read_back(new.add());
            let read = Route::read(&body).expect("a route");
            assert_eq!((read.table, read.prefix, read.metric), (1000, prefix, 7));
            assert_eq!((read.protocol, read.kind), (protocol, kind));
            let found: Vec<_> =
                read.hops().map(|h| hop(h.gateway, h.link, h.weight as u16)).collect();
            assert_eq!(found, hops);
        }
    }
}
