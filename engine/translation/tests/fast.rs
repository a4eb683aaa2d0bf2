//! The fast path and the general one make the same of the same packet.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use quiver_core::Packet;
use quiver_core::memory::buffer::{BufferCache, BufferPool};
use quiver_core::memory::mapping::PageSize;

use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::{Ends4, Ends6, Ports, delta_to4, delta_to6};
use quiver_translation::versions::fast::{Embedding, Fast4, Fast6};
use quiver_translation::versions::read::{read4, read6};
use quiver_translation::versions::{to4, to6};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Of links that the longer packets here do not fit, and of others.
const MTUS_BYTES: [u16; 2] = [100, 1500];
/// The headers in which bytes are changed, and bytes that are cut off at most.
const EDITED_BYTES: usize = 60;

/// What a packet has become: its bytes, and what else nodes behind it look at.
type Became = (bool, Vec<u8>, u8, bool);

/// What `work` makes of a packet that stands behind a header of layer 2.
fn became(bytes: &[u8], work: impl FnOnce(&mut Packet) -> bool) -> Became {
    let pool = BufferPool::new(128, 2048, PageSize::Small).expect("pool");
    let mut cache: BufferCache = pool.cache();
    let mut packet = cache.packet().expect("a buffer");
    assert!(packet.append(bytes, &mut cache));
    packet.l2_bytes = 14;
    let is_done = work(&mut packet);
    let (bytes, l2_bytes) = (packet.bytes().to_vec(), packet.l2_bytes);
    let became = (is_done, bytes, l2_bytes, packet.take_carried());
    cache.free(packet);
    became
}

fn prefixes() -> impl Strategy<Value = Embedding> {
    (any::<u128>(), select(vec![32u8, 40, 48, 56, 64, 96])).prop_map(|(bits, length)| {
        let octet = 0xffu128 << 56;
        let bits = bits & !octet & u128::MAX << (128 - length);
        Embedding::new(Prefix::new(bits, length).expect("a good prefix"))
    })
}

/// Checksums of which one's complement has two, and others.
fn checksums() -> impl Strategy<Value = u16> {
    prop_oneof![1 => Just(0), 1 => Just(0xffff), 4 => any::<u16>()]
}

/// Ports, the rest of a header of TCP, which that of UDP is the beginning of, and data.
fn uppers() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let data = prop::collection::vec(any::<u8>(), 20..80);
    (any::<bool>(), checksums(), data).prop_map(|(is_udp, checksum, mut upper)| {
        let at = if is_udp { 6 } else { 16 };
        upper[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        (if is_udp { UDP } else { TCP }, upper)
    })
}

/// A packet of IPv4, with padding.
fn packet4((protocol, upper): &(u8, Vec<u8>), ends: [u32; 2], hops: u8, padding: usize) -> Vec<u8> {
    let total = (20 + upper.len() as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0x2e, total[0], total[1], 9, 9, 0x40, 0, hops, *protocol, 7, 7];
    ends.iter().for_each(|end| bytes.extend(end.to_be_bytes()));
    bytes.extend(upper);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

/// The same, which routers may cut, or may not.
fn cut_or_not(mut packet: Vec<u8>, may_be_cut: bool) -> Vec<u8> {
    packet[6] = if may_be_cut { 0 } else { 0x40 };
    packet
}

/// A packet of IPv6, with padding.
fn packet6((next, upper): &(u8, Vec<u8>), ends: [u128; 2], hops: u8, padding: usize) -> Vec<u8> {
    let length = (upper.len() as u16).to_be_bytes();
    let mut bytes = vec![0x62, 0xe1, 0x23, 0x45, length[0], length[1], *next, hops];
    ends.iter().for_each(|end| bytes.extend(end.to_be_bytes()));
    bytes.extend(upper);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

/// Bytes of the headers that are set otherwise, and how much is cut off.
fn edits() -> impl Strategy<Value = (Vec<(Index, u8)>, usize)> {
    let bytes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..3);
    (bytes, prop_oneof![3 => Just(0), 1 => 0..EDITED_BYTES])
}

fn edited(mut bytes: Vec<u8>, (edits, cut): &(Vec<(Index, u8)>, usize)) -> Vec<u8> {
    for (place, value) in edits {
        let reach = bytes.len().min(EDITED_BYTES);
        bytes[place.index(reach)] = *value;
    }
    bytes.truncate(bytes.len() - cut.min(&(bytes.len() - 1)));
    bytes
}

fn fast_to6(packet: &mut Packet, rule: &Embedding, customer: u128, mtu_bytes: u16) -> bool {
    let Some(read) = Fast4::of(packet).filter(|read| read.fits6(mtu_bytes)) else { return false };
    let (source, delta) = rule.embed(read.source());
    read.to6(packet, (source, customer), delta.add128(customer).sub32(read.destination()))
}

fn general_to6(packet: &mut Packet, rule: &Embedding, customer: u128, mtu_bytes: u16) -> bool {
    let Ok(read) = read4(packet) else { return false };
    let from = Ends4 { source: read.source, destination: read.destination, ports: read.ports };
    let source = rule.prefix().embed(read.source);
    let ends = Ends6 { source, destination: customer, ports: read.ports };
    let delta = delta_to6(read.protocol, &from, &ends);
    to6::packet(packet, &read, &ends, delta, mtu_bytes) == Ok(to6::Done::Whole)
}

/// A packet gets these ends, ports among them; what its checksum gets.
fn ends_delta6(packet: &Packet, ends: &Ends6) -> Option<u16> {
    let read = read4(packet).ok()?;
    let from = Ends4 { source: read.source, destination: read.destination, ports: read.ports };
    Some(delta_to6(read.protocol, &from, ends))
}

fn fast_to_ends6(packet: &mut Packet, ends: &Ends6, mtu_bytes: u16) -> bool {
    let Some(read) = Fast4::of(packet).filter(|read| read.fits6(mtu_bytes)) else { return false };
    let Some(delta) = ends_delta6(packet, ends) else { return false };
    read.to6_ends(packet, ends, delta)
}

fn general_to_ends6(packet: &mut Packet, ends: &Ends6, mtu_bytes: u16) -> bool {
    let (Ok(read), Some(delta)) = (read4(packet), ends_delta6(packet, ends)) else { return false };
    to6::packet(packet, &read, ends, delta, mtu_bytes) == Ok(to6::Done::Whole)
}

const IDENTIFICATION: u16 = 0x1234;

fn fast_to4(packet: &mut Packet, rule: &Embedding, source: u32) -> bool {
    let Some(read) = Fast6::of(packet) else { return false };
    let Some((destination, delta)) = rule.extract(read.destination()) else { return false };
    let delta = delta.sub128(read.source()).add32(source);
    read.to4(packet, (source, destination), delta, IDENTIFICATION)
}

fn general_to4(packet: &mut Packet, rule: &Embedding, source: u32) -> bool {
    let Ok(read) = read6(packet) else { return false };
    let Some(destination) = rule.prefix().extract(read.destination) else { return false };
    let from = Ends6 { source: read.source, destination: read.destination, ports: read.ports };
    let ends = Ends4 { source, destination, ports: read.ports };
    let delta = delta_to4(read.protocol, &from, &ends);
    to4::packet(packet, &read, &ends, delta, IDENTIFICATION).is_ok()
}

/// As [`ends_delta6`], the other way round.
fn ends_delta4(packet: &Packet, ends: &Ends4) -> Option<u16> {
    let read = read6(packet).ok()?;
    let from = Ends6 { source: read.source, destination: read.destination, ports: read.ports };
    Some(delta_to4(read.protocol, &from, ends))
}

fn fast_to_ends4(packet: &mut Packet, ends: &Ends4) -> bool {
    let Some(read) = Fast6::of(packet) else { return false };
    let Some(delta) = ends_delta4(packet, ends) else { return false };
    read.to4_ends(packet, ends, delta, IDENTIFICATION)
}

fn general_to_ends4(packet: &mut Packet, ends: &Ends4) -> bool {
    let (Ok(read), Some(delta)) = (read6(packet), ends_delta4(packet, ends)) else { return false };
    to4::packet(packet, &read, ends, delta, IDENTIFICATION).is_ok()
}

proptest! {
    /// Whatever the fast path takes becomes what the general path makes of it; whatever it leaves
    /// is as it was.
    #[test]
    fn both_paths_to_ip6_make_the_same(
        upper in uppers(), ends: [u32; 2], hops in 0u8..4, padding in 0usize..20,
        edits in edits(), rule in prefixes(), customer: u128, mtu_bytes in select(&MTUS_BYTES[..]),
        may_be_cut: bool,
    ) {
        let bytes = edited(cut_or_not(packet4(&upper, ends, hops, padding), may_be_cut), &edits);
        let fast = became(&bytes, |packet| fast_to6(packet, &rule, customer, mtu_bytes));
        let general = became(&bytes, |packet| general_to6(packet, &rule, customer, mtu_bytes));
        match fast.0 {
            true => prop_assert_eq!(fast, general),
            false => prop_assert_eq!(fast, (false, bytes, 14, false)),
        }
    }

    #[test]
    fn both_paths_to_ip4_make_the_same(
        upper in uppers(), source: u128, remote: u32, suffix in 0u128..1 << 24, hops in 0u8..4,
        padding in 0usize..20, edits in edits(), rule in prefixes(), customer: u32,
    ) {
        let suffix = if rule.prefix().length() == 96 { 0 } else { suffix };
        let ends = [source, rule.embed(remote).0 | suffix];
        let bytes = edited(packet6(&upper, ends, hops, padding), &edits);
        let fast = became(&bytes, |packet| fast_to4(packet, &rule, customer));
        let general = became(&bytes, |packet| general_to4(packet, &rule, customer));
        match fast.0 {
            true => prop_assert_eq!(fast, general),
            false => prop_assert_eq!(fast, (false, bytes, 14, false)),
        }
    }

    #[test]
    fn both_paths_to_ends_of_ip6_make_the_same(
        upper in uppers(), ends: [u32; 2], hops in 2u8..4, padding in 0usize..20,
        edits in edits(), source: u128, destination: u128, ports: [u16; 2],
        mtu_bytes in select(&MTUS_BYTES[..]), may_be_cut: bool,
    ) {
        let ports = Ports { source: ports[0], destination: ports[1] };
        let to = Ends6 { source, destination, ports };
        let bytes = edited(cut_or_not(packet4(&upper, ends, hops, padding), may_be_cut), &edits);
        let fast = became(&bytes, |packet| fast_to_ends6(packet, &to, mtu_bytes));
        let general = became(&bytes, |packet| general_to_ends6(packet, &to, mtu_bytes));
        match fast.0 {
            true => prop_assert_eq!(fast, general),
            false => prop_assert_eq!(fast, (false, bytes, 14, false)),
        }
    }

    #[test]
    fn both_paths_to_ends_of_ip4_make_the_same(
        upper in uppers(), ends: [u128; 2], hops in 2u8..4, padding in 0usize..20,
        edits in edits(), source: u32, destination: u32, ports: [u16; 2],
    ) {
        let ports = Ports { source: ports[0], destination: ports[1] };
        let to = Ends4 { source, destination, ports };
        let bytes = edited(packet6(&upper, ends, hops, padding), &edits);
        let fast = became(&bytes, |packet| fast_to_ends4(packet, &to));
        let general = became(&bytes, |packet| general_to_ends4(packet, &to));
        match fast.0 {
            true => prop_assert_eq!(fast, general),
            false => prop_assert_eq!(fast, (false, bytes, 14, false)),
        }
    }

    /// The packets that the fast path is for take it.
    #[test]
    fn whole_segments_and_datagrams_with_hops_take_the_fast_path(
        (protocol, mut upper) in uppers(), four: [u32; 2], six: u128, hops in 2u8..,
        padding in 0usize..20, rule in prefixes(),
    ) {
        let at = if protocol == UDP { 6 } else { 16 };
        upper[at] |= 1;
        let upper = (protocol, upper);
        let bytes = packet4(&upper, four, hops, padding);
        prop_assert!(became(&bytes, |packet| fast_to6(packet, &rule, six, 100)).0);
        let bytes = packet6(&upper, [six, rule.embed(four[1]).0], hops, padding);
        prop_assert!(became(&bytes, |packet| fast_to4(packet, &rule, four[0])).0);
    }
}

/// A checksum of 0xffff stays what the general path makes of it, also where addresses change by
/// nothing (RFC 1624 §3: both zeros of the one's complement).
#[test]
fn both_zeros_of_a_checksum_are_kept_apart() {
    let rule = Embedding::new(Prefix::new(0x0001_fffe << 96, 96).expect("a good prefix"));
    for (protocol, at) in [(UDP, 6), (TCP, 16)] {
        for checksum in [1u16, 0x7fff, 0xfffe, 0xffff] {
            let mut upper = vec![3; 20];
            upper[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            let bytes = packet4(&(protocol, upper), [5, 6], 9, 0);
            let fast = became(&bytes, |packet| fast_to6(packet, &rule, 6, 1500));
            let general = became(&bytes, |packet| general_to6(packet, &rule, 6, 1500));
            assert!(fast.0);
            assert_eq!(fast, general, "{protocol} {checksum:x}");
        }
    }
}

/// The same with other ports: the sum changes by a port, which is also what makes the checksum 0.
#[test]
fn both_zeros_of_a_checksum_are_kept_apart_with_other_ports() {
    for (protocol, at) in [(UDP, 6), (TCP, 16)] {
        for checksum in [1u16, 0x7fff, 0xfffe, 0xffff] {
            let after = checksum.wrapping_add(1);
            for port in [0, 1, checksum - 1, checksum, after, !checksum, 0xffff] {
                let mut upper = vec![0; 20];
                upper[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
                let upper = (protocol, upper);
                let ports = Ports { source: port, destination: 0 };
                let six = Ends6 { source: 0, destination: 0, ports };
                let bytes = packet4(&upper, [0, 0], 9, 0);
                let fast = became(&bytes, |packet| fast_to_ends6(packet, &six, 1500));
                let general = became(&bytes, |packet| general_to_ends6(packet, &six, 1500));
                assert!(fast.0);
                assert_eq!(fast, general, "to IPv6: {protocol} {checksum:x} {port:x}");
                let four = Ends4 { source: 0, destination: 0, ports };
                let bytes = packet6(&upper, [0, 0], 9, 0);
                let fast = became(&bytes, |packet| fast_to_ends4(packet, &four));
                let general = became(&bytes, |packet| general_to_ends4(packet, &four));
                assert!(fast.0);
                assert_eq!(fast, general, "to IPv4: {protocol} {checksum:x} {port:x}");
            }
        }
    }
}
