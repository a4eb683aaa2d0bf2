//! `lisp-map-request-ip4`, `lisp-map-request-ip6`: packets to an EID whose mapping is to be
//! requested. The control thread requests it; the packets are dropped.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::{Recent, TokenBucket, key};
use quiver_core::worker::event::{Event, EventReader, EventWriter};
use quiver_core::{Context, Frame, NodeId, Packet, number_handover};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_tables::prefix::Address;
use std::net::IpAddr;

/// A mapping of one address is requested at most this often by a worker.
const INTERVAL_NS: u64 = 500_000_000;
/// Mappings that a worker requests in a second.
const REQUESTS_PER_SECOND: u64 = 1_000;
const REQUESTS_BURST: u64 = 128;

/// The instance of a route that leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceId(pub u32);

number_handover!(InstanceId from NextHopIndex);

quiver_core::reasons! {
    /// Why packets die that have no mapping.
    pub enum MapRequestDrop {
        /// RFC 9301 §5.4, action 2.
        Requested = "no-mapping", "no mapping for the destination yet; it is requested";
        /// Cannot be behind the look-up.
        Truncated = "truncated", "the packet is shorter than its header";
        /// A limit.
        RateLimited = "rate-limited",
            "no mapping for the destination, and too many are requested already";
    }
}

/// The node for packets of a family.
pub(crate) fn node(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "lisp-map-request-ip4",
        Family::Ip6 => "lisp-map-request-ip6",
    }
}

/// What the control thread reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub vni: u32,
    pub address: IpAddr,
}

impl Wish {
    fn write(self) -> EventWriter {
        let mut out = EventWriter::new();
        out.put(&self.vni.to_be_bytes());
        match self.address {
            IpAddr::V4(address) => out.put(&address.octets()),
            IpAddr::V6(address) => out.put(&address.octets()),
        }
        out
    }

    /// Of an event.
    pub fn read(family: Family, bytes: &[u8]) -> Option<Wish> {
        let mut bytes = EventReader(bytes);
        let vni = bytes.word()?;
        let address = match family {
            Family::Ip4 => IpAddr::from(bytes.take::<4>()?),
            Family::Ip6 => IpAddr::from(bytes.take::<16>()?),
        };
        Some(Wish { vni, address })
    }
}

struct MapRequest<F> {
    recent: Recent,
    bucket: TokenBucket,
    drop: std::marker::PhantomData<fn() -> F>,
}

impl<F: IpFamily> MapRequest<F> {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &Packet) -> MapRequestDrop {
        let Some(destination) = F::destination(packet.bytes()) else {
            return MapRequestDrop::Truncated;
        };
        let InstanceId(vni) = packet.handed_over();
        let (high, low) = destination.halves();
        if !self.recent.may(key(&[vni.into(), high, low]), cx.now_ns) {
            return MapRequestDrop::Requested;
        }
        if !self.bucket.take(cx.now_ns) {
            return MapRequestDrop::RateLimited;
        }
        let wish = Wish { vni, address: destination.ip() };
        cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, wish.write().bytes()));
        MapRequestDrop::Requested
    }
}

impl<F: IpFamily> Node for MapRequest<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| Err::<NodeId, _>(self.decide(cx, packet)));
    }
}

/// The declaration.
pub(crate) fn spec<F: IpFamily>() -> NodeSpec {
    let help = "Requests the mapping of the destination, and drops the packet";
    NodeSpec::new(node(F::FAMILY), help, |_| {
        Box::new(MapRequest::<F> {
            recent: Recent::new(INTERVAL_NS),
            bucket: TokenBucket::new(REQUESTS_PER_SECOND, REQUESTS_BURST),
            drop: std::marker::PhantomData,
        })
    })
    .takes_offloads()
    .reasons::<MapRequestDrop>()
    .describe(|record, _| format!("{}: no mapping", F::describe(record.bytes())))
}

/// Both.
pub(crate) fn specs() -> [NodeSpec; 2] {
    [spec::<Ip4>(), spec::<Ip6>()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_as_it_is_written() {
        for (family, address) in [(Family::Ip4, "192.0.2.1"), (Family::Ip6, "2001:db8::1")] {
            let wish = Wish { vni: 7, address: address.parse().expect("an address") };
            assert_eq!(Wish::read(family, wish.write().bytes()), Some(wish));
        }
        assert_eq!(Wish::read(Family::Ip6, &[0; 19]), None);
    }
}
