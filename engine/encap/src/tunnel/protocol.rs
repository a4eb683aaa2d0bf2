//! What a tunnel protocol says about itself; everything else stands here once for all of them.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::net::IpAddr;

use quiver_control::{Args, Cell, Column, Command, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::{Engine, InterfaceId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpFamily;
use quiver_wire::{Header, IpProtocol, UdpHeader};

use super::commands::{self, TunnelTexts};
use super::config::TunnelConfig;
use super::reasons::TunnelDrop;
use super::udp;
use super::udp_commands::UdpTexts;
use crate::entry::EntryView;
use crate::inner::Truncated;
use crate::outer::{HeaderStack, Inside, OuterHeader};

/// Ethernet inside of IPv6 (IANA protocol numbers); tunnels whose headers name EtherTypes say it so
/// among themselves.
pub const ETHERNET: IpProtocol = IpProtocol(143);

/// Bytes at the start of a tunnel's header that say what it is.
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
    /// An Ethernet frame of a mirror session. Numbers of sessions are no keys: a tunnel with the
    /// same number as key is another one ([`TunnelProtocol::space`] is [`SESSIONS`]).
    MirroredFrame,
}

/// The space of numbers of mirror sessions.
pub const SESSIONS: u16 = 1;

/// What the key of a header is of.
#[inline(always)]
pub(super) fn space(payload: Payload) -> u16 {
    if payload == Payload::MirroredFrame { SESSIONS } else { 0 }
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
    /// The node behind the output features of interfaces that carry packets.
    pub output: &'static str,
    /// The nodes that decapsulate.
    pub input: [&'static str; 2],
    /// The nodes that receive ICMP errors about outer packets.
    pub errors: [&'static str; 2],
}

/// The names of nodes of a protocol whose ports may have many far ends. Pairs are of the outer
/// families IPv4 and IPv6.
#[derive(Clone, Copy, Debug)]
pub struct FarEndNodes {
    /// The nodes that encapsulate frames to one far end.
    pub encap: [&'static str; 2],
    /// The nodes that make copies for all far ends.
    pub flood: [&'static str; 2],
}

/// A tunnel protocol on IP.
pub trait TunnelProtocol: Sized + Send + Sync + 'static {
    /// In commands: `create NAME tunnel`.
    const NAME: &'static str;
    /// In sentences, as `GRE tunnel`.
    const WORDS: &'static str;
    /// Its nodes.
    const NODES: Nodes;
    /// Names of interfaces begin with it.
    const INTERFACE: &'static str = Self::NAME;
    /// The UDP port that leads to it where a tunnel names no other; none where the header follows
    /// the outer IP header.
    const UDP_PORT: Option<u16> = None;
    /// Protocol numbers of outer headers that lead to it; none for protocols in UDP.
    const IP_PROTOCOLS: &'static [IpProtocol];
    /// Does it carry IP packets?
    const CARRIES_PACKETS: bool = true;
    /// Does it carry Ethernet frames?
    const CARRIES_FRAMES: bool;
    /// Has its header a key that tells tunnels between the same ends apart?
    const HAS_KEY: bool;
    /// The nodes of ports with many far ends, where the protocol has such ports.
    const FAR_ENDS: Option<FarEndNodes> = None;
    /// The nodes that encapsulate Ethernet frames whose headers [`number`](Self::number) completes
    /// one by one; empty where there are none.
    const NUMBERED_NODES: [&'static str; 2] = ["", ""];
    /// Is it the end of a tunnel that says how its header goes on ([`behind`](Self::behind))?
    const ASKS_END: bool = false;
    /// Has the header that is sent another key than the one that is received?
    const HAS_SENT_KEY: bool = false;

    /// Do its multipoint tunnels have the next hops that the TEIB says? Those of others have the
    /// ones that the protocol sets ([`set_peer`](super::set_peer)).
    const FOLLOWS_TEIB: bool = true;
    /// Have its multipoint tunnels a source of each family, or none yet?
    const HAS_SOURCES: bool = false;
    /// Does it receive anything?
    const RECEIVES: bool = true;
    /// Do its nodes get ICMP errors about all UDP datagrams, because it sends to ports at which
    /// nothing is received? They pass on those about datagrams of others. One protocol may say so.
    const TAKES_DATAGRAM_ERRORS: bool = false;
    /// Does it take ICMP errors about what it sends?
    const TAKES_ERRORS: bool = Self::RECEIVES || Self::TAKES_DATAGRAM_ERRORS;
    /// Is what it receives looked up in a table of its own ([`table`](Self::table)), not in that of
    /// the tunnel's interface?
    const HAS_TABLES: bool = false;

    /// What users say of a tunnel beyond what all tunnels have.
    type Extra: Copy + Default + PartialEq + Eq + Debug + Send + Sync + 'static;
    /// What the workers share for [`number`](Self::number).
    type Shared: Default + Send + Sync + 'static;

    /// The nodes that encapsulate the frames of a tunnel.
    fn frame_nodes(config: &TunnelConfig<Self::Extra>) -> [&'static str; 2] {
        let _ = config;
        Self::NODES.encap_frames
    }

    /// The key of what a tunnel receives.
    fn key(config: &TunnelConfig<Self::Extra>) -> Option<u32> {
        config.key
    }

    /// What the key is of: 0, or another space of numbers of a protocol without UDP.
    fn space(config: &TunnelConfig<Self::Extra>) -> u16 {
        let _ = config;
        0
    }

    /// The key of what it sends, by which ICMP errors are matched.
    fn sent_key(config: &TunnelConfig<Self::Extra>) -> Option<u32> {
        Self::key(config)
    }

    /// The keys by which the end of a tunnel is looked for, one after the other, that has sent what
    /// an ICMP error quotes: with these UDP ports, source and destination, and with `key`.
    fn quoted_keys(ports: [u16; 2], key: Option<u32>) -> [Option<u32>; 2] {
        let _ = ports;
        [key; 2]
    }

    /// What workers know of the end of a tunnel, for [`behind`](Self::behind).
    fn end_words(config: &TunnelConfig<Self::Extra>) -> EndWords {
        let _ = config;
        EndWords::default()
    }

    /// The sources of a tunnel, IPv4 and IPv6.
    fn sources(config: &TunnelConfig<Self::Extra>) -> [Option<IpAddr>; 2] {
        let source = Some(config.source);
        [source.filter(IpAddr::is_ipv4), source.filter(IpAddr::is_ipv6)]
    }

    /// The small number of the table of the tunnel's end in which a packet of a family is looked
    /// up, where [`HAS_TABLES`](Self::HAS_TABLES) is set.
    #[inline(always)]
    fn table(end: EndWords, family: Family) -> u32 {
        let _ = (end, family);
        0
    }

    /// Check what follows the header in `bytes`, and say how many bytes of it are the tunnel's,
    /// where [`ASKS_END`](Self::ASKS_END) is set.
    ///
    /// # Errors
    /// The reason of the drop.
    #[inline(always)]
    fn behind(end: EndWords, bytes: &[u8]) -> Result<usize, TunnelDrop> {
        let _ = (end, bytes);
        Ok(0)
    }

    /// Complete the header of a frame that leaves by [`NUMBERED_NODES`](Self::NUMBERED_NODES):
    /// `bytes` begin with the tunnel's header, and the frame follows.
    #[inline(always)]
    fn number(shared: &Self::Shared, sent: Sent, bytes: &mut [u8]) {
        let _ = (shared, sent, bytes);
    }

    /// The UDP source port of what a tunnel sends; 0 for one that is made of the flow inside.
    fn source_port(config: &TunnelConfig<Self::Extra>) -> u16 {
        let _ = config;
        0
    }

    /// The header of a tunnel: the bytes behind the outer IP header, or behind the UDP header.
    fn header_of(config: &TunnelConfig<Self::Extra>) -> Vec<u8> {
        Self::header(config.key)
    }

    /// Bytes of the longest header.
    fn header_bytes_max() -> usize {
        Self::header(Self::HAS_KEY.then_some(0)).len()
    }

    /// What the outer header names around something.
    fn ip_protocol(inside: IpProtocol) -> IpProtocol;

    /// The bytes behind the outer IP header, or behind the UDP header.
    fn header(key: Option<u32>) -> Vec<u8>;

    /// Write the fields of these bytes that differ from packet to packet.
    ///
    /// # Errors
    /// `header` is shorter than the protocol's header.
    fn fill(header: &mut [u8], inside: IpProtocol) -> Result<(), Truncated>;

    /// Write the key into these bytes, for a port with many far ends.
    ///
    /// # Errors
    /// `header` is shorter than the protocol's header.
    #[inline(always)]
    fn put_key(header: &mut [u8], key: u32) -> Result<(), Truncated> {
        let _ = (header, key);
        Ok(())
    }

    /// Read the header that stands behind an outer IP header which names `protocol`, or behind the
    /// UDP header after that. A header
    /// without a checksum says the same as another that begins with the same
    /// [`HEADER_START_BYTES`] bytes, or with the same bytes if it is shorter.
    ///
    /// # Errors
    /// The reason of the drop.
    fn parse(protocol: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop>;

    /// Is the checksum of a header right, which begins at `at` and covers the rest of the packet?
    fn checksum_is_good(packet: &Packet, at: usize) -> bool;
}

/// A protocol with the commands that all tunnels on IP have.
pub trait TunnelCommands: TunnelProtocol {
    /// The words of users for its commands.
    const TEXTS: TunnelTexts;

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
    fn cells(config: &TunnelConfig<Self::Extra>) -> Vec<Cell> {
        let _ = config;
        Vec::new()
    }
}

/// A protocol in UDP with the commands that such protocols have.
pub trait UdpCommands: TunnelProtocol {
    /// The words of users for its commands.
    const TEXTS: UdpTexts;

    /// Further options of the command that makes a tunnel, as [`Command::new`] takes them, and
    /// what they change.
    fn apply(args: &Args<'_>, config: &mut TunnelConfig<Self::Extra>) {
        let _ = (args, config);
    }

    /// The options of a tunnel that [`apply`](Self::apply) has read, as words of the command.
    fn options(config: &TunnelConfig<Self::Extra>) -> Option<&'static str> {
        let _ = config;
        None
    }
}

/// Bytes between the outer IP header and the protocol's.
pub(super) const fn udp_len<P: TunnelProtocol>() -> usize {
    if P::UDP_PORT.is_some() { UdpHeader::LEN } else { 0 }
}

/// The header stack of a protocol's tunnels: an outer IP header of family `O`, for some protocols a
/// UDP header, and the protocol's.
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
        if P::UDP_PORT.is_some() {
            udp::fill(words, bytes, O::LEN, total, inside.hash)?;
        }
        let header = bytes.get_mut(O::LEN + udp_len::<P>()..).ok_or(Truncated)?;
        if P::FAR_ENDS.is_some() && inside.key != 0 {
            P::put_key(header, inside.key)?;
        }
        P::fill(header, inside.protocol)
    }

    #[inline(always)]
    fn finish(words: EntryView<'_>, packet: &mut Packet, at: usize) -> Result<(), Truncated> {
        if P::UDP_PORT.is_some() && O::FAMILY == Family::Ip6 {
            return udp::finish(words, packet, at);
        }
        Ok(())
    }
}

/// The longest super-frame that gets the headers of a protocol's tunnels, in bytes: with these its
/// length still fits the outer header.
pub(super) fn super_frame_bytes_max<P: TunnelProtocol, O: OuterHeader>() -> u32 {
    let header_len = udp_len::<P>() + P::header_bytes_max();
    (O::PACKET_BYTES_MAX - O::LEN - header_len) as u32
}

/// Let a node that encapsulates packets take super-frames, where they can be cut behind the
/// tunnel's headers: the ports of tunnels in UDP may be any, and a header that no known port leads
/// to is not looked through.
pub(super) fn take_super_frames<P: TunnelProtocol>(node: NodeSpec, length_max: u32) -> NodeSpec {
    match P::UDP_PORT {
        None => node.takes_offloads_up_to(length_max),
        Some(_) => node,
    }
}

/// The place of a family in pairs.
pub(super) const fn place<F: IpFamily>() -> usize {
    match F::FAMILY {
        Family::Ip4 => 0,
        Family::Ip6 => 1,
    }
}
