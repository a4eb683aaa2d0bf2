//! The exporter: streams of messages to one collector over UDP.
//!
//! A stream is an observation domain with templates and a sequence number (RFC 7011 §3.1). Its
//! socket is its transport session: another collector, or another socket, begins a new one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use quiver_core::clock::unix_ns;

use crate::datagrams::{DatagramCounts, Datagrams};
use crate::ipfix::message::{Fields, Format, Message};
use crate::ipfix::template::Template;
use crate::moment::Moment;

/// A message that is not full is sent this long after its first record, nanoseconds.
pub const FLUSH_NS: u64 = 500_000_000;
/// Templates follow an ICMP error of the collector, which may be a new one, or a failure of their
/// own, after so long, nanoseconds.
const TEMPLATES_AGAIN_NS: u64 = 1_000_000_000;
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
    fn message_bytes(&self) -> usize {
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

/// What became of records.
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

/// A stream to the collector.
#[derive(Debug)]
struct Link {
    datagrams: Datagrams,
    message: Message,
    /// Data records (of NetFlow version 9, messages) before this message, modulo 2^32. Those that
    /// could not be sent count, so that the collector sees that they are missing.
    sequence: u32,
    templates_due_ns: u64,
    /// When the first record of the message was written.
    since_ns: Option<u64>,
}

#[derive(Debug)]
struct Open {
    stream: Stream,
    link: Option<Link>,
}

/// A stream as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct StreamState<'e> {
    /// What it is.
    pub stream: &'e Stream,
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
    settings: Option<Settings>,
    streams: BTreeMap<u32, Open>,
    counts: ExportCounts,
}

impl IpfixExporter {
    /// Where messages go; `None` without a collector.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// What became of records since the start.
    pub fn counts(&self) -> &ExportCounts {
        &self.counts
    }

    /// The streams, by domain.
    pub fn streams(&self) -> impl Iterator<Item = StreamState<'_>> {
        self.streams.values().map(|open| StreamState {
            stream: &open.stream,
            sequence: open.link.as_ref().map_or(0, |link| link.sequence),
            error: open.link.as_ref().and_then(|link| link.datagrams.error()),
            error_word: open.link.as_ref().and_then(|link| link.datagrams.error_word()),
        })
    }

    /// Is there something to do on a turn?
    pub fn is_active(&self) -> bool {
        self.settings.is_some() && !self.streams.is_empty()
    }

    /// Export to a collector, or to none. What waits goes to the one before.
    pub fn set(&mut self, at: Moment, settings: Option<Settings>) {
        if settings == self.settings {
            return;
        }
        self.flush(at);
        self.settings = settings;
        for open in self.streams.values_mut() {
            open.link = settings.as_ref().map(|settings| Link::new(settings, &open.stream));
        }
    }

    /// Open a stream, in the place of one of the same domain.
    pub fn open(&mut self, at: Moment, stream: Stream) {
        if self.streams.get(&stream.domain).is_some_and(|open| open.stream == stream) {
            return;
        }
        self.close(at, stream.domain);
        let link = self.settings.as_ref().map(|settings| Link::new(settings, &stream));
        self.streams.insert(stream.domain, Open { stream, link });
    }

    /// Close the stream of a domain. What waits is sent.
    pub fn close(&mut self, at: Moment, domain: u32) {
        if let Some(Open { stream, link: Some(mut link) }) = self.streams.remove(&domain)
            && let Some(settings) = &self.settings
        {
            link.send(at, settings, &stream, &mut self.counts);
        }
    }

    /// Export a record of a stream. Without a collector it is counted as lost.
    pub fn put(
        &mut self,
        at: Moment,
        domain: u32,
        template: &Template,
        write: impl Fn(&mut Fields<'_>),
    ) {
        let link = self.streams.get_mut(&domain);
        let (Some(Open { stream, link: Some(link) }), Some(settings)) = (link, &self.settings)
        else {
            self.counts.records_lost += 1;
            return;
        };
        let mut added = link.message.record(template, &write);
        if added.is_err() {
            link.send(at, settings, stream, &mut self.counts);
            added = link.message.record(template, &write);
        }
        match added {
            Ok(()) => {
                link.since_ns.get_or_insert(at.now_ns);
            }
            Err(_) => self.counts.records_lost += 1,
        }
    }

    /// Send what has waited for [`FLUSH_NS`], and templates that are due.
    pub fn turn(&mut self, at: Moment) {
        let Some(settings) = &self.settings else { return };
        for Open { stream, link } in self.streams.values_mut() {
            let Some(link) = link else { continue };
            if link.since_ns.is_some_and(|since| at.now_ns.saturating_sub(since) >= FLUSH_NS) {
                link.send(at, settings, stream, &mut self.counts);
            }
            link.send_templates(at, settings, stream, &mut self.counts);
        }
    }

    /// Send what waits.
    pub fn flush(&mut self, at: Moment) {
        let Some(settings) = &self.settings else { return };
        for Open { stream, link } in self.streams.values_mut() {
            if let Some(link) = link {
                link.send(at, settings, stream, &mut self.counts);
            }
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

impl Link {
    fn new(settings: &Settings, stream: &Stream) -> Link {
        let source = SocketAddr::new(settings.source, stream.source_port);
        Link {
            datagrams: Datagrams::new(source, settings.collector),
            message: Message::new(settings.format, settings.message_bytes()),
            sequence: 0,
            templates_due_ns: 0,
            since_ns: None,
        }
    }

    /// Send the message, behind templates that are due.
    fn send(
        &mut self,
        at: Moment,
        settings: &Settings,
        stream: &Stream,
        counts: &mut ExportCounts,
    ) {
        self.since_ns = None;
        if self.message.is_empty() {
            return;
        }
        self.send_templates(at, settings, stream, counts);
        let (records, refused) = (self.message.records(), counts.datagrams.refused);
        let bytes = self.message.finish(at, self.sequence, stream.domain);
        let is_sent = self.datagrams.send(at.now_ns, bytes, &mut counts.datagrams);
        match is_sent {
            true => counts.records += u64::from(records),
            false => counts.records_lost += u64::from(records),
        }
        if counts.datagrams.refused != refused {
            // The collector that comes back knows no templates.
            self.templates_due_ns = self.templates_due_ns.min(at.now_ns + TEMPLATES_AGAIN_NS);
        }
        self.sequence = self.sequence.wrapping_add(settings.format.sequence_step(records));
        self.message.clear();
    }

    /// Send all templates when it is time to, in as few messages as they fit in. They count in no
    /// sequence number (RFC 7011 §3.1).
    fn send_templates(
        &mut self,
        at: Moment,
        settings: &Settings,
        stream: &Stream,
        counts: &mut ExportCounts,
    ) {
        if at.now_ns < self.templates_due_ns {
            return;
        }
        let mut message = Message::new(settings.format, settings.message_bytes());
        let (mut in_message, mut are_sent) = (0, true);
        let mut send = |message: &mut Message, templates: u64| {
            let bytes = message.finish(at, self.sequence, stream.domain);
            self.sequence = self.sequence.wrapping_add(settings.format.sequence_step(0));
            let is_sent = self.datagrams.send(at.now_ns, bytes, &mut counts.datagrams);
            counts.templates += if is_sent { templates } else { 0 };
            message.clear();
            is_sent
        };
        for template in stream.templates {
            if message.template(template).is_err() {
                are_sent &= send(&mut message, in_message);
                in_message = 0;
                // The least path MTU has place for each template.
                let _ = message.template(template);
            }
            in_message += 1;
        }
        if !message.is_empty() {
            are_sent &= send(&mut message, in_message);
        }
        let wait_ns = match are_sent {
            true => u64::from(settings.template_interval_s) * 1_000_000_000,
            false => TEMPLATES_AGAIN_NS,
        };
        self.templates_due_ns = at.now_ns + wait_ns;
    }
}
