//! The control thread's side of captures: takes records from the workers and writes them.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;

use anyhow::Context as _;
use quiver_core::Engine;

use super::node::{Record, TapHandle};
use super::pcapng;
use super::report::CaptureReport;
use quiver_tg_traffic::bounded_file;
use quiver_tg_traffic::profile::capture::{CaptureSpec, CapturedDirection};

/// How often the control thread writes what waits, nanoseconds.
const WRITE_EVERY_NS: u64 = 20_000_000;

/// Where a capture is written to.
pub trait Output: Write {
    /// Truncate after this byte: a frame that could not be written whole.
    fn cut(&mut self, at: u64);
}

impl Output for File {
    fn cut(&mut self, at: u64) {
        // Not possible for every kind of file; then it ends with a part of a frame.
        let _ = self.set_len(at);
    }
}

/// One capture.
pub struct CaptureWriter {
    spec: CaptureSpec,
    taps: Vec<(CapturedDirection, TapHandle)>,
    out: Box<dyn Output>,
    /// Bytes that are certainly in the file.
    whole_bytes: u64,
    /// Offset of the engine's clock to Unix time.
    unix_offset_ns: u64,
    written: u64,
    dropped: u64,
    error: Option<String>,
    /// Scratch space.
    waiting: Vec<(usize, Record)>,
    bytes: Vec<u8>,
    block: Vec<u8>,
}

impl CaptureWriter {
    /// Write a capture's file from its beginning.
    pub fn new(
        spec: CaptureSpec,
        taps: Vec<(CapturedDirection, TapHandle)>,
        mut out: Box<dyn Output>,
        unix_offset_ns: u64,
    ) -> CaptureWriter {
        let mut head = Vec::new();
        let name = format!("port {}", spec.port);
        let headed = pcapng::write_head(&mut head, &name, spec.filter.text(), spec.snap_bytes)
            .and_then(|()| out.write_all(&head))
            .and_then(|()| out.flush());
        let error = headed.err().map(|error| error.to_string());
        let whole_bytes = head.len() as u64;
        let (waiting, bytes, block) = Default::default();
        CaptureWriter {
            spec,
            taps,
            out,
            whole_bytes,
            unix_offset_ns,
            written: 0,
            dropped: 0,
            error,
            waiting,
            bytes,
            block,
        }
    }

    /// Write what waits, in the order of time.
    pub fn write(&mut self) {
        for (place, (_, tap)) in self.taps.iter_mut().enumerate() {
            while let Some(record) = tap.full.take() {
                self.waiting.push((place, record));
            }
        }
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.sort_by_key(|(_, record)| record.at_ns);
        let count = self.waiting.len() as u64;
        if self.error.is_none() {
            match self.write_waiting() {
                Ok(()) => self.written += count,
                Err(error) => {
                    self.out.cut(self.whole_bytes);
                    let file = self.spec.file.display();
                    tracing::warn!("captures: {file}: {error}; nothing more is written to it");
                    self.error = Some(error.to_string());
                }
            }
        }
        self.dropped += if self.error.is_some() { count } else { 0 };
        for (place, record) in self.waiting.drain(..) {
            // As many places as records.
            let _ = self.taps[place].1.empty.put(record);
        }
    }

    /// All of `waiting`, or nothing that counts.
    fn write_waiting(&mut self) -> io::Result<()> {
        self.bytes.clear();
        for (place, record) in &self.waiting {
            let at_ns = record.at_ns.wrapping_add(self.unix_offset_ns);
            let direction = self.taps[*place].0;
            pcapng::write_frame(
                &mut self.bytes,
                &mut self.block,
                at_ns,
                direction,
                record.original,
                &record.bytes,
            )?;
        }
        self.out.write_all(&self.bytes)?;
        self.out.flush()?;
        self.whole_bytes += self.bytes.len() as u64;
        Ok(())
    }

    /// The report so far.
    pub fn report(&self) -> CaptureReport {
        let sum = |of: fn(&TapHandle) -> u64| self.taps.iter().map(|(_, tap)| of(tap)).sum::<u64>();
        CaptureReport {
            port: self.spec.port,
            direction: self.spec.direction,
            file: self.spec.file.clone(),
            wanted: sum(|tap| tap.counts.wanted.get()),
            written: self.written,
            dropped: self.dropped + sum(|tap| tap.counts.dropped.get()),
            is_full: self.taps.iter().all(|(_, tap)| tap.counts.wanted.get() >= self.spec.limit),
            error: self.error.clone(),
        }
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        self.write();
    }
}

/// All captures of a generator.
#[derive(Clone, Default)]
pub struct Captures(Rc<RefCell<Vec<CaptureWriter>>>);

impl Captures {
    /// Add a capture, which writes to its file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn add(
        &self,
        engine: &mut Engine,
        spec: &CaptureSpec,
        taps: Vec<(CapturedDirection, TapHandle)>,
    ) -> anyhow::Result<()> {
        let named = || format!("captures: {}", spec.file.display());
        let out = bounded_file::create(&spec.file).with_context(named)?;
        let unix_offset_ns = quiver_core::clock::unix_ns().wrapping_sub(engine.now_ns());
        let is_first = self.0.borrow().is_empty();
        self.0.borrow_mut().push(CaptureWriter::new(
            spec.clone(),
            taps,
            Box::new(out),
            unix_offset_ns,
        ));
        if is_first {
            let captures = self.clone();
            engine.every(WRITE_EVERY_NS, move |_| captures.write());
        }
        Ok(())
    }

    /// Write what waits.
    pub fn write(&self) {
        self.0.borrow_mut().iter_mut().for_each(CaptureWriter::write);
    }

    /// The reports, after all waiting records are written.
    pub fn report(&self) -> Vec<CaptureReport> {
        self.write();
        self.0.borrow().iter().map(CaptureWriter::report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::tap;
    use quiver_tg_traffic::profile::capture::{Direction, Filter};

    /// Takes so many bytes, then is full.
    struct Disk {
        bytes: Rc<RefCell<Vec<u8>>>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.bytes.borrow().len());
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.bytes.borrow_mut().extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Disk {
        fn cut(&mut self, at: u64) {
            self.bytes.borrow_mut().truncate(at as usize);
        }
    }

    #[test]
    fn a_full_disk_is_told_once_and_the_file_ends_with_a_whole_frame() {
        let spec = CaptureSpec {
            port: 0,
            direction: Direction::Received,
            filter: Filter::all(),
            file: "disk".into(),
            limit: 64,
            snap_bytes: 128,
        };
        let bytes: Rc<RefCell<Vec<u8>>> = Rc::default();
        let disk = Disk { bytes: bytes.clone(), room: 1000 };
        let (mut sender, handle) = tap(&spec);
        let mut book = CaptureWriter::new(
            spec,
            vec![(CapturedDirection::Received, handle)],
            Box::new(disk),
            0,
        );
        let head = bytes.borrow().len();
        for _ in 0..30 {
            sender.give(100);
            book.write();
        }
        let report = book.report();
        let frame_bytes = 28 + 100 + 8 + 4 + 4; // header, frame, flags, end of options, length
        let whole = ((1000 - head) / frame_bytes) as u64;
        assert_eq!((report.wanted, report.written, report.dropped), (30, whole, 30 - whole));
        assert!(
            report.error.is_some_and(|error| error.contains("storage") || error.contains("space"))
        );
        assert_eq!(bytes.borrow().len(), head + whole as usize * frame_bytes);
    }

    #[test]
    fn when_nobody_writes_records_run_out_and_frames_are_dropped_and_counted() {
        let spec = CaptureSpec {
            port: 0,
            direction: Direction::Received,
            filter: Filter::all(),
            file: "disk".into(),
            limit: 100_000,
            snap_bytes: 16,
        };
        let disk = Disk { bytes: Rc::default(), room: usize::MAX };
        let (mut sender, handle) = tap(&spec);
        let mut book = CaptureWriter::new(
            spec,
            vec![(CapturedDirection::Received, handle)],
            Box::new(disk),
            0,
        );
        (0..20_000).for_each(|_| sender.give(16));
        book.write();
        let report = book.report();
        assert_eq!((report.wanted, report.written, report.dropped), (20_000, 16_384, 3_616));
    }
}
