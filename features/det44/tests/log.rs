//! The log: a mapping that is added or removed is all that a collector needs.

use std::time::Duration;

use quiver_testkit::{Register, Router, Settings};

use crate::collector::Collector;
use crate::sessions::FEATURES;

/// RFC 7422 §4: the parameters of the algorithm are logged when they change, sessions never.
#[test]
fn a_mapping_is_logged_when_it_is_added_and_when_it_is_removed() {
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = Router::with(Settings::default(), &features);
    let (mut ipfix, mut syslog) = (Collector::new(), Collector::new());
    router.cli(&format!(
        "set ipfix exporter collector 127.0.0.1 src 127.0.0.1 port {}",
        ipfix.address().port()
    ));
    router.cli(&format!(
        "set syslog sender collector 127.0.0.1 src 127.0.0.1 port {}",
        syslog.address().port()
    ));
    router.cli("nat ipfix logging");
    router.cli("nat syslog logging detail blocks");
    router.cli("det44 plugin enable");
    router.cli("det44 add in 10.0.0.0/16 out 192.0.2.0/26");
    router.cli("det44 add in 10.1.0.0/24 out 198.51.100.0/28");
    router.cli("det44 add in 10.1.0.0/24 out 198.51.100.0/28 del");
    router.cli("det44 plugin disable");
    router.advance(Duration::from_millis(20));
    router.cli("ipfix flush");
    let got: Vec<_> = ipfix
        .records()
        .into_iter()
        .map(|record| [230, 44, 9, 225, 361, 364].map(|element| record.fields[&element]))
        .collect();
    // natEvent 16 and 17 of RFC 8158 §4: allocation and de-allocation; the prefix inside, the first
    // address and port outside, and the ports of each host.
    let first = |event| [event, 0x0a00_0000, 16, 0xc000_0200, 1024, 63];
    let second = |event| [event, 0x0a01_0000, 24, 0xc633_6400, 1024, 4032];
    assert_eq!(got, [first(16), second(16), second(17), first(17)]);
    let lines = syslog.datagrams();
    let lines: Vec<String> =
        lines.into_iter().map(|line| String::from_utf8(line).expect("text")).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("<133>1 ") && lines[0].contains(" NAT "), "{}", lines[0]);
    let ends = " DETADD [ndetmap ISPREFIX=\"10.0.0.0/16\" XSPREFIX=\"192.0.2.0/26\" \
                XSPORT=\"1024\" PORTS=\"63\"]";
    assert!(lines[0].ends_with(ends), "{}", lines[0]);
    assert!(lines[3].contains(" DETDEL "), "{}", lines[3]);
}
