//! Packets of tests, and a place that collects them.

use quiver_shaping::{Death, Item, Sink};

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub id: u32,
    pub bytes: u32,
    pub knows_ecn: bool,
    pub is_marked: bool,
    /// Of which node or flow, for sums.
    pub of: u32,
}

impl Packet {
    pub fn new(of: u32, bytes: u32) -> Packet {
        Packet { id: 0, bytes, knows_ecn: false, is_marked: false, of }
    }
}

impl Item for Packet {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn buffers(&self) -> u32 {
        1
    }

    fn mark(&mut self) -> bool {
        self.is_marked |= self.knows_ecn;
        self.knows_ecn
    }
}

/// What has come out.
#[derive(Debug, Default)]
pub struct Collected {
    pub sent: Vec<Packet>,
    pub dropped: Vec<(Packet, Death)>,
}

impl Sink<Packet> for Collected {
    fn send(&mut self, item: Packet) {
        self.sent.push(item);
    }

    fn drop(&mut self, item: Packet, why: Death) {
        self.dropped.push((item, why));
    }
}
