//! What a tunnel protocol says about itself; everything else stands here once for all of them.

use std::marker::PhantomData;

use quiver_core::Packet;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpFamily;
use quiver_wire::IpProtocol;

use super::commands::TunnelTexts;
use super::reasons::TunnelDrop;
use crate::entry::EntryView;
use crate::inner::Truncated;
use crate::outer::{HeaderStack, Inside, OuterHeader};

/// Ethernet inside of IPv6 (IANA protocol numbers); tunnels whose headers name EtherTypes say it so
/// among themselves.
pub const ETHERNET: IpProtocol = IpProtocol(143);

/// Bytes at the begin of a tunnel's header that say what it is.
pub const HEADER_START_BYTES: usize = 8;

/// What a tunnel carries, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Payload {
    /// An IPv4 packet.
    Ip4,
    /// An IPv6 packet.
    Ip6,
    /// An Ethernet frame.
    Frame,
}

/// A tunnel's header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Bytes of it.
    pub header_len: usize,
    /// What follows.
    pub payload: Payload,
    /// The tunnel among those between the same ends; `None` where the header names none.
    pub key: Option<u32>,
    /// Is there a checksum that [`TunnelProtocol::checksum_is_good`] compares?
    pub has_checksum: bool,
}

/// The names of a protocol's nodes. Pairs are of the outer families IPv4 and IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Nodes {
    /// The nodes that encapsulate IPv4 and IPv6 packets, by outer family.
    pub encap: [[&'static str; 2]; 2],
    /// The nodes that encapsulate Ethernet frames.
    pub encap_frames: [&'static str; 2],
    /// The node behind the output features of interfaces that carry packets.
    pub output: &'static str,
    /// The nodes that decapsulate.
    pub input: [&'static str; 2],
    /// The nodes that receive ICMP errors about outer packets.
    pub errors: [&'static str; 2],
}

/// A tunnel protocol on IP.
pub trait TunnelProtocol: Sized + Send + Sync + 'static {
    /// Names of interfaces begin with it.
    const NAME: &'static str;
    /// In sentences, as `GRE tunnel`.
    const WORDS: &'static str;
    /// Its nodes.
    const NODES: Nodes;
    /// Protocol numbers of outer headers that lead to it.
    const IP_PROTOCOLS: &'static [IpProtocol];
    /// Does it carry Ethernet frames?
    const CARRIES_FRAMES: bool;
    /// Has its header a key that tells tunnels between the same ends apart?
    const HAS_KEY: bool;
    /// The words of users for its commands.
    const TEXTS: TunnelTexts;

    /// What the outer header names around something.
    fn ip_protocol(inside: IpProtocol) -> IpProtocol;

    /// The bytes behind the outer IP header.
    fn header(key: Option<u32>) -> Vec<u8>;

    /// Write the fields of these bytes that differ from packet to packet.
    ///
    /// # Errors
    /// `header` is shorter than the protocol's header.
    fn fill(header: &mut [u8], inside: IpProtocol) -> Result<(), Truncated>;

    /// Read the header that stands behind an outer IP header which names `protocol`. A header
    /// without a checksum says the same as another that begins with the same
    /// [`HEADER_START_BYTES`] bytes, or with the same bytes if it is shorter.
    ///
    /// # Errors
    /// The reason of the drop.
    fn parse(protocol: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop>;

    /// Is the checksum of a header right, which begins at `at` and covers the rest of the packet?
    fn checksum_is_good(packet: &Packet, at: usize) -> bool;
}

/// The header stack of a protocol's tunnels: an outer IP header of family `O`, and the protocol's.
pub struct Stack<P, O>(PhantomData<(P, O)>);

impl<P: TunnelProtocol, O: OuterHeader> HeaderStack for Stack<P, O> {
    type Outer = O;

    #[inline(always)]
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        inside: Inside,
    ) -> Result<(), Truncated> {
        O::fill(words, bytes, total, P::ip_protocol(inside.protocol), inside)?;
        P::fill(bytes.get_mut(O::LEN..).ok_or(Truncated)?, inside.protocol)
    }
}

/// The longest super-frame that gets the headers of a protocol's tunnels, in bytes: with these its
/// length still fits the outer header.
pub(super) fn super_frame_bytes_max<P: TunnelProtocol, O: OuterHeader>() -> u32 {
    let header_len = P::header(P::HAS_KEY.then_some(0)).len();
    (O::PACKET_BYTES_MAX - O::LEN - header_len) as u32
}

/// The place of a family in pairs.
pub(super) const fn place<F: IpFamily>() -> usize {
    match F::FAMILY {
        Family::Ip4 => 0,
        Family::Ip6 => 1,
    }
}
