//! The TCP flows of one vector, and which of its packets become one super-frame.

use quiver_core::Packet;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;

use crate::segment::{FLAGS_LAST, Seen, Segment};

/// Flows of a vector that are coalesced at a time. A flow has one place, that of its hash: when
/// another one needs it, the super-frame of the first ends there. So each packet is one look-up,
/// however many flows there are.
const FLOWS_MAX: usize = 256;
/// Segments of a super-frame at most. The buffers of so many, and their headers, are one system
/// call of a tap.
const SEGMENTS_MAX: usize = 44;
/// Buffers of a super-frame at most: pieces of memory that a tap writes at once, less its header.
const BUFFERS_MAX: usize = 60;
/// Bytes of an IP packet at most: its length field has 16 bits.
const IP_BYTES_MAX: usize = 65_535;

/// A super-frame that may grow.
#[derive(Clone, Copy)]
struct Flow {
    /// It is there when this is the number of the table's round.
    round: u32,
    /// Its first packet, and the place of that one.
    first: Segment,
    first_place: u8,
    /// The place of its last packet.
    last_place: u8,
    /// Are the checksums of the first packet right?
    is_checked: bool,
    segments: u8,
    buffers: u8,
    payload_bytes: u16,
}

/// A super-frame that is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Its first packet.
    pub first: Segment,
    /// Flags of the others.
    pub flags: u8,
    /// Payload of all.
    pub payload_bytes: u16,
}

/// Flows of a vector, and what becomes of its packets.
pub(crate) struct Flows {
    flows: Box<[Flow; FLOWS_MAX]>,
    round: u32,
    /// The super-frames by the places of their first packets, where others are behind those.
    planned: Box<[Planned; FRAME_PACKETS_MAX]>,
    /// The place of the packet that follows in the same super-frame; 0 for none.
    behind: [u8; FRAME_PACKETS_MAX],
    /// The packet is a super-frame's, and not its first one.
    follows: [bool; FRAME_PACKETS_MAX],
}

/// What happened to the packets of a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Super-frames that are to be made.
    pub super_frames: u64,
    /// Segments that they take.
    pub coalesced: u64,
    /// Segments that stay alone because their checksum is wrong.
    pub bad: u64,
}

/// Payload bytes that an IP packet has room for behind these headers.
fn payload_bytes_max(segment: &Segment) -> usize {
    IP_BYTES_MAX - (segment.payload - segment.ip)
}

impl Flow {
    /// May `segment` be the next part?
    fn goes_on_with(&self, packets: &[Packet], segment: &Segment, packet: &Packet) -> bool {
        let (first, head) = (&self.first, &packets[usize::from(self.first_place)]);
        let payload_bytes = usize::from(self.payload_bytes);
        if !segment.may_coalesce
            || segment.sequence != first.sequence.wrapping_add(payload_bytes as u32)
            || segment.payload_bytes > first.payload_bytes
            || payload_bytes + segment.payload_bytes > payload_bytes_max(first)
            || !segment.has_headers_of(packet, first, head)
        {
            return false;
        }
        if segment.is_ip6 {
            return true;
        }
        let (first_number, _) = first.identification(head);
        let (number, is_atomic) = segment.identification(packet);
        is_atomic || number == first_number.wrapping_add(self.segments.into())
    }

    /// May another one follow `segment`, which is its last one?
    fn may_grow(&self, segment: &Segment) -> bool {
        segment.payload_bytes == self.first.payload_bytes
            && segment.flags & FLAGS_LAST == 0
            && usize::from(self.segments) < SEGMENTS_MAX
    }
}

impl Flows {
    pub fn new() -> Flows {
        let none = Flow {
            round: 0,
            first: Segment::default(),
            first_place: 0,
            last_place: 0,
            is_checked: false,
            segments: 0,
            buffers: 0,
            payload_bytes: 0,
        };
        Flows {
            flows: Box::new([none; FLOWS_MAX]),
            round: 0,
            planned: Box::new([Planned::default(); FRAME_PACKETS_MAX]),
            behind: [0; FRAME_PACKETS_MAX],
            follows: [false; FRAME_PACKETS_MAX],
        }
    }

    /// Find out which packets of a vector become super-frames.
    pub fn plan(&mut self, packets: &[Packet]) -> Counts {
        let mut counts = Counts::default();
        self.behind.fill(0);
        self.follows.fill(false);
        self.end_all();
        for (place, packet) in packets.iter().enumerate().take(FRAME_PACKETS_MAX) {
            match Seen::of(packet) {
                Seen::Other => {}
                Seen::Unclear => self.end_all(),
                Seen::Tcp(segment) => self.add(packets, (place, segment), &mut counts),
            }
        }
        counts
    }

    /// The super-frame that begins with the packet at `place`.
    pub fn planned(&self, place: usize) -> Option<&Planned> {
        (self.behind[place] != 0 && !self.follows[place]).then(|| &self.planned[place])
    }

    /// The places of the packets behind the one at `place`, in its super-frame.
    pub fn behind(&self, place: usize) -> impl Iterator<Item = usize> {
        let next = |place: usize| Some(usize::from(self.behind[place])).filter(|next| *next != 0);
        std::iter::successors(next(place), move |place| next(*place))
    }

    /// Forget all flows.
    fn end_all(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.flows.iter_mut().for_each(|flow| flow.round = 0); // of 2^32 rounds ago
            self.round = 1;
        }
    }

    /// A packet of a TCP flow: its super-frame takes it, or ends. Then it may begin another one.
    fn add(&mut self, packets: &[Packet], (place, segment): (usize, Segment), counts: &mut Counts) {
        let round = self.round;
        let flow = &mut self.flows[usize::from(segment.hash)];
        let packet = &packets[place];
        let buffers = if packet.is_chained() { packet.buffer_count() } else { 1 };
        if flow.round == round
            && usize::from(flow.buffers) + buffers <= BUFFERS_MAX
            && flow.goes_on_with(packets, &segment, packet)
        {
            let head = &packets[usize::from(flow.first_place)];
            flow.is_checked = flow.is_checked || flow.first.is_good(head);
            if flow.is_checked && segment.is_good(packet) {
                return self.take(place, &segment, buffers, counts);
            }
            counts.bad += 1;
        }
        let begins = segment.may_coalesce && segment.flags & FLAGS_LAST == 0;
        flow.round = if begins && buffers < BUFFERS_MAX { round } else { 0 };
        flow.first = segment;
        (flow.first_place, flow.last_place) = (place as u8, place as u8);
        (flow.is_checked, flow.segments, flow.buffers) = (false, 1, buffers.min(BUFFERS_MAX) as u8);
        flow.payload_bytes = segment.payload_bytes as u16;
    }

    /// The packet at `place` is the next part of the super-frame of its flow.
    fn take(&mut self, place: usize, segment: &Segment, buffers: usize, counts: &mut Counts) {
        let flow = &mut self.flows[usize::from(segment.hash)];
        counts.coalesced += u64::from(flow.segments == 1) + 1;
        counts.super_frames += u64::from(flow.segments == 1);
        flow.segments += 1;
        flow.buffers += buffers as u8;
        flow.payload_bytes += segment.payload_bytes as u16;
        let planned = &mut self.planned[usize::from(flow.first_place)];
        let (first, payload_bytes) = (flow.first, flow.payload_bytes);
        *planned = Planned { first, flags: segment.flags, payload_bytes };
        self.behind[usize::from(flow.last_place)] = place as u8;
        self.follows[place] = true;
        flow.last_place = place as u8;
        if !flow.may_grow(segment) {
            flow.round = 0;
        }
    }
}
