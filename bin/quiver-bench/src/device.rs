//! Where packets come from and go to: a source that fills vectors from a list of destinations, and
//! a sink. Warm, buffers come back from the cache of the worker, the last one first; cold, they
//! rotate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::graph::frame::{FRAME_PACKETS_MAX, Frame};
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::worker::device::{Device, RxQueue, TxQueue};
use quiver_core::{Context, NodeId, Packet, WorkerId};

/// Buffers in rotation on the paths with the suffix `-cold`.
pub const COLD_BUFFERS: usize = 32_768;

/// Bytes of a frame with IPv4, and of one with IPv6.
const IP4_FRAME_BYTES: usize = 60;
const IP6_FRAME_BYTES: usize = 74;
/// Bytes of the addresses in front of a frame.
const ADDRESSES_BYTES: usize = 12;

/// Bytes of a packet as it arrives.
#[derive(Clone)]
pub enum Template {
    /// The same frame again and again.
    Plain([u8; 64]),
    /// A frame whose two layer 2 addresses differ.
    Stations([u8; 64], Arc<Vec<[[u8; 6]; 2]>>),
    /// An IPv4 frame whose destination and header checksum differ. So many of the first ones come
    /// once, before the others take turns.
    Ip4([u8; 64], Arc<Vec<(u32, u16)>>, usize),
    /// An IPv4 frame whose addresses, protocol and ports differ; first ones likewise.
    Flows4([u8; 64], Arc<Vec<Flow4>>, usize),
    /// An IPv6 frame whose addresses, protocol and ports differ; first ones likewise.
    Flows6([u8; 80], Arc<Vec<Flow6>>, usize),
    /// An IPv4 frame in one of IPv6 whose source differs, too; first ones likewise.
    Softwires(Vec<u8>, Arc<Vec<(u128, Flow4)>>, usize),
    /// An IPv6 frame whose destination differs.
    Ip6([u8; 80], Arc<Vec<u128>>),
    /// A longer IPv6 frame whose destination differs.
    Segments(Vec<u8>, Arc<Vec<u128>>),
    /// The same frame again and again, of any length.
    Made(Vec<u8>),
}

impl Template {
    /// Packets that come once, before the others take turns.
    pub fn once(&self) -> usize {
        match self {
            Template::Ip4(_, _, once)
            | Template::Flows4(_, _, once)
            | Template::Flows6(_, _, once)
            | Template::Softwires(_, _, once) => *once,
            _ => 0,
        }
    }

    /// Bytes of a frame, where nothing is cut.
    fn frame_bytes(&self) -> usize {
        match self {
            Template::Flows6(..) | Template::Ip6(..) => IP6_FRAME_BYTES,
            Template::Softwires(frame, ..)
            | Template::Segments(frame, _)
            | Template::Made(frame) => frame.len(),
            _ => IP4_FRAME_BYTES,
        }
    }
}

/// What differs in an IPv4 packet: addresses (source first), ports, header checksum, protocol.
#[derive(Clone, Copy)]
pub struct Flow4 {
    pub addresses: [u32; 2],
    pub ports: [u16; 2],
    pub checksum: u16,
    pub protocol: u8,
}

/// What differs in an IPv6 packet.
#[derive(Clone, Copy)]
pub struct Flow6 {
    pub addresses: [u128; 2],
    pub ports: [u16; 2],
    pub protocol: u8,
}

/// Which of `count` packets comes at a turn: `once` of them first, then the others again and again.
fn place(turn: usize, once: usize, count: usize) -> usize {
    turn.checked_sub(once).map_or(turn, |behind| once + behind % (count - once))
}

/// Makes the packets of one path, one after another.
pub struct Maker {
    template: Template,
    length: usize,
    /// What stands between the addresses and the type of every frame; `length` counts it.
    tags: Vec<u8>,
    at: usize,
    /// Buffers in rotation; empty when warm.
    rotation: Option<Consumer<Packet>>,
}

impl Maker {
    /// Packets of `length` bytes, and the tags.
    pub fn new(template: Template, length: usize, tags: &[u8]) -> Maker {
        Maker { template, length: length + tags.len(), tags: tags.to_vec(), at: 0, rotation: None }
    }

    /// Packets that come once, before the others take turns.
    pub fn once(&self) -> usize {
        self.template.once()
    }

    /// Go on behind those that come once, and `more` of the others.
    pub fn skip_once(&mut self, more: usize) {
        self.at = self.once() + more;
    }

    fn write(&mut self, packet: &mut Packet) {
        let bytes = packet.bytes_mut();
        let at = self.at;
        self.at += 1;
        match &self.template {
            Template::Plain(frame) => bytes[..60].copy_from_slice(&frame[..60]),
            Template::Stations(frame, pairs) => {
                bytes[..60].copy_from_slice(&frame[..60]);
                bytes[..12].copy_from_slice(pairs[at % pairs.len()].as_flattened());
            }
            Template::Ip4(frame, destinations, once) => {
                let (destination, checksum) = destinations[place(at, *once, destinations.len())];
                bytes[..60].copy_from_slice(&frame[..60]);
                bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
                bytes[30..34].copy_from_slice(&destination.to_be_bytes());
            }
            Template::Ip6(frame, destinations) => {
                bytes[..74].copy_from_slice(&frame[..74]);
                bytes[38..54].copy_from_slice(&destinations[at % destinations.len()].to_be_bytes());
            }
            Template::Flows4(frame, flows, once) => {
                let flow = &flows[place(at, *once, flows.len())];
                bytes[..60].copy_from_slice(&frame[..60]);
                bytes[23] = flow.protocol;
                bytes[24..26].copy_from_slice(&flow.checksum.to_be_bytes());
                bytes[26..30].copy_from_slice(&flow.addresses[0].to_be_bytes());
                bytes[30..34].copy_from_slice(&flow.addresses[1].to_be_bytes());
                bytes[34..36].copy_from_slice(&flow.ports[0].to_be_bytes());
                bytes[36..38].copy_from_slice(&flow.ports[1].to_be_bytes());
            }
            Template::Flows6(frame, flows, once) => {
                let flow = &flows[place(at, *once, flows.len())];
                bytes[..74].copy_from_slice(&frame[..74]);
                bytes[20] = flow.protocol;
                bytes[22..38].copy_from_slice(&flow.addresses[0].to_be_bytes());
                bytes[38..54].copy_from_slice(&flow.addresses[1].to_be_bytes());
                bytes[54..56].copy_from_slice(&flow.ports[0].to_be_bytes());
                bytes[56..58].copy_from_slice(&flow.ports[1].to_be_bytes());
            }
            Template::Softwires(frame, flows, once) => {
                let (b4, flow) = &flows[place(at, *once, flows.len())];
                bytes[..frame.len()].copy_from_slice(frame);
                bytes[22..38].copy_from_slice(&b4.to_be_bytes());
                bytes[64..66].copy_from_slice(&flow.checksum.to_be_bytes());
                bytes[66..70].copy_from_slice(&flow.addresses[0].to_be_bytes());
                bytes[70..74].copy_from_slice(&flow.addresses[1].to_be_bytes());
                bytes[74..76].copy_from_slice(&flow.ports[0].to_be_bytes());
                bytes[76..78].copy_from_slice(&flow.ports[1].to_be_bytes());
            }
            Template::Made(frame) => bytes[..frame.len()].copy_from_slice(frame),
            Template::Segments(frame, destinations) => {
                bytes[..frame.len()].copy_from_slice(frame);
                bytes[38..54].copy_from_slice(&destinations[at % destinations.len()].to_be_bytes());
            }
        }
        let tags = self.tags.len();
        if tags > 0 {
            bytes.copy_within(ADDRESSES_BYTES..self.length - tags, ADDRESSES_BYTES + tags);
            bytes[ADDRESSES_BYTES..ADDRESSES_BYTES + tags].copy_from_slice(&self.tags);
        }
    }

    /// Fill a vector.
    pub fn fill(
        &mut self,
        cache: &mut quiver_core::memory::buffer::BufferCache,
        frame: &mut Frame,
    ) {
        self.fill_up_to(FRAME_PACKETS_MAX, cache, frame);
    }

    fn fill_up_to(
        &mut self,
        count: usize,
        cache: &mut quiver_core::memory::buffer::BufferCache,
        frame: &mut Frame,
    ) {
        let data_bytes = cache.pool().data_bytes();
        for _ in 0..count {
            let packet = match &mut self.rotation {
                Some(rotation) => rotation.take(),
                None => cache.packet(),
            };
            let Some(mut packet) = packet else { break };
            let fits = packet.set_span(
                quiver_core::memory::buffer::DATA_OFFSET,
                self.length as u16,
                data_bytes,
            );
            assert!(fits, "a buffer holds the packet");
            self.write(&mut packet);
            let _ = frame.push(packet);
        }
    }
}

/// Where packets end.
#[derive(Default)]
pub struct Ender {
    rotation: Option<Producer<Packet>>,
}

impl Ender {
    /// Take all packets of a vector.
    pub fn take(
        &mut self,
        cache: &mut quiver_core::memory::buffer::BufferCache,
        frame: &mut Frame,
    ) {
        match &mut self.rotation {
            None => frame.drain().for_each(|packet| cache.free(packet)),
            Some(rotation) => {
                let mut packets = frame.drain();
                rotation.put_all(&mut packets);
                packets.for_each(|packet| cache.free(packet));
            }
        }
    }
}

/// Let buffers rotate between an ender and a maker.
pub fn rotate(
    maker: &mut Maker,
    ender: &mut Ender,
    cache: &mut quiver_core::memory::buffer::BufferCache,
) {
    let (mut put, take) = ring(COLD_BUFFERS);
    for _ in 0..COLD_BUFFERS {
        if let Some(packet) = cache.packet() {
            let _ = put.put(packet);
        }
    }
    maker.rotation = Some(take);
    ender.rotation = Some(put);
}

/// The receive side of the first interface.
pub struct Source(pub Maker);

impl RxQueue for Source {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        self.0.fill(cx.buffers, frame);
        None
    }
}

/// The receive side of the first interface on one of several workers, while it is that one's turn.
pub struct TurnSource {
    maker: Maker,
    worker: WorkerId,
    turns: Arc<AtomicU32>,
}

impl TurnSource {
    /// Packets come to `worker` while its bit is set in `turns`.
    pub fn new(maker: Maker, worker: WorkerId, turns: Arc<AtomicU32>) -> TurnSource {
        TurnSource { maker, worker, turns }
    }
}

impl RxQueue for TurnSource {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if self.turns.load(Ordering::Relaxed) >> self.worker.index() & 1 == 1 {
            self.maker.fill(cx.buffers, frame);
        }
        None
    }
}

/// The receive side of an interface by which some packets come before all others: those that come
/// once, or a single one.
pub struct Primer {
    maker: Maker,
    left: usize,
}

impl Primer {
    /// The packets of a template.
    pub fn new(template: Template) -> Primer {
        let (left, bytes) = (template.once().max(1), template.frame_bytes());
        Primer { maker: Maker::new(template, bytes, &[]), left }
    }

    /// How many they are.
    pub fn packets(&self) -> u64 {
        self.left as u64
    }
}

impl RxQueue for Primer {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let count = self.left.min(FRAME_PACKETS_MAX);
        self.maker.fill_up_to(count, cx.buffers, frame);
        self.left -= count;
        None
    }
}

/// The transmit side of every interface.
pub struct Sink(pub Ender);

impl TxQueue for Sink {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        self.0.take(cx.buffers, frame);
    }
}

/// Nothing to control.
pub struct BenchDevice;

impl Device for BenchDevice {
    fn kind(&self) -> &'static str {
        "bench"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
