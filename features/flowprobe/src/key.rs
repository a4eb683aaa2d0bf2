//! What makes a flow: the key of a packet, and what is counted of it.
//!
//! Words 0 to 3 are source and destination address, of two halves each; an IPv4 address stands in
//! the second one. Word 4 is source port (16 bits), destination port (16), protocol (8),
//! [`PRESENT`] and what stands beside it, interface (16). Where addresses, type and tag of the
//! frame are recorded, word 3 is added without carry to [`Link::word`], which stands for these and
//! which the flow keeps: with the flow's word the address is read again.

use quiver_core::Packet;
use quiver_tables::exact::HasKey;

use crate::flow::KEY_WORDS;
use crate::headers;
pub(crate) use crate::headers::Link;
use crate::plain;

/// Every key has this bit.
pub(crate) const PRESENT: u64 = 1 << 23;
/// The addresses are of IPv6, of IPv4.
pub(crate) const IS_IP6: u64 = 1 << 22;
pub(crate) const IS_IP4: u64 = 1 << 21;
/// The interface sends the packets.
pub(crate) const OUTPUT: u64 = 1 << 20;
/// Where the [`Shape`] stands.
pub(crate) const SHAPE_SHIFT: u32 = 16;
/// Where the protocol stands.
pub(crate) const PROTOCOL_SHIFT: u32 = 24;
/// Where the ports stand: the source's above the destination's.
pub(crate) const PORTS_SHIFT: u32 = 32;

/// Which fields are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub u8);

impl Shape {
    /// Addresses, type and tag of frames.
    pub const L2: Shape = Shape(1);
    /// Addresses and protocol of IP packets.
    pub const L3: Shape = Shape(2);
    /// Ports, flags of TCP, type and code of ICMP.
    pub const L4: Shape = Shape(4);
    /// Those of L3 and L4.
    pub const L3_L4: Shape = Shape(Shape::L3.0 | Shape::L4.0);
    /// All bits.
    pub const ALL: u8 = 7;

    pub fn has(self, other: Shape) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn with(self, other: Shape, is_on: bool) -> Shape {
        Shape(self.0 | if is_on { other.0 } else { 0 })
    }
}

/// Which packets of an interface are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(pub u8);

impl Kinds {
    /// All frames.
    pub const L2: Kinds = Kinds(1);
    /// Packets of IPv4.
    pub const IP4: Kinds = Kinds(2);
    /// Packets of IPv6.
    pub const IP6: Kinds = Kinds(4);

    /// The interface has no link layer.
    pub const BARE: Kinds = Kinds(8);

    /// Does it hold any of these?
    pub fn any(self, others: u8) -> bool {
        self.0 & others != 0
    }
}

/// A packet's key, and what is added to its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowKey {
    /// All 0 when the packet is not recorded.
    pub words: [u64; KEY_WORDS],
    pub packets: u32,
    /// Of IP packets.
    pub octets: u32,
    /// Where these are recorded.
    pub frame_octets: u32,
    pub tcp_flags: u8,
    pub class: u8,
}

impl HasKey<KEY_WORDS> for FlowKey {
    #[inline(always)]
    fn key(&self) -> &[u64; KEY_WORDS] {
        &self.words
    }
}

/// What holds for a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub interface: u32,
    pub is_output: bool,
    /// Has it no Ethernet header?
    pub is_bare: bool,
    pub kinds: Kinds,
    pub shape: Shape,
}

impl Place {
    /// What word 4 of all keys has that are of this shape.
    #[inline(always)]
    pub fn tail(&self, shape: Shape) -> u64 {
        PRESENT
            | u64::from(self.interface & 0xffff)
            | u64::from(shape.0) << SHAPE_SHIFT
            | if self.is_output { OUTPUT } else { 0 }
    }

    /// What word 4 of the keys has that [`plain`] reads; 0 where packets may not have that form.
    #[inline(always)]
    pub fn plain_tail(&self) -> u64 {
        let is_recorded = self.kinds.any(Kinds::L2.0 | Kinds::IP4.0);
        match self.shape == Shape::L3_L4 && !self.is_bare && is_recorded {
            true => IS_IP4 | self.tail(Shape::L3_L4),
            false => 0,
        }
    }
}

/// Octets of the IP packets that a packet stands for, of which a header says the length and the
/// buffer has `there`.
#[inline(always)]
pub(crate) fn octets(said: u32, there: u32, packets: u64) -> u32 {
    // A header says less than the frame has, where the frame is padded.
    if said > 0 && packets == 1 { said.min(there) } else { there }
}

/// The key of a packet; none when it is not recorded. `plain_tail` is that of the
/// [place](Place::plain_tail).
#[inline(always)]
pub(crate) fn key(packet: &Packet, place: Place, plain_tail: u64, secret: &Secret) -> FlowKey {
    let (bytes, on_wire) = (packet.bytes(), packet.on_wire());
    if plain_tail != 0
        && let Some(key) = plain::key(bytes, on_wire, plain_tail)
    {
        return key;
    }
    // Taken apart, so that the key above stays in registers: one that is stored, and loaded again
    // as vectors at once, waits until it has arrived.
    let FlowKey { words: [a, b, c, d, e], packets, octets, frame_octets, tcp_flags, class } =
        headers::key(bytes, on_wire, &place, secret);
    FlowKey { words: [a, b, c, d, e], packets, octets, frame_octets, tcp_flags, class }
}

/// A secret of the process: who sends frames cannot find two whose words are the same.
#[derive(Debug)]
pub(crate) struct Secret([u64; 4]);

impl Secret {
    /// Drawn at random.
    pub fn random() -> Secret {
        use std::hash::{BuildHasher, RandomState};
        let source = RandomState::new();
        Secret(std::array::from_fn(|place| source.hash_one(place) | 1))
    }

    /// The word that stands for two addresses and what else a frame has, never 0.
    pub fn word(&self, addresses: [u64; 2], rest: u64) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let folded = fold(addresses[0] ^ self.0[0], addresses[1] ^ self.0[1]);
        fold(folded ^ self.0[2], rest ^ self.0[3]) | 1
    }
}
