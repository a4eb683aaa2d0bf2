//! The log on the control thread: takes records from workers and exports them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::Engine;
use quiver_export::ipfix::exporter::{IpfixExporter, Stream};
use quiver_export::moment::Moment;
use quiver_export::records::Records;
use quiver_export::syslog::sender::SyslogSender;
use quiver_forwarding::fib::{Family, Fib};

use crate::record::{Detail, NatRecord};
use crate::recorder::{Log, Shared};
use crate::{syslog, templates};

/// Records of a translator that wait for the control thread at most. It comes every ten
/// milliseconds at least, unless it is busy: so many are those of 6 million events a second.
pub(crate) const RECORDS_MAX: usize = 1 << 16;
/// Records that are exported in one turn of the control loop, by IPFIX alone and by syslog too,
/// where each is a datagram. The next turn comes at once while more wait; commands have their turns
/// in between, and a burst fits into the receive buffer that Linux gives a collector.
const RECORDS_PER_TURN: usize = 2_048;
const RECORDS_PER_TURN_SYSLOG: usize = 1_024;
/// Losses are reported to the collector this often at most, nanoseconds.
const LOSSES_NS: u64 = 1_000_000_000;

/// What is exported by IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpfixLog {
    pub domain: u32,
    /// 0 for any.
    pub source_port: u16,
    pub detail: Detail,
}

impl IpfixLog {
    fn stream(&self) -> Stream {
        let IpfixLog { domain, source_port, .. } = *self;
        Stream { domain, source_port, templates: templates::ALL }
    }
}

/// The log, kept in the engine.
#[derive(Default)]
pub(crate) struct NatLog {
    pub records: Records<NatRecord>,
    pub shared: Arc<Shared>,
    pub ipfix: Option<IpfixLog>,
    pub syslog: Option<Detail>,
    /// Records lost when the collector last heard of them, and when that was.
    reported: (u64, u64),
}

impl NatLog {
    /// Records that found a ring full.
    pub fn lost(&self) -> u64 {
        self.records.counts().map(|(_, counts)| counts.lost).sum()
    }

    /// Let workers write what one of both exports wants.
    fn publish_detail(&self) {
        let wanted = self.ipfix.map(|ipfix| ipfix.detail).max(self.syslog);
        let detail = wanted.map_or(0, |detail| detail as u8);
        self.shared.detail.store(detail, Ordering::Relaxed);
    }
}

/// The log of one more translator. It writes nothing where the log is not built in.
pub fn open(engine: &mut Engine) -> Log {
    match engine.get_mut::<NatLog>() {
        Some(log) => Log::new(Some(log.records.open(RECORDS_MAX)), log.shared.clone()),
        None => Log::new(None, Arc::default()),
    }
}

/// Is anything logged?
pub fn is_on(engine: &Engine) -> bool {
    engine.get::<NatLog>().is_some_and(|log| log.ipfix.is_some() || log.syslog.is_some())
}

/// Change what is exported. What was written before is exported as it was configured then.
pub(crate) fn configure(engine: &mut Engine, change: impl FnOnce(&mut NatLog)) {
    drain(engine);
    let at = Moment::of(engine);
    engine.with(|engine, log: &mut NatLog| {
        let before = log.ipfix;
        change(log);
        log.publish_detail();
        let Some(exporter) = engine.get_mut::<IpfixExporter>() else { return };
        if let Some(before) = before.filter(|_| log.ipfix != before) {
            exporter.close(at, before.domain);
        }
        if let Some(ipfix) = &log.ipfix {
            exporter.open(at, ipfix.stream());
        }
    });
}

/// Export all records that wait. To be called between worker calls that write many.
pub fn drain(engine: &mut Engine) {
    // A writer may go on meanwhile: as many as a full ring has are enough.
    export(engine, RECORDS_MAX);
}

/// On each turn of the control loop.
pub(crate) fn turn(engine: &mut Engine) {
    let Some(log) = engine.get::<NatLog>() else { return };
    let has_syslog = log.syslog.is_some();
    let max = if has_syslog { RECORDS_PER_TURN_SYSLOG } else { RECORDS_PER_TURN };
    if export(engine, max) {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

/// Export at most `max` records of each writer. True when more wait.
fn export(engine: &mut Engine, max: usize) -> bool {
    let Some(log) = engine.get_mut::<NatLog>() else { return false };
    let is_idle = log.records.is_idle() && log.lost() == log.reported.0;
    if is_idle || engine.get::<IpfixExporter>().is_none() || engine.get::<SyslogSender>().is_none()
    {
        return false;
    }
    let at = Moment::of(engine);
    engine.with(|engine, log: &mut NatLog| {
        engine.with(|engine, exporter: &mut IpfixExporter| {
            engine.with(|engine, sender: &mut SyslogSender| {
                let NatLog { records, ipfix, syslog, .. } = log;
                let fib = engine.get::<Fib>();
                let vrf = |record: &NatRecord| {
                    let family = if record.event.is_of_ip6() { Family::Ip6 } else { Family::Ip4 };
                    fib.and_then(|fib| fib.table_id(family, record.table)).unwrap_or(0)
                };
                let more = records.take(max, |record| {
                    let (vrf, unix_ns) = (vrf(&record), at.unix_ns_at(record.at_ns));
                    if let Some(ipfix) = ipfix.filter(|own| own.detail >= record.event.detail()) {
                        exporter.put(at, ipfix.domain, templates::of(&record), |fields| {
                            templates::write(&record, unix_ns, vrf, fields);
                        });
                    }
                    if syslog.is_some_and(|detail| detail >= record.event.detail()) {
                        let head = syslog::head(record.event, unix_ns);
                        sender.send(at, &head, syslog::element(record.event), |element| {
                            syslog::write(&record, vrf, element);
                        });
                    }
                });
                report_losses(log, exporter, at);
                more
            })
        })
    })
}

/// Let the collector know how many records were lost before they came to the exporter.
fn report_losses(log: &mut NatLog, exporter: &mut IpfixExporter, at: Moment) {
    let (lost, (reported, reported_ns)) = (log.lost(), log.reported);
    if lost == reported {
        return;
    }
    let Some(ipfix) = log.ipfix else {
        log.reported.0 = lost;
        return;
    };
    if reported_ns != 0 && at.now_ns.saturating_sub(reported_ns) < LOSSES_NS {
        return;
    }
    log.reported = (lost, at.now_ns);
    exporter.put(at, ipfix.domain, &templates::LOSSES, |fields| {
        fields.u32(std::process::id());
        fields.u64(lost);
    });
}
