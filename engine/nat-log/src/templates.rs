//! Templates of RFC 8158 §4, and the data records of events.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_export::ipfix::elements::*;
use quiver_export::ipfix::message::Fields;
use quiver_export::ipfix::template::{Element, Template};

use crate::record::{Event, NatRecord};

/// NAT44 session create and delete (RFC 8158 §4).
const SESSION: Template = Template::new(256, &SESSION_FIELDS);
/// NAT44 BIB create and delete.
const MAPPING: Template = Template::new(257, &MAPPING_FIELDS);
/// Port block allocation and de-allocation.
const BLOCK: Template = Template::new(258, &BLOCK_FIELDS);
/// Addresses exhausted.
const ADDRESSES_EXHAUSTED: Template =
    Template::new(259, &[OBSERVATION_TIME_MS, NAT_EVENT, NAT_POOL]);
/// Ports exhausted.
const PORTS_EXHAUSTED: Template =
    Template::new(260, &[OBSERVATION_TIME_MS, NAT_EVENT, POST_NAT_SOURCE_IP4, PROTOCOL]);
/// Quota exceeded: sessions.
const SESSION_QUOTA: Template = Template::new(
    261,
    &[OBSERVATION_TIME_MS, NAT_EVENT, NAT_QUOTA_EVENT, SESSIONS_MAX, INGRESS_VRF],
);
/// Quota exceeded: mappings.
const MAPPING_QUOTA: Template =
    Template::new(262, &[OBSERVATION_TIME_MS, NAT_EVENT, NAT_QUOTA_EVENT, MAPPINGS_MAX]);
/// Quota exceeded: what a subscriber may have.
const SUBSCRIBER_QUOTA: Template = Template::new(263, &SUBSCRIBER_QUOTA_FIELDS);
/// The mapping of a prefix inside by a deterministic NAT (RFC 7422): each host has as many ports.
pub(crate) const DETERMINISTIC: Template = Template::new(
    264,
    &[
        OBSERVATION_TIME_MS,
        NAT_EVENT,
        SOURCE_IP4_PREFIX,
        SOURCE_IP4_LENGTH,
        POST_NAT_SOURCE_IP4,
        PORT_RANGE_START,
        PORT_RANGE_COUNT,
    ],
);
/// Records that were lost on their way to the exporter (RFC 7011 §4.3).
pub(crate) const LOSSES: Template = Template::options(265, &[EXPORTING_PROCESS, RECORDS_NOT_SENT]);

/// NAT64 session create and delete.
const SESSION_64: Template = Template::new(
    266,
    &[
        OBSERVATION_TIME_MS,
        NAT_EVENT,
        PROTOCOL,
        INGRESS_VRF,
        SOURCE_IP6,
        POST_NAT_SOURCE_IP4,
        SOURCE_PORT,
        POST_NAPT_SOURCE_PORT,
        DESTINATION_IP6,
        POST_NAT_DESTINATION_IP4,
        DESTINATION_PORT,
        POST_NAPT_DESTINATION_PORT,
    ],
);
/// NAT64 BIB create and delete.
const MAPPING_64: Template = Template::new(
    267,
    &[
        OBSERVATION_TIME_MS,
        NAT_EVENT,
        PROTOCOL,
        INGRESS_VRF,
        SOURCE_IP6,
        POST_NAT_SOURCE_IP4,
        SOURCE_PORT,
        POST_NAPT_SOURCE_PORT,
    ],
);
/// Quota exceeded: what a subscriber with IPv6 may have.
const SUBSCRIBER_QUOTA_64: Template = Template::new(
    268,
    &[
        OBSERVATION_TIME_MS,
        NAT_EVENT,
        NAT_QUOTA_EVENT,
        ENTRIES_OF_USER_MAX,
        INGRESS_VRF,
        SOURCE_IP6,
    ],
);

/// The fields of an event of NAT44, with the address of the B4, which is the source of IPv6, behind
/// that of the host. The natEvents are those of NAT44, which an AFTR does (RFC 6333 §6.6).
const fn behind_b4<const FIELDS: usize, const MORE: usize>(
    fields: &[Element; FIELDS],
) -> [Element; MORE] {
    let mut all = [SOURCE_IP6; MORE];
    let (mut from, mut to) = (0, 0);
    while from < FIELDS {
        all[to] = fields[from];
        to += if fields[from].id == SOURCE_IP4.id { 2 } else { 1 };
        from += 1;
    }
    assert!(to == MORE);
    all
}

/// Sessions of hosts behind a B4.
const SESSION_B4: Template = Template::new(269, &SESSION_B4_FIELDS);
/// Mappings of such hosts.
const MAPPING_B4: Template = Template::new(270, &MAPPING_B4_FIELDS);
/// Port blocks of a B4.
const BLOCK_B4: Template = Template::new(271, &BLOCK_B4_FIELDS);
/// Quota exceeded: what a B4 may have.
const SUBSCRIBER_QUOTA_B4: Template = Template::new(272, &SUBSCRIBER_QUOTA_B4_FIELDS);

const SESSION_B4_FIELDS: [Element; 13] = behind_b4(&SESSION_FIELDS);
const MAPPING_B4_FIELDS: [Element; 9] = behind_b4(&MAPPING_FIELDS);
const BLOCK_B4_FIELDS: [Element; 8] = behind_b4(&BLOCK_FIELDS);
const SUBSCRIBER_QUOTA_B4_FIELDS: [Element; 7] = behind_b4(&SUBSCRIBER_QUOTA_FIELDS);

const SESSION_FIELDS: [Element; 12] = [
    OBSERVATION_TIME_MS,
    NAT_EVENT,
    PROTOCOL,
    INGRESS_VRF,
    SOURCE_IP4,
    POST_NAT_SOURCE_IP4,
    SOURCE_PORT,
    POST_NAPT_SOURCE_PORT,
    DESTINATION_IP4,
    POST_NAT_DESTINATION_IP4,
    DESTINATION_PORT,
    POST_NAPT_DESTINATION_PORT,
];
const MAPPING_FIELDS: [Element; 8] = [
    OBSERVATION_TIME_MS,
    NAT_EVENT,
    PROTOCOL,
    INGRESS_VRF,
    SOURCE_IP4,
    POST_NAT_SOURCE_IP4,
    SOURCE_PORT,
    POST_NAPT_SOURCE_PORT,
];
const BLOCK_FIELDS: [Element; 7] = [
    OBSERVATION_TIME_MS,
    NAT_EVENT,
    INGRESS_VRF,
    SOURCE_IP4,
    POST_NAT_SOURCE_IP4,
    PORT_RANGE_START,
    PORT_RANGE_END,
];
const SUBSCRIBER_QUOTA_FIELDS: [Element; 6] =
    [OBSERVATION_TIME_MS, NAT_EVENT, NAT_QUOTA_EVENT, ENTRIES_OF_USER_MAX, INGRESS_VRF, SOURCE_IP4];

/// All of them.
pub(crate) const ALL: &[Template] = &[
    SESSION,
    MAPPING,
    BLOCK,
    ADDRESSES_EXHAUSTED,
    PORTS_EXHAUSTED,
    SESSION_QUOTA,
    MAPPING_QUOTA,
    SUBSCRIBER_QUOTA,
    DETERMINISTIC,
    LOSSES,
    SESSION_64,
    MAPPING_64,
    SUBSCRIBER_QUOTA_64,
    SESSION_B4,
    MAPPING_B4,
    BLOCK_B4,
    SUBSCRIBER_QUOTA_B4,
];

/// natQuotaExceededEvent of the IANA registry (RFC 8158 §4).
fn quota(event: Event) -> u32 {
    match event {
        Event::SessionQuota => 1,
        Event::MappingQuota => 2,
        _ => 3,
    }
}

/// The template of a record.
pub(crate) fn of(record: &NatRecord) -> &'static Template {
    match record.event {
        Event::SessionCreate | Event::SessionDelete if record.has_b4 => &SESSION_B4,
        Event::MappingCreate | Event::MappingDelete if record.has_b4 => &MAPPING_B4,
        Event::BlockAllocate | Event::BlockRelease if record.has_b4 => &BLOCK_B4,
        Event::SubscriberQuota if record.has_b4 => &SUBSCRIBER_QUOTA_B4,
        Event::SessionCreate | Event::SessionDelete => &SESSION,
        Event::MappingCreate | Event::MappingDelete => &MAPPING,
        Event::BlockAllocate | Event::BlockRelease => &BLOCK,
        Event::AddressesExhausted => &ADDRESSES_EXHAUSTED,
        Event::PortsExhausted => &PORTS_EXHAUSTED,
        Event::SessionQuota => &SESSION_QUOTA,
        Event::MappingQuota => &MAPPING_QUOTA,
        Event::SubscriberQuota => &SUBSCRIBER_QUOTA,
        Event::SessionCreate64 | Event::SessionDelete64 => &SESSION_64,
        Event::MappingCreate64 | Event::MappingDelete64 => &MAPPING_64,
        Event::SubscriberQuota64 => &SUBSCRIBER_QUOTA_64,
    }
}

/// Write the fields of a record in the order of its template. `vrf` is the number of the table
/// that the record has a small number of.
pub(crate) fn write(record: &NatRecord, unix_ns: u64, vrf: u32, fields: &mut Fields<'_>) {
    let ip4 = |fields: &mut Fields<'_>, address: u32| fields.ip4(Ipv4Addr::from(address));
    let NatRecord { inside, external, remote_inside, remote, ip6, .. } = record;
    let NatRecord { value, event, protocol, .. } = record;
    let host = |fields: &mut Fields<'_>| {
        if !event.is_of_ip6() {
            ip4(fields, inside.address);
        }
        if record.has_b4 || event.is_of_ip6() {
            fields.ip6(Ipv6Addr::from(ip6[0]));
        }
    };
    fields.u64(unix_ns / 1_000_000);
    fields.u8(event.nat_event());
    match event {
        Event::SessionCreate
        | Event::SessionDelete
        | Event::MappingCreate
        | Event::MappingDelete
        | Event::SessionCreate64
        | Event::SessionDelete64
        | Event::MappingCreate64
        | Event::MappingDelete64 => {
            fields.u8(*protocol);
            fields.u32(vrf);
            host(fields);
            ip4(fields, external.address);
            fields.u16(inside.port);
            fields.u16(external.port);
            if event.detail() == crate::Detail::Sessions {
                match event.is_of_ip6() {
                    true => fields.ip6(Ipv6Addr::from(ip6[1])),
                    false => ip4(fields, remote_inside.address),
                }
                ip4(fields, remote.address);
                fields.u16(remote_inside.port);
                fields.u16(remote.port);
            }
        }
        Event::BlockAllocate | Event::BlockRelease => {
            fields.u32(vrf);
            host(fields);
            ip4(fields, external.address);
            fields.u16(external.port);
            fields.u16(*value as u16);
        }
        // There is one pool, which has no number.
        Event::AddressesExhausted => fields.u32(0),
        Event::PortsExhausted => {
            ip4(fields, external.address);
            fields.u8(*protocol);
        }
        Event::SessionQuota
        | Event::MappingQuota
        | Event::SubscriberQuota
        | Event::SubscriberQuota64 => {
            fields.u32(quota(*event));
            fields.u32(*value);
            if *event != Event::MappingQuota {
                fields.u32(vrf);
            }
            if matches!(event, Event::SubscriberQuota | Event::SubscriberQuota64) {
                host(fields);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quiver_export::ipfix::message::{Format, Message};

    use super::*;

    /// In a debug build a message panics when fields and template differ in length.
    #[test]
    fn every_event_fills_its_template() {
        for (event, b4) in
            Event::ALL.into_iter().flat_map(|event| [(event, None), (event, Some(9))])
        {
            let record = NatRecord::new(0, event);
            let record = if event.is_of_ip6() { record } else { record.behind(b4) };
            let template = of(&record);
            assert!(ALL.contains(template));
            let mut message = Message::new(Format::Ipfix, 512);
            let added = message.record(template, |fields| write(&record, 0, 0, fields));
            assert_eq!(added, Ok(()), "{event:?}");
        }
    }

    #[test]
    fn the_b4_stands_behind_its_host() {
        for (without, with) in [
            (SESSION, SESSION_B4),
            (MAPPING, MAPPING_B4),
            (BLOCK, BLOCK_B4),
            (SUBSCRIBER_QUOTA, SUBSCRIBER_QUOTA_B4),
        ] {
            let place = with.fields.iter().position(|field| *field == SOURCE_IP6);
            let place = place.expect("a B4");
            assert_eq!(with.fields[place - 1], SOURCE_IP4);
            assert_eq!([&with.fields[..place], &with.fields[place + 1..]].concat(), without.fields);
        }
    }

    /// RFC 7011 §3.4.1: each template has a number of its own, of 256 or more.
    #[test]
    fn templates_have_numbers_of_their_own() {
        let numbers: Vec<u16> = ALL.iter().map(|template| template.id).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers[0] >= 256);
    }
}
