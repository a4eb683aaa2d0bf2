//! Events as syslog messages, in the words of VPP where it has them.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_export::syslog::message::{Element, Head, LOCAL0, Severity};

use crate::record::{Event, NatRecord};

/// APP-NAME.
pub(crate) const APPLICATION: &str = "NAT";

/// MSGID, the number of the element of structured data, and the severity of an event.
fn kind(event: Event) -> (&'static str, &'static str, Severity) {
    match event {
        Event::SessionCreate | Event::SessionCreate64 => ("SADD", "nsess", Severity::Informational),
        Event::SessionDelete | Event::SessionDelete64 => ("SDEL", "nsess", Severity::Informational),
        Event::MappingCreate | Event::MappingCreate64 => {
            ("APMADD", "napmap", Severity::Informational)
        }
        Event::MappingDelete | Event::MappingDelete64 => {
            ("APMDEL", "napmap", Severity::Informational)
        }
        Event::BlockAllocate => ("PBADD", "nblock", Severity::Informational),
        Event::BlockRelease => ("PBDEL", "nblock", Severity::Informational),
        Event::AddressesExhausted => ("ADDREX", "nexhaust", Severity::Warning),
        Event::PortsExhausted => ("PORTEX", "nexhaust", Severity::Warning),
        Event::SessionQuota => ("SQUOTA", "nquota", Severity::Warning),
        Event::MappingQuota => ("MQUOTA", "nquota", Severity::Warning),
        Event::SubscriberQuota | Event::SubscriberQuota64 => {
            ("UQUOTA", "nquota", Severity::Warning)
        }
    }
}

/// The head of an event's message.
pub(crate) fn head(event: Event, at_unix_ns: u64) -> Head {
    let (message_id, _, severity) = kind(event);
    Head { facility: LOCAL0, severity, application: APPLICATION, message_id, at_unix_ns }
}

/// The name of its element of structured data.
pub(crate) fn element(event: Event) -> &'static str {
    kind(event).1
}

/// Write its parameters.
pub(crate) fn write(record: &NatRecord, vrf: u32, element: &mut Element<'_>) {
    let ip4 = |address: u32| Ipv4Addr::from(address);
    let NatRecord { inside, external, remote_inside, remote, ip6, .. } = record;
    let NatRecord { value, event, protocol, .. } = record;
    let inside_address = |element: &mut Element<'_>| {
        element.param("IVRF", vrf);
        if record.has_b4 {
            element.param("SV6ENC", Ipv6Addr::from(ip6[0]));
        }
        if event.is_of_ip6() {
            element.param("IATYP", "IPv6");
            element.param("ISADDR", Ipv6Addr::from(ip6[0]));
        } else {
            element.param("IATYP", "IPv4");
            element.param("ISADDR", ip4(inside.address));
        }
    };
    let external_address = |element: &mut Element<'_>| {
        element.param("XATYP", "IPv4");
        element.param("XSADDR", ip4(external.address));
    };
    match event {
        Event::SessionCreate
        | Event::SessionDelete
        | Event::SessionCreate64
        | Event::SessionDelete64 => {
            inside_address(element);
            element.param("ISPORT", inside.port);
            match event.is_of_ip6() {
                true => element.param("IDADDR", Ipv6Addr::from(ip6[1])),
                false => element.param("IDADDR", ip4(remote_inside.address)),
            }
            element.param("IDPORT", remote_inside.port);
            external_address(element);
            element.param("XSPORT", external.port);
            element.param("XDADDR", ip4(remote.address));
            element.param("XDPORT", remote.port);
            element.param("PROTO", protocol);
        }
        Event::MappingCreate
        | Event::MappingDelete
        | Event::MappingCreate64
        | Event::MappingDelete64 => {
            inside_address(element);
            element.param("ISPORT", inside.port);
            external_address(element);
            element.param("XSPORT", external.port);
            element.param("PROTO", protocol);
        }
        Event::BlockAllocate | Event::BlockRelease => {
            inside_address(element);
            external_address(element);
            element.param("XSPORT", external.port);
            element.param("XEPORT", value);
        }
        Event::AddressesExhausted => {}
        Event::PortsExhausted => {
            external_address(element);
            element.param("PROTO", protocol);
        }
        Event::SessionQuota | Event::MappingQuota => {
            element.param("IVRF", vrf);
            element.param("LIMIT", value);
        }
        Event::SubscriberQuota | Event::SubscriberQuota64 => {
            inside_address(element);
            element.param("LIMIT", value);
        }
    }
}
