//! Neighbours age, are asked, and are forgotten (RFC 4861 §7.3.3, RFC 1122 §2.3.2.1); and those
//! that do not answer at all are given up.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::neighbour::Due;

use crate::addresses::duplicate_detection;
use crate::neighbor::own_frames::Outgoing;
use crate::neighbor::pending_resolutions::Next;
use crate::neighbor::release::{self, Release};
use crate::state::{IpState, with_ip};

/// How often neighbours are looked through.
pub const LOOK_THROUGH_NS: u64 = 100_000_000;
/// Questions of the control thread each time, for neighbours that were never heard: 2,000 a second.
/// What is left comes the next time.
pub const RETRIES_MAX: usize = 200;
/// Questions to neighbours that are known, each time. They have a number of their own, so that a
/// scan does not keep them from being asked.
pub const PROBES_MAX: usize = 400;
/// Changes of state each time, with or without a question.
const CHANGES_MAX: usize = 4000;

/// Do what is due.
pub(crate) fn look_through(engine: &mut Engine) {
    let (outgoing, unreachable) = with_ip(engine, |engine, ip, fib| {
        let mut outgoing = Outgoing::default();
        let unreachable = ask_again(engine, ip, fib, &mut outgoing);
        age(engine, ip, fib, &mut outgoing);
        duplicate_detection::look_through(engine, ip, fib, &mut outgoing);
        ip.path_mtus.forget_old(engine.now_ns());
        (outgoing, unreachable)
    });
    outgoing.send(engine);
    release::release(engine, &unreachable);
}

/// Ask again who has not answered. Those who never will are returned.
fn ask_again(
    engine: &Engine,
    ip: &mut IpState,
    fib: &Fib,
    outgoing: &mut Outgoing,
) -> Vec<Release> {
    let mut unreachable = Vec::new();
    for _ in 0..CHANGES_MAX {
        if outgoing.len() >= RETRIES_MAX {
            break;
        }
        match ip.asked.next_due(engine.now_ns(), |six| fib.neighbours().config(six)) {
            Some((on, address, Next::Ask)) => outgoing.ask(engine, ip, on, None, address),
            Some((on, address, Next::GiveUp)) => unreachable.push(Release::given_up(on, address)),
            None => break,
        }
    }
    unreachable
}

/// Let the known ones age.
fn age(engine: &Engine, ip: &IpState, fib: &mut Fib, outgoing: &mut Outgoing) {
    let now_ms = engine.now_ns() / 1_000_000;
    let room = outgoing.len() + PROBES_MAX;
    for _ in 0..CHANGES_MAX {
        if outgoing.len() >= room {
            break;
        }
        let Some((on, address, due)) = fib.next_neighbour_due(now_ms) else { break };
        match due {
            Due::Stale => {}
            Due::AskIt(mac) => outgoing.ask(engine, ip, on, Some(mac), address),
            Due::AskAll => outgoing.ask(engine, ip, on, None, address),
            Due::Forget => forgotten(engine, on, address),
        }
    }
}

fn forgotten(engine: &Engine, on: InterfaceId, address: IpAddr) {
    tracing::debug!("{}: neighbour {address} is forgotten", engine.interface_name(on));
}
