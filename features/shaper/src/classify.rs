//! Whose a packet is: the node that limits it, its flow, its host, its class of traffic.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::{Context, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, packet_in_frame};
use quiver_shaping::NONE;
use quiver_shaping::fair::Arrival;
use quiver_shaping::settings::Diffserv;
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;
use quiver_wire::{Header, Ip6Header};

use crate::tables::{Direction, Shared};

/// What a prefix match answers for an address that is no subscriber's.
pub(crate) const NO_SUBSCRIBER: GroupId = GroupId(0);

/// Where an IP header stands in a packet, and its version; `is_bare`: the packet has no link-layer
/// header in front.
pub(crate) fn ip_header(bytes: &[u8], is_bare: bool) -> Option<(usize, u8)> {
    if is_bare {
        let version = bytes.first()? >> 4;
        return matches!(version, 4 | 6).then_some((0, version));
    }
    let four = packet_in_frame::<Ip4>(bytes).map(|at| (at, 4));
    four.or_else(|| packet_in_frame::<Ip6>(bytes).map(|at| (at, 6)))
}

/// The addresses of a family in a vector, looked up together.
struct Addresses<F: IpFamily> {
    keys: Box<[F::Address; FRAME_PACKETS_MAX]>,
    places: Box<[u8; FRAME_PACKETS_MAX]>,
    found: Box<[GroupId; FRAME_PACKETS_MAX]>,
    count: usize,
}

const _: () = assert!(FRAME_PACKETS_MAX <= 1 << u8::BITS);

impl<F: IpFamily> Addresses<F> {
    fn new() -> Addresses<F> {
        Addresses {
            keys: Box::new([F::Address::default(); FRAME_PACKETS_MAX]),
            places: Box::new([0; FRAME_PACKETS_MAX]),
            found: Box::new([NO_SUBSCRIBER; FRAME_PACKETS_MAX]),
            count: 0,
        }
    }

    fn note(&mut self, place: usize, bytes: &[u8], direction: Direction) {
        let address = match direction {
            Direction::Download => F::destination(bytes),
            Direction::Upload => F::source(bytes),
        };
        if let Some(address) = address {
            self.keys[self.count] = address;
            self.places[self.count] = place as u8;
            self.count += 1;
        }
    }

    fn look_up(&mut self, variant: Variant, space: Option<&Arc<LpmSpace<F::Address>>>) {
        match space {
            Some(space) => {
                let (keys, found) = (&self.keys[..self.count], &mut self.found[..self.count]);
                space.table(0).lookup_slice(variant, keys, found);
            }
            None => self.found[..self.count].fill(NO_SUBSCRIBER),
        }
    }

    fn each(&mut self, mut each: impl FnMut(usize, u32)) {
        let count = std::mem::take(&mut self.count);
        for (place, found) in self.places[..count].iter().zip(&self.found[..count]) {
            if *found != NO_SUBSCRIBER {
                each((*place).into(), found.0 - 1);
            }
        }
    }
}

/// The nodes of a vector's packets.
pub(crate) struct Classifier {
    shared: Arc<Shared>,
    ip4: Addresses<Ip4>,
    ip6: Addresses<Ip6>,
    pub nodes: Box<[u32; FRAME_PACKETS_MAX]>,
    directions: Box<[Direction; FRAME_PACKETS_MAX]>,
}

impl Classifier {
    pub fn new(shared: &Arc<Shared>) -> Classifier {
        Classifier {
            shared: shared.clone(),
            ip4: Addresses::new(),
            ip6: Addresses::new(),
            nodes: Box::new([NONE; FRAME_PACKETS_MAX]),
            directions: Box::new([Direction::Download; FRAME_PACKETS_MAX]),
        }
    }

    /// Find the node of each packet; [`NONE`]: nothing limits it.
    pub fn classify(&mut self, cx: &Context<'_>, packets: &[Packet]) {
        let looks_up = self.shared.has_subscribers();
        for (place, packet) in packets.iter().enumerate() {
            let shaped = self.shared.of(packet.tx);
            self.nodes[place] = shaped.map_or(NONE, |shaped| shaped.node);
            let Some(shaped) = shaped else { continue };
            self.directions[place] = shaped.direction;
            if looks_up {
                let bytes = packet.bytes();
                match ip_header(bytes, is_bare(cx, packet)) {
                    Some((at, 4)) => self.ip4.note(place, &bytes[at..], shaped.direction),
                    Some((at, _)) => self.ip6.note(place, &bytes[at..], shaped.direction),
                    None => {}
                }
            }
        }
        if !looks_up {
            return;
        }
        let Classifier { shared, ip4, ip6, nodes, directions } = self;
        ip4.look_up(cx.variant, shared.ip4.get());
        ip6.look_up(cx.variant, shared.ip6.get());
        let mut found = |place: usize, subscriber: u32| {
            if let Some(node) = shared.node_of(subscriber, directions[place]) {
                nodes[place] = node;
            }
        };
        ip4.each(&mut found);
        ip6.each(&mut found);
    }

    /// What fair queues know of the packet at a place of the vector, which waits in its node.
    pub fn arrival(
        &self,
        place: usize,
        (bytes, header): (&[u8], Option<(usize, u8)>),
        classes: Diffserv,
    ) -> Arrival {
        let mut arrival = Arrival { node: self.nodes[place], flow: 0, host: 0, tin: 0 };
        let Some((at, version)) = header else { return arrival };
        let bytes = bytes.get(at..).unwrap_or_default();
        let direction = self.directions[place];
        let (flow, host, class) = if version == 4 {
            let host = address::<Ip4>(bytes, direction).unwrap_or_default();
            (Ip4::flow_hash(bytes), host, bytes.get(1).copied())
        } else {
            let host = address::<Ip6>(bytes, direction).unwrap_or_default();
            let class = Ip6Header::overlay(bytes).map(Ip6Header::traffic_class);
            (Ip6::flow_hash(bytes), (host ^ host >> 32 ^ host >> 64 ^ host >> 96) as u32, class)
        };
        arrival.flow = flow.unwrap_or_default();
        arrival.host = host;
        arrival.tin = classes.tin(class.unwrap_or_default() >> 2);
        arrival
    }
}

fn address<F: IpFamily>(bytes: &[u8], direction: Direction) -> Option<F::Address> {
    match direction {
        Direction::Download => F::destination(bytes),
        Direction::Upload => F::source(bytes),
    }
}

/// Has the packet no link-layer header in front?
pub(crate) fn is_bare(cx: &Context<'_>, packet: &Packet) -> bool {
    cx.interface(packet.tx).is_some_and(|row| row.mac == [0; 6])
}
