//! How often what was known of a neighbour was forgotten or replaced. Workers read it, so that they
//! tell the control thread again what they told it before.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::InterfaceId;

/// Neighbours that share a counter tell once more than they need; more counters, fewer of those.
const COUNTERS: usize = 1024;

/// Counters by a hash of interface and address: one writer, many readers.
#[derive(Debug)]
pub struct NeighbourGenerations(Box<[AtomicU32]>);

impl Default for NeighbourGenerations {
    fn default() -> Self {
        NeighbourGenerations((0..COUNTERS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl NeighbourGenerations {
    fn counter(&self, on: InterfaceId, address: IpAddr) -> &AtomicU32 {
        let bits = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64,
        };
        let mixed = (bits ^ u64::from(on.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(mixed >> 54) as usize % COUNTERS]
    }

    /// A number that is another one when the neighbour was forgotten or replaced since.
    #[inline]
    pub fn of(&self, on: InterfaceId, address: IpAddr) -> u32 {
        self.counter(on, address).load(Ordering::Acquire)
    }

    /// The neighbour is forgotten or replaced (control thread).
    pub fn advance(&self, on: InterfaceId, address: IpAddr) {
        self.counter(on, address).fetch_add(1, Ordering::Release);
    }
}
