//! Every parser of bytes from the network. The first byte says which; what it reads and writes
//! again reads the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_lisp::message::Message as LispMessage;
use quiver_memif::protocol::{MESSAGE_BYTES, Message as MemifMessage};
use quiver_wire::checksum::Sum;
use quiver_wire::flow::{self, FlowFields};
use quiver_wire::icmp6::nd::HOP_LIMIT;
use quiver_wire::igmp::Records;
use quiver_wire::lacp::{Lacpdu, MarkerHeader};
use quiver_wire::lldp::Lldpdu;
use quiver_wire::upper::Upper;
use quiver_wire::{
    EtherType, Header, IntoBytes, Ip4Header, Ip6Header, IpProtocol, arp, bfd, checksum, csid,
    dhcp4, dhcp6, erspan, ethernet, geneve, gre, gtpu, icmp4, icmp6, igmp, ip4, ip6, mld, mpls,
    srh, tcp, udp, vlan, vrrp, vxlan,
};

/// Room for whatever a target writes again.
const OUT_BYTES: usize = 70_000;
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const PARSERS: [fn(&[u8]); 29] = [
    arp_message,
    ethernet_header,
    vlan_tags,
    mpls_entry,
    ip4_packet,
    ip6_packet,
    extension_headers,
    segment_routing,
    compressed_segments,
    icmp4_message,
    icmp6_message,
    igmp_message,
    mld_message,
    udp_datagram,
    tcp_segment,
    gtpu_message,
    gre_header,
    lldpdu,
    slow_protocol,
    upper_layer,
    memif_message,
    bfd_control,
    vrrp_advertisement,
    dhcp4_message,
    dhcp6_message,
    vxlan_header,
    erspan_header,
    geneve_options,
    lisp_message,
];

/// Read the bytes behind the first by the parser that it says.
pub fn run(bytes: &[u8]) {
    if let Some((parser, bytes)) = bytes.split_first() {
        PARSERS[usize::from(*parser) % PARSERS.len()](bytes);
    }
}

/// Write a message again; `None` where it does not fit.
fn written<E>(emit: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Option<Vec<u8>> {
    let mut out = vec![0; OUT_BYTES];
    let length = emit(&mut out).ok()?;
    out.truncate(length);
    Some(out)
}

/// `bytes` with a checksum over all of it at `at`, which was nothing.
fn summed(bytes: &[u8], at: usize, sum: Sum) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.fill(0);
        let sum = sum.bytes(&bytes).checksum().to_be_bytes();
        bytes[at..at + 2].copy_from_slice(&sum);
    }
    bytes
}

/// A header that is read, written and read again is the same.
macro_rules! assert_read_again {
    ($module:ident, $bytes:expr) => {
        if let Ok((repr, _)) = $module::Repr::parse($bytes) {
            let again = written(|out| repr.emit(out)).expect("a header fits");
            assert_eq!($module::Repr::parse(&again).map(|(repr, _)| repr), Ok(repr));
        }
    };
}

fn arp_message(bytes: &[u8]) {
    assert_read_again!(arp, bytes);
}

fn ethernet_header(bytes: &[u8]) {
    assert_read_again!(ethernet, bytes);
}

fn vlan_tags(bytes: &[u8]) {
    for kind in [EtherType::VLAN, EtherType::SERVICE_VLAN, EtherType::IPV4] {
        let _ = vlan::Tags::walk(kind, bytes);
    }
    assert_read_again!(vlan, bytes);
}

fn vxlan_header(bytes: &[u8]) {
    assert_read_again!(vxlan, bytes);
}

fn erspan_header(bytes: &[u8]) {
    assert_read_again!(erspan, bytes);
}

fn geneve_options(bytes: &[u8]) {
    if let Ok(options) = geneve::options(bytes) {
        let length: usize =
            options.map(|(option, data)| option.as_bytes().len() + data.len()).sum();
        let header = geneve::GeneveHeader::overlay(bytes).expect("a header with options");
        assert_eq!(length, header.options_len());
    }
}

/// Control messages of LISP.
fn lisp_message(bytes: &[u8]) {
    if let Ok(LispMessage::Reply(reply)) = LispMessage::read(bytes) {
        assert_eq!(LispMessage::read(&reply.write()), Ok(LispMessage::Reply(reply)));
    }
}

fn gre_header(bytes: &[u8]) {
    assert_read_again!(gre, bytes);
}

fn bfd_control(bytes: &[u8]) {
    let Ok(packet) = bfd::Packet::parse(bytes) else { return };
    if packet.auth.is_some_and(|auth| auth.kind.is_none()) {
        return; // a type that nothing here writes
    }
    let again = written(|out| packet.control.emit(packet.auth.as_ref(), out));
    let again = again.expect("a control packet fits");
    let read = bfd::Packet::parse(&again).expect("what was written is read");
    assert_eq!((read.control, read.auth), (packet.control, packet.auth));
    assert_eq!(read.digest().len(), packet.digest().len());
}

fn vrrp_advertisement(bytes: &[u8]) {
    let Some((family, bytes)) = bytes.split_first() else { return };
    let (from, to) = match family & 1 {
        0 => (Ipv4Addr::new(192, 0, 2, 1).into(), vrrp::GROUP4.into()),
        _ => (SOURCE.into(), vrrp::GROUP6.into()),
    };
    let _ = vrrp::Advertisement::parse(from, to, bytes);
    let bytes = summed(bytes, 6, Sum::new());
    let Ok(read) = vrrp::Advertisement::parse(from, to, &bytes) else { return };
    let (told, over) = (read.advertisement, read.checksum_over);
    let addresses: Vec<_> = read.addresses().collect();
    if let Some(again) = written(|out| told.emit(from, to, &addresses, over, out)) {
        let again = vrrp::Advertisement::parse(from, to, &again).expect("what was written is read");
        assert_eq!(again.advertisement, told);
        assert_eq!(again.addresses().collect::<Vec<_>>(), addresses);
    }
}

fn dhcp4_message(bytes: &[u8]) {
    let Ok(message) = dhcp4::Message::parse(bytes) else { return };
    if message.area.is_none() {
        return; // BOOTP, which is not written
    }
    let again = written(|out| {
        let mut writer = dhcp4::Writer::begin(out, message.header)?;
        message.options().try_for_each(|option| writer.put(option.code, option.data))?;
        writer.finish()
    });
    let again = again.expect("a message fits");
    let again = dhcp4::Message::parse(&again).expect("what was written is read");
    let options = |message: &dhcp4::Message<'_>| {
        message.options().map(|option| (option.code, option.data.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(options(&again), options(&message));
}

fn dhcp6_message(bytes: &[u8]) {
    if let Ok(message) = dhcp6::Message::parse(bytes) {
        let _ = message.prefixes().count();
    }
    let Ok(read) = dhcp6::RelayMessage::parse(bytes) else { return };
    let again = written(|out| {
        let mut writer = dhcp6::Writer::relay(out, read.header)?;
        read.options.flatten().try_for_each(|(code, data)| writer.put(code, data))?;
        Ok::<_, quiver_wire::WireError>(writer.finish())
    });
    let again = again.expect("a message fits");
    let again = dhcp6::RelayMessage::parse(&again).expect("what was written is read");
    assert_eq!(again.message, read.message);
}

fn mpls_entry(bytes: &[u8]) {
    assert_read_again!(mpls, bytes);
}

fn ip4_packet(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let Some(header) = Ip4Header::overlay(&bytes) {
        let length = header.header_len().clamp(20, bytes.len().max(20)).min(bytes.len());
        let head = summed(&bytes[..length], 10, Sum::new());
        bytes[..length].copy_from_slice(&head);
    }
    let well_formed = ip4::validate(&bytes, bytes.len()).is_ok();
    assert_eq!(well_formed, ip4::explain(&bytes, bytes.len()).is_ok());
    if let Some((header, behind)) = Ip4Header::overlay(&bytes).zip(bytes.get(Ip4Header::LEN..)) {
        let _ = (flow::hash_ip4(header, behind), flow::hash_ip4_addresses(header));
        let options = header.header_len().saturating_sub(Ip4Header::LEN);
        let _ = ip4::options::Options::new(&behind[..options.min(behind.len())]).count();
        for bits in 0..1 << 10 {
            let _ = flow::hash_ip4_by(FlowFields::from_bits(bits), header, behind);
        }
        if header.ttl() > 0 {
            let mut less = *header;
            checksum::decrement_ttl(&mut less);
            assert_eq!(
                checksum::header_is_good(header),
                checksum::header_is_good(&less),
                "{header:?}"
            );
        }
    }
    if let Ok((repr, _)) = ip4::Repr::parse(&bytes)
        && let Some(again) = written(|out| repr.emit(out))
    {
        let payload = bytes.len() - repr.header_len();
        let again = [&again[..], &bytes[repr.header_len()..][..payload]].concat();
        assert_eq!(ip4::Repr::parse(&again).map(|(repr, _)| repr), Ok(repr));
    }
}

fn ip6_packet(bytes: &[u8]) {
    let well_formed = ip6::validate(bytes, bytes.len()).is_ok();
    assert_eq!(well_formed, ip6::explain(bytes, bytes.len()).is_ok());
    if let Some((header, behind)) = Ip6Header::overlay(bytes).zip(bytes.get(Ip6Header::LEN..)) {
        let _ = (flow::hash_ip6(header, behind), flow::hash_ip6_addresses(header));
        for bits in 0..1 << 10 {
            let _ = flow::hash_ip6_by(FlowFields::from_bits(bits), header, behind);
        }
        extension_headers(&bytes[6..]);
    }
    if let Ok((repr, behind)) = ip6::Repr::parse(bytes) {
        let again = written(|out| repr.emit(out)).expect("a header fits");
        let again = [&again[..], behind].concat();
        assert_eq!(ip6::Repr::parse(&again).map(|(repr, _)| repr), Ok(repr));
    }
}

/// The first byte is the field "next header" of what stands before.
fn extension_headers(bytes: &[u8]) {
    let Some((next, bytes)) = bytes.split_first() else { return };
    let next = IpProtocol(*next);
    for extension in ip6::extension::Walk::new(next, bytes).flatten() {
        let _ = (extension.fragment(), extension.routing());
        assert!(extension.options().count() <= bytes.len());
    }
    if let Ok(upper) = ip6::extension::upper_layer(next, bytes) {
        assert!(upper.offset <= bytes.len(), "{upper:?}");
    }
}

fn segment_routing(bytes: &[u8]) {
    let Ok((header, rest)) = srh::Srh::parse(bytes) else { return };
    assert_eq!(header.bytes().len() + rest.len(), bytes.len());
    let fixed = header.header();
    let _ =
        (header.active(), header.is_before_first(), header.hmac(), fixed.check(), fixed.leads_on());
    let _ = (fixed.next_segment_if_plain(bytes.len()), fixed.length_if_ended(bytes.len()));
    assert_eq!(header.segments().count(), fixed.segment_count());
    for tlv in header.tlvs().flatten() {
        let _ = tlv.hmac();
    }
}

fn compressed_segments(bytes: &[u8]) {
    let Some(([block, length, index, width], rest)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let Some((address, _)) = rest.split_first_chunk::<16>() else { return };
    let address = u128::from_be_bytes(*address);
    if let Some(structure) = csid::Structure::new(*block, *length) {
        let _ = (
            structure.argument(address),
            structure.next(address),
            structure.replace(address, address),
        );
    }
    if let Some(packing) = csid::Packing::of(*width) {
        let index = index % packing.count();
        let with = packing.with_index(address, index);
        assert_eq!(packing.index(with), index);
        let _ = packing.csid(address, index);
    }
}

fn icmp4_message(bytes: &[u8]) {
    let bytes = summed(bytes, 2, Sum::new());
    if let Ok(repr) = icmp4::Repr::parse(&bytes)
        && let Some(again) = written(|out| repr.emit(out))
    {
        assert_eq!(icmp4::Repr::parse(&again), Ok(repr));
    }
}

fn icmp6_message(bytes: &[u8]) {
    let length = bytes.len() as u32;
    let bytes = summed(bytes, 2, Sum::pseudo6(SOURCE, DESTINATION, IpProtocol::ICMP6, length));
    let Ok(message) = icmp6::Message::parse(SOURCE, DESTINATION, &bytes) else { return };
    if let icmp6::Message::Nd(nd) = &message {
        let _ = (nd.check(SOURCE, DESTINATION, HOP_LIMIT), nd.options().target_mac());
        assert!(nd.options().into_iter().count() <= bytes.len());
    }
    if let Some(again) = written(|out| message.emit(SOURCE, DESTINATION, out)) {
        assert_eq!(icmp6::Message::parse(SOURCE, DESTINATION, &again), Ok(message));
    }
}

fn igmp_message(bytes: &[u8]) {
    let bytes = summed(bytes, 2, Sum::new());
    let Ok(message) = igmp::Message::parse(&bytes) else { return };
    if let igmp::Message::Records { count, bytes } = &message {
        assert!(Records::new(*count, bytes, 4).count() <= usize::from(*count));
    }
    if let Some(again) = written(|out| message.emit(out)) {
        assert_eq!(again.len(), message.len());
        assert_eq!(igmp::Message::parse(&again), Ok(message));
    }
}

fn mld_message(bytes: &[u8]) {
    let Ok(message) = mld::Message::parse(bytes) else { return };
    if let mld::Message::Records { count, bytes } = &message {
        assert!(Records::new(*count, bytes, 16).count() <= usize::from(*count));
    }
    if let Some(again) = written(|out| message.emit(out)) {
        assert_eq!(again.len(), message.len());
        assert_eq!(mld::Message::parse(&again), Ok(message));
    }
}

fn udp_datagram(bytes: &[u8]) {
    let _ = udp::is_good_over_ip6(SOURCE, DESTINATION, bytes);
    let _ = udp::is_good_over_ip4(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST, bytes);
    let mut filled = bytes.to_vec();
    udp::fill_checksum_over_ip6(SOURCE, DESTINATION, &mut filled);
    if let Ok((repr, payload)) = udp::Repr::parse(bytes) {
        let again = written(|out| repr.emit(out)).expect("a header fits");
        let again = [&again[..], payload].concat();
        assert_eq!(udp::Repr::parse(&again).map(|(repr, _)| repr), Ok(repr));
    }
}

fn tcp_segment(bytes: &[u8]) {
    if let Ok((repr, payload)) = tcp::Repr::parse(bytes)
        && let Some(again) = written(|out| repr.emit(out))
    {
        let again = [&again[..], payload].concat();
        assert_eq!(tcp::Repr::parse(&again).map(|(repr, _)| repr), Ok(repr));
    }
}

fn gtpu_message(bytes: &[u8]) {
    if let Ok((repr, length)) = gtpu::Repr::parse(bytes, bytes.len()) {
        assert!(length <= bytes.len());
        let again = written(|out| repr.emit(out));
        let again = again.map(|again| [&again[..], &bytes[length..]].concat());
        let again = again.as_ref().and_then(|again| gtpu::Repr::parse(again, again.len()).ok());
        assert!(again.is_none_or(|(again, _)| again.teid == repr.teid));
    }
}

fn lldpdu(bytes: &[u8]) {
    if let Ok(pdu) = Lldpdu::parse(bytes) {
        assert!(pdu.tlvs().count() <= bytes.len() / 2);
    }
}

fn slow_protocol(bytes: &[u8]) {
    let _ = MarkerHeader::overlay(bytes).map(|marker| (marker.is_question(), marker.is_answer()));
    if let Ok(pdu) = Lacpdu::parse(bytes) {
        let again = written(|out| pdu.emit(out)).expect("an LACPDU fits");
        assert_eq!(Lacpdu::parse(&again), Ok(pdu));
    }
}

fn upper_layer(bytes: &[u8]) {
    for upper in [Upper::of_ip4(bytes), Upper::of_ip6(bytes)].into_iter().flatten() {
        assert_eq!(Upper::from_note(&upper.to_note()).protocol, upper.protocol);
    }
    let _ = icmp6::within(bytes);
}

/// Messages of the memif control channel are of one length.
fn memif_message(bytes: &[u8]) {
    let mut message = [0; MESSAGE_BYTES];
    let length = bytes.len().min(MESSAGE_BYTES);
    message[..length].copy_from_slice(&bytes[..length]);
    if let Ok(read) = MemifMessage::decode(&message) {
        let again = MemifMessage::decode(&read.encode()).expect("what was written is read");
        assert_eq!(again.kind(), read.kind());
        // Names are cut: one that is no UTF-8, or has no zero at its end, becomes longer when it is
        // read.
        if matches!(
            read,
            MemifMessage::Ack | MemifMessage::AddRegion { .. } | MemifMessage::AddRing(_)
        ) {
            assert_eq!(again, read);
        }
    }
}
