//! There and back: a packet that is translated and translated back is what it was, where RFC 7915
//! says so, and every checksum is right in between.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use quiver_core::Packet;
use quiver_core::memory::buffer::{BufferCache, BufferPool};
use quiver_core::memory::mapping::PageSize;
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use quiver_translation::versions::ends::{Ends4, Ends6, Ports, delta_to4, delta_to6};
use quiver_translation::versions::error::{self, read_error4, read_error6};
use quiver_translation::versions::read::{read4, read6};
use quiver_translation::versions::{Refused, to4, to6};

const UPPER: std::ops::Range<usize> = 0..1400;

fn with<R>(bytes: &[u8], work: impl FnOnce(&mut Packet) -> R) -> R {
    let pool = BufferPool::new(128, 2048, PageSize::Small).expect("pool");
    let mut cache: BufferCache = pool.cache();
    let mut packet = cache.packet().expect("a buffer");
    assert!(packet.append(bytes, &mut cache));
    let result = work(&mut packet);
    cache.free(packet);
    result
}

/// Ends of both versions that stand for each other.
fn ends() -> impl Strategy<Value = (Ends4, Ends6)> {
    (any::<[u32; 2]>(), any::<[u128; 2]>(), any::<[u16; 4]>()).prop_map(|(four, six, ports)| {
        let [a, b, c, d] = ports;
        let pair = |source, destination| Ports { source, destination };
        let four = Ends4 { source: four[0], destination: four[1], ports: pair(a, b) };
        let six = Ends6 { source: six[0], destination: six[1], ports: pair(c, d) };
        (four, six)
    })
}

/// The identifier of an echo is one.
fn of_protocol(protocol: IpProtocol, (mut four, mut six): (Ends4, Ends6)) -> (Ends4, Ends6) {
    if protocol == IpProtocol::ICMP {
        four.ports.destination = four.ports.source;
        six.ports.destination = six.ports.source;
    }
    (four, six)
}

fn protocols() -> impl Strategy<Value = IpProtocol> {
    prop::sample::select(vec![IpProtocol::TCP, IpProtocol::UDP, IpProtocol::ICMP])
}

fn checksum_place(protocol: IpProtocol) -> usize {
    match protocol {
        IpProtocol::TCP => 16,
        IpProtocol::UDP => 6,
        _ => 2,
    }
}

/// An upper layer with ports, and with the checksum that `pseudo` begins.
fn upper(protocol: IpProtocol, echo: u8, ports: Ports, data: &[u8], pseudo: Sum) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes.extend(data);
    let (a, b) = (ports.source.to_be_bytes(), ports.destination.to_be_bytes());
    match protocol {
        IpProtocol::TCP | IpProtocol::UDP => {
            bytes[..2].copy_from_slice(&a);
            bytes[2..4].copy_from_slice(&b);
            bytes[12] = 0x50;
            if protocol == IpProtocol::UDP {
                let length = (bytes.len() as u16).to_be_bytes();
                bytes[4..6].copy_from_slice(&length);
            }
        }
        _ => {
            bytes[0] = echo;
            bytes[4..6].copy_from_slice(&a);
        }
    }
    let sum = pseudo.bytes(&bytes);
    let sum = if protocol == IpProtocol::UDP { sum.udp_checksum() } else { sum.checksum() };
    let at = checksum_place(protocol);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn pseudo4(ends: &Ends4, protocol: IpProtocol, length: usize) -> Sum {
    match protocol {
        IpProtocol::ICMP => Sum::new(),
        _ => Sum::pseudo4(
            Ipv4Addr::from(ends.source),
            Ipv4Addr::from(ends.destination),
            protocol,
            length as u16,
        ),
    }
}

fn pseudo6(ends: &Ends6, protocol: IpProtocol, length: usize) -> Sum {
    let protocol = quiver_translation::versions::ends::protocol6(protocol);
    Sum::pseudo6(
        Ipv6Addr::from_bits(ends.source),
        Ipv6Addr::from_bits(ends.destination),
        protocol,
        length as u32,
    )
}

#[derive(Debug)]
struct Fields {
    class: u8,
    hops: u8,
    identification: u16,
    dont_fragment: bool,
    /// Offset in units of 8 bytes, and do more follow?
    place: Option<(u16, bool)>,
}

fn packet4(ends: &Ends4, protocol: IpProtocol, fields: &Fields, upper: &[u8]) -> Vec<u8> {
    let (source, destination) = (ends.source.into(), ends.destination.into());
    let mut header = Ip4Header::new(source, destination, protocol, fields.hops, upper.len())
        .expect("short enough");
    header.traffic_class = fields.class;
    header.set_identification(fields.identification);
    let mut bytes = vec![0; 20];
    header.write(&mut bytes).expect("room");
    let (offset, more) = fields.place.unwrap_or((0, false));
    let flags = u16::from(fields.dont_fragment) << 14 | u16::from(more) << 13 | offset;
    bytes[6..8].copy_from_slice(&flags.to_be_bytes());
    bytes[10..12].fill(0);
    let sum = checksum::of(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(upper);
    bytes
}

fn packet6(ends: &Ends6, protocol: IpProtocol, fields: &Fields, upper: &[u8]) -> Vec<u8> {
    let (source, destination) =
        (Ipv6Addr::from_bits(ends.source), Ipv6Addr::from_bits(ends.destination));
    let protocol = quiver_translation::versions::ends::protocol6(protocol);
    let extra = if fields.place.is_some() { 8 } else { 0 };
    let first = if extra > 0 { IpProtocol::FRAGMENT } else { protocol };
    let length = (upper.len() + extra) as u16;
    let mut header = Ip6Header::new(source, destination, first, fields.hops, length);
    header.set_traffic_class(fields.class);
    let mut bytes = vec![0; 40];
    header.write(&mut bytes).expect("room");
    if let Some((offset, more)) = fields.place {
        bytes.extend([protocol.0, 0]);
        bytes.extend((offset << 3 | u16::from(more)).to_be_bytes());
        bytes.extend(u32::from(fields.identification).to_be_bytes());
    }
    bytes.extend(upper);
    bytes
}

fn go_to6(packet: &mut Packet, ends: &Ends6) -> Result<to6::Done, Refused> {
    let read = read4(packet)?;
    let from = Ends4 { source: read.source, destination: read.destination, ports: read.ports };
    to6::packet(packet, &read, ends, delta_to6(read.protocol, &from, ends), 1280)
}

fn go_to4(packet: &mut Packet, ends: &Ends4, identification: u16) -> Result<(), Refused> {
    let read = read6(packet)?;
    let from = Ends6 { source: read.source, destination: read.destination, ports: read.ports };
    to4::packet(packet, &read, ends, delta_to4(read.protocol, &from, ends), identification)
}

fn fields() -> impl Strategy<Value = Fields> {
    any::<(u8, u8, u16)>().prop_map(|(class, hops, identification)| Fields {
        class,
        hops: hops.max(2),
        identification,
        dont_fragment: true,
        place: None,
    })
}

proptest! {
    /// RFC 7915 §4.1, §5.1: "The Don't Fragment (DF) bit: if the size of the translated IPv4 packet
    /// is less than or equal to 1260 bytes, it is set to zero; otherwise, it is set to one."
    #[test]
    fn a_packet_of_ip4_comes_back(
        both in ends(), protocol in protocols(), fields in fields(),
        data in prop::collection::vec(any::<u8>(), UPPER), odd: bool,
    ) {
        let (four, six) = of_protocol(protocol, both);
        let data = if odd { &data[..data.len() / 2] } else { &data[..] };
        let length = 20 + data.len();
        let upper = upper(protocol, 8, four.ports, data, pseudo4(&four, protocol, length));
        let original = packet4(&four, protocol, &fields, &upper);
        with(&original, |packet| {
            let done = go_to6(packet, &six).expect("it has a counterpart");
            prop_assert_eq!(done, to6::Done::Whole);
            let there = packet.bytes().to_vec();
            prop_assert!(pseudo6(&six, protocol, length).bytes(&there[40..]).is_good());
            let header = Ip6Header::overlay(&there).expect("a header");
            prop_assert_eq!((header.traffic_class(), header.flow_label()), (fields.class, 0));
            prop_assert_eq!(header.hop_limit(), fields.hops);
            prop_assert_eq!(usize::from(header.payload_length()), there.len() - 40);
            go_to4(packet, &four, fields.identification).expect("it has a counterpart");
            let mut expected = original.clone();
            if original.len() <= to4::MAY_BE_CUT_BYTES {
                let fields = Fields { dont_fragment: false, ..fields };
                expected = packet4(&four, protocol, &fields, &upper);
            }
            prop_assert_eq!(packet.bytes(), &expected[..]);
            Ok(())
        })?;
    }

    #[test]
    fn a_packet_of_ip6_comes_back(
        both in ends(), protocol in protocols(), fields in fields(), identification: u16,
        data in prop::collection::vec(any::<u8>(), 0..1200),
        place in prop::option::of((1u16..200, any::<bool>())),
    ) {
        let (four, six) = of_protocol(protocol, both);
        let is_later = place.is_some();
        prop_assume!(!(is_later && protocol == IpProtocol::ICMP));
        let fields = Fields { place, ..fields };
        let length = 20 + data.len();
        let upper = upper(protocol, 128, six.ports, &data, pseudo6(&six, protocol, length));
        let original = packet6(&six, protocol, &fields, &upper);
        with(&original, |packet| {
            go_to4(packet, &four, identification).expect("it has a counterpart");
            let there = packet.bytes().to_vec();
            prop_assert_eq!(checksum::of(&there[..20]), 0);
            if !is_later {
                prop_assert!(pseudo4(&four, protocol, length).bytes(&there[20..]).is_good());
            }
            let header = Ip4Header::overlay(&there).expect("a header");
            prop_assert_eq!(usize::from(header.total_length()), there.len());
            let expected = if is_later { fields.identification } else { identification };
            prop_assert_eq!(header.identification(), expected);
            let done = go_to6(packet, &six).expect("it has a counterpart");
            prop_assert_eq!(done, to6::Done::Whole);
            prop_assert_eq!(packet.bytes(), &original[..]);
            Ok(())
        })?;
    }

    /// RFC 7915 §4.2, §4.3, §5.2, §5.3: the packet inside is translated, too.
    #[test]
    fn an_error_comes_back_with_the_packet_inside(
        both in ends(), protocol in protocols(), fields in fields(), outer: ([u128; 2], [u32; 2]),
        data in prop::collection::vec(any::<u8>(), 0..500), cut in 8usize..600,
        (kind, code, rest) in prop::sample::select(vec![
            (1u8, 4u8, 0u32), (2, 0, 1400), (3, 0, 0), (3, 1, 0), (1, 1, 0), (4, 1, 6), (4, 0, 7),
        ]),
    ) {
        let (four, six) = of_protocol(protocol, both);
        let length = 20 + data.len();
        let upper = upper(protocol, 128, six.ports, &data, pseudo6(&six, protocol, length));
        let mut quoted = packet6(&six, protocol, &fields, &upper);
        quoted.truncate(40 + cut.min(upper.len()));
        let (from, to) = (Ipv6Addr::from_bits(outer.0[0]), Ipv6Addr::from_bits(outer.0[1]));
        let mut message = vec![kind, code, 0, 0];
        message.extend(rest.to_be_bytes());
        message.extend(&quoted);
        let sum = Sum::pseudo6(from, to, IpProtocol::ICMP6, message.len() as u32);
        let sum = sum.bytes(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut original = vec![0; 40];
        let header = Ip6Header::new(from, to, IpProtocol::ICMP6, 60, message.len() as u16);
        header.write(&mut original).expect("room");
        original.extend(&message);
        with(&original, |packet| {
            let error = read_error6(packet).expect("an error");
            error::to4(packet, &error, (outer.1[0], outer.1[1]), &four).expect("it has one");
            let there = packet.bytes().to_vec();
            prop_assert_eq!(checksum::of(&there[..20]), 0);
            prop_assert_eq!(checksum::of(&there[20..]), 0);
            prop_assert_eq!(checksum::of(&there[28..48]), 0);
            let inner = &there[48..];
            if quoted.len() == 40 + length {
                prop_assert!(pseudo4(&four, protocol, length).bytes(inner).is_good());
            }
            let error = read_error4(packet).expect("an error");
            prop_assert_eq!(error.inner.source, four.source);
            let back = (outer.0[0], outer.0[1]);
            error::to6(packet, &error, back, &six).expect("it has one");
            prop_assert_eq!(packet.bytes(), &original[..]);
            Ok(())
        })?;
    }

    /// Whatever the bytes are, nothing panics, and what comes out has right lengths.
    #[test]
    fn no_bytes_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300), both in ends(), six: bool,
        next in prop::sample::select(vec![0u8, 1, 6, 17, 43, 44, 51, 58, 60, 132]),
    ) {
        let (four, ends6) = both;
        if let Some(first) = bytes.first_mut() {
            *first = if six { 0x60 } else { 0x40 | *first & 15 };
        }
        if six && bytes.len() > 40 {
            let payload = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&payload.to_be_bytes());
            bytes[6] = next;
        } else if bytes.len() > 20 {
            let length = (bytes.len() as u16).to_be_bytes();
            bytes[2..4].copy_from_slice(&length);
            bytes[9] = next;
        }
        with(&bytes, |packet| {
            if six {
                let _ = read_error6(packet);
                if go_to4(packet, &four, 1).is_ok() {
                    let header = Ip4Header::overlay(packet.bytes()).expect("a header");
                    prop_assert_eq!(usize::from(header.total_length()), packet.length());
                }
            } else {
                let _ = read_error4(packet);
                if go_to6(packet, &ends6).is_ok() {
                    let header = Ip6Header::overlay(packet.bytes()).expect("a header");
                    prop_assert_eq!(usize::from(header.payload_length()) + 40, packet.length());
                }
            }
            Ok(())
        })?;
    }
}

fn some_ends() -> (Ends4, Ends6) {
    let ports = Ports { source: 1, destination: 2 };
    let four = Ends4 { source: 0x0a00_0001, destination: 0x0a00_0002, ports };
    (four, Ends6 { source: 1 << 100, destination: 1 << 99, ports })
}

fn some_fields() -> Fields {
    Fields { class: 0, hops: 64, identification: 7, dont_fragment: false, place: None }
}

/// RFC 7915 §4.5: "A stateless translator cannot compute the UDP checksum of fragmented packets, so
/// when a stateless translator receives the first fragment of a fragmented UDP IPv4 packet and the
/// checksum field is zero, the translator SHOULD drop the packet".
#[test]
fn udp_without_checksum_gets_one_unless_it_is_in_fragments() {
    let (four, six) = some_ends();
    let mut bytes = upper(IpProtocol::UDP, 0, four.ports, b"odd", Sum::new());
    bytes[6..8].fill(0);
    with(&packet4(&four, IpProtocol::UDP, &some_fields(), &bytes), |packet| {
        go_to6(packet, &six).expect("it has a counterpart");
        let upper = &packet.bytes()[40..];
        assert!(upper[6..8] != [0, 0]);
        assert!(pseudo6(&six, IpProtocol::UDP, upper.len()).bytes(upper).is_good());
    });
    let fields = Fields { place: Some((0, true)), ..some_fields() };
    with(&packet4(&four, IpProtocol::UDP, &fields, &bytes), |packet| {
        assert_eq!(go_to6(packet, &six), Err(Refused::NoChecksum));
    });
}

/// RFC 7915 §4.1: "If there is an unexpired source route option, then the packet MUST instead be
/// discarded, and an ICMPv4 'Destination Unreachable, Source Route Failed' […] error message SHOULD
/// be returned to the sender."
#[test]
fn source_routes_that_have_not_ended_are_refused() {
    let (four, six) = some_ends();
    let upper = upper(IpProtocol::UDP, 0, four.ports, b"", Sum::new());
    let whole = packet4(&four, IpProtocol::UDP, &some_fields(), &upper);
    for (pointer, is_refused) in [(4, true), (8, false)] {
        let mut bytes = whole[..20].to_vec();
        (bytes[0], bytes[3]) = (0x47, 48);
        bytes.extend([131, 7, pointer, 10, 0, 0, 9, 0]);
        bytes.extend(&upper);
        with(&bytes, |packet| {
            let done = go_to6(packet, &six);
            assert_eq!(matches!(done, Err(Refused::SourceRoute(_))), is_refused, "{done:?}");
        });
    }
    // RFC 7915 §5.1: a routing header with segments left points at that field.
    for (left, is_refused) in [(1, true), (0, false)] {
        let mut bytes = packet6(&six, IpProtocol::UDP, &some_fields(), &[]);
        (bytes[5], bytes[6]) = (8 + upper.len() as u8, IpProtocol::ROUTING.0);
        bytes.extend([IpProtocol::UDP.0, 0, 0, left, 0, 0, 0, 0]);
        bytes.extend(&upper);
        with(&bytes, |packet| match go_to4(packet, &four, 0) {
            Err(Refused::SourceRoute(request)) => {
                assert!(is_refused);
                assert_eq!((request.kind, request.code, request.detail), (4, 0, 43));
            }
            done => assert!(!is_refused && done.is_ok(), "{done:?}"),
        });
    }
}

/// RFC 7915 §4: a packet that its sender lets routers cut has a fragment header when it is long.
#[test]
fn long_packets_that_may_be_cut_are_to_be_cut() {
    let (four, six) = some_ends();
    for (length, may, expected) in [
        (1240, true, to6::Done::Whole),
        (1241, true, to6::Done::ToCut),
        (1241, false, to6::Done::Whole),
    ] {
        let fields = Fields { dont_fragment: !may, ..some_fields() };
        let data = vec![0; length - 20];
        let upper = upper(IpProtocol::UDP, 0, four.ports, &data, Sum::new());
        with(&packet4(&four, IpProtocol::UDP, &fields, &upper), |packet| {
            assert_eq!(go_to6(packet, &six), Ok(expected));
            let has_fragment = packet.bytes()[6] == IpProtocol::FRAGMENT.0;
            assert_eq!(has_fragment, expected == to6::Done::ToCut);
        });
    }
}

/// RFC 4884 §5.5: extensions stay behind the packet inside, whose length is named anew.
#[test]
fn extensions_of_errors_are_kept() {
    let (four, six) = some_ends();
    let upper = upper(IpProtocol::UDP, 0, four.ports, &[9; 200], Sum::new());
    let mut quoted = packet4(&four, IpProtocol::UDP, &some_fields(), &upper);
    quoted.truncate(128);
    let extension = [0x20, 0, 0xaa, 0xbb, 0, 8, 1, 1, 1, 2, 3, 4];
    let mut message = vec![11, 0, 0, 0, 0, 32, 0, 0];
    message.extend(&quoted);
    message.extend(extension);
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let bytes = packet4(&four, IpProtocol::ICMP, &some_fields(), &message);
    with(&bytes, |packet| {
        let error = read_error4(packet).expect("an error");
        error::to6(packet, &error, (1, 2), &six).expect("it has a counterpart");
        let there = packet.bytes();
        let words = usize::from(there[44]);
        assert_eq!(words * 8, 152, "148 bytes and what pads them");
        assert_eq!(there[48 + 152..], extension);
        let back = read_error6(packet).expect("an error");
        error::to4(packet, &back, (3, 4), &four).expect("it has a counterpart");
        let there = packet.bytes();
        assert_eq!(usize::from(there[25]) * 4, 132, "the padding stays");
        assert_eq!(there[28 + 132..], extension);
    });
}

/// A header that its packet does not hold whole is not completed with the padding of a frame.
#[test]
fn padding_is_not_of_the_packet() {
    let (four, six) = some_ends();
    let padded = |packet: Vec<u8>| [packet, vec![0; 20]].concat();
    for protocol in [IpProtocol::TCP, IpProtocol::UDP] {
        let short = padded(packet4(&four, protocol, &some_fields(), &[1; 4]));
        with(&short, |packet| assert!(matches!(read4(packet), Err(Refused::Truncated))));
        let short = padded(packet6(&six, protocol, &some_fields(), &[1; 4]));
        with(&short, |packet| assert!(matches!(read6(packet), Err(Refused::Truncated))));
    }
}
