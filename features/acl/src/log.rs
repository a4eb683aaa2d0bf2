//! The log of rules with `log`: the workers' end. A rule's first packet is written at once, and
//! then so many a second as `set acl-plugin logging rate` says; a record counts the packets since
//! the one before it.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_classifier::{Key, field};
use quiver_export::records::{Record, Recorder};
use quiver_forwarding::fib::Family;
use quiver_tables::prefix::Address;

use crate::compiled::{Compiled, Part};
use crate::rules::Action;
use crate::tables::{Attached, Direction, LOG, NUMBERS_END};

/// Records of a node on a worker that wait for the control thread at most.
pub(crate) const RECORDS_MAX: usize = 1 << 10;
/// Records of a node on a worker in a second at most, of all rules: a list of many rules that log
/// does not flood the collector.
pub(crate) const RECORDS_PER_SECOND_MAX: u32 = 1_000;

/// What a rule with `log` decided about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogRecord {
    /// When, nanoseconds of the router's clock.
    pub at_ns: u64,
    /// Halves of the addresses; an IPv4 address stands in the second one.
    pub source: (u64, u64),
    pub destination: (u64, u64),
    /// Packets that the rule decided about since its record before, with this one.
    pub packets: u64,
    pub list: u32,
    /// The place of the rule in the list.
    pub rule: u32,
    /// Number of the interface that the list filters.
    pub interface: u32,
    /// Number of the interface that received the packet.
    pub rx: u32,
    /// Ports, or type and code of ICMP; 0 of a fragment whose are unknown.
    pub ports: (u16, u16),
    pub protocol: u8,
    pub tcp_flags: u8,
    pub family: Family,
    pub direction: Direction,
    pub action: Action,
}

impl Record for LogRecord {
    const KINDS: &'static [&'static str] = &["permit", "deny", "permit+reflect"];

    fn kind(&self) -> usize {
        match self.action {
            Action::Permit => 0,
            Action::Deny => 1,
            Action::Reflect => 2,
        }
    }
}

/// Packets of a rule that logs, of all workers.
#[derive(Debug, Default)]
pub(crate) struct RuleLog {
    /// Packets since the last record.
    since: AtomicU64,
    /// A second of the router's clock (32 bits), and the records of it (32 bits).
    window: AtomicU64,
}

impl RuleLog {
    /// Count packets. How many there are for a record, where one is due.
    fn note(&self, packets: u64, now_s: u32, rate: u32) -> Option<u64> {
        self.since.fetch_add(packets, Ordering::Relaxed);
        let before = self.window.load(Ordering::Relaxed);
        let is_same = before >> 32 == u64::from(now_s);
        let records = if is_same { before as u32 } else { 0 };
        if records >= rate {
            return None;
        }
        let after = u64::from(now_s) << 32 | u64::from(records + 1);
        // Another worker that comes between writes the record.
        let stored =
            self.window.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
        stored.ok()?;
        Some(self.since.swap(0, Ordering::Relaxed))
    }
}

/// Writes the records of a node on a worker. Nothing waits, and nothing is allocated.
pub(crate) struct Logger {
    recorder: Recorder<LogRecord>,
    /// The second in which records are counted, and how many there were.
    window: (u32, u32),
}

impl Logger {
    pub fn new(recorder: Recorder<LogRecord>) -> Logger {
        Logger { recorder, window: (0, 0) }
    }

    /// Has this second room for a record?
    fn has_room(&mut self, now_s: u32) -> bool {
        if self.window.0 != now_s {
            self.window = (now_s, 0);
        }
        self.window.1 < RECORDS_PER_SECOND_MAX
    }

    fn write(&mut self, record: LogRecord) {
        self.window.1 += 1;
        self.recorder.write(record);
    }
}

/// Does a rule that logs decide about it?
#[inline(always)]
fn is_logged(found: u32) -> bool {
    (found < NUMBERS_END) & (found & LOG != 0)
}

impl Attached {
    /// Log what rules of an interface's lists decided about its packets, where they are to.
    #[inline(never)]
    pub fn log<F: Part>(
        &self,
        lists: &Compiled,
        (direction, now_ns): (Direction, u64),
        logger: &mut Logger,
        keys: &[Key<F::Address>],
        found: &[u32],
    ) {
        let mut at = 0;
        while let Some((key, found_here)) = keys.get(at).zip(found.get(at)) {
            // Neighbours that the same rule decides about are counted together.
            let rest = found.iter().skip(at);
            let run = rest.take_while(|found| *found == found_here).count().max(1);
            if is_logged(*found_here) && key.length != 0 {
                self.log_run::<F>(lists, (direction, now_ns), logger, key, *found_here, run);
            }
            at += run;
        }
    }

    fn log_run<F: Part>(
        &self,
        lists: &Compiled,
        (direction, now_ns): (Direction, u64),
        logger: &mut Logger,
        key: &Key<F::Address>,
        found: u32,
        packets: usize,
    ) {
        let Some(entry) = lists.entry(found) else { return };
        let now_s = (now_ns / 1_000_000_000) as u32;
        let rate = if logger.has_room(now_s) { self.log_rate() } else { 0 };
        let Some(log) = &entry.log else { return };
        let Some(packets) = log.note(packets as u64, now_s, rate) else { return };
        let Some((list, rule)) = lists.place(found) else { return };
        logger.write(LogRecord {
            at_ns: now_ns,
            source: key.source.halves(),
            destination: key.destination.halves(),
            packets,
            list,
            rule,
            interface: key.owner,
            rx: key.rx,
            ports: (key.source_port, key.destination_port),
            protocol: (key.fields & field::PROTOCOL) as u8,
            tcp_flags: crate::session::tcp_flags(key.fields),
            family: F::FAMILY,
            direction,
            action: entry.rule.action,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_writes_its_first_packet_and_so_many_a_second_as_the_rate_says() {
        let log = RuleLog::default();
        assert_eq!(log.note(3, 100, 2), Some(3));
        assert_eq!(log.note(1, 100, 2), Some(1));
        assert_eq!(log.note(5, 100, 2), None);
        assert_eq!(log.note(7, 100, 2), None);
        assert_eq!(log.note(1, 101, 2), Some(13), "with those that had no record");
        assert_eq!(log.note(1, 102, 0), None, "off");
    }
}
