//! Context of a state machine: it sends packets of its transaction, and counts.

use quiver_wire::MacAddress;

use super::counters::Packets;
use super::frame::{Heading, Outgoing};
use super::key::Key;
use super::pattern;
use super::program::Program;

/// Where frames leave.
pub trait Line {
    /// Send a frame of so many bytes that `write` fills in; false when there is no buffer.
    fn frame(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool;
}

/// Context of a state machine for one transaction.
pub struct Io<'a, L> {
    /// Where frames leave.
    pub line: &'a mut L,
    /// Template of its frames.
    pub heading: &'a Heading,
    /// The program of the transaction.
    pub program: &'a Program,
    /// Packets counted here.
    pub packets: &'a Packets,
    /// The time, nanoseconds.
    pub now_ns: u64,
    /// The time in ticks of the wheel.
    pub tick: u32,
    /// Of which transaction.
    pub key: Key,
    /// Its next hop.
    pub to: MacAddress,
}

impl<L: Line> Io<'_, L> {
    /// Send a segment with `count` bytes of the pattern from `position` on.
    #[inline]
    pub fn tcp(&mut self, segment: &Outgoing, position: u32, count: usize) {
        let bytes = self.heading.tcp_bytes(segment, count);
        let (heading, to, key) = (self.heading, self.to, &self.key);
        let sent = self.line.frame(bytes, |out| {
            // The frame has the bytes that were asked for.
            let _ = heading.write_tcp(out, to, key, segment, pattern::piece(position, count));
        });
        self.count(sent, bytes);
    }

    /// Send a UDP packet of the program's size: its label, then the pattern from `position` on.
    #[inline]
    pub fn udp(&mut self, label: &[u8], position: u32) {
        let data_bytes = usize::from(self.program.packet_bytes);
        let bytes = self.heading.udp_bytes(data_bytes);
        let (heading, to, key) = (self.heading, self.to, &self.key);
        let sent = self.line.frame(bytes, |out| {
            let rest = pattern::piece(position, data_bytes.saturating_sub(label.len()));
            let _ = heading.write_udp(out, to, key, label, rest);
        });
        self.count(sent, bytes);
    }

    #[inline]
    fn count(&self, sent: bool, bytes: usize) {
        if sent {
            self.packets.tx_packets.add(1);
            self.packets.tx_bytes.add(bytes as u64);
        } else {
            self.packets.no_buffer.add(1);
        }
    }
}
