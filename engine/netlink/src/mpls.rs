//! Labels in Linux: routes of labels (`AF_MPLS`, linux/rtnetlink.h), and labels that routes put on
//! packets (linux/mpls_iptunnel.h).

use std::net::IpAddr;

use crate::message::{Attributes, number};
use crate::{family, ip_address};

/// Labels are put on packets (`LWTUNNEL_ENCAP_MPLS`).
pub const ENCAP: u16 = 1;

/// Bytes of a route's own header, of the header of one hop of several, and of a label.
const HEADER_BYTES: usize = 12;
const HOP_HEADER_BYTES: usize = 8;
const LABEL_BYTES: usize = 4;
/// The length of the destination of a label's route, bits.
const LABEL_BITS: u8 = 20;

const TUNNEL_LABELS: u16 = 1;
const TUNNEL_TTL: u16 = 2;
const DESTINATION: u16 = 1;
const LINK: u16 = 4;
const MULTIPATH: u16 = 9;
const VIA: u16 = 18;
const NEW_DESTINATION: u16 = 19;
const TTL_PROPAGATE: u16 = 26;

/// The labels of a stack of entries, the one that is sent first in front; none when they are no
/// whole entries.
fn labels(bytes: &[u8]) -> Option<Vec<u32>> {
    let (entries, rest) = bytes.as_chunks::<LABEL_BYTES>();
    let label = |entry: &[u8; LABEL_BYTES]| u32::from_be_bytes(*entry) >> 12;
    rest.is_empty().then(|| entries.iter().map(label).collect())
}

/// Labels that a route puts on packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelStack {
    /// The labels, the one that is sent first in front.
    pub labels: Vec<u32>,
    /// Their TTL, when that is not the packet's.
    pub ttl: Option<u8>,
}

impl LabelStack {
    /// Of the attributes of a lightweight tunnel.
    pub fn read(attributes: &[u8]) -> Option<LabelStack> {
        let mut stack = LabelStack { labels: Vec::new(), ttl: None };
        for (number_of, value) in Attributes::of(attributes) {
            match number_of {
                TUNNEL_LABELS => stack.labels = labels(value)?,
                TUNNEL_TTL => stack.ttl = value.first().copied().filter(|ttl| *ttl != 0),
                _ => {}
            }
        }
        (!stack.labels.is_empty()).then_some(stack)
    }
}

/// A hop of a label's route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelHop {
    /// The next hop; none when the label ends here.
    pub gateway: Option<IpAddr>,
    /// The number of the link; 0 for none.
    pub link: u32,
    /// Its share of the traffic, 1 or more.
    pub weight: u32,
    /// The labels in place of the label.
    pub labels: Vec<u32>,
}

/// The route of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRoute {
    /// The label.
    pub label: u32,
    /// Who made it.
    pub protocol: u8,
    /// Its hops.
    pub hops: Vec<LabelHop>,
    /// Does the TTL go on into what is behind the label, as far as the route itself says?
    pub propagates_ttl: Option<bool>,
}

/// What attributes say of one hop.
fn hop_of(attributes: Attributes<'_>, link: u32, weight: u32) -> Option<LabelHop> {
    let mut hop = LabelHop { gateway: None, link, weight, labels: Vec::new() };
    for (number_of, value) in attributes {
        match number_of {
            VIA => hop.gateway = value.get(2..).and_then(ip_address),
            LINK => hop.link = number(value).unwrap_or(hop.link),
            NEW_DESTINATION => hop.labels = labels(value)?,
            _ => {}
        }
    }
    Some(hop)
}

/// The hops of a route with several.
fn several(bytes: &[u8]) -> Option<Vec<LabelHop>> {
    let (mut hops, mut rest) = (Vec::new(), bytes);
    while let Some(header) = rest.first_chunk::<HOP_HEADER_BYTES>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let weight = u32::from(header[3]) + 1;
        let link = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let own = rest.get(HOP_HEADER_BYTES..length)?;
        hops.push(hop_of(Attributes::of(own), link, weight)?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(hops)
}

impl LabelRoute {
    /// What the body of a message says; none when it is no route of a label.
    pub fn read(body: &[u8]) -> Option<LabelRoute> {
        let &[of, length, _, _, _, protocol, ..] = body.first_chunk::<HEADER_BYTES>()?;
        if of != family::MPLS || length != LABEL_BITS {
            return None;
        }
        let attributes = Attributes::behind(body, HEADER_BYTES);
        let (mut label, mut multipath, mut propagates_ttl) = (None, None, None);
        for (number_of, value) in attributes.clone() {
            match number_of {
                DESTINATION => label = labels(value)?.first().copied(),
                MULTIPATH => multipath = Some(several(value)?),
                TTL_PROPAGATE => propagates_ttl = value.first().map(|says| *says != 0),
                _ => {}
            }
        }
        let hops = match multipath {
            Some(hops) => hops,
            None => vec![hop_of(attributes, 0, 1)?],
        };
        Some(LabelRoute { label: label?, protocol, hops, propagates_ttl })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::attribute_bytes;

    fn entries(labels: &[u32]) -> Vec<u8> {
        labels.iter().flat_map(|label| (label << 12 | 0x100).to_be_bytes()).collect()
    }

    fn via(last: u8) -> Vec<u8> {
        [&2u16.to_ne_bytes()[..], &[10, 0, 0, last]].concat()
    }

    fn route(attributes: &[Vec<u8>]) -> Vec<u8> {
        let header = [family::MPLS, 20, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
        let label = attribute_bytes(DESTINATION, &entries(&[16]));
        [&header[..], &label, &attributes.concat()].concat()
    }

    #[test]
    fn a_label_is_swapped_or_ends_by_one_hop_or_by_several() {
        let one = route(&[
            attribute_bytes(VIA, &via(2)),
            attribute_bytes(LINK, &7u32.to_ne_bytes()),
            attribute_bytes(NEW_DESTINATION, &entries(&[17, 18])),
            attribute_bytes(TTL_PROPAGATE, &[0]),
        ]);
        let gateway = Some([10, 0, 0, 2].into());
        let hop = LabelHop { gateway, link: 7, weight: 1, labels: vec![17, 18] };
        let read = LabelRoute::read(&one).expect("a route");
        assert_eq!((read.label, read.propagates_ttl), (16, Some(false)));
        assert_eq!(read.hops, [hop]);
        let hops = [3u8, 4].map(|last| {
            let own = attribute_bytes(VIA, &via(last));
            let length = (HOP_HEADER_BYTES + own.len()) as u16;
            [&length.to_ne_bytes()[..], &[0, 4], &9u32.to_ne_bytes(), &own].concat()
        });
        let read = LabelRoute::read(&route(&[attribute_bytes(MULTIPATH, &hops.concat())]));
        let gateways: Vec<_> =
            read.expect("a route").hops.iter().map(|hop| (hop.gateway, hop.weight)).collect();
        let address = |last| Some(IpAddr::from([10, 0, 0, last]));
        assert_eq!(gateways, [(address(3), 5), (address(4), 5)]);
        let ends = LabelRoute::read(&route(&[attribute_bytes(LINK, &1u32.to_ne_bytes())]));
        assert_eq!(ends.expect("a route").hops[0].gateway, None);
    }

    #[test]
    fn labels_of_a_tunnel_are_whole_entries() {
        let labels = attribute_bytes(TUNNEL_LABELS, &entries(&[16, 3]));
        let ttl = attribute_bytes(TUNNEL_TTL, &[9]);
        let stack = LabelStack { labels: vec![16, 3], ttl: Some(9) };
        assert_eq!(LabelStack::read(&[labels, ttl].concat()), Some(stack));
        assert_eq!(LabelStack::read(&attribute_bytes(TUNNEL_LABELS, &[1, 2, 3])), None);
        assert_eq!(LabelStack::read(&[]), None);
    }

    proptest! {
        #[test]
        fn no_body_panics(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
            let mut bytes = bytes;
            if let [first, second, ..] = &mut bytes[..] {
                (*first, *second) = (family::MPLS, 20);
            }
            let _ = (LabelRoute::read(&bytes), LabelStack::read(&bytes));
        }
    }
}
