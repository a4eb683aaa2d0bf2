//! What the headers of a packet say to a translator. Nothing is believed that the packet does not
//! have: lengths are those of its bytes, and header chains are bounded.

use quiver_core::Packet;
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::noted;
use quiver_wire::ip4::options::Options;
use quiver_wire::ip6::extension::{Fragment, Walk};
use quiver_wire::upper::Upper;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::Refused;
use super::ends::Ports;
use super::icmp::{self, Class};
use crate::tcp::flag;

/// Bytes of upper headers that must be there.
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;
/// Bytes of the upper layer that an error quotes at least (RFC 792).
const QUOTED_BYTES: usize = 8;

/// ICMPv6 parameter problem, erroneous header field (RFC 7915 §5.1).
const ERRONEOUS_FIELD: (u8, u8) = (4, 0);
/// ICMP source route failed (RFC 7915 §4.1).
const SOURCE_ROUTE_FAILED: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 5, detail: 0 };
/// Options with a list of addresses and a pointer into it (RFC 791 §3.1).
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP, UDP, or another protocol, with the flags of TCP.
    Data {
        /// 0 for other protocols.
        tcp_flags: u8,
    },
    /// An echo request.
    Query,
    /// An echo reply.
    Answer,
    /// An ICMP error.
    Error,
    /// Other ICMP.
    OtherIcmp,
    /// A fragment whose first one is not known.
    LostFragment,
}

/// Why a packet opens no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpensNothing {
    /// It is of TCP, and no SYN.
    NoSyn,
    /// An echo reply, an error, or other ICMP.
    NoQuery,
}

impl Kind {
    /// The TCP flags of a packet that opens a session; 0 for other protocols. An echo reply opens
    /// nothing.
    ///
    /// # Errors
    /// It opens none.
    pub fn opens(self, protocol: IpProtocol) -> Result<u8, OpensNothing> {
        match self {
            Kind::Data { tcp_flags } if protocol == IpProtocol::TCP => {
                let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
                (tcp_flags & opens == flag::SYN).then_some(tcp_flags).ok_or(OpensNothing::NoSyn)
            }
            Kind::Data { .. } | Kind::Query => Ok(0),
            _ => Err(OpensNothing::NoQuery),
        }
    }
}

/// An IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct Read6 {
    /// Who sends.
    pub source: u128,
    /// Who receives.
    pub destination: u128,
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// Hops that it may still take.
    pub hop_limit: u8,
    /// The protocol behind the extension headers.
    pub protocol: IpProtocol,
    /// Where that begins, in bytes from the IPv6 header on.
    pub upper: usize,
    /// Bytes from there on, as the header has them.
    pub upper_len: usize,
    /// The fragment header.
    pub fragment: Option<Fragment>,
    /// What it is.
    pub kind: Kind,
    /// Its ports, also those of a later fragment whose first one is known.
    pub ports: Ports,
}

/// An IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Read4 {
    /// Who sends.
    pub source: u32,
    /// Who receives.
    pub destination: u32,
    /// Differentiated services and congestion notification.
    pub traffic_class: u8,
    /// Hops that it may still take.
    pub ttl: u8,
    /// The protocol.
    pub protocol: IpProtocol,
    /// Where that begins, in bytes from the IPv4 header on.
    pub upper: usize,
    /// Bytes from there on, as the header has them.
    pub upper_len: usize,
    /// What the fragments of the packet have in common.
    pub identification: u16,
    /// Routers must not cut it.
    pub dont_fragment: bool,
    /// It is not the last fragment.
    pub more_fragments: bool,
    /// Where it belongs, in units of 8 bytes.
    pub fragment_offset: u16,
    /// What it is.
    pub kind: Kind,
    /// Its ports, also those of a later fragment whose first one is known.
    pub ports: Ports,
}

impl Read6 {
    /// Is it one of several fragments?
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| !fragment.is_atomic())
    }

    /// Is it a fragment without the upper layer's header?
    #[inline(always)]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }

    /// Bytes of the packet.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.upper + self.upper_len
    }
}

impl Read4 {
    /// Is it one of several fragments?
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Bytes of the packet.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.upper + self.upper_len
    }
}

/// Read an IPv6 packet.
///
/// # Errors
/// Its headers are not whole, or a routing header has segments left.
#[inline(always)]
pub fn read6(packet: &Packet) -> Result<Read6, Refused> {
    let mut read = headers6(packet.bytes())?;
    if read.length() > packet.length() {
        return Err(Refused::Truncated);
    }
    let (kind, ports) = match read.is_later_fragment() {
        true => of_noted(noted(packet)),
        false => of_upper(read.protocol, upper_of(packet, read.upper, read.length()), false)?,
    };
    (read.kind, read.ports) = (kind, ports);
    Ok(read)
}

/// The upper layer, as far as it lies in the first buffer. Bytes behind the packet's end (padding
/// of a frame) are not of it.
#[inline(always)]
fn upper_of(packet: &Packet, from: usize, to: usize) -> Option<&[u8]> {
    let bytes = packet.bytes();
    bytes.get(from..to.min(bytes.len()))
}

/// Read an IPv4 packet.
///
/// # Errors
/// Its headers are not whole, or a source route has addresses left.
#[inline(always)]
pub fn read4(packet: &Packet) -> Result<Read4, Refused> {
    let mut read = headers4(packet.bytes())?;
    if read.length() > packet.length() {
        return Err(Refused::Truncated);
    }
    if read.upper > Ip4Header::LEN {
        check_options(packet.bytes().get(Ip4Header::LEN..read.upper).unwrap_or_default())?;
    }
    let (kind, ports) = match read.fragment_offset != 0 {
        true => of_noted(noted(packet)),
        false => of_upper(read.protocol, upper_of(packet, read.upper, read.length()), false)?,
    };
    (read.kind, read.ports) = (kind, ports);
    Ok(read)
}

/// Read a packet that an error quotes: its end may be missing.
///
/// # Errors
/// Its headers are not whole, or fewer than 8 bytes are behind them.
pub(super) fn quoted6(bytes: &[u8]) -> Result<Read6, Refused> {
    let mut read = headers6(bytes)?;
    if !read.is_later_fragment() {
        (read.kind, read.ports) = of_upper(read.protocol, bytes.get(read.upper..), true)?;
    }
    Ok(read)
}

/// Read an IPv4 packet that an error quotes: its end may be missing.
///
/// # Errors
/// Its headers are not whole, or fewer than 8 bytes are behind them.
pub(super) fn quoted4(bytes: &[u8]) -> Result<Read4, Refused> {
    let mut read = headers4(bytes)?;
    if read.fragment_offset == 0 {
        (read.kind, read.ports) = of_upper(read.protocol, bytes.get(read.upper..), true)?;
    }
    Ok(read)
}

/// The fixed header and the extension headers that a translator leaves out (RFC 7915 §5.1).
#[inline(always)]
fn headers6(bytes: &[u8]) -> Result<Read6, Refused> {
    let (header, behind) = Ip6Header::split(bytes).ok_or(Refused::Truncated)?;
    if header.version() != 6 {
        return Err(Refused::Truncated);
    }
    let payload = usize::from(header.payload_length());
    let (mut protocol, mut upper, mut fragment) = (header.next_header(), Ip6Header::LEN, None);
    for extension in Walk::new(protocol, behind) {
        let extension = extension.map_err(|_| Refused::Truncated)?;
        if extension.kind == IpProtocol::AUTHENTICATION {
            break;
        }
        if let Some((_, 1..)) = extension.routing() {
            let (kind, code) = ERRONEOUS_FIELD;
            let detail = (Ip6Header::LEN + extension.offset + 3) as u16;
            return Err(Refused::SourceRoute(IcmpErrorRequest { kind, code, detail }));
        }
        if let Some(found) = extension.fragment() {
            if fragment.is_some() {
                return Err(Refused::Truncated);
            }
            fragment = Some(found);
        }
        protocol = extension.next_header;
        upper = Ip6Header::LEN + extension.offset + extension.bytes.len();
    }
    let upper_len = (Ip6Header::LEN + payload).checked_sub(upper).ok_or(Refused::Truncated)?;
    Ok(Read6 {
        source: header.source_bits(),
        destination: header.destination_bits(),
        traffic_class: header.traffic_class(),
        hop_limit: header.hop_limit(),
        protocol,
        upper,
        upper_len,
        fragment,
        kind: Kind::LostFragment,
        ports: Ports::default(),
    })
}

#[inline(always)]
fn headers4(bytes: &[u8]) -> Result<Read4, Refused> {
    let header = Ip4Header::overlay(bytes).ok_or(Refused::Truncated)?;
    let (upper, total) = (header.header_len(), usize::from(header.total_length()));
    if header.version() != 4 || upper < Ip4Header::LEN || upper > bytes.len() {
        return Err(Refused::Truncated);
    }
    Ok(Read4 {
        source: header.source_bits(),
        destination: header.destination_bits(),
        traffic_class: header.traffic_class,
        ttl: header.ttl(),
        protocol: header.protocol(),
        upper,
        upper_len: total.checked_sub(upper).ok_or(Refused::Truncated)?,
        identification: header.identification(),
        dont_fragment: header.dont_fragment(),
        more_fragments: header.more_fragments(),
        fragment_offset: header.fragment_offset(),
        kind: Kind::LostFragment,
        ports: Ports::default(),
    })
}

/// Options are left out, but for a source route with addresses left (RFC 7915 §4.1).
#[cold]
fn check_options(options: &[u8]) -> Result<(), Refused> {
    for option in Options::new(options) {
        let Ok(option) = option else { return Ok(()) };
        if SOURCE_ROUTES.contains(&option.kind)
            && let Some(pointer) = option.data.first()
            && usize::from(*pointer) <= option.data.len() + 2
        {
            return Err(Refused::SourceRoute(SOURCE_ROUTE_FAILED));
        }
    }
    Ok(())
}

/// What virtual reassembly has noted of the first fragment.
#[cold]
fn of_noted(upper: Option<Upper>) -> (Kind, Ports) {
    let Some(upper) = upper else { return (Kind::LostFragment, Ports::default()) };
    let ports = Ports { source: upper.source_port, destination: upper.destination_port };
    let kind = match upper.icmp {
        None => Kind::Data { tcp_flags: upper.tcp_flags },
        Some(_) => Kind::OtherIcmp,
    };
    (kind, ports)
}

/// What stands behind the IP headers.
#[inline(always)]
fn of_upper(
    protocol: IpProtocol,
    bytes: Option<&[u8]>,
    is_quoted: bool,
) -> Result<(Kind, Ports), Refused> {
    let bytes = bytes.unwrap_or_default();
    let needed = match protocol {
        _ if is_quoted => QUOTED_BYTES,
        IpProtocol::TCP => TCP_BYTES,
        IpProtocol::UDP => UDP_BYTES,
        IpProtocol::ICMP | IpProtocol::ICMP6 => ICMP_BYTES,
        _ => 0,
    };
    if bytes.len() < needed {
        return Err(Refused::Truncated);
    }
    let word = |at: usize| match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u16::from_be_bytes(*word),
        None => 0,
    };
    let ports = match protocol {
        IpProtocol::TCP | IpProtocol::UDP => Ports { source: word(0), destination: word(2) },
        _ => Ports::default(),
    };
    let first = bytes.first().copied().unwrap_or(0);
    let class = match protocol {
        IpProtocol::ICMP => icmp::class4(first),
        IpProtocol::ICMP6 => icmp::class6(first),
        _ => {
            let is_tcp = protocol == IpProtocol::TCP;
            let flags = if is_tcp { bytes.get(13).copied().unwrap_or(0) } else { 0 };
            return Ok((Kind::Data { tcp_flags: flags }, ports));
        }
    };
    let identifier = Ports { source: word(4), destination: word(4) };
    Ok(match class {
        Class::Echo => (Kind::Query, identifier),
        Class::EchoReply => (Kind::Answer, identifier),
        Class::Error => (Kind::Error, Ports::default()),
        Class::Other => (Kind::OtherIcmp, Ports::default()),
    })
}
