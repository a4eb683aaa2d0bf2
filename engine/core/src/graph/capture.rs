//! Packets written down whole, as `pcap trace` asks: at rx, tx and drop.

use std::io::{self, Write};

use crate::graph::filter::SharedFilter;
use crate::graph::frame::Frame;
use crate::ids::InterfaceId;
use crate::memory::packet::Packet;
use crate::pcap_file::{LINK_ETHERNET, PcapWriter};

/// Bytes of a packet that are kept.
pub const SNAP_BYTES: usize = 9216;
/// Packets that a capture keeps unless `max N` says otherwise.
pub const CAPTURED_PACKETS_DEFAULT: usize = 1000;
/// The most that `max N` may ask for.
pub const CAPTURED_PACKETS_MAX: usize = 1_000_000;

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Received from a device.
    Rx,
    /// Given to a device.
    Tx,
    /// Died.
    Drop,
}

/// What to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSpec {
    /// Received packets.
    pub rx: bool,
    /// Sent packets.
    pub tx: bool,
    /// Dead packets.
    pub drop: bool,
    /// Only this interface.
    pub interface: Option<InterfaceId>,
    /// At most so many packets per worker.
    pub packets_max: usize,
}

/// One captured packet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at_unix_ns: u64,
    start: usize,
    length: u32,
    original: u32,
}

/// A worker's capture, its memory made by the control thread.
pub(crate) struct Capture {
    spec: CaptureSpec,
    filter: Option<SharedFilter>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Capture {
    pub(crate) fn new(spec: CaptureSpec, filter: Option<SharedFilter>) -> Capture {
        // Room for full-size Ethernet frames; the capture ends when either is used up.
        let bytes = spec.packets_max * 1536 + SNAP_BYTES;
        Capture {
            spec,
            filter,
            entries: Vec::with_capacity(spec.packets_max),
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// Write down the packets of a vector.
    #[cold]
    pub(crate) fn see(&mut self, point: Point, frame: &mut Frame, now_unix_ns: u64) {
        let wanted = match point {
            Point::Rx => self.spec.rx,
            Point::Tx => self.spec.tx,
            Point::Drop => self.spec.drop,
        };
        if wanted {
            frame
                .packets_mut()
                .iter_mut()
                .for_each(|packet| self.see_packet(point, packet, now_unix_ns));
        }
    }

    fn see_packet(&mut self, point: Point, packet: &mut Packet, now_unix_ns: u64) {
        let interface = if point == Point::Tx { packet.tx } else { packet.rx };
        if self.spec.interface.is_some_and(|wanted| wanted != interface) {
            return;
        }
        // A dead packet is shown from its layer 2 header on, as it came in.
        let pushed =
            point == Point::Drop && packet.l2_bytes > 0 && packet.push(packet.l2_bytes as usize);
        let length = packet.length().min(SNAP_BYTES);
        let is_chosen = self.filter.as_ref().is_none_or(|filter| filter.chooses(packet.bytes()));
        if is_chosen
            && self.entries.len() < self.entries.capacity()
            && self.bytes.len() + length <= self.bytes.capacity()
        {
            let start = self.bytes.len();
            for segment in packet.segments() {
                let room = length - (self.bytes.len() - start);
                self.bytes.extend_from_slice(&segment[..segment.len().min(room)]);
            }
            self.entries.push(Entry {
                at_unix_ns: now_unix_ns,
                start,
                length: (self.bytes.len() - start) as u32,
                original: packet.length() as u32,
            });
        }
        if pushed {
            let _ = packet.pull(packet.l2_bytes as usize);
        }
    }
}

/// The packets of a capture that ended.
#[expect(clippy::vec_box, reason = "workers hand over the boxes that they were lent")]
pub struct Captured(pub(crate) Vec<Box<Capture>>);

impl Captured {
    /// Write them as one pcap file; how many packets.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<usize> {
        write_pcap(&self.0, out)
    }
}

/// Write captures as one pcap file in the order of time; how many packets.
fn write_pcap(captures: &[Box<Capture>], out: &mut impl Write) -> io::Result<usize> {
    let mut file = PcapWriter::new(out, LINK_ETHERNET)?;
    let mut all: Vec<(&Capture, &Entry)> =
        captures.iter().flat_map(|c| c.entries.iter().map(|e| (&**c, e))).collect();
    all.sort_by_key(|(_, e)| e.at_unix_ns);
    for (capture, entry) in &all {
        let bytes = &capture.bytes[entry.start..entry.start + entry.length as usize];
        file.write_segments(entry.at_unix_ns, entry.original, std::iter::once(bytes))?;
    }
    Ok(all.len())
}
