//! The sender of syslog messages and a collector, over the loopback device.

use std::net::{IpAddr, Ipv4Addr};

use quiver_export::moment::Moment;
use quiver_export::syslog::message::{Head, LOCAL0, Severity};
use quiver_export::syslog::sender::{Settings, SyslogSender};

use crate::collector::Collector;

const AT: Moment = Moment { now_ns: 0, unix_ns: 0 };

fn head(severity: Severity) -> Head {
    Head { facility: LOCAL0, severity, application: "TEST", message_id: "ID", at_unix_ns: 0 }
}

#[test]
fn a_message_is_a_datagram_and_what_is_not_sent_is_counted() {
    let mut collector = Collector::new();
    let mut sender = SyslogSender::default();
    sender.send(AT, &head(Severity::Notice), "x", |_| {});
    assert_eq!(sender.counts().lost, 1, "no collector");
    sender.set(Some(Settings {
        collector: collector.address(),
        source: IpAddr::V4(Ipv4Addr::LOCALHOST),
        message_bytes_max: 480,
    }));
    sender.send(AT, &head(Severity::Notice), "x", |element| element.param("A", "1"));
    sender.send(AT, &head(Severity::Debug), "x", |_| {});
    sender.send(AT, &head(Severity::Notice), "x", |element| element.param("A", "1".repeat(500)));
    sender.set_filter(Severity::Warning);
    sender.send(AT, &head(Severity::Notice), "x", |_| {});
    let all = collector.datagrams();
    let process = std::process::id();
    let expected =
        format!("<133>1 1970-01-01T00:00:00.000Z 127.0.0.1 TEST {process} ID [x A=\"1\"]");
    assert_eq!(all, [expected.into_bytes()]);
    let counts = sender.counts();
    assert_eq!((counts.messages, counts.filtered, counts.too_long), (1, 2, 1));
}
