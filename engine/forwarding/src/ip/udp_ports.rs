//! Nodes that take UDP datagrams for the router itself, by destination port. Features open and
//! close ports while the router runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use quiver_core::NodeId;

use crate::fib::Family;

/// UDP ports of a family.
const PORTS: usize = 1 << 16;
/// Above the number of the node: a node takes the port.
const OPEN: u64 = 1 << 16;
/// A datagram over IPv6 may come without a checksum.
const TAKES_ZERO_CHECKSUM: u64 = 1 << 17;
/// A node takes ICMP errors about datagrams to the port, and its number.
const HAS_ERRORS: u64 = 1 << 18;
const ERRORS_SHIFT: u32 = 32;

/// The node of an open port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPort {
    /// The node that takes the datagrams.
    pub node: NodeId,
    /// May a datagram over IPv6 come without a checksum? Tunnels may (RFC 6935 §5, RFC 6936).
    pub takes_zero_checksum: bool,
    /// The node that takes ICMP errors which quote a datagram to the port.
    pub errors: Option<NodeId>,
}

impl OpenPort {
    fn of(word: u64) -> OpenPort {
        let errors = (word & HAS_ERRORS != 0).then_some(NodeId((word >> ERRORS_SHIFT) as u16));
        let takes_zero_checksum = word & TAKES_ZERO_CHECKSUM != 0;
        OpenPort { node: NodeId(word as u16), takes_zero_checksum, errors }
    }

    fn word(self) -> u64 {
        let zero = if self.takes_zero_checksum { TAKES_ZERO_CHECKSUM } else { 0 };
        let errors = self.errors.map_or(0, |node| HAS_ERRORS | u64::from(node.0) << ERRORS_SHIFT);
        OPEN | zero | errors | u64::from(self.node.0)
    }
}

/// Open UDP ports of both families: one word for each port, which workers read.
pub struct UdpPorts {
    words: [Box<[AtomicU64]>; 2],
    /// How many users have opened a port (control thread).
    users: Mutex<BTreeMap<(Family, u16), u32>>,
}

impl Default for UdpPorts {
    fn default() -> UdpPorts {
        UdpPorts {
            words: [(); 2].map(|()| (0..PORTS).map(|_| AtomicU64::new(0)).collect()),
            users: Mutex::default(),
        }
    }
}

impl UdpPorts {
    /// The node that takes datagrams to a port.
    #[inline(always)]
    pub fn get(&self, family: Family, port: u16) -> Option<OpenPort> {
        let word = self.words[family as usize].get(usize::from(port))?.load(Ordering::Acquire);
        (word & OPEN != 0).then(|| OpenPort::of(word))
    }

    fn set(&self, family: Family, port: u16, word: u64) {
        if let Some(place) = self.words[family as usize].get(usize::from(port)) {
            place.store(word, Ordering::Release);
        }
    }

    /// Open a port that a node has claimed for as long as the router runs.
    pub fn claim(&self, family: Family, port: u16, node: NodeId) {
        let open = OpenPort { node, takes_zero_checksum: false, errors: None };
        self.set(family, port, open.word());
    }

    /// Open a port for one more user of a node (control thread). False, and nothing changes, where
    /// another node has it.
    #[must_use]
    pub fn open(&self, family: Family, port: u16, open: OpenPort) -> bool {
        if self.get(family, port).is_some_and(|known| known != open) {
            return false;
        }
        self.set(family, port, open.word());
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        *users.entry((family, port)).or_default() += 1;
        true
    }

    /// One user fewer of a port that was opened (control thread). The last one closes it.
    pub fn close(&self, family: Family, port: u16) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = users.get_mut(&(family, port)) else { return };
        *count -= 1;
        if *count == 0 {
            users.remove(&(family, port));
            self.set(family, port, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_open_until_its_last_user_closes_it_and_no_other_node_gets_it() {
        let ports = UdpPorts::default();
        let (node, errors) = (NodeId(7), Some(NodeId(9)));
        let vxlan = OpenPort { node, takes_zero_checksum: true, errors };
        assert!(ports.open(Family::Ip4, 4789, vxlan) && ports.open(Family::Ip4, 4789, vxlan));
        assert!(!ports.open(Family::Ip4, 4789, OpenPort { node: NodeId(8), ..vxlan }));
        assert_eq!(ports.get(Family::Ip6, 4789), None);
        ports.close(Family::Ip4, 4789);
        assert_eq!(ports.get(Family::Ip4, 4789), Some(vxlan));
        ports.close(Family::Ip4, 4789);
        ports.close(Family::Ip4, 4789);
        assert_eq!(ports.get(Family::Ip4, 4789), None);
        ports.claim(Family::Ip4, 67, NodeId(3));
        assert!(!ports.open(Family::Ip4, 67, vxlan));
        assert_eq!(ports.get(Family::Ip4, 67).map(|open| open.node), Some(NodeId(3)));
    }
}
