//! What Prometheus reads of the exporters.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, collect};

use crate::ipfix::exporter::IpfixExporter;
use crate::syslog::sender::SyslogSender;

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(exporter) = engine.get::<IpfixExporter>() else { return };
        let Some(sender) = engine.get::<SyslogSender>() else { return };
        let (ipfix, syslog) = (exporter.counts(), sender.counts());
        for (name, help, value) in [
            ("quiver_ipfix_messages_total", "IPFIX messages sent", ipfix.datagrams.sent),
            ("quiver_ipfix_records_total", "IPFIX data records sent", ipfix.records),
            ("quiver_ipfix_records_lost_total", "IPFIX data records not sent", ipfix.records_lost),
            (
                "quiver_ipfix_refused_total",
                "ICMP errors of IPFIX collectors",
                ipfix.datagrams.refused,
            ),
            ("quiver_syslog_messages_total", "Syslog messages sent", syslog.messages),
            ("quiver_syslog_lost_total", "Syslog messages not sent", syslog.lost + syslog.too_long),
            (
                "quiver_syslog_refused_total",
                "ICMP errors of syslog collectors",
                syslog.datagrams.refused,
            ),
        ] {
            text.family(&Family::counter(name, help));
            text.count(&Labels::default(), value);
        }
    });
}
