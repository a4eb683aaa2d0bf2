//! Changes of the configuration of a deterministic NAT: who had a port follows from them (RFC 7422
//! §4), so that sessions need no log.

use std::net::Ipv4Addr;

use quiver_core::Engine;
use quiver_export::ipfix::exporter::IpfixExporter;
use quiver_export::moment::Moment;
use quiver_export::syslog::message::{Head, LOCAL0, Severity};
use quiver_export::syslog::sender::SyslogSender;

use crate::record::Event;
use crate::state::NatLog;
use crate::syslog::APPLICATION;
use crate::templates::DETERMINISTIC;

/// A mapping of a prefix inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deterministic {
    /// The hosts: address and length of their prefix.
    pub inside: (Ipv4Addr, u8),
    /// Their addresses outside.
    pub outside: (Ipv4Addr, u8),
    /// The first port of an address that is used.
    pub first_port: u16,
    /// Ports of each host.
    pub ports: u16,
}

/// A mapping was added, or removed. It is exported at once, with any detail.
pub fn note_deterministic(engine: &mut Engine, mapping: Deterministic, is_added: bool) {
    let Some(log) = engine.get::<NatLog>() else { return };
    let (domain, has_syslog) = (log.ipfix.map(|ipfix| ipfix.domain), log.syslog.is_some());
    let at = Moment::of(engine);
    let Deterministic { inside, outside, first_port, ports } = mapping;
    let event = if is_added { Event::BlockAllocate } else { Event::BlockRelease };
    if let Some(domain) = domain
        && let Some(exporter) = engine.get_mut::<IpfixExporter>()
    {
        exporter.put(at, domain, &DETERMINISTIC, |fields| {
            fields.u64(at.unix_ns / 1_000_000);
            fields.u8(event.nat_event());
            fields.ip4(inside.0);
            fields.u8(inside.1);
            fields.ip4(outside.0);
            fields.u16(first_port);
            fields.u16(ports);
        });
    }
    if has_syslog && let Some(sender) = engine.get_mut::<SyslogSender>() {
        let head = Head {
            facility: LOCAL0,
            severity: Severity::Notice,
            application: APPLICATION,
            message_id: if is_added { "DETADD" } else { "DETDEL" },
            at_unix_ns: at.unix_ns,
        };
        sender.send(at, &head, "ndetmap", |element| {
            element.param("ISPREFIX", format_args!("{}/{}", inside.0, inside.1));
            element.param("XSPREFIX", format_args!("{}/{}", outside.0, outside.1));
            element.param("XSPORT", first_port);
            element.param("PORTS", ports);
        });
    }
}
