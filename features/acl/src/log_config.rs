//! The log of rules on the control thread: takes records from workers and exports them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_export::ipfix::elements::{
    DESTINATION_IP4, DESTINATION_IP6, DESTINATION_PORT, OBSERVATION_TIME_MS, PROTOCOL, SOURCE_IP4,
    SOURCE_IP6, SOURCE_PORT,
};
use quiver_export::ipfix::exporter::{IpfixExporter, Stream};
use quiver_export::ipfix::message::Fields;
use quiver_export::ipfix::template::{Element, Template};
use quiver_export::moment::Moment;
use quiver_export::records::{Recorder, Records};
use quiver_export::syslog::message::{Head, LOCAL0, Severity};
use quiver_export::syslog::sender::SyslogSender;
use quiver_forwarding::fib::Family;

use crate::config::Lists;
use crate::log::{LogRecord, RECORDS_MAX};
use crate::rules::Action;
use crate::tables::Direction;

/// Records of a rule in a second, unless `set acl-plugin logging rate` says otherwise.
pub(crate) const RATE_DEFAULT: u32 = 1;
/// Records that are exported in one turn of the control loop, of each node on a worker.
const RECORDS_PER_TURN: usize = 256;

/// tcpControlBits of the IANA registry.
const TCP_CONTROL_BITS: Element = Element { id: 6, bytes: 2 };
/// packetDeltaCount: packets since the rule's record before.
const PACKETS: Element = Element { id: 2, bytes: 8 };
/// ingressInterface.
const INGRESS: Element = Element { id: 10, bytes: 4 };
/// egressInterface; 0 where a list filters what is received.
const EGRESS: Element = Element { id: 14, bytes: 4 };
/// forwardingStatus (RFC 7270 §4.12).
const STATUS: Element = Element { id: 89, bytes: 1 };
/// selectorId (RFC 5477 §8.2.3): the list (32 bits), and the place of the rule in it (32 bits).
const SELECTOR: Element = Element { id: 302, bytes: 8 };
/// forwardingStatus: forwarded, unknown.
const FORWARDED: u8 = 64;
/// forwardingStatus: dropped, "ACL deny".
const DENIED: u8 = 129;

const TEMPLATE_4: Template = Template::new(
    256,
    &[
        OBSERVATION_TIME_MS,
        SELECTOR,
        STATUS,
        PACKETS,
        INGRESS,
        EGRESS,
        PROTOCOL,
        SOURCE_PORT,
        DESTINATION_PORT,
        TCP_CONTROL_BITS,
        SOURCE_IP4,
        DESTINATION_IP4,
    ],
);
const TEMPLATE_6: Template = Template::new(
    257,
    &[
        OBSERVATION_TIME_MS,
        SELECTOR,
        STATUS,
        PACKETS,
        INGRESS,
        EGRESS,
        PROTOCOL,
        SOURCE_PORT,
        DESTINATION_PORT,
        TCP_CONTROL_BITS,
        SOURCE_IP6,
        DESTINATION_IP6,
    ],
);

/// What is exported by IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpfixLog {
    pub domain: u32,
    /// 0 for any.
    pub source_port: u16,
}

/// The rings of all nodes. Only the control thread has it, but for the time when nodes are made.
pub(crate) type Rings = Arc<Mutex<Records<LogRecord>>>;

/// The log, kept in the engine.
pub(crate) struct AclLog {
    rings: Rings,
    pub ipfix: Option<IpfixLog>,
    pub syslog: bool,
    /// Records of a rule in a second.
    pub rate: u32,
}

/// One more ring.
pub(crate) fn recorder(rings: &Rings) -> Recorder<LogRecord> {
    rings.lock().unwrap_or_else(PoisonError::into_inner).open(RECORDS_MAX)
}

impl AclLog {
    pub fn new(rings: Rings) -> AclLog {
        AclLog { rings, ipfix: None, syslog: false, rate: RATE_DEFAULT }
    }

    /// Records made and lost, by action.
    pub fn counts(&self) -> Vec<(&'static str, quiver_export::records::KindCounts)> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).counts().collect()
    }

    /// Take at most `max` records of each ring. True when more wait.
    fn take(&self, max: usize, each: impl FnMut(LogRecord)) -> bool {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).take(max, each)
    }

    fn is_idle(&self) -> bool {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).is_idle()
    }
}

/// Change what is exported. What was written before is exported as it was configured then.
pub(crate) fn configure(
    engine: &mut Engine,
    change: impl FnOnce(&mut AclLog),
) -> Result<(), Refusal> {
    // A worker may go on meanwhile: as many as a full ring has are enough.
    export(engine, RECORDS_MAX);
    let at = Moment::of(engine);
    engine.with(|engine, log: &mut AclLog| {
        let before = (log.ipfix, log.syslog, log.rate);
        change(log);
        if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
            let domain = log.ipfix.map(|ipfix| ipfix.domain);
            let is_other = domain != before.0.map(|ipfix| ipfix.domain);
            let is_taken =
                |domain: &u32| exporter.streams().any(|other| other.stream.domain == *domain);
            if let Some(taken) = domain.filter(|_| is_other).filter(is_taken) {
                (log.ipfix, log.syslog, log.rate) = before;
                let what = format!("observation domain {taken} is that of another log");
                return Err(Refusal::new(what).remedy("choose another domain"));
            }
            if let Some(before) = before.0.filter(|_| log.ipfix != before.0) {
                exporter.close(at, before.domain);
            }
            if let Some(IpfixLog { domain, source_port }) = log.ipfix {
                let templates = &[TEMPLATE_4, TEMPLATE_6];
                exporter.open(at, Stream { domain, source_port, templates });
            }
        }
        let is_on = log.ipfix.is_some() || log.syslog;
        let rate = if is_on { log.rate } else { 0 };
        engine.with(|_, lists: &mut Lists| lists.published().set_log_rate(rate));
        Ok(())
    })
}

/// On each turn of the control loop.
pub(crate) fn turn(engine: &mut Engine) {
    if export(engine, RECORDS_PER_TURN) {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

/// Export at most `max` records of each ring. True when more wait.
fn export(engine: &mut Engine, max: usize) -> bool {
    let is_idle = engine.get::<AclLog>().is_none_or(AclLog::is_idle);
    if is_idle || engine.get::<IpfixExporter>().is_none() || engine.get::<SyslogSender>().is_none()
    {
        return false;
    }
    let at = Moment::of(engine);
    engine.with(|engine, log: &mut AclLog| {
        engine.with(|engine, exporter: &mut IpfixExporter| {
            engine.with(|engine, sender: &mut SyslogSender| {
                log.take(max, |record| {
                    let unix_ns = at.unix_ns_at(record.at_ns);
                    if let Some(ipfix) = &log.ipfix {
                        let template = match record.family {
                            Family::Ip4 => &TEMPLATE_4,
                            Family::Ip6 => &TEMPLATE_6,
                        };
                        exporter.put(at, ipfix.domain, template, |fields| {
                            write_ipfix(&record, unix_ns, fields);
                        });
                    }
                    if log.syslog {
                        send_syslog(engine, sender, at, &record, unix_ns);
                    }
                })
            })
        })
    })
}

fn address(record: &LogRecord, (high, low): (u64, u64)) -> IpAddr {
    match record.family {
        Family::Ip4 => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
        Family::Ip6 => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
    }
}

fn write_ipfix(record: &LogRecord, unix_ns: u64, fields: &mut Fields<'_>) {
    fields.u64(unix_ns / 1_000_000);
    fields.u64(u64::from(record.list) << 32 | u64::from(record.rule));
    fields.u8(if record.action == Action::Deny { DENIED } else { FORWARDED });
    fields.u64(record.packets);
    fields.u32(record.rx);
    fields.u32(if record.direction == Direction::Output { record.interface } else { 0 });
    fields.u8(record.protocol);
    fields.u16(record.ports.0);
    fields.u16(record.ports.1);
    fields.u16(record.tcp_flags.into());
    for halves in [record.source, record.destination] {
        match address(record, halves) {
            IpAddr::V4(address) => fields.ip4(address),
            IpAddr::V6(address) => fields.ip6(address),
        }
    }
}

fn send_syslog(
    engine: &Engine,
    sender: &mut SyslogSender,
    at: Moment,
    record: &LogRecord,
    at_unix_ns: u64,
) {
    let (message_id, severity) = match record.action {
        Action::Deny => ("DENY", Severity::Notice),
        Action::Permit | Action::Reflect => ("PERMIT", Severity::Informational),
    };
    let head = Head { facility: LOCAL0, severity, application: "ACL", message_id, at_unix_ns };
    sender.send(at, &head, "acl", |element| {
        element.param("ACL", record.list);
        element.param("RULE", record.rule);
        element.param("ACTION", record.action.word());
        element.param("DIR", record.direction.word());
        element.param("IF", engine.interface_name(InterfaceId(record.interface)));
        element.param("RX", engine.interface_name(InterfaceId(record.rx)));
        element.param("SADDR", address(record, record.source));
        element.param("DADDR", address(record, record.destination));
        element.param("PROTO", record.protocol);
        element.param("SPORT", record.ports.0);
        element.param("DPORT", record.ports.1);
        element.param("PACKETS", record.packets);
    });
}
