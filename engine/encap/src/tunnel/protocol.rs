//! What a tunnel protocol says about itself; everything else stands here once for all of them.

use std::fmt::Debug;
use std::marker::PhantomData;

use quiver_control::{Args, Cell, Column, Command, Refusal};
use quiver_core::{Engine, InterfaceId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpFamily;
use quiver_wire::IpProtocol;

use super::commands::{self, TunnelTexts};
use super::config::TunnelConfig;
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
    /// The tunnel among those between the same ends.
    pub key: TunnelKey,
    /// Is there a checksum that [`TunnelProtocol::checksum_is_good`] compares?
    pub has_checksum: bool,
}

/// The tunnel among those between the same ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelKey {
    /// What the number is of: 0, or another space of numbers of the protocol, up to
    /// [`SPACE_MAX`](Self::SPACE_MAX).
    pub space: u8,
    /// The number; `None` where the header names none.
    pub number: Option<u32>,
}

impl TunnelKey {
    /// The greatest space.
    pub const SPACE_MAX: u8 = 31;

    /// A number of space 0.
    #[inline(always)]
    pub const fn new(number: Option<u32>) -> TunnelKey {
        TunnelKey { space: 0, number }
    }
}

/// What a protocol keeps at the end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndWords {
    /// Flags.
    pub flags: u16,
    /// Numbers.
    pub words: [u64; 2],
}

/// When and for which tunnel a frame gets its headers.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The interface of the tunnel.
    pub interface: InterfaceId,
    /// The worker's clock.
    pub now_ns: u64,
}

/// The names of a protocol's nodes. Pairs are of the outer families IPv4 and IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Nodes {
    /// The nodes that encapsulate IPv4 and IPv6 packets, by outer family.
    pub encap: [[&'static str; 2]; 2],
    /// The nodes that encapsulate Ethernet frames.
    pub encap_frames: [&'static str; 2],
    /// The nodes that encapsulate Ethernet frames whose headers
    /// [`TunnelProtocol::finish`] completes one by one; empty where there are none.
    pub encap_numbered: [&'static str; 2],
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
    /// What its commands call it: `create gre tunnel`.
    const COMMAND: &'static str = Self::NAME;
    /// In sentences, as `GRE tunnel`.
    const WORDS: &'static str;
    /// Its nodes.
    const NODES: Nodes;
    /// Protocol numbers of outer headers that lead to it.
    const IP_PROTOCOLS: &'static [IpProtocol];
    /// Does it carry Ethernet frames?
    const CARRIES_FRAMES: bool;
    /// Does it carry IP packets?
    const CARRIES_PACKETS: bool = true;
    /// Has its header a key that tells tunnels between the same ends apart?
    const HAS_KEY: bool;
    /// The words of users for its commands.
    const TEXTS: TunnelTexts;
    /// Bytes of the longest header that [`header`](Self::header) makes.
    const HEADER_BYTES_MAX: usize;
    /// Is it the end of a tunnel that says how its header goes on ([`behind`](Self::behind))?
    const ASKS_END: bool = false;
    /// Has the header that is sent another key than the one that is received?
    const HAS_SENT_KEY: bool = false;

    /// What users say of a tunnel beyond what all tunnels have.
    type Extra: Copy + Default + PartialEq + Eq + Debug + Send + Sync + 'static;
    /// What the workers share for [`finish`](Self::finish).
    type Shared: Default + Send + Sync + 'static;

    /// The tunnel that a command describes.
    ///
    /// # Errors
    /// The arguments do not fit together.
    fn described(args: &Args<'_>) -> Result<TunnelConfig<Self::Extra>, Refusal> {
        commands::described::<Self>(args, Self::Extra::default())
    }

    /// Explain the words of the command that creates a tunnel.
    fn explained(command: Command<Engine>) -> Command<Engine> {
        commands::explained::<Self>(command)
    }

    /// The words of the command that creates a tunnel.
    fn words(config: &TunnelConfig<Self::Extra>) -> Vec<String> {
        commands::words(config)
    }

    /// What a tunnel carries, in `show`.
    fn type_word(config: &TunnelConfig<Self::Extra>) -> &'static str {
        if config.carries_frames { "teb" } else { "l3" }
    }

    /// The columns of `show` that only this protocol has.
    fn columns() -> Vec<Column> {
        Vec::new()
    }

    /// The cells of these columns.
    fn cells(_: &TunnelConfig<Self::Extra>) -> Vec<Cell> {
        Vec::new()
    }

    /// The nodes that encapsulate the frames of a tunnel.
    fn frame_nodes(_: &TunnelConfig<Self::Extra>) -> [&'static str; 2] {
        Self::NODES.encap_frames
    }

    /// The key of what a tunnel receives.
    fn key(config: &TunnelConfig<Self::Extra>) -> TunnelKey {
        TunnelKey::new(config.key)
    }

    /// The key of what it sends, by which ICMP errors are matched.
    fn sent_key(config: &TunnelConfig<Self::Extra>) -> TunnelKey {
        Self::key(config)
    }

    /// What workers know of the end of a tunnel, for [`behind`](Self::behind).
    fn end_words(_: &TunnelConfig<Self::Extra>) -> EndWords {
        EndWords::default()
    }

    /// Check what follows the header in `bytes`, and say how many bytes of it are the tunnel's,
    /// where [`ASKS_END`](Self::ASKS_END) is set.
    ///
    /// # Errors
    /// The reason of the drop.
    #[inline(always)]
    fn behind(_end: EndWords, _bytes: &[u8]) -> Result<usize, TunnelDrop> {
        Ok(0)
    }

    /// Complete the header of a frame that leaves by [`Nodes::encap_numbered`]: `bytes` begin with
    /// the tunnel's header, and the frame follows.
    #[inline(always)]
    fn finish(_shared: &Self::Shared, _sent: Sent, _bytes: &mut [u8]) {}

    /// What the outer header names around something.
    fn ip_protocol(inside: IpProtocol) -> IpProtocol;

    /// The bytes behind the outer IP header.
    fn header(config: &TunnelConfig<Self::Extra>) -> Vec<u8>;

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
    (O::PACKET_BYTES_MAX - O::LEN - P::HEADER_BYTES_MAX) as u32
}

/// The place of a family in pairs.
pub(super) const fn place<F: IpFamily>() -> usize {
    match F::FAMILY {
        Family::Ip4 => 0,
        Family::Ip6 => 1,
    }
}
