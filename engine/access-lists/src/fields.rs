//! What lists look at in a packet.

use quiver_classifier::{Classified, Key, field};
use quiver_core::cpu::Variant;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::ip6::extension;
use quiver_wire::upper::{Upper, UpperBad};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, TcpHeader};

use crate::table::CompiledList;

/// A bit of [`Key::fields`] that no rule has: the upper layer's header is cut off, or hides behind
/// the edge of a fragment (RFC 1858 §3, RFC 3128).
pub const CUT: u32 = 1 << 25;

/// A family whose packets lists are asked about.
pub trait Keyed: IpFamily<Address: Classified> {
    /// The fields of the packet that `bytes` begin with; `noted` is what virtual reassembly knows
    /// of a fragment, `later` the fields of fragments after the first. None if there is no whole
    /// header.
    fn key(bytes: &[u8], noted: Option<Upper>, later: u32) -> Option<Key<Self::Address>>;

    /// Ask a list about packets.
    fn ask(
        list: &dyn CompiledList,
        variant: Variant,
        is_uniform: bool,
        keys: &[Key<Self::Address>],
        found: &mut [u32],
    );
}

/// Ports, types and flags of the upper layer, in a key.
#[inline(always)]
fn set_upper<A>(key: &mut Key<A>, upper: &Upper) {
    let (source, destination) = match upper.icmp {
        Some((kind, code)) => (u16::from(kind), u16::from(code)),
        None => (upper.source_port, upper.destination_port),
    };
    (key.source_port, key.destination_port) = (source, destination);
    key.fields = key.fields & !field::PROTOCOL
        | u32::from(upper.protocol.0)
        | u32::from(upper.tcp_flags) << field::TCP_FLAGS_SHIFT
        | field::UPPER;
}

/// The same, of what may be a fragment or cut off.
fn set_found<A>(key: &mut Key<A>, found: Result<Upper, UpperBad>, later: u32) {
    match found {
        Ok(upper) => set_upper(key, &upper),
        Err(UpperBad::LaterFragment) => key.fields |= later | field::LATER_FRAGMENT,
        Err(UpperBad::Truncated) => key.fields |= CUT,
    }
}

/// First byte of the flags of TCP.
const TCP_FLAGS_AT: usize = 13;

impl Keyed for Ip4 {
    #[inline(always)]
    fn key(bytes: &[u8], noted: Option<Upper>, later: u32) -> Option<Key<u32>> {
        let header = Ip4Header::overlay(bytes)?;
        let mut key = Key {
            source: header.source_bits(),
            destination: header.destination_bits(),
            fields: u32::from(header.protocol().0)
                | u32::from(header.traffic_class >> 2) << field::DSCP_SHIFT,
            ..Key::default()
        };
        let is_plain = header.is_version_4_without_options() & !header.is_fragment();
        let behind: Option<&[u8; TCP_FLAGS_AT + 1]> =
            bytes.get(Ip4Header::LEN..).and_then(|behind| behind.first_chunk());
        let protocol = header.protocol();
        let (is_tcp, is_udp) = (protocol == IpProtocol::TCP, protocol == IpProtocol::UDP);
        match behind {
            Some(behind) if is_plain & (is_tcp | is_udp) & noted.is_none() => {
                key.source_port = u16::from_be_bytes([behind[0], behind[1]]);
                key.destination_port = u16::from_be_bytes([behind[2], behind[3]]);
                let flags = if is_tcp { behind[TCP_FLAGS_AT] } else { 0 };
                key.fields |= u32::from(flags) << field::TCP_FLAGS_SHIFT | field::UPPER;
            }
            _ => other_ip4(bytes, header, noted, later, &mut key),
        }
        Some(key)
    }

    #[inline(always)]
    fn ask(
        list: &dyn CompiledList,
        variant: Variant,
        is_uniform: bool,
        keys: &[Key<u32>],
        found: &mut [u32],
    ) {
        list.find_ip4(variant, is_uniform, keys, found);
    }
}

#[inline(never)]
fn other_ip4(
    bytes: &[u8],
    header: &Ip4Header,
    noted: Option<Upper>,
    later: u32,
    key: &mut Key<u32>,
) {
    if header.is_fragment() {
        key.fields |= field::FRAGMENT;
    }
    match noted {
        Some(upper) => set_upper(key, &upper),
        None if hides_flags(header.protocol(), header.fragment_offset()) => {
            key.fields |= CUT | field::LATER_FRAGMENT;
        }
        None => set_found(key, Upper::of_ip4(bytes), later),
    }
}

/// Is it a fragment that would overwrite TCP's flags (RFC 3128)? The offset is in units of 8 bytes.
fn hides_flags(protocol: IpProtocol, offset: u16) -> bool {
    protocol == IpProtocol::TCP && offset == 1
}

impl Keyed for Ip6 {
    #[inline(always)]
    fn key(bytes: &[u8], noted: Option<Upper>, later: u32) -> Option<Key<u128>> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let protocol = header.next_header();
        let mut key = Key {
            source: header.source_bits(),
            destination: header.destination_bits(),
            fields: u32::from(protocol.0)
                | u32::from(header.traffic_class() >> 2) << field::DSCP_SHIFT,
            ..Key::default()
        };
        let (is_tcp, is_udp) = (protocol == IpProtocol::TCP, protocol == IpProtocol::UDP);
        let first: Option<&[u8; 4]> = behind.first_chunk();
        match first {
            Some([a, b, c, d]) if is_udp & noted.is_none() => {
                key.source_port = u16::from_be_bytes([*a, *b]);
                key.destination_port = u16::from_be_bytes([*c, *d]);
                key.fields |= field::UPPER;
            }
            Some([a, b, c, d]) if is_tcp & noted.is_none() & (behind.len() >= TcpHeader::LEN) => {
                key.source_port = u16::from_be_bytes([*a, *b]);
                key.destination_port = u16::from_be_bytes([*c, *d]);
                let flags = behind.get(TCP_FLAGS_AT).copied().unwrap_or(0);
                key.fields |= u32::from(flags) << field::TCP_FLAGS_SHIFT | field::UPPER;
            }
            _ => other_ip6(bytes, header, behind, noted, later, &mut key),
        }
        Some(key)
    }

    #[inline(always)]
    fn ask(
        list: &dyn CompiledList,
        variant: Variant,
        is_uniform: bool,
        keys: &[Key<u128>],
        found: &mut [u32],
    ) {
        list.find_ip6(variant, is_uniform, keys, found);
    }
}

#[inline(never)]
fn other_ip6(
    bytes: &[u8],
    header: &Ip6Header,
    behind: &[u8],
    noted: Option<Upper>,
    later: u32,
    key: &mut Key<u128>,
) {
    let walked = extension::upper_layer(header.next_header(), behind);
    let fragment = walked.as_ref().ok().and_then(|upper| upper.fragment);
    let protocol = match (&walked, fragment) {
        (_, Some(fragment)) if fragment.offset != 0 => fragment.next_header,
        (Ok(upper), _) => upper.protocol,
        (Err(_), _) => header.next_header(),
    };
    key.fields = key.fields & !field::PROTOCOL | u32::from(protocol.0);
    if fragment.is_some_and(|fragment| !fragment.is_atomic()) {
        key.fields |= field::FRAGMENT;
    }
    let offset = fragment.map_or(0, |fragment| fragment.offset);
    match noted {
        Some(upper) => set_upper(key, &upper),
        None if hides_flags(protocol, offset) => key.fields |= CUT | field::LATER_FRAGMENT,
        None => set_found(key, Upper::of_ip6(bytes), later),
    }
}
