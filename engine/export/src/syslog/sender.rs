//! The sender: one message a datagram (RFC 5426 §3.1) to one collector.

use std::net::{IpAddr, SocketAddr};

use crate::datagrams::{DatagramCounts, Datagrams};
use crate::moment::Moment;
use crate::syslog::message::{Element, Head, Severity, write_element};

/// Where messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The collector.
    pub collector: SocketAddr,
    /// The address of Linux that messages come from, and that they name as their host.
    pub source: IpAddr,
    /// Bytes of a message at most.
    pub message_bytes_max: u16,
}

/// What became of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyslogCounts {
    /// Sent.
    pub messages: u64,
    /// Not sent: no collector, or Linux did not take the datagram.
    pub lost: u64,
    /// Not sent: longer than a message may be.
    pub too_long: u64,
    /// Left out by the filter.
    pub filtered: u64,
    /// What became of datagrams.
    pub datagrams: DatagramCounts,
}

/// The sender, kept in the engine.
#[derive(Debug)]
pub struct SyslogSender {
    link: Option<(Settings, Datagrams)>,
    least: Severity,
    counts: SyslogCounts,
    /// The message that is being written.
    text: String,
    process: u32,
}

/// Messages less severe than this are left out unless configured otherwise.
pub const FILTER_DEFAULT: Severity = Severity::Informational;

impl Default for SyslogSender {
    fn default() -> SyslogSender {
        SyslogSender {
            link: None,
            least: FILTER_DEFAULT,
            counts: SyslogCounts::default(),
            text: String::new(),
            process: std::process::id(),
        }
    }
}

impl SyslogSender {
    /// Where messages go; `None` without a collector.
    pub fn settings(&self) -> Option<&Settings> {
        self.link.as_ref().map(|(settings, _)| settings)
    }

    /// Send to a collector, or to none.
    pub fn set(&mut self, settings: Option<Settings>) {
        if settings.as_ref() != self.settings() {
            self.link = settings.map(|settings| {
                let source = SocketAddr::new(settings.source, 0);
                (settings, Datagrams::new(source, settings.collector))
            });
        }
    }

    /// The least severe messages that are sent.
    pub fn filter(&self) -> Severity {
        self.least
    }

    /// Leave out messages less severe than these.
    pub fn set_filter(&mut self, least: Severity) {
        self.least = least;
    }

    /// What became of messages since the start.
    pub fn counts(&self) -> &SyslogCounts {
        &self.counts
    }

    /// Why the last message was not sent.
    pub fn error(&self) -> Option<&str> {
        self.link.as_ref().and_then(|(_, datagrams)| datagrams.error())
    }

    /// The same in a word.
    pub fn error_word(&self) -> Option<&'static str> {
        self.link.as_ref().and_then(|(_, datagrams)| datagrams.error_word())
    }

    /// Send a message with one element of structured data, whose parameters `write` writes.
    pub fn send(
        &mut self,
        at: Moment,
        head: &Head,
        id: &str,
        write: impl FnOnce(&mut Element<'_>),
    ) {
        if head.severity > self.least {
            self.counts.filtered += 1;
            return;
        }
        let Some((settings, datagrams)) = &mut self.link else {
            self.counts.lost += 1;
            return;
        };
        self.text.clear();
        head.write(&mut self.text, settings.source, self.process);
        write_element(&mut self.text, id, write);
        if self.text.len() > usize::from(settings.message_bytes_max) {
            self.counts.too_long += 1;
            return;
        }
        match datagrams.send(at.now_ns, self.text.as_bytes(), &mut self.counts.datagrams) {
            true => self.counts.messages += 1,
            false => self.counts.lost += 1,
        }
    }
}
