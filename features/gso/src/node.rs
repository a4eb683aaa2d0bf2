//! `gso`: packets as they are on a wire, in place of what stands for them.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::buffer::Offload;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::segments::append_range;
use quiver_offload::checksum::{add_to_sum, complete_checksum};
use quiver_offload::segment::{HEADERS_BYTES_MAX, Segmenter};

quiver_core::reasons! {
    /// What becomes of packets that are not finished.
    pub enum GsoDrop {
        /// The headers do not fit what is to be done.
        BadOffload = "bad-offload", "the packet's headers do not fit the segments or the checksum \
            that are to be made";
        /// No buffer.
        NoBuffer = "no-buffer", "no free buffer for a segment (`show buffers`)";
        /// Packets that stood for several.
        Segmented = info "segmented", "packets cut into segments";
        /// Checksums completed.
        Completed = info "checksum-completed", "checksums completed";
    }
}

pub(crate) struct Gso {
    headers: [u8; HEADERS_BYTES_MAX],
}

/// How to cut a packet, which begins with its Ethernet header or with its IP header: with the one
/// behind which the transport header lies where it was when the packet came in.
fn segmenter(packet: &Packet) -> Option<Segmenter> {
    let Offload { segment_kind, segment_bytes, checksum_bytes, .. } = *packet.offload();
    let (first, length) = (packet.bytes(), packet.length());
    let upper = length.checked_sub(checksum_bytes.into())?;
    let fits = |segmenter: &Segmenter| segmenter.checksum_at().0 == upper;
    Segmenter::new(first, length, segment_kind, segment_bytes)
        .filter(fits)
        .or_else(|| Segmenter::of_ip(first, length, segment_kind, segment_bytes).filter(fits))
}

impl Gso {
    pub(crate) fn new() -> Gso {
        Gso { headers: [0; HEADERS_BYTES_MAX] }
    }

    /// Send a packet to `next`; of a super-frame, its segments. Open checksums stay open.
    pub(crate) fn cut_super_frame(&mut self, cx: &mut Context<'_>, packet: Packet, next: NodeId) {
        if packet.has(PacketFlags::OFFLOAD) && packet.offload().segment_bytes > 0 {
            self.finish(cx, packet, next);
        } else {
            cx.emit(packet, next);
        }
    }

    /// Send the segments that a packet stands for.
    fn cut(&mut self, cx: &mut Context<'_>, packet: &Packet, next: NodeId) -> Result<(), GsoDrop> {
        let segmenter = segmenter(packet).ok_or(GsoDrop::BadOffload)?;
        for number in 0..segmenter.count() {
            let mut segment = cx.buffers.packet().ok_or(GsoDrop::NoBuffer)?;
            if let Err(reason) = self.fill(cx, packet, &segmenter, number, &mut segment) {
                cx.buffers.free(segment);
                return Err(reason);
            }
            cx.follow(&segment, packet);
            cx.emit(segment, next);
        }
        cx.count(GsoDrop::Segmented, 1);
        Ok(())
    }

    fn fill(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        segmenter: &Segmenter,
        number: usize,
        segment: &mut Packet,
    ) -> Result<(), GsoDrop> {
        let payload = segmenter.payload_of(number);
        let sum = add_to_sum(Default::default(), packet, payload.start, payload.len())
            .ok_or(GsoDrop::BadOffload)?;
        let headers = &mut self.headers;
        segmenter
            .headers(packet.bytes(), number, (payload.len(), sum), headers)
            .ok_or(GsoDrop::BadOffload)?;
        let has_room = segment.append(&headers[..segmenter.headers_bytes()], cx.buffers)
            && append_range(packet, payload.start, payload.len(), segment, cx.buffers);
        if !has_room {
            return Err(GsoDrop::NoBuffer);
        }
        segment.take_facts_of(packet);
        Ok(())
    }

    /// Finish a packet and send it, or what it stands for, to `next`.
    fn finish(&mut self, cx: &mut Context<'_>, mut packet: Packet, next: NodeId) {
        if !packet.has(PacketFlags::OFFLOAD) {
            return cx.emit(packet, next);
        }
        if packet.offload().segment_bytes == 0 {
            if !complete_checksum(&mut packet) {
                return cx.kill(packet, GsoDrop::BadOffload);
            }
            cx.count(GsoDrop::Completed, 1);
            return cx.emit(packet, next);
        }
        match self.cut(cx, &packet, next) {
            Ok(()) => cx.buffers.free(packet),
            Err(reason) => cx.kill(packet, reason),
        }
    }
}

impl Node for Gso {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let next = frame.next_of(0);
        for packet in frame.drain() {
            self.finish(cx, packet, next);
        }
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new("gso", "Cuts packets into segments and completes checksums", |_| {
        Box::new(Gso::new())
    })
    .reasons::<GsoDrop>()
    .finishes_offloads()
}
