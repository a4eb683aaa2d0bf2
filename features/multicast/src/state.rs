//! What the control thread keeps beside the routes: the last signals. And how routes follow
//! interfaces.

use std::collections::BTreeMap;

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::mfib::Mfib;

use crate::signal::{self, Signal};
use crate::{lookup, rpf};

/// Signals that are kept at most.
pub const SIGNALS_MAX: usize = 256;
/// How often memory that no worker sees any more is made free.
const COLLECT_NS: u64 = 100_000_000;

/// A signal that was heard.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// How often.
    pub count: u64,
    /// When last.
    pub at_ns: u64,
}

/// The last signals.
#[derive(Default)]
pub struct Signals {
    /// By what they say.
    pub heard: BTreeMap<Signal, Heard>,
    /// Those that made room for others.
    pub forgotten: u64,
}

impl Signals {
    /// One more.
    pub fn hear(&mut self, signal: Signal, at_ns: u64) {
        if let Some(heard) = self.heard.get_mut(&signal) {
            heard.count += 1;
            heard.at_ns = at_ns;
            return;
        }
        if self.heard.len() >= SIGNALS_MAX
            && let Some(oldest) =
                self.heard.iter().min_by_key(|(_, heard)| heard.at_ns).map(|(key, _)| *key)
        {
            self.heard.remove(&oldest);
            self.forgotten += 1;
        }
        self.heard.insert(signal, Heard { count: 1, at_ns });
    }
}

/// Lead packets to groups here, listen to nodes, follow interfaces.
pub(crate) fn start(engine: &mut Engine, mfib: Mfib) {
    engine.insert(mfib);
    engine.insert(Signals::default());
    let nodes = engine.node_id(lookup::name(false)).zip(engine.node_id(lookup::name(true)));
    let led = engine.get_mut::<Fib>().zip(nodes).map(|(fib, (ip4, ip6))| fib.lead_groups(ip4, ip6));
    if let Some(Err(error)) = led {
        tracing::error!("packets to groups are not forwarded: {error}");
    }
    for six in [false, true] {
        engine.on_event(lookup::name(six), hear);
        engine.on_event(rpf::name(six), hear);
    }
    engine.on_interface_change(follow);
    engine.every(COLLECT_NS, collect);
    engine.on_reclaim(collect);
}

fn collect(engine: &mut Engine) {
    if let Some(mfib) = engine.get_mut::<Mfib>() {
        mfib.collect();
    }
}

fn hear(engine: &mut Engine, event: &Event) {
    if let (Some(signal), Some(signals)) = (signal::read(event), engine.get_mut::<Signals>()) {
        signals.hear(signal, event.at_ns);
    }
}

fn follow(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    engine.with(|engine, mfib: &mut Mfib| {
        if let Some(fib) = engine.get_mut::<Fib>() {
            if change == InterfaceChange::Deleted {
                mfib.forget(id, fib);
                mfib.hold_tables(fib, crate::commands::USER);
            } else {
                mfib.refresh(id, fib);
            }
        }
        if change == InterfaceChange::Deleted
            && let Some(signals) = engine.get_mut::<Signals>()
        {
            signals.heard.retain(|signal, _| signal.rx != id);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::signal::Why;

    fn signal(n: u32) -> Signal {
        let group = IpAddr::V4(Ipv4Addr::from_bits(0xe800_0000 + n));
        Signal { why: Why::NoRoute, rx: InterfaceId(1), source: IpAddr::from([10, 0, 0, 1]), group }
    }

    #[test]
    fn the_oldest_signal_makes_room() {
        let mut signals = Signals::default();
        for n in 0..=SIGNALS_MAX as u32 {
            signals.hear(signal(n), u64::from(n));
        }
        signals.hear(signal(7), 9999);
        assert_eq!((signals.heard.len(), signals.forgotten), (SIGNALS_MAX, 1));
        assert!(!signals.heard.contains_key(&signal(0)));
        assert_eq!(signals.heard[&signal(7)].count, 2);
    }
}
