//! The gate before a profile: what the generator can do by itself with these streams on this host,
//! and how much of a latency is its own. Measured once for a profile and process, before the ports
//! are opened.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::Context as _;
use quiver_core::clock::Clock;

use super::Folder;
use super::sink::Sink;
use crate::drivers::engine_config;
use crate::generator::Generator;
use crate::own_share::{OwnLatency, OwnShare};
use crate::request::{Measure, Rate};
use crate::session;
use crate::surroundings::NoObserver;
use quiver_tg_traffic::profile::{Memif, MemifRole, Port, Profile};

/// How long each part takes, seconds, and what is sent before it.
const PART_S: f64 = 0.04;
const WARMUP_S: f64 = 0.01;
/// Latency is measured at these parts of the highest rate.
const LATENCY_PARTS: [f64; 4] = [0.01, 0.1, 0.5, 0.9];
/// Profiles whose result is remembered.
const REMEMBERED_MAX: usize = 16;

thread_local! {
    static REMEMBERED: RefCell<Vec<(u64, OwnShare)>> = const { RefCell::new(Vec::new()) };
}

/// What the generator itself can do with a profile: measured now, or remembered.
///
/// # Errors
/// When the self-loop cannot be set up or measured.
pub fn own_share(profile: &Profile) -> anyhow::Result<OwnShare> {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {:?}", profile.cores, profile.burst, profile.streams).hash(&mut hasher);
    let key = hasher.finish();
    let known = REMEMBERED.with_borrow(|all| {
        all.iter().find(|(other, _)| *other == key).map(|(_, share)| share.clone())
    });
    if let Some(share) = known {
        return Ok(share);
    }
    let share = measure(profile)?;
    REMEMBERED.with_borrow_mut(|all| {
        if all.len() == REMEMBERED_MAX {
            all.remove(0);
        }
        all.push((key, share.clone()));
    });
    Ok(share)
}

fn request(rate: Rate) -> Measure {
    Measure { warmup_s: WARMUP_S, drain_s: 0.005, ..Measure::new(rate, PART_S) }
}

fn measure(profile: &Profile) -> anyhow::Result<OwnShare> {
    let folder = Folder::new()?;
    let profile = looped(profile, &folder.0.join("own.sock"));
    let transmit_pps = {
        let mut generator = Generator::new(&profile, engine_config(&profile), Clock::tsc(), Sink)?;
        generator.start()?;
        generator
            .measure(&request(Rate::Max), &mut NoObserver)
            .context("transmit only")?
            .offered_pps
    };
    let mut session = session::open_profile(&profile)?;
    let flat_out = session.measure(&request(Rate::Max), &mut NoObserver).context("self-loop")?;
    let mut latencies = Vec::new();
    for part in LATENCY_PARTS {
        let rate_pps = flat_out.received_pps * part;
        if rate_pps * PART_S < 1.0 {
            continue;
        }
        let slow =
            session.measure(&request(Rate::Pps(rate_pps)), &mut NoObserver).context("self-loop")?;
        let (offered_pps, latency) = (slow.offered_pps, slow.latency_ns);
        latencies.extend(latency.map(|latency_ns| OwnLatency { offered_pps, latency_ns }));
    }
    Ok(OwnShare { transmit_pps, loop_pps: flat_out.received_pps, latencies })
}

/// The same streams between memifs that are connected in pairs: what leaves by one port comes to
/// the next.
fn looped(profile: &Profile, socket: &Path) -> Profile {
    let mut own = profile.clone();
    own.captures.clear();
    if let Some(last) = own.ports.last().filter(|_| own.ports.len() % 2 == 1).cloned() {
        own.ports.push(last);
    }
    let rings =
        own.ports.iter().filter_map(|port| port.value.memif.as_ref().map(|memif| memif.ring_size));
    let ring_size = rings.max().unwrap_or(1024);
    for (number, port) in own.ports.iter_mut().enumerate() {
        let memif = Memif {
            socket: socket.to_owned(),
            id: number as u32 / 2,
            role: if number % 2 == 0 { MemifRole::Master } else { MemifRole::Slave },
            ring_size,
            buffer_size: 2048,
            queues: 1,
        };
        port.value = Port { memif: Some(memif), ..Port::default() };
    }
    for stream in &mut own.streams {
        let stream = &mut stream.value;
        stream.to = stream.from ^ 1;
        stream.awaits_gateway = false;
        if !stream.latency {
            (stream.rate, stream.bursts, stream.after, stream.delay, stream.loops) =
                (None, None, None, 0.0, 1);
        }
    }
    own
}
