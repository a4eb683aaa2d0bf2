//! A stream to one collector: the message that is being filled, its sequence number, its templates
//! and its socket.

use std::net::SocketAddr;

use crate::datagrams::Datagrams;
use crate::ipfix::exporter::{ExportCounts, FLUSH_NS, Settings, Stream};
use crate::ipfix::message::{Fields, Message};
use crate::ipfix::template::Template;
use crate::moment::Moment;

/// Templates follow an ICMP error of the collector, which may be a new one, or a failure of their
/// own, after so long, nanoseconds.
const TEMPLATES_AGAIN_NS: u64 = 1_000_000_000;

/// A stream to the collector.
#[derive(Debug)]
pub(super) struct Link {
    pub datagrams: Datagrams,
    message: Message,
    /// Data records (of NetFlow version 9, messages) before this message, modulo 2^32. Those that
    /// could not be sent count, so that the collector sees that they are missing.
    pub sequence: u32,
    templates_due_ns: u64,
    /// When the first record of the message was written.
    since_ns: Option<u64>,
}

impl Link {
    pub fn new(settings: &Settings, stream: &Stream) -> Link {
        let source = SocketAddr::new(settings.source, stream.source_port);
        Link {
            datagrams: Datagrams::new(source, settings.collector),
            message: Message::new(settings.format, settings.message_bytes()),
            sequence: 0,
            templates_due_ns: 0,
            since_ns: None,
        }
    }

    /// Add a record to the message, which is sent when it is full.
    pub fn put(
        &mut self,
        at: Moment,
        (settings, stream): (&Settings, &Stream),
        template: &Template,
        write: impl Fn(&mut Fields<'_>),
        counts: &mut ExportCounts,
    ) {
        let mut added = self.message.record(template, &write);
        if added.is_err() {
            self.send(at, settings, stream, counts);
            added = self.message.record(template, &write);
        }
        match added {
            Ok(()) => {
                self.since_ns.get_or_insert(at.now_ns);
            }
            Err(_) => counts.records_lost += 1,
        }
    }

    /// Send what has waited for [`FLUSH_NS`], and templates that are due.
    pub fn turn(
        &mut self,
        at: Moment,
        settings: &Settings,
        stream: &Stream,
        counts: &mut ExportCounts,
    ) {
        if self.since_ns.is_some_and(|since| at.now_ns.saturating_sub(since) >= FLUSH_NS) {
            self.send(at, settings, stream, counts);
        }
        self.send_templates(at, settings, stream, counts);
    }

    /// Send the message, behind templates that are due.
    pub fn send(
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
