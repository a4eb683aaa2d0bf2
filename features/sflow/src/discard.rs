//! Packets that the router does not send on, as workers write them down: those that come to the
//! node that counts drops, and those about which their senders get an ICMP error.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::observer::Observer;
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_export::records::{Record, Recorder};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::ip_header;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, Ip6Header};

use crate::header::FirstBytes;
use crate::limit::Limit;
use crate::sources::{Shared, add};

/// Why a packet is not sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A node drops it.
    Dropped(DropReason),
    /// Its sender gets an ICMP error of this type and code.
    Answered(Family, u8, u8),
}

/// Such a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Discard {
    pub why: Why,
    /// Where it came in.
    pub came_in: InterfaceId,
    /// Where it would have left, if that was known.
    pub leaves_by: InterfaceId,
    pub first: FirstBytes,
}

impl Record for Discard {
    const KINDS: &'static [&'static str] = &["dropped", "answered"];

    fn kind(&self) -> usize {
        usize::from(matches!(self.why, Why::Answered(..)))
    }
}

/// A worker's part.
#[derive(Default)]
struct PerWorker {
    /// Written by the worker alone. The control thread has the lock while it gives the ring.
    recorder: Mutex<Option<Recorder<Discard>>>,
    /// Packets beyond the limit.
    suppressed: AtomicU64,
}

/// What the control thread and the observers of workers share.
pub(crate) struct Discards {
    pub limit: Limit,
    workers: Box<[PerWorker]>,
}

impl Discards {
    pub fn new(workers: usize) -> Discards {
        let workers = (0..workers).map(|_| PerWorker::default()).collect();
        Discards { limit: Limit::default(), workers }
    }

    /// Give workers what they write to, once. `recorder` makes a ring.
    pub fn open(&self, mut recorder: impl FnMut() -> Recorder<Discard>) {
        for worker in &self.workers {
            if let Ok(mut place) = worker.recorder.lock()
                && place.is_none()
            {
                *place = Some(recorder());
            }
        }
    }

    /// Packets beyond the limit, over all workers since the start.
    pub fn suppressed(&self) -> u64 {
        let counts = self.workers.iter().map(|worker| worker.suppressed.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }
}

/// In front of which node an observer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The node that counts drops. Those of the other nodes were seen there.
    Drop {
        /// The nodes that send ICMP errors.
        answering: [Option<NodeId>; 2],
    },
    /// The node that sends ICMP errors.
    Errors(Family),
}

impl Place {
    /// Why a packet is not sent on; nothing when that was seen before.
    fn why(self, packet: &Packet) -> Option<Why> {
        match self {
            Place::Drop { answering } => {
                let reason: DropReason = packet.handed_over();
                let was_seen = answering.contains(&Some(reason.node));
                (!was_seen).then_some(Why::Dropped(reason))
            }
            Place::Errors(family) => {
                let request: IcmpErrorRequest = packet.handed_over();
                Some(Why::Answered(family, request.kind, request.code))
            }
        }
    }
}

/// A worker's observer.
pub(crate) struct Watcher {
    pub discards: Arc<Discards>,
    pub shared: Arc<Shared>,
    pub worker: WorkerId,
    pub place: Place,
}

impl Observer for Watcher {
    fn see(&mut self, cx: &mut Context<'_>, packets: &mut [Packet]) {
        let Some(own) = self.discards.workers.get(self.worker.index()) else { return };
        let mut locked = own.recorder.try_lock();
        let mut recorder = locked.as_mut().ok().and_then(|place| place.as_mut());
        let (mut suppressed, header_bytes) = (0, self.shared.header_bytes());
        for packet in packets {
            let Some(why) = self.place.why(packet) else { continue };
            // Once the limit is reached, the rest of the vector is beyond it.
            let may = suppressed == 0 && self.discards.limit.take(cx.now_ns);
            match recorder.as_mut().filter(|_| may) {
                Some(recorder) => {
                    recorder.write(discard(cx, packet, why, header_bytes));
                }
                None => suppressed += 1,
            }
        }
        if suppressed > 0 {
            add(&own.suppressed, suppressed);
        }
    }
}

fn discard(cx: &Context<'_>, packet: &mut Packet, why: Why, header_bytes: usize) -> Discard {
    let has_link_layer = cx.interface(packet.rx).is_some_and(|row| row.mac != [0; 6]);
    let leaves_by = match why {
        Why::Dropped(_) => packet.tx,
        Why::Answered(..) => InterfaceId::NONE,
    };
    let first = as_frame(packet, has_link_layer, |packet, is_bare| {
        FirstBytes::of(packet, is_bare, header_bytes)
    });
    Discard { why, came_in: packet.rx, leaves_by, first }
}

/// Show a packet with the frame's header in front that was taken off when it came in, if it was;
/// and whether it begins with an IP header all the same.
fn as_frame<R>(
    packet: &mut Packet,
    has_link_layer: bool,
    look: impl FnOnce(&Packet, bool) -> R,
) -> R {
    let (begins, l2_bytes) = (Begins::of(packet.bytes()), usize::from(packet.l2_bytes));
    if l2_bytes > 0 && begins != Begins::Frame && packet.push(l2_bytes) {
        let result = look(packet, false);
        let _ = packet.pull(l2_bytes);
        return result;
    }
    look(packet, begins == Begins::Ip || begins == Begins::Unknown && !has_link_layer)
}

/// What bytes seem to begin with: a packet may die with the frame's header in front, behind it, or
/// with that of the next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// With a frame's header.
    Frame,
    /// With an IP header.
    Ip,
    /// Neither is plausible.
    Unknown,
}

impl Begins {
    fn of(bytes: &[u8]) -> Begins {
        let inner = ip_header(bytes, false).and_then(|(at, _)| bytes.get(at..));
        if inner.is_some_and(is_ip) {
            return Begins::Frame;
        }
        if is_ip(bytes) {
            return Begins::Ip;
        }
        match EthernetHeader::overlay(bytes).map(EthernetHeader::ether_type) {
            Some(EtherType::ARP | EtherType::MPLS) => Begins::Frame,
            _ => Begins::Unknown,
        }
    }
}

/// Do bytes begin with an IP header whose lengths are possible?
fn is_ip(bytes: &[u8]) -> bool {
    match ip_header(bytes, true) {
        Some((_, Family::Ip4)) => Ip4Header::overlay(bytes).is_some_and(|header| {
            let total = usize::from(header.total_length());
            header.header_len() >= Ip4Header::LEN
                && (header.header_len()..=bytes.len()).contains(&total)
        }),
        Some((_, Family::Ip6)) => Ip6Header::overlay(bytes).is_some_and(|header| {
            Ip6Header::LEN + usize::from(header.payload_length()) <= bytes.len()
        }),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_packet_begins_with_is_seen_by_its_lengths() {
        let ip4 = [&[0x45, 0, 0, 28][..], &[0; 24]].concat();
        let ip6 = [&[0x60, 0, 0, 0, 0, 8][..], &[0; 42]].concat();
        let frame = |ether_type: u16, inner: &[u8]| {
            [&[0x45, 0, 0, 20, 0, 9, 2, 0, 0, 0, 0, 8][..], &ether_type.to_be_bytes(), inner]
                .concat()
        };
        assert_eq!(Begins::of(&ip4), Begins::Ip);
        assert_eq!(Begins::of(&ip6), Begins::Ip);
        // A MAC address that looks like an IPv4 header is one all the same.
        assert_eq!(Begins::of(&frame(0x0800, &ip4)), Begins::Frame);
        assert_eq!(Begins::of(&frame(0x86dd, &ip6)), Begins::Frame);
        assert_eq!(Begins::of(&ip4[..27]), Begins::Unknown, "cut off");
        let mut arp = frame(0x0806, &[0; 28]);
        arp[0] = 2;
        assert_eq!(Begins::of(&arp), Begins::Frame);
        assert_eq!(Begins::of(&[]), Begins::Unknown);
    }
}
