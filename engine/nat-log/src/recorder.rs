//! The worker's end of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use quiver_export::records::Recorder;
use quiver_translation::flow::{End, Flow};

use crate::record::{Detail, Event, NatRecord};

/// A notice about the same thing is not repeated for so long, seconds.
pub const NOTICE_REPEAT_S: u64 = 10;
/// Notices of a second at most.
pub const NOTICES_PER_SECOND_MAX: u32 = 100;
/// Things that are remembered to have been reported.
const REMEMBERED: usize = 256;

/// What the control thread and the writers share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// What is logged: a [`Detail`], or 0 for nothing.
    pub detail: AtomicU8,
    /// Notices that were left out because they were repeated or too many.
    pub repeated: AtomicU64,
}

/// A host with IPv6 and whom it talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside64 {
    /// The host.
    pub host: u128,
    /// Its port, or identifier.
    pub port: u16,
    /// The remote address as the host names it; 0 of a binding.
    pub remote: u128,
    /// Small number of the host's table.
    pub table: u32,
}

/// A subscriber inside, or all hosts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Small number of its table.
    pub table: u32,
    /// Its address; 0 for all hosts of the table.
    pub address: u32,
    /// The B4 of the softwire that it is behind (RFC 6333), if it is behind one.
    pub b4: Option<u128>,
}

impl From<(u32, u32)> for Host {
    /// Of a table and an address, behind no softwire.
    fn from((table, address): (u32, u32)) -> Host {
        Host { table, address, b4: None }
    }
}

/// Writes records while they are logged. Nothing waits, and nothing is allocated.
pub struct Log {
    recorder: Option<Recorder<NatRecord>>,
    shared: Arc<Shared>,
    now_ns: u64,
    /// What was reported, and in which second.
    noticed: Box<[(u64, u64); REMEMBERED]>,
    /// The second in which notices are counted, and how many there were.
    notices: (u64, u32),
}

impl Log {
    pub(crate) fn new(recorder: Option<Recorder<NatRecord>>, shared: Arc<Shared>) -> Log {
        let noticed = Box::new([(0, 0); REMEMBERED]);
        Log { recorder, shared, now_ns: 0, noticed, notices: (0, 0) }
    }

    /// What is written from now on happens at this time of the router's clock.
    pub fn set_now(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    #[inline]
    fn is_logged(&self, detail: Detail) -> bool {
        self.shared.detail.load(Ordering::Relaxed) >= detail as u8
    }

    #[inline]
    fn write(&mut self, record: NatRecord) {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(record);
        }
    }

    /// A session begins or ends: its packets from inside, which come by the softwire of a B4 or by
    /// none, and those from outside.
    #[inline]
    pub fn session(&mut self, event: Event, inside: Flow, outside: Flow, b4: Option<u128>) {
        if self.is_logged(Detail::Sessions) {
            // An identifier of ICMP is no port of the remote host.
            let remote = |end: End| if inside.is_icmp() { End { port: 0, ..end } } else { end };
            let record = NatRecord {
                inside: inside.source,
                external: outside.destination,
                remote_inside: remote(inside.destination),
                remote: remote(outside.source),
                table: inside.table,
                protocol: inside.protocol.0,
                ..NatRecord::new(self.now_ns, event)
            };
            self.write(record.behind(b4));
        }
    }

    /// An endpoint-independent mapping begins or ends, of a host behind a B4 or behind none.
    #[inline]
    pub fn mapping(&mut self, event: Event, inside: Flow, external: End, b4: Option<u128>) {
        if self.is_logged(Detail::Mappings) {
            let record = NatRecord {
                inside: inside.source,
                external,
                table: inside.table,
                protocol: inside.protocol.0,
                ..NatRecord::new(self.now_ns, event)
            };
            self.write(record.behind(b4));
        }
    }

    /// A session of a host with IPv6 begins or ends: the host and the remote address that it names,
    /// their ports, and its packets from outside.
    pub fn session64(&mut self, event: Event, inside: Inside64, outside: Flow) {
        if self.is_logged(Detail::Sessions) {
            let is_icmp = outside.is_icmp();
            let port = if is_icmp { 0 } else { outside.source.port };
            let record = self.record64(event, inside, outside.destination, outside.protocol.0);
            self.write(NatRecord {
                remote_inside: End { address: 0, port },
                remote: End { port, ..outside.source },
                ..record
            });
        }
    }

    /// A binding of a host with IPv6 begins or ends.
    pub fn mapping64(&mut self, event: Event, inside: Inside64, external: End, protocol: u8) {
        if self.is_logged(Detail::Mappings) {
            let record = self.record64(event, inside, external, protocol);
            self.write(record);
        }
    }

    fn record64(&self, event: Event, inside: Inside64, external: End, protocol: u8) -> NatRecord {
        NatRecord {
            inside: End { address: 0, port: inside.port },
            external,
            ip6: [inside.host, inside.remote].map(u128::to_be_bytes),
            table: inside.table,
            protocol,
            ..NatRecord::new(self.now_ns, event)
        }
    }

    /// A limit of a subscriber with IPv6 is reached.
    pub fn quota64(&mut self, (table, host): (u32, u128), limit: u32) {
        self.notice(NatRecord {
            ip6: [host.to_be_bytes(), [0; 16]],
            table,
            value: limit,
            ..NatRecord::new(self.now_ns, Event::SubscriberQuota64)
        });
    }

    /// A subscriber gets or loses the ports from `first` to `last` of an address.
    pub fn block(
        &mut self,
        event: Event,
        host: impl Into<Host>,
        external: u32,
        (first, last): (u16, u16),
    ) {
        if self.is_logged(Detail::Blocks) {
            let Host { table, address, b4 } = host.into();
            let record = NatRecord {
                inside: End { address, port: 0 },
                external: End { address: external, port: first },
                table,
                value: last.into(),
                ..NatRecord::new(self.now_ns, event)
            };
            self.write(record.behind(b4));
        }
    }

    /// No port is left: of an address, or of the whole pool, where `external` is 0.
    pub fn exhausted(&mut self, external: u32, protocol: u8) {
        let event = if external == 0 { Event::AddressesExhausted } else { Event::PortsExhausted };
        self.notice(NatRecord {
            external: End { address: external, port: 0 },
            protocol,
            ..NatRecord::new(self.now_ns, event)
        });
    }

    /// A limit is reached: of a subscriber, or of all hosts of a table.
    pub fn quota(&mut self, event: Event, host: impl Into<Host>, limit: u32) {
        let Host { table, address, b4 } = host.into();
        let record = NatRecord {
            inside: End { address, port: 0 },
            table,
            value: limit,
            ..NatRecord::new(self.now_ns, event)
        };
        self.notice(record.behind(b4));
    }

    /// Write what may happen with every packet: the same once in [`NOTICE_REPEAT_S`], and
    /// [`NOTICES_PER_SECOND_MAX`] together.
    fn notice(&mut self, record: NatRecord) {
        if !self.is_logged(Detail::Blocks) {
            return;
        }
        let now_s = self.now_ns / 1_000_000_000;
        let host = u128::from_be_bytes(record.ip6[0]);
        let folded = host as u64 ^ (host >> 64) as u64;
        let address = u64::from(record.inside.address | record.external.address)
            ^ (folded ^ folded >> 32) & 0xffff_ffff;
        let (event, protocol) = (record.event as u64, u64::from(record.protocol));
        let key = address << 32 | u64::from(record.table) << 16 ^ protocol << 8 ^ (event + 1);
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = &mut self.noticed[mixed as usize % REMEMBERED];
        let is_repeated = place.0 == key && now_s.saturating_sub(place.1) < NOTICE_REPEAT_S;
        if self.notices.0 != now_s {
            self.notices = (now_s, 0);
        }
        if is_repeated || self.notices.1 >= NOTICES_PER_SECOND_MAX {
            self.shared.repeated.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *place = (key, now_s);
        self.notices.1 += 1;
        self.write(record);
    }
}

#[cfg(test)]
mod tests {
    use quiver_export::records::Records;
    use quiver_wire::IpProtocol;

    use super::*;

    fn log(detail: u8, capacity: usize) -> (Log, Records<NatRecord>) {
        let mut records = Records::default();
        let shared = Arc::new(Shared::default());
        shared.detail.store(detail, Ordering::Relaxed);
        (Log::new(Some(records.open(capacity)), shared), records)
    }

    fn taken(records: &mut Records<NatRecord>) -> Vec<NatRecord> {
        let mut all = Vec::new();
        records.take(usize::MAX, |record| all.push(record));
        all
    }

    fn flow(protocol: IpProtocol) -> Flow {
        let end = |address, port| End { address, port };
        Flow { source: end(1, 2), destination: end(3, 4), protocol, table: 5 }
    }

    #[test]
    fn only_what_the_detail_includes_is_written() {
        for (detail, expected) in [(0, 0), (1, 2), (2, 3), (3, 4)] {
            let (mut log, mut records) = log(detail, 16);
            let udp = flow(IpProtocol::UDP);
            log.session(Event::SessionCreate, udp, udp.reversed(), None);
            log.mapping(Event::MappingCreate, udp, End::default(), None);
            log.block(Event::BlockAllocate, (0, 1), 2, (1024, 1087));
            log.exhausted(7, 17);
            assert_eq!(taken(&mut records).len(), expected);
        }
    }

    /// RFC 5508 §3.1: an identifier of ICMP stands for the port of the host inside alone.
    #[test]
    fn an_icmp_session_has_no_remote_port() {
        let (mut log, mut records) = log(3, 16);
        let icmp = flow(IpProtocol::ICMP);
        log.session(Event::SessionCreate, icmp, icmp.reversed(), None);
        let record = taken(&mut records)[0];
        assert_eq!((record.inside.port, record.external.port), (2, 2));
        assert_eq!((record.remote_inside.port, record.remote.port), (0, 0));
    }

    /// RFC 6333 §6.6: the address of the B4 tells hosts with the same address apart.
    #[test]
    fn records_of_a_host_behind_a_softwire_name_its_b4() {
        let (mut log, mut records) = log(3, 16);
        let udp = flow(IpProtocol::UDP);
        let host = Host { table: udp.table, address: 1, b4: Some(77) };
        log.session(Event::SessionCreate, udp, udp.reversed(), Some(77));
        log.mapping(Event::MappingCreate, udp, End::default(), Some(77));
        log.block(Event::BlockAllocate, host, 2, (1024, 1087));
        log.quota(Event::SubscriberQuota, host, 5);
        log.quota(Event::SubscriberQuota, Host { b4: Some(78), ..host }, 5);
        let taken = taken(&mut records);
        let b4s: Vec<u128> =
            taken.iter().map(|record| u128::from_be_bytes(record.ip6[0])).collect();
        assert_eq!(b4s, [77, 77, 77, 77, 78]);
        assert!(taken.iter().all(|record| record.has_b4 && record.table == 0));
        assert_eq!(taken[0].inside, End { address: 1, port: 2 });
    }

    #[test]
    fn a_notice_is_repeated_after_ten_seconds_and_there_are_a_hundred_a_second() {
        let (mut log, mut records) = log(1, 1024);
        for now_s in 100..121 {
            log.set_now(now_s * 1_000_000_000);
            (0..1000).for_each(|_| log.quota(Event::SubscriberQuota, (0, 9), 5));
        }
        let seconds: Vec<u64> =
            taken(&mut records).iter().map(|record| record.at_ns / 1_000_000_000).collect();
        assert_eq!(seconds, [100, 110, 120]);
        log.set_now(200_000_000_000);
        (0..1000).for_each(|host| log.quota(Event::SubscriberQuota, (0, host + 1), 5));
        assert_eq!(taken(&mut records).len(), NOTICES_PER_SECOND_MAX as usize);
        let left_out = log.shared.repeated.load(Ordering::Relaxed);
        assert_eq!(left_out, 21 * 1000 - 3 + 900);
    }
}
