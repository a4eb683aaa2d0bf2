//! Messages of ARP and neighbour discovery, counted by interface.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourMessage {
    /// An ARP request, a neighbour solicitation.
    Request,
    /// An ARP reply, an advertisement that was solicited.
    Reply,
    /// An announcement of the sender's own address.
    Gratuitous,
}

/// Received or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Rx,
    /// Sent.
    Tx,
}

/// ARP or neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourProtocol {
    /// IPv4.
    Arp,
    /// IPv6.
    Nd,
}

/// Counters of one interface: two protocols, two directions, three kinds.
const COUNTERS: usize = 12;

/// Counters of all interfaces. Messages are few: workers share them.
pub struct NeighbourCounts(Box<[[AtomicU64; COUNTERS]]>);

impl Default for NeighbourCounts {
    fn default() -> Self {
        NeighbourCounts(
            (0..INTERFACES_MAX).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
        )
    }
}

impl NeighbourCounts {
    fn counter(
        &self,
        on: InterfaceId,
        (protocol, direction, message): (NeighbourProtocol, Direction, NeighbourMessage),
    ) -> Option<&AtomicU64> {
        self.0
            .get(on.index())?
            .get(protocol as usize * 6 + direction as usize * 3 + message as usize)
    }

    /// Count a message.
    pub fn add(&self, on: InterfaceId, what: (NeighbourProtocol, Direction, NeighbourMessage)) {
        if let Some(counter) = self.counter(on, what) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many there were.
    pub fn get(
        &self,
        on: InterfaceId,
        what: (NeighbourProtocol, Direction, NeighbourMessage),
    ) -> u64 {
        self.counter(on, what).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Count an interface's messages from zero again.
    pub fn clear(&self, on: InterfaceId) {
        self.0
            .get(on.index())
            .into_iter()
            .flatten()
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// Count a frame that the router sends, if it is such a message: Ethernet without tags.
    pub fn add_sent(&self, on: InterfaceId, frame: &[u8]) {
        if let Some((protocol, message)) = read(frame) {
            self.add(on, (protocol, Direction::Tx, message));
        }
    }
}

/// Which message of ARP or neighbour discovery a frame holds: RFC 826, RFC 4861 §4.3 and §4.4.
fn read(frame: &[u8]) -> Option<(NeighbourProtocol, NeighbourMessage)> {
    let at = |place: usize| frame.get(place).copied();
    let part = |place: usize, length: usize| frame.get(place..place + length);
    match (at(12)?, at(13)?) {
        (0x08, 0x06) => {
            let is_own = part(28, 4)? == part(38, 4)?;
            let message = match at(21)? {
                _ if is_own => NeighbourMessage::Gratuitous,
                1 => NeighbourMessage::Request,
                _ => NeighbourMessage::Reply,
            };
            Some((NeighbourProtocol::Arp, message))
        }
        (0x86, 0xdd) if at(20)? == 58 => {
            const SOLICITED: u8 = 0x40;
            let message = match at(54)? {
                135 => NeighbourMessage::Request,
                136 if at(58)? & SOLICITED == 0 => NeighbourMessage::Gratuitous,
                136 => NeighbourMessage::Reply,
                _ => return None,
            };
            Some((NeighbourProtocol::Nd, message))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_and_cut_ones_do_no_harm() {
        let mut arp = vec![0; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        (arp[21], arp[31], arp[41]) = (1, 1, 2);
        let arp_of = |message| Some((NeighbourProtocol::Arp, message));
        assert_eq!(read(&arp), arp_of(NeighbourMessage::Request));
        arp[21] = 2;
        assert_eq!(read(&arp), arp_of(NeighbourMessage::Reply));
        arp[41] = 1;
        assert_eq!(read(&arp), arp_of(NeighbourMessage::Gratuitous));
        let mut nd = vec![0; 86];
        nd[12..14].copy_from_slice(&[0x86, 0xdd]);
        (nd[20], nd[54], nd[58]) = (58, 136, 0x60);
        assert_eq!(read(&nd), Some((NeighbourProtocol::Nd, NeighbourMessage::Reply)));
        nd[58] = 0x20;
        assert_eq!(read(&nd), Some((NeighbourProtocol::Nd, NeighbourMessage::Gratuitous)));
        nd[54] = 134;
        assert_eq!(read(&nd), None);
        assert!((0..42).all(|length| read(&arp[..length]).is_none()));
        assert!((0..86).all(|length| read(&nd[..length]).is_none()));
    }
}
