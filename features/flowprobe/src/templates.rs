//! Templates of flow records, and their data records.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_export::ipfix::elements::*;
use quiver_export::ipfix::message::Fields;
use quiver_export::ipfix::template::{Element, Template};
use quiver_export::route::{Routed, if_index};
use quiver_export::translated::End;

use crate::flow::FlowRecord;
use crate::key::Shape;

/// What each record has.
const FLOW: &[Element] = &[
    INGRESS_INTERFACE,
    EGRESS_INTERFACE,
    FLOW_DIRECTION,
    FLOW_END_REASON,
    FLOW_START_MS,
    FLOW_END_MS,
    PACKETS,
    OCTETS,
];
const L2: &[Element] = &[SOURCE_MAC, DESTINATION_MAC, VLAN, ETHER_TYPE, FRAME_OCTETS];
const IP4: &[Element] = &[
    SOURCE_IP4,
    DESTINATION_IP4,
    SOURCE_IP4_LENGTH,
    DESTINATION_IP4_LENGTH,
    NEXT_HOP_IP4,
    PROTOCOL,
    CLASS_OF_SERVICE,
];
const IP6: &[Element] = &[
    SOURCE_IP6,
    DESTINATION_IP6,
    SOURCE_IP6_LENGTH,
    DESTINATION_IP6_LENGTH,
    NEXT_HOP_IP6,
    PROTOCOL,
    CLASS_OF_SERVICE,
];
const L4_OF_IP4: &[Element] = &[
    SOURCE_PORT,
    DESTINATION_PORT,
    TCP_FLAGS,
    ICMP_TYPE_CODE_IP4,
    POST_NAT_SOURCE_IP4,
    POST_NAT_DESTINATION_IP4,
    POST_NAPT_SOURCE_PORT,
    POST_NAPT_DESTINATION_PORT,
];
const L4_OF_IP6: &[Element] = &[SOURCE_PORT, DESTINATION_PORT, TCP_FLAGS, ICMP_TYPE_CODE_IP6];
const NOTHING: &[Element] = &[];

/// The fields of several parts, one behind the other.
const fn joined<const N: usize>(parts: [&[Element]; 4]) -> [Element; N] {
    let mut all = [PACKETS; N];
    let (mut part, mut place) = (0, 0);
    while part < parts.len() {
        let mut field = 0;
        while field < parts[part].len() {
            all[place] = parts[part][field];
            (field, place) = (field + 1, place + 1);
        }
        part += 1;
    }
    assert!(place == N, "as many fields as the parts have");
    all
}

const FLOWS: usize = FLOW.len();
const WITH_L2: usize = FLOWS + L2.len();
const IP: usize = IP4.len();
const PORTS: usize = L4_OF_IP4.len();
const PORTS6: usize = L4_OF_IP6.len();

const ETHERNET: &[Element] = &joined::<WITH_L2>([FLOW, L2, NOTHING, NOTHING]);
const IP4_L3: &[Element] = &joined::<{ FLOWS + IP }>([FLOW, NOTHING, IP4, NOTHING]);
const IP4_L3_L4: &[Element] = &joined::<{ FLOWS + IP + PORTS }>([FLOW, NOTHING, IP4, L4_OF_IP4]);
const IP4_L2_L3: &[Element] = &joined::<{ WITH_L2 + IP }>([FLOW, L2, IP4, NOTHING]);
const IP4_ALL: &[Element] = &joined::<{ WITH_L2 + IP + PORTS }>([FLOW, L2, IP4, L4_OF_IP4]);
const IP6_L3: &[Element] = &joined::<{ FLOWS + IP }>([FLOW, NOTHING, IP6, NOTHING]);
const IP6_L3_L4: &[Element] = &joined::<{ FLOWS + IP + PORTS6 }>([FLOW, NOTHING, IP6, L4_OF_IP6]);
const IP6_L2_L3: &[Element] = &joined::<{ WITH_L2 + IP }>([FLOW, L2, IP6, NOTHING]);
const IP6_ALL: &[Element] = &joined::<{ WITH_L2 + IP + PORTS6 }>([FLOW, L2, IP6, L4_OF_IP6]);

/// All templates; those of IP stand in the order of [`of`].
pub(crate) const ALL: &[Template] = &[
    Template::new(256, ETHERNET),
    Template::new(257, IP4_L3),
    Template::new(258, IP4_L2_L3),
    Template::new(259, IP4_L3_L4),
    Template::new(260, IP4_ALL),
    Template::new(261, IP6_L3),
    Template::new(262, IP6_L2_L3),
    Template::new(263, IP6_L3_L4),
    Template::new(264, IP6_ALL),
    LOSSES,
];
/// Records that found a ring full (RFC 7011 §4.3).
pub(crate) const LOSSES: Template = Template::options(265, &[EXPORTING_PROCESS, RECORDS_NOT_SENT]);

/// The template of a record.
pub(crate) fn of(record: &FlowRecord) -> &'static Template {
    let shape = record.shape();
    let place = match record.addresses() {
        None => 0,
        Some((source, _)) => {
            let family = if source.is_ipv4() { 1 } else { 5 };
            let (has_l2, has_l4) = (shape.has(Shape::L2), shape.has(Shape::L4));
            family + usize::from(has_l2) + 2 * usize::from(has_l4)
        }
    };
    ALL.get(place).unwrap_or(&LOSSES)
}

/// Write the fields of a record. Times are milliseconds since 1970; `behind` are the ends of an
/// IPv4 flow as it leaves.
pub(crate) fn write(
    record: &FlowRecord,
    (first_ms, last_ms): (u64, u64),
    routed: Routed,
    behind: (End, End),
    fields: &mut Fields<'_>,
) {
    let own = if_index(record.interface());
    let (ingress, egress) = match record.is_output() {
        true => (if_index(record.other()), own),
        false => (own, routed.interface.map_or(0, if_index)),
    };
    fields.u32(ingress);
    fields.u32(egress);
    fields.u8(record.is_output().into());
    fields.u8(record.reason as u8);
    fields.u64(first_ms);
    fields.u64(last_ms);
    fields.u64(record.packets());
    fields.u64(record.octets());
    let addresses = record.addresses();
    if record.shape().has(Shape::L2) || addresses.is_none() {
        for mac in record.macs() {
            fields.u16((mac >> 32) as u16);
            fields.u32(mac as u32);
        }
        fields.u16(record.vlan());
        fields.u16(record.ether_type());
        fields.u64(record.frame_octets());
    }
    let Some((source, destination)) = addresses else { return };
    let is_ip4 = source.is_ipv4();
    write_address(source, fields);
    write_address(destination, fields);
    fields.u8(routed.source_length);
    fields.u8(routed.destination_length);
    match (source, routed.next_hop) {
        (IpAddr::V4(_), Some(IpAddr::V4(next_hop))) => fields.ip4(next_hop),
        (IpAddr::V4(_), _) => fields.ip4(Ipv4Addr::UNSPECIFIED),
        (_, Some(IpAddr::V6(next_hop))) => fields.ip6(next_hop),
        (_, _) => fields.ip6(Ipv6Addr::UNSPECIFIED),
    }
    fields.u8(record.protocol());
    fields.u8(record.class());
    if record.shape().has(Shape::L4) {
        let (source, destination) = record.ports();
        fields.u16(source);
        // Of ICMP the key has type and code there, which have a field of their own.
        let is_icmp = record.is_icmp();
        fields.u16(if is_icmp { 0 } else { destination });
        fields.u8(record.tcp_flags());
        fields.u16(record.icmp());
        if is_ip4 {
            let (source, destination) = behind;
            fields.ip4(source.0);
            fields.ip4(destination.0);
            fields.u16(source.1);
            fields.u16(if is_icmp { 0 } else { destination.1 });
        }
    }
}

fn write_address(address: IpAddr, fields: &mut Fields<'_>) {
    match address {
        IpAddr::V4(address) => fields.ip4(address),
        IpAddr::V6(address) => fields.ip6(address),
    }
}
