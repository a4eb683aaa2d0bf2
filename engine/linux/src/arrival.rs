//! Frames that the kernel hands over become packets of the graph: checksums are completed and
//! super-frames cut here, so that behind this point every packet is what a wire would have carried.

use quiver_core::memory::buffer::BufferCache;
use quiver_core::{Context, Frame, InterfaceId, Packet};
use quiver_wire::checksum::Sum;

use crate::segment::{HEADERS_BYTES_MAX, Segmenter};
use crate::virtio_net::{SEGMENT_NONE, VirtioNetHeader};

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// Where UDP's checksum lies in its header.
const UDP_CHECKSUM_OFFSET: u16 = 6;

quiver_core::reasons! {
    /// Why a frame from the kernel does not become a packet.
    pub enum RxDrop {
        /// Less than an Ethernet header.
        TooShort = "too-short", "the frame is shorter than an Ethernet header";
        /// Cut by the kernel.
        Truncated = "truncated", "the kernel cut the frame: its receive buffer was full, or it is \
            longer than 64 KiB";
        /// Metadata outside the frame.
        BadOffload = "bad-offload", "what the kernel says about checksum or segmentation does not \
            fit the frame";
        /// No buffer.
        NoBuffer = "no-buffer", "no free buffer (`show buffers`)";
        /// The kernel's ring was full.
        KernelDropped = "kernel-dropped", "the kernel found the receive ring full";
        /// A read failed.
        ReadFailed = "read-failed", "the kernel refused to hand over a frame";
        /// Frames that stood for several.
        Segmented = info "segmented", "super-frames cut into segments";
        /// Checksums completed.
        Completed = info "checksum-completed",
            "checksums completed that the sender had left to its device";
    }
}

/// How far a frame has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it is in the vector, or dead.
    Done,
    /// The vector is full; come again with the same frame.
    More,
}

/// What is under way between two calls.
pub struct Arrival {
    interface: InterfaceId,
    cutting: Option<(Segmenter, usize)>,
}

impl Arrival {
    /// For frames that come in on `interface`.
    pub fn new(interface: InterfaceId) -> Arrival {
        Arrival { interface, cutting: None }
    }

    /// Count frames that die before they are packets.
    #[cold]
    pub fn lose(&self, reason: RxDrop, frames: u64, cx: &mut Context<'_>) {
        cx.count(reason, frames);
        let counters = cx.interface_counters(self.interface);
        let count =
            if reason == RxDrop::NoBuffer { &counters.rx_no_buffer } else { &counters.rx_errors };
        count.add(frames);
    }

    /// Put the packets that `bytes` stands for into `frame`, which has room. Deaths are counted
    /// in the name of the running node, the input.
    #[inline]
    pub fn admit(
        &mut self,
        header: &VirtioNetHeader,
        bytes: &[u8],
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Progress {
        match self.try_admit(header, bytes, cx, frame) {
            Ok(progress) => progress,
            Err(reason) => {
                self.cutting = None;
                self.lose(reason, 1, cx);
                Progress::Done
            }
        }
    }

    /// As [`admit`](Self::admit), for a frame that lies in a packet of one buffer already and
    /// stands for one packet. `frame` has room.
    #[inline]
    pub fn admit_packet(
        &self,
        header: &VirtioNetHeader,
        mut packet: Packet,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        let wrong = if packet.segment_length() < ETHERNET_BYTES {
            Some(RxDrop::TooShort)
        } else if !header.needs_checksum {
            None
        } else if complete_in_place(header, packet.bytes_mut()).is_some() {
            cx.count(RxDrop::Completed, 1);
            None
        } else {
            Some(RxDrop::BadOffload)
        };
        match wrong {
            None => push(frame, packet, cx.buffers),
            Some(reason) => {
                cx.buffers.free(packet);
                self.lose(reason, 1, cx);
            }
        }
    }

    fn try_admit(
        &mut self,
        header: &VirtioNetHeader,
        bytes: &[u8],
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Result<Progress, RxDrop> {
        if bytes.len() < ETHERNET_BYTES {
            return Err(RxDrop::TooShort);
        }
        if header.segment_kind != SEGMENT_NONE {
            return self.cut(header, bytes, cx, frame);
        }
        if frame.room() == 0 {
            return Ok(Progress::More);
        }
        let mut packet = copy(bytes, cx.buffers).ok_or(RxDrop::NoBuffer)?;
        if header.needs_checksum {
            if complete(header, bytes, packet.bytes_mut()).is_none() {
                cx.buffers.free(packet);
                return Err(RxDrop::BadOffload);
            }
            cx.count(RxDrop::Completed, 1);
        }
        push(frame, packet, cx.buffers);
        Ok(Progress::Done)
    }

    fn cut(
        &mut self,
        header: &VirtioNetHeader,
        bytes: &[u8],
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Result<Progress, RxDrop> {
        let (segmenter, mut number) = match self.cutting {
            Some(cutting) => cutting,
            None => {
                let segmenter = Segmenter::new(bytes, header.segment_kind, header.segment_bytes);
                cx.count(RxDrop::Segmented, 1);
                (segmenter.ok_or(RxDrop::BadOffload)?, 0)
            }
        };
        let mut headers = [0; HEADERS_BYTES_MAX];
        while number < segmenter.count() {
            if frame.room() == 0 {
                self.cutting = Some((segmenter, number));
                return Ok(Progress::More);
            }
            let payload =
                segmenter.segment(bytes, number, &mut headers).ok_or(RxDrop::BadOffload)?;
            let packet =
                copy(&headers[..segmenter.headers_bytes()], cx.buffers).ok_or(RxDrop::NoBuffer)?;
            push(
                frame,
                append(packet, &bytes[payload], cx.buffers).ok_or(RxDrop::NoBuffer)?,
                cx.buffers,
            );
            number += 1;
        }
        self.cutting = None;
        Ok(Progress::Done)
    }
}

#[inline]
fn push(frame: &mut Frame, packet: Packet, buffers: &mut BufferCache) {
    if let Err(packet) = frame.push(packet) {
        buffers.free(packet); // cannot be: there was room
    }
}

#[inline]
fn copy(bytes: &[u8], buffers: &mut BufferCache) -> Option<Packet> {
    let packet = buffers.packet()?;
    append(packet, bytes, buffers)
}

#[inline]
fn append(mut packet: Packet, bytes: &[u8], buffers: &mut BufferCache) -> Option<Packet> {
    if packet.append(bytes, buffers) {
        return Some(packet);
    }
    buffers.free(packet);
    None
}

/// Write the checksum that the sender left to its device into `head`, the beginning of a copy of
/// `bytes`. The field holds the sum of the pseudo header.
fn complete(header: &VirtioNetHeader, bytes: &[u8], head: &mut [u8]) -> Option<()> {
    let (at, value) = completed(header, bytes)?;
    head.get_mut(at..at + 2)?.copy_from_slice(&value);
    Some(())
}

/// As [`complete`], where it lies.
fn complete_in_place(header: &VirtioNetHeader, bytes: &mut [u8]) -> Option<()> {
    let (at, value) = completed(header, bytes)?;
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value);
    Some(())
}

/// Where the checksum of `bytes` goes, and what it is.
fn completed(header: &VirtioNetHeader, bytes: &[u8]) -> Option<(usize, [u8; 2])> {
    let start = usize::from(header.checksum_start);
    let at = start + usize::from(header.checksum_offset);
    let covered = bytes.get(start..).filter(|covered| at + 2 <= start + covered.len())?;
    let sum = Sum::new().bytes(covered);
    let udp = header.checksum_offset == UDP_CHECKSUM_OFFSET;
    let value = if udp { sum.udp_checksum() } else { sum.checksum() };
    Some((at, value.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_completed_checksum_is_right_or_the_offset_is_refused(
            mut bytes in prop::collection::vec(any::<u8>(), 14..100), checksum_start in 0u16..120,
            checksum_offset in 0u16..20,
        ) {
            let header = VirtioNetHeader {
                needs_checksum: true,
                checksum_start,
                checksum_offset: checksum_offset & !1,
                ..Default::default()
            };
            let mut head = bytes.clone();
            if complete(&header, &bytes, &mut head).is_some() {
                // The field counted with what it held; it now holds the complement of that sum.
                let (start, at) = (
                    usize::from(checksum_start),
                    usize::from(checksum_start + (checksum_offset & !1)),
                );
                let seed = [bytes[at], bytes[at + 1]];
                bytes[at..at + 2].copy_from_slice(&head[at..at + 2]);
                prop_assert!(Sum::new().bytes(&seed).bytes(&bytes[start..]).is_good());
            } else {
                prop_assert!(
                    usize::from(checksum_start + (checksum_offset & !1)) + 2 > bytes.len()
                );
            }
        }
    }
}
