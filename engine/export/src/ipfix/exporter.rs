//! The exporter: streams of messages to some collectors over UDP, each of which gets all records.
//!
//! A stream is an observation domain with templates and, for each collector, a sequence number (RFC
//! 7011 §3.1). Its socket is its transport session: another collector, or another socket, begins a
//! new one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use quiver_core::clock::unix_ns;

use crate::datagrams::DatagramCounts;
use crate::ipfix::link::Link;
use crate::ipfix::message::{Fields, Format};
use crate::ipfix::template::Template;
use crate::moment::Moment;

/// A message that is not full is sent this long after its first record, nanoseconds.
pub const FLUSH_NS: u64 = 500_000_000;
/// Collectors at most: each gets all records.
pub const COLLECTORS_MAX: usize = 8;
/// Headers of IPv4 and UDP, of IPv6 and UDP, bytes.
const IP4_UDP_BYTES: u16 = 28;
const IP6_UDP_BYTES: u16 = 48;

/// Where messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The collector.
    pub collector: SocketAddr,
    /// The address of Linux that messages come from.
    pub source: IpAddr,
    /// IP packets are at most this long, bytes.
    pub path_mtu: u16,
    /// Templates are sent again after so many seconds (RFC 7011 §8.1).
    pub template_interval_s: u32,
    /// How records are written.
    pub format: Format,
}

impl Settings {
    /// Bytes of a message at most.
    pub(super) fn message_bytes(&self) -> usize {
        let headers = if self.collector.is_ipv4() { IP4_UDP_BYTES } else { IP6_UDP_BYTES };
        usize::from(self.path_mtu.saturating_sub(headers))
    }
}

/// What a client exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its observation domain.
    pub domain: u32,
    /// The UDP port that it comes from; 0 for any.
    pub source_port: u16,
    /// All templates of its records.
    pub templates: &'static [Template],
}

/// What became of records; each counts once for each collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Data records in datagrams that Linux took.
    pub records: u64,
    /// Data records that could not be sent: no collector, or its datagram was not sent.
    pub records_lost: u64,
    /// Template records in datagrams that Linux took.
    pub templates: u64,
    /// What became of datagrams.
    pub datagrams: DatagramCounts,
}

impl ExportCounts {
    fn add(&mut self, other: &ExportCounts) {
        self.records += other.records;
        self.records_lost += other.records_lost;
        self.templates += other.templates;
        let (own, other) = (&mut self.datagrams, &other.datagrams);
        own.sent += other.sent;
        own.sent_bytes += other.sent_bytes;
        own.refused += other.refused;
        own.full += other.full;
        own.errors += other.errors;
    }
}

/// Which collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// That of `set ipfix exporter`.
    First,
    /// One more, by its address and port.
    Further(SocketAddr),
}

/// A collector: where its messages go, its streams by domain, and what became of its records.
#[derive(Debug)]
struct Collector {
    settings: Settings,
    links: BTreeMap<u32, Link>,
    counts: ExportCounts,
}

impl Collector {
    fn new(settings: Settings, streams: &BTreeMap<u32, Stream>) -> Collector {
        let links = streams.iter().map(|(domain, stream)| (*domain, Link::new(&settings, stream)));
        Collector { settings, links: links.collect(), counts: ExportCounts::default() }
    }

    /// Send what waits.
    fn flush(&mut self, at: Moment, streams: &BTreeMap<u32, Stream>) {
        let Collector { settings, links, counts } = self;
        for (domain, link) in links {
            if let Some(stream) = streams.get(domain) {
                link.send(at, settings, stream, counts);
            }
        }
    }
}

/// A stream to a collector as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct StreamState<'e> {
    /// What it is.
    pub stream: &'e Stream,
    /// Where it goes.
    pub collector: Option<SocketAddr>,
    /// Its sequence number.
    pub sequence: u32,
    /// Why its last datagram was not sent.
    pub error: Option<&'e str>,
    /// The same in a word.
    pub error_word: Option<&'static str>,
}

/// The exporter, kept in the engine.
#[derive(Debug, Default)]
pub struct IpfixExporter {
    collectors: BTreeMap<Place, Collector>,
    streams: BTreeMap<u32, Stream>,
    /// Of records that had no collector, and of collectors that are gone.
    counts: ExportCounts,
}

impl IpfixExporter {
    /// Where messages go first; `None` without a collector there.
    pub fn settings(&self) -> Option<&Settings> {
        self.collectors.get(&Place::First).map(|collector| &collector.settings)
    }

    /// All collectors, and what became of the records to each.
    pub fn collectors(&self) -> impl Iterator<Item = (Place, &Settings, &ExportCounts)> {
        self.collectors.iter().map(|(place, of)| (*place, &of.settings, &of.counts))
    }

    /// What became of records since the start, to all collectors.
    pub fn counts(&self) -> ExportCounts {
        let mut sum = self.counts;
        self.collectors.values().for_each(|collector| sum.add(&collector.counts));
        sum
    }

    /// The streams to each collector, by domain; without collectors, the streams.
    pub fn streams(&self) -> impl Iterator<Item = StreamState<'_>> {
        let sent = self.collectors.values().flat_map(|collector| {
            let links = collector.links.iter();
            links.filter_map(|(domain, link)| {
                Some(StreamState {
                    stream: self.streams.get(domain)?,
                    collector: Some(collector.settings.collector),
                    sequence: link.sequence,
                    error: link.datagrams.error(),
                    error_word: link.datagrams.error_word(),
                })
            })
        });
        let alone = self.streams.values().filter(|_| self.collectors.is_empty());
        let alone = alone.map(|stream| StreamState {
            stream,
            collector: None,
            sequence: 0,
            error: None,
            error_word: None,
        });
        sent.chain(alone)
    }

    /// Is there something to do on a turn?
    pub fn is_active(&self) -> bool {
        !self.collectors.is_empty() && !self.streams.is_empty()
    }

    /// Export to a first collector, or to none there.
    pub fn set(&mut self, at: Moment, settings: Option<Settings>) {
        self.set_at(at, Place::First, settings);
    }

    /// Export to the collector of a place, or to none there. What waits goes to the one before.
    pub fn set_at(&mut self, at: Moment, place: Place, settings: Option<Settings>) {
        let before = self.collectors.get(&place).map(|collector| collector.settings);
        if settings == before {
            return;
        }
        if let Some(mut collector) = self.collectors.remove(&place) {
            collector.flush(at, &self.streams);
            self.counts.add(&collector.counts);
        }
        if let Some(settings) = settings {
            self.collectors.insert(place, Collector::new(settings, &self.streams));
        }
    }

    /// Open a stream, in the place of one of the same domain.
    pub fn open(&mut self, at: Moment, stream: Stream) {
        if self.streams.get(&stream.domain) == Some(&stream) {
            return;
        }
        self.close(at, stream.domain);
        for Collector { settings, links, .. } in self.collectors.values_mut() {
            links.insert(stream.domain, Link::new(settings, &stream));
        }
        self.streams.insert(stream.domain, stream);
    }

    /// Close the stream of a domain. What waits is sent.
    pub fn close(&mut self, at: Moment, domain: u32) {
        let Some(stream) = self.streams.remove(&domain) else { return };
        for Collector { settings, links, counts } in self.collectors.values_mut() {
            if let Some(mut link) = links.remove(&domain) {
                link.send(at, settings, &stream, counts);
            }
        }
    }

    /// Export a record of a stream to all collectors. Without any it is counted as lost.
    pub fn put(
        &mut self,
        at: Moment,
        domain: u32,
        template: &Template,
        write: impl Fn(&mut Fields<'_>),
    ) {
        let stream = self.streams.get(&domain).filter(|_| !self.collectors.is_empty());
        let Some(stream) = stream else {
            self.counts.records_lost += 1;
            return;
        };
        for Collector { settings, links, counts } in self.collectors.values_mut() {
            if let Some(link) = links.get_mut(&domain) {
                link.put(at, (settings, stream), template, &write, counts);
            }
        }
    }

    /// Send what has waited for [`FLUSH_NS`], and templates that are due.
    pub fn turn(&mut self, at: Moment) {
        for Collector { settings, links, counts } in self.collectors.values_mut() {
            for (domain, link) in links {
                if let Some(stream) = self.streams.get(domain) {
                    link.turn(at, settings, stream, counts);
                }
            }
        }
    }

    /// Send what waits.
    pub fn flush(&mut self, at: Moment) {
        for collector in self.collectors.values_mut() {
            collector.flush(at, &self.streams);
        }
    }
}

/// What waits when the router stops is sent.
impl Drop for IpfixExporter {
    fn drop(&mut self) {
        // The router's clock is gone; no templates are due at its beginning.
        self.flush(Moment { now_ns: 0, unix_ns: unix_ns() });
    }
}
