//! Sending: the packets of a vector are put together as records, then written by one system call.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quiver_core::graph::builtin::TxDrop;
use quiver_core::pcap_file::PcapWriter;
use quiver_core::worker::device::TxQueue;
use quiver_core::worker::event::Event;
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::config::PACKET_BYTES_MAX;

/// Bytes of records that are written at once at most. A whole vector of usual packets fits.
const RECORDS_BYTES_MAX: usize = 512 << 10;
/// Bytes in front of each packet in a file.
const RECORD_HEADER_BYTES: usize = 16;

/// What the control thread sees of the writing.
#[derive(Default)]
pub(crate) struct TxState {
    /// Packets written.
    pub(crate) written: AtomicU64,
    /// A write has failed; nothing more is written, so that the file ends where it went wrong.
    pub(crate) failed: AtomicBool,
}

/// Whole records on their way to a file that several workers may write to: each write goes to the
/// end of the file as it then is.
struct Records {
    file: Arc<File>,
    bytes: Vec<u8>,
}

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes.capacity() {
            return Err(io::ErrorKind::WriteZero.into()); // never grows on a worker
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = (&*self.file).write_all(&self.bytes);
        self.bytes.clear();
        result
    }
}

/// A worker's way into the file.
pub(crate) struct PcapTx {
    writer: PcapWriter<Records>,
    state: Arc<TxState>,
    /// `pcap-input`, whose events are about interfaces.
    node: NodeId,
}

impl PcapTx {
    pub(crate) fn new(file: Arc<File>, state: Arc<TxState>, node: NodeId) -> PcapTx {
        let records = Records { file, bytes: Vec::with_capacity(RECORDS_BYTES_MAX) };
        PcapTx { writer: PcapWriter::append(records), state, node }
    }

    /// Write as many packets from `packets` as go at once; how many.
    fn write(&mut self, now_unix_ns: u64, packets: &[Packet]) -> io::Result<usize> {
        let mut count = 0;
        for packet in packets {
            let length = packet.length();
            let records = self.writer.get_mut();
            if records.bytes.len() + RECORD_HEADER_BYTES + length > RECORDS_BYTES_MAX {
                break;
            }
            self.writer.write_segments(now_unix_ns, length as u32, packet.segments())?;
            count += 1;
        }
        self.writer.flush()?;
        Ok(count)
    }
}

impl TxQueue for PcapTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let now_unix_ns = quiver_core::clock::unix_ns();
        while !frame.is_empty() {
            if frame.packets()[0].length() > PACKET_BYTES_MAX {
                bury(cx, frame, 1, TxDrop::TooLong);
                continue;
            }
            if self.state.failed.load(Ordering::Relaxed) {
                let all = frame.len();
                return bury(cx, frame, all, TxDrop::Refused);
            }
            match self.write(now_unix_ns, frame.packets()) {
                Ok(count) => {
                    self.state.written.fetch_add(count as u64, Ordering::Relaxed);
                    frame.take_front(count, |packet| cx.buffers.free(packet));
                }
                Err(error) => self.failed(&error, cx),
            }
        }
    }
}

impl PcapTx {
    #[cold]
    fn failed(&mut self, error: &io::Error, cx: &mut Context<'_>) {
        self.writer.get_mut().bytes.clear();
        if !self.state.failed.swap(true, Ordering::Relaxed) {
            let number = error.raw_os_error().unwrap_or(0);
            cx.notify(Event::new(self.node, cx.tx, cx.now_ns, 0, &number.to_ne_bytes()));
        }
    }
}

/// An interface without a file to write to.
pub(crate) struct NoFile;

impl TxQueue for NoFile {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let all = frame.len();
        bury(cx, frame, all, TxDrop::Refused);
    }
}

/// Let the first `count` packets die.
#[cold]
fn bury(cx: &mut Context<'_>, frame: &mut Frame, count: usize, reason: TxDrop) {
    cx.interface_counters(cx.tx).tx_errors.add(count as u64);
    frame.take_front(count, |packet| cx.kill(packet, reason));
}
