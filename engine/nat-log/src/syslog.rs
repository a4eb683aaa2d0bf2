//! Events as syslog messages, in the words of VPP where it has them.

use std::net::Ipv4Addr;

use quiver_export::syslog::message::{Element, Head, LOCAL0, Severity};

use crate::record::{Event, NatRecord};

/// APP-NAME.
pub(crate) const APPLICATION: &str = "NAT";

/// MSGID, the number of the element of structured data, and the severity of an event.
fn kind(event: Event) -> (&'static str, &'static str, Severity) {
    match event {
        Event::SessionCreate => ("SADD", "nsess", Severity::Informational),
        Event::SessionDelete => ("SDEL", "nsess", Severity::Informational),
        Event::MappingCreate => ("APMADD", "napmap", Severity::Informational),
        Event::MappingDelete => ("APMDEL", "napmap", Severity::Informational),
        Event::BlockAllocate => ("PBADD", "nblock", Severity::Informational),
        Event::BlockRelease => ("PBDEL", "nblock", Severity::Informational),
        Event::AddressesExhausted => ("ADDREX", "nexhaust", Severity::Warning),
        Event::PortsExhausted => ("PORTEX", "nexhaust", Severity::Warning),
        Event::SessionQuota => ("SQUOTA", "nquota", Severity::Warning),
        Event::MappingQuota => ("MQUOTA", "nquota", Severity::Warning),
        Event::SubscriberQuota => ("UQUOTA", "nquota", Severity::Warning),
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
    let NatRecord { inside, external, remote_inside, remote, value, event, protocol, .. } = record;
    let inside_address = |element: &mut Element<'_>| {
        element.param("IVRF", vrf);
        element.param("IATYP", "IPv4");
        element.param("ISADDR", ip4(inside.address));
    };
    let external_address = |element: &mut Element<'_>| {
        element.param("XATYP", "IPv4");
        element.param("XSADDR", ip4(external.address));
    };
    match event {
        Event::SessionCreate | Event::SessionDelete => {
            inside_address(element);
            element.param("ISPORT", inside.port);
            element.param("IDADDR", ip4(remote_inside.address));
            element.param("IDPORT", remote_inside.port);
            external_address(element);
            element.param("XSPORT", external.port);
            element.param("XDADDR", ip4(remote.address));
            element.param("XDPORT", remote.port);
            element.param("PROTO", protocol);
        }
        Event::MappingCreate | Event::MappingDelete => {
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
        Event::SubscriberQuota => {
            inside_address(element);
            element.param("LIMIT", value);
        }
    }
}
