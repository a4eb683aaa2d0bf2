//! Neighbours on the control thread: what nodes hear, and what follows from it.

use std::net::IpAddr;

use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError};
use quiver_forwarding::neighbour::{Neighbour, NeighbourState};
use quiver_forwarding::nodes;
use quiver_wire::MacAddress;

use crate::addresses::duplicate_detection;
use crate::neighbor::ageing;
use crate::neighbor::own_frames::Outgoing;
use crate::neighbor::pending_resolutions::Added;
use crate::neighbor::release::{self, Release};
use crate::notifications::{AS_KNOWN, Heard, Notification};
use crate::state::{IpState, with_ip};

/// How often memory that no worker sees any more is made free.
const COLLECT_NS: u64 = 20_000_000;

/// The nodes that send notices.
const NOTICING: [&str; 13] = [
    nodes::ARP_INPUT,
    nodes::ip4::ARP,
    nodes::ip4::GLEAN,
    nodes::ip4::CONFIRM_NEIGHBOR,
    nodes::ip4::ICMP_INPUT,
    nodes::ip6::DISCOVER_NEIGHBOR,
    nodes::ip6::GLEAN,
    nodes::ip6::CONFIRM_NEIGHBOR,
    nodes::ip6::ICMP_INPUT,
    nodes::ip6::NEIGHBOR_SOLICITATION,
    nodes::ip6::NEIGHBOR_ADVERTISEMENT,
    nodes::mpls::RESOLVE_NEIGHBOR,
    nodes::mpls::CONFIRM_NEIGHBOR,
];

/// Listen to nodes, and begin to look through the neighbours.
pub(crate) fn start(engine: &mut Engine) {
    for node in NOTICING {
        engine.on_event(node, hear);
    }
    engine.every(ageing::LOOK_THROUGH_NS, ageing::look_through);
    let collect = |engine: &mut Engine| {
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.collect();
        }
    };
    engine.on_turn(crate::events::publish_neighbours);
    engine.on_turn(crate::events::publish_routes);
    engine.every(COLLECT_NS, collect);
    engine.on_reclaim(collect);
}

/// Milliseconds on the router's clock.
pub(crate) fn now_ms(engine: &Engine) -> u64 {
    engine.now_ns() / 1_000_000
}

fn hear(engine: &mut Engine, event: &Event) {
    let Some(notice) = Notification::read(event) else { return };
    match notice {
        Notification::Neighbour { address, mac, heard } => {
            learn(engine, event.interface, address, mac, heard)
        }
        Notification::Wanted { address, asked } => {
            want(engine, event.interface, address, event.at_ns, asked)
        }
        Notification::Used { address } => {
            let now = now_ms(engine);
            with_ip(engine, |_, _, fib| fib.neighbour_used(event.interface, address, now));
        }
        Notification::Conflict { address, mac } => {
            duplicate_detection::conflict(engine, event.interface, address, mac)
        }
        Notification::Ping { .. } => {
            if let Some(ip) = engine.get_mut::<IpState>() {
                ip.mailboxes.deliver(notice, event.at_ns);
            }
        }
    }
}

/// A packet waits for a neighbour that was not known; `asked`: a worker has asked for it just now.
fn want(engine: &mut Engine, on: InterfaceId, address: IpAddr, at_ns: u64, asked: bool) {
    if engine.interface(on).is_none() {
        return release::forget_interface(engine, on);
    }
    let (question, over) = with_ip(engine, |engine, ip, fib| {
        let mut question = Outgoing::default();
        // It may have spoken while the event was under way.
        if fib.neighbours().get(on, address).is_some() {
            return (question, Some(Release::known(fib, on, address)));
        }
        let config = fib.neighbours().config(address.is_ipv6());
        match ip.asked.add(on, address, at_ns, config) {
            Added::Before => (question, None),
            Added::Now { given_up } => {
                if !asked {
                    question.ask(engine, ip, on, None, address);
                }
                (question, given_up.map(|(on, address)| Release::given_up(on, address)))
            }
        }
    });
    question.send(engine);
    release::release(engine, over.as_slice());
}

/// A neighbour is known: what waits for it goes on.
pub(crate) fn serve(engine: &mut Engine, on: InterfaceId, address: IpAddr) {
    if let Some(fib) = engine.get::<Fib>() {
        let release = Release::known(fib, on, address);
        release::release(engine, &[release]);
    }
}

/// What follows from something that a neighbour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is known by this MAC address now, and as sure as this.
    Learn(NeighbourState),
    /// What is known may be wrong.
    Doubt,
    /// Nothing.
    Ignore,
}

/// Check what a neighbour says of its MAC address (RFC 826; RFC 4861 §7.2.3 and §7.2.5). `asked`:
/// it was asked for and has not answered yet.
fn classify(
    known: Option<&Neighbour>,
    asked: bool,
    six: bool,
    mac: MacAddress,
    heard: Heard,
) -> Verdict {
    use NeighbourState::{Reachable, Stale};
    let is_same = known.is_some_and(|known| known.mac == mac);
    let is_awaited = known.is_some() || asked;
    match heard {
        // A request tells that its sender is there, but ND wants to know that it hears us, too.
        Heard::Spoke if !six => Verdict::Learn(Reachable),
        Heard::Spoke if is_same => Verdict::Ignore,
        Heard::Spoke => Verdict::Learn(Stale),
        Heard::Answered if is_awaited => Verdict::Learn(Reachable),
        Heard::Overheard if is_same && six => Verdict::Ignore,
        Heard::Overheard if is_same => Verdict::Learn(Reachable),
        Heard::Overheard if is_awaited => Verdict::Learn(Stale),
        Heard::Confirmed if is_same || asked => Verdict::Learn(Reachable),
        Heard::Hinted if asked => Verdict::Learn(Stale),
        Heard::Confirmed | Heard::Hinted if known.is_some() && !is_same => Verdict::Doubt,
        _ => Verdict::Ignore,
    }
}

fn learn(engine: &mut Engine, on: InterfaceId, address: IpAddr, mac: MacAddress, heard: Heard) {
    let now = now_ms(engine);
    // Nobody waits for who was not asked for.
    let mut is_awaited = false;
    let learned = with_ip(engine, |_, ip, fib| {
        let asked = ip.asked.contains(on, address);
        let known = fib.neighbours().get(on, address);
        let mac = if mac == AS_KNOWN { known.map_or(mac, |known| known.mac) } else { mac };
        if mac == AS_KNOWN {
            return Ok(());
        }
        match classify(known, asked, address.is_ipv6(), mac, heard) {
            Verdict::Learn(state) => {
                fib.learn_neighbour_as(state, on, address, mac, now)?;
                is_awaited = ip.asked.remove(on, address);
                Ok::<(), FibError>(())
            }
            Verdict::Doubt => {
                fib.doubt_neighbour(on, address, now);
                Ok(())
            }
            Verdict::Ignore => Ok(()),
        }
    });
    if matches!(learned, Err(FibError::NeighboursFull(_)))
        && let Some(ip) = engine.get_mut::<IpState>()
    {
        ip.not_learned[usize::from(address.is_ipv6())] += 1;
    }
    if is_awaited {
        serve(engine, on, address);
    }
    if let Err(error) = learned {
        let interface = engine.interface_name(on);
        tracing::debug!("{interface}: neighbour {address} at {mac} is not learned: {error}");
    }
}

#[cfg(test)]
mod tests {
    use quiver_forwarding::neighbour::Neighbours;

    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    /// The verdict on `heard` with the known MAC address and with another, of somebody who was
    /// asked for, and of somebody who was not.
    fn verdicts(heard: Heard, six: bool) -> [Verdict; 4] {
        let (on, address) = (InterfaceId(0), IpAddr::from([10, 0, 0, 1]));
        let mut neighbours = Neighbours::default();
        neighbours.learn(on, address, MAC, NeighbourState::Reachable, 0);
        let known = neighbours.get(on, address);
        [
            classify(known, false, six, MAC, heard),
            classify(known, false, six, OTHER, heard),
            classify(None, true, six, OTHER, heard),
            classify(None, false, six, OTHER, heard),
        ]
    }

    #[test]
    fn advertisements_are_handled_as_rfc_4861_says() {
        use NeighbourState::{Reachable, Stale};
        use Verdict::{Doubt, Ignore, Learn};
        let answered = [Learn(Reachable), Learn(Reachable), Learn(Reachable), Ignore];
        assert_eq!(verdicts(Heard::Answered, true), answered);
        assert_eq!(verdicts(Heard::Overheard, true), [Ignore, Learn(Stale), Learn(Stale), Ignore]);
        assert_eq!(
            verdicts(Heard::Confirmed, true),
            [Learn(Reachable), Doubt, Learn(Reachable), Ignore]
        );
        assert_eq!(verdicts(Heard::Hinted, true), [Ignore, Doubt, Learn(Stale), Ignore]);
        assert_eq!(
            verdicts(Heard::Spoke, true),
            [Ignore, Learn(Stale), Learn(Stale), Learn(Stale)]
        );
    }

    #[test]
    fn arp_makes_neighbours_of_who_speaks_to_us_and_changes_who_is_known() {
        use NeighbourState::{Reachable, Stale};
        use Verdict::{Ignore, Learn};
        assert_eq!(verdicts(Heard::Spoke, false), [Learn(Reachable); 4]);
        let overheard = [Learn(Reachable), Learn(Stale), Learn(Stale), Ignore];
        assert_eq!(verdicts(Heard::Overheard, false), overheard);
    }
}
