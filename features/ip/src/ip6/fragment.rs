//! `ip6-frag`: what the router itself sends is cut into fragments that fit the MTU of their way
//! out. In IPv6 the source does so, and nobody else (RFC 8200 §4.5). `ip6-frag-in-table`: the same,
//! for who knows how narrow the path is behind the way out (a tunnel's entry-point, RFC 2473 §7).

use std::hash::{BuildHasher, Hasher};

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mpls::LabelledRewrites;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::segments::fragment;
use quiver_offload::checksum::complete_checksum;
use quiver_wire::ip6::extension::Walk;
use quiver_wire::{Header, Ip6Header, IpProtocol};

/// The node for who knows the path.
pub(crate) const IN_TABLE: &str = "ip6-frag-in-table";
/// Bytes of a fragment header.
const FRAGMENT_HEADER_LEN: usize = 8;
/// Bytes in front of the fragment header at most: the router puts no more there.
const FRONT_BYTES_MAX: usize = 256;
/// Where the next header stands in an IPv6 header.
const NEXT_HEADER_PLACE: usize = 6;
/// Odd, so that multiplying by it gives each number once.
const SPREAD: u32 = 0x9e37_79b1;

quiver_core::reasons! {
    /// What becomes of the router's own packets that are to be fragmented.
    pub enum Ip6FragmentDrop {
        /// Not a whole packet.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// Extension headers.
        BadExtension = "bad-extension", "extension headers that are wrong, or leave no room for a \
            fragment";
        /// Nothing fits.
        MtuTooSmall = "mtu-too-small", "the outgoing MTU leaves no room for a fragment";
        /// A large packet whose segments do not fit either.
        Offload = "offload", "a large packet to be cut into segments that are longer than the \
            outgoing MTU";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for a fragment; `show buffers`";
        /// Done.
        Fragmented = info "fragmented", "packets cut into fragments";
        /// Made.
        Made = info "fragments", "fragments made";
    }
}

/// How long fragments may be, and where they go.
enum Way {
    /// By the adjacency in the packet's index, to this node.
    Adjacency(NodeId, LabelledRewrites),
    /// As the [`FragmentRequest`] in the packet's index says, to this node, which looks them up.
    Request(NodeId),
}

struct Fragment {
    tables: IpTables,
    way: Way,
    done: NodeId,
    identifications: Identifications,
}

/// Numbers that no two packets of the last four thousand million have, and that are hard to foresee
/// (RFC 7739 §5.3).
struct Identifications {
    count: u32,
    step: u32,
    secret: u32,
}

impl Identifications {
    /// Those of one worker of so many.
    fn new(worker: u32, workers: u32, secret: u32) -> Identifications {
        Identifications { count: worker, step: workers.max(1), secret }
    }

    fn next(&mut self) -> u32 {
        self.count = self.count.wrapping_add(self.step);
        self.count.wrapping_mul(SPREAD) ^ self.secret
    }
}

/// A packet's headers that stand in each fragment, with the fragment header behind them.
struct FragmentHeaders {
    bytes: [u8; FRONT_BYTES_MAX],
    length: usize,
}

impl FragmentHeaders {
    /// The IPv6 header, hop-by-hop options and everything up to a routing header (RFC 8200 §4.5).
    fn of(packet: &Packet, identification: u32) -> Result<FragmentHeaders, Ip6FragmentDrop> {
        let (header, behind) =
            Ip6Header::split(packet.bytes()).ok_or(Ip6FragmentDrop::Truncated)?;
        let (mut length, mut next_header, mut place) =
            (Ip6Header::LEN, header.next_header(), NEXT_HEADER_PLACE);
        for extension in Walk::new(header.next_header(), behind) {
            let extension = extension.map_err(|_| Ip6FragmentDrop::BadExtension)?;
            if matches!(extension.kind, IpProtocol::HOP_BY_HOP | IpProtocol::ROUTING) {
                place = Ip6Header::LEN + extension.offset;
                length = place + extension.bytes.len();
                next_header = extension.next_header;
            }
        }
        let mut front =
            FragmentHeaders { bytes: [0; FRONT_BYTES_MAX], length: length + FRAGMENT_HEADER_LEN };
        let own = packet.bytes().get(..length).ok_or(Ip6FragmentDrop::Truncated)?;
        let room = front.bytes.get_mut(..front.length).ok_or(Ip6FragmentDrop::BadExtension)?;
        let (headers, fragment) = room.split_at_mut(length);
        headers.copy_from_slice(own);
        if let Some(next) = headers.get_mut(place) {
            *next = IpProtocol::FRAGMENT.0;
        }
        let [a, b, c, d] = identification.to_be_bytes();
        fragment.copy_from_slice(&[next_header.0, 0, 0, 0, a, b, c, d]);
        Ok(front)
    }

    /// Bytes of the packet that stand in front of the fragmentable part.
    fn unfragmentable(&self) -> usize {
        self.length - FRAGMENT_HEADER_LEN
    }

    /// One hop more to live: who sends what was looked up counts one, which the router's own
    /// packets do not take.
    fn lend_hop(&mut self) {
        if let Some(header) = Ip6Header::overlay_mut(&mut self.bytes) {
            header.set_hop_limit(header.hop_limit().saturating_add(1));
        }
    }

    /// For the fragment with the bytes from `at` on.
    fn set(&mut self, at: usize, length: usize, more: bool) {
        let payload = self.length - Ip6Header::LEN + length;
        let offset_more = at as u16 | u16::from(more);
        let place = self.unfragmentable() + 2;
        if let Some(field) = self.bytes.get_mut(place..place + 2) {
            field.copy_from_slice(&offset_more.to_be_bytes());
        }
        if let Some(header) = Ip6Header::overlay_mut(&mut self.bytes) {
            header.set_payload_length(payload as u16);
        }
    }
}

impl Fragment {
    fn cut(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6FragmentDrop> {
        if !complete_checksum(packet) {
            return Err(Ip6FragmentDrop::Offload);
        }
        let mtu_bytes = match self.way {
            Way::Adjacency(..) => self.tables.adjacencies.of(packet).mtu_bytes,
            Way::Request(_) => {
                let FragmentRequest { mtu_bytes, table } = packet.handed_over::<FragmentRequest>();
                packet.hand_over(TableIndex(table));
                mtu_bytes
            }
        };
        let mtu = usize::from(mtu_bytes);
        let mut front = FragmentHeaders::of(packet, self.identifications.next())?;
        if matches!(self.way, Way::Request(_)) {
            front.lend_hop();
        }
        let step = mtu.saturating_sub(front.length) & !7;
        if step == 0 {
            return Err(Ip6FragmentDrop::MtuTooSmall);
        }
        let total = packet.length();
        let mut at = 0;
        let fragmentable = total - front.unfragmentable();
        while at < fragmentable {
            let length = step.min(fragmentable - at);
            front.set(at, length, at + length < fragmentable);
            self.emit(cx, packet, &front, at, length)?;
            at += length;
        }
        cx.count(Ip6FragmentDrop::Fragmented, 1);
        Ok(self.done)
    }

    /// Send one fragment, with `length` bytes from `at` of what can be cut.
    fn emit(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        front: &FragmentHeaders,
        at: usize,
        length: usize,
    ) -> Result<(), Ip6FragmentDrop> {
        let headers = front.bytes.get(..front.length).unwrap_or_default();
        let from = front.unfragmentable() + at;
        let fragment =
            fragment(cx, packet, headers, from, length).ok_or(Ip6FragmentDrop::NoBuffer)?;
        cx.count(Ip6FragmentDrop::Made, 1);
        let next = match self.way {
            Way::Adjacency(rewrite, labelled) => match self.tables.adjacencies.of(&fragment) {
                adjacency if adjacency.is_labelled() => labelled.of(adjacency),
                _ => rewrite,
            },
            Way::Request(next) => next,
        };
        cx.emit(fragment, next);
        Ok(())
    }
}

impl Node for Fragment {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.cut(cx, packet));
    }
}

/// The declaration of `ip6-frag`; there are so many workers.
pub(crate) fn spec(tables: &IpTables, workers: usize) -> NodeSpec {
    let help = "Cuts the router's own IPv6 packets into fragments";
    node(nodes::ip6::FRAG, help, tables, workers, |wiring| {
        Way::Adjacency(wiring.node(nodes::ip6::REWRITE), LabelledRewrites::new(wiring))
    })
}

/// The declaration of `ip6-frag-in-table`.
pub(crate) fn spec_in_table(tables: &IpTables, workers: usize) -> NodeSpec {
    let help = "Cuts the router's own IPv6 packets into fragments for a path that is narrower \
        than their way out";
    node(IN_TABLE, help, tables, workers, |wiring| {
        Way::Request(wiring.node(nodes::ip6::LOOKUP_IN_TABLE))
    })
}

fn node(
    name: &str,
    help: &'static str,
    tables: &IpTables,
    workers: usize,
    way: fn(&Wiring<'_>) -> Way,
) -> NodeSpec {
    let tables = tables.clone();
    let secret = std::hash::RandomState::new().build_hasher().finish() as u32;
    NodeSpec::new(name, help, move |wiring| {
        let worker = u32::from(wiring.worker.0);
        Box::new(Fragment {
            tables: tables.clone(),
            way: way(wiring),
            done: wiring.node(nodes::IP_DONE),
            identifications: Identifications::new(worker, workers as u32, secret),
        })
    })
    .slow_path()
    .reasons::<Ip6FragmentDrop>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_workers_give_the_same_identification() {
        let mut seen = std::collections::HashSet::new();
        for worker in 0..3 {
            let mut numbers = Identifications::new(worker, 3, 0x1234_5678);
            assert!((0..10_000).all(|_| seen.insert(numbers.next())));
        }
    }
}
