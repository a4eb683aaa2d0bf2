//! How many sessions there are. Nobody hears of the end of a session, so that slots are counted:
//! those of one outside address in each turn, for what reads the sum often.

use quiver_core::Engine;

use crate::config::Det44;
use crate::slots::SLOTS_PER_ADDRESS;

/// Nanoseconds between two turns: an address is 1 MB of memory, which is read in some 0.1 ms.
const TURN_NS: u64 = 100_000_000;

/// What was counted last.
pub(crate) struct Census {
    /// Sessions of outside addresses, by their numbers.
    sessions: Box<[u64]>,
    /// The number of the address that is counted next, or one behind it.
    next: usize,
}

impl Census {
    /// Of so many outside addresses.
    pub fn new(addresses: usize) -> Census {
        Census { sessions: vec![0; addresses].into(), next: 0 }
    }
}

/// Begin to count (when the router starts).
pub(crate) fn start(engine: &mut Engine) {
    engine.every(TURN_NS, |engine| {
        let now_s = seconds(engine);
        if let Some(det) = engine.get_mut::<Det44>() {
            turn(det, now_s);
        }
    });
}

/// Seconds of the router's clock, as sessions have them.
pub(crate) fn seconds(engine: &Engine) -> u32 {
    (engine.now_ns() / 1_000_000_000) as u32
}

/// The slots of the outside address with this number.
pub(crate) fn slots_of(address: usize) -> std::ops::Range<usize> {
    address * SLOTS_PER_ADDRESS..(address + 1) * SLOTS_PER_ADDRESS
}

fn turn(det: &mut Det44, now_s: u32) {
    let Det44 { shared, mappings, census, .. } = det;
    let Some(slots) = shared.slots() else { return };
    let mut next = None;
    for address in mappings.iter().flat_map(|of| of.mapping.addresses()) {
        if !slots.is_used(address) {
            continue;
        }
        // The first one from the place of the last turn on, or else the first one.
        let place = (address < census.next, address);
        next = Some(next.map_or(place, |other: (bool, usize)| other.min(place)));
    }
    let Some((_, address)) = next else { return };
    if let Some(sessions) = census.sessions.get_mut(address) {
        *sessions = slots.live(slots_of(address), &shared.timeouts, now_s);
    }
    census.next = address + 1;
}

/// The sessions of these outside addresses, when they were counted last.
pub(crate) fn counted(det: &Det44, addresses: std::ops::Range<usize>) -> u64 {
    let Some(slots) = det.shared.slots() else { return 0 };
    let of = |address| det.census.sessions.get(address).copied().unwrap_or(0);
    addresses.filter(|address| slots.is_used(*address)).map(of).sum()
}
