//! `quiver-tg self-test`: what the generator can do by itself on this machine, so that a result can
//! be told from its limits.

mod gate;
mod peer;
mod sink;

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use quiver_core::clock::Clock;
use serde::Serialize;

pub use self::gate::own_share;
use self::peer::Peer;
use self::sink::Sink;
use crate::drivers::{Drivers, engine_config, first_core};
use crate::generator::Generator;
use crate::latency::Distribution;
use crate::own_share::OwnShare;
use crate::report::Report;
use crate::request::{Measure, Rate};
use crate::session;
use crate::surroundings::{NoObserver, Surroundings};
use quiver_tg_traffic::figures::scaled;
use quiver_tg_traffic::profile::Profile;

/// Latency is measured at this part of the highest rate.
const LATENCY_PART: f64 = 0.1;

/// Options of the self-test.
pub struct Options {
    /// Core of the generator.
    pub core: Option<usize>,
    /// Core of a bare forwarder.
    pub peer_core: Option<usize>,
    /// Bytes of a frame without FCS.
    pub frame: usize,
    /// Seconds for each part.
    pub duration_s: f64,
    /// Print JSON.
    pub json: bool,
}

/// As [`session::make`], after the generator has measured itself with the profile's streams, unless
/// the profile says `self_test: false`.
///
/// # Errors
/// When the generator cannot be made, or its self-test fails.
pub fn make_tested(profile: &Profile, quit: Rc<Cell<bool>>) -> anyhow::Result<session::Session> {
    let own = tested(profile);
    let drivers = Drivers::new(quit).with_self_test(tested);
    let mut session = session::make_with(profile, drivers)?;
    session.set_own_share(own);
    Ok(session)
}

/// Limits of the generator itself with a profile's streams, unless the profile says
/// `self_test: false`.
pub fn tested(profile: &Profile) -> Option<OwnShare> {
    let own = profile.self_test.then(|| own_share(profile)).transpose();
    own.unwrap_or_else(|error| {
        tracing::warn!("self-test: {error:#}; results will not be compared with it");
        None
    })
}

/// One part.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Frames sent a second, both directions.
    pub offered_pps: f64,
    /// Frames received a second, both directions.
    pub received_pps: f64,
    /// Frames that were lost.
    pub lost: i64,
    /// How long frames took at a tenth of that rate.
    pub latency_ns: Option<Distribution>,
    /// The limit, as in the report.
    pub limited_by_generator: bool,
}

/// All parts.
#[derive(Clone, Debug, Serialize)]
pub struct SelfTest {
    /// Core of the generator.
    pub core: usize,
    /// Bytes of a frame without FCS.
    pub frame_bytes: usize,
    /// Frames made and thrown away: no device, nothing received.
    pub transmit: Part,
    /// Two memif ends of its own, one core for everything.
    #[serde(rename = "loop")]
    pub own_loop: Part,
    /// A bare forwarder on another core, over two memifs.
    pub peer: Option<Part>,
}

impl Part {
    fn new(flat_out: &Report, slow: Option<Report>) -> Part {
        Part {
            offered_pps: flat_out.offered_pps,
            received_pps: flat_out.received_pps,
            lost: flat_out.lost,
            latency_ns: slow.and_then(|r| r.latency_ns),
            limited_by_generator: flat_out.limited_by_generator,
        }
    }
}

/// A profile of two ports with a stream in each direction.
fn profile(core: usize, frame: usize, ports: &[String; 2]) -> anyhow::Result<Profile> {
    let stream = |from: usize, to: usize| {
        format!(
            "  - {{from: {from}, to: {to}, frame: {frame}, layers: {{\
             ethernet: {{src: \"02:00:00:00:0{from}:01\", dst: \"02:fe:00:00:00:0{from}\"}}, \
             ip4: {{src: 198.18.{from}.2, dst: 198.18.{to}.2}}, udp: {{}}}}}}\n"
        )
    };
    let text = format!(
        "cores: [{core}]\nports:\n  - {}\n  - {}\nstreams:\n{}{}",
        ports[0],
        ports[1],
        stream(0, 1),
        stream(1, 0)
    );
    Ok(Profile::parse(&text, Path::new("self-test"))?)
}

/// Flat out, then slowly.
fn both<S: Surroundings>(generator: &mut Generator<S>, duration_s: f64) -> anyhow::Result<Part> {
    let flat_out = generator.measure(&Measure::new(Rate::Max, duration_s), &mut NoObserver)?;
    let rate = flat_out.received_pps * LATENCY_PART;
    let slow = (rate * duration_s >= 1.0).then(|| Measure::new(Rate::Pps(rate), duration_s));
    let slow = slow.map(|request| generator.measure(&request, &mut NoObserver)).transpose()?;
    Ok(Part::new(&flat_out, slow))
}

fn transmit(core: usize, options: &Options) -> anyhow::Result<Part> {
    let ports = ["tap: {name: sink0}".to_owned(), "tap: {name: sink1}".to_owned()];
    let profile = profile(core, options.frame, &ports)?;
    let mut generator = Generator::new(&profile, engine_config(&profile), Clock::tsc(), Sink)?;
    generator.start()?;
    let request = Measure { drain_s: 0.0, ..Measure::new(Rate::Max, options.duration_s) };
    Ok(Part::new(&generator.measure(&request, &mut NoObserver)?, None))
}

fn own_loop(core: usize, options: &Options, folder: &Path) -> anyhow::Result<Part> {
    let socket = folder.join("loop.sock");
    let port = |role| format!("memif: {{socket: \"{}\", role: {role}}}", socket.display());
    let profile = profile(core, options.frame, &[port("master"), port("slave")])?;
    both(&mut session::open_profile(&profile)?, options.duration_s)
}

fn over_peer(
    core: usize,
    peer_core: usize,
    options: &Options,
    folder: &Path,
) -> anyhow::Result<Part> {
    let socket = folder.join("peer.sock");
    let port = |id| format!("memif: {{socket: \"{}\", id: {id}}}", socket.display());
    let profile = profile(core, options.frame, &[port(0), port(1)])?;
    let peer = Peer::start(peer_core, &socket)?;
    let part = both(&mut session::open_profile(&profile)?, options.duration_s);
    peer.stop();
    part
}

/// Measure all parts and print the result.
///
/// # Errors
/// When a part cannot be set up or measured, or standard output fails.
pub fn self_test(options: &Options) -> anyhow::Result<()> {
    let core = options.core.unwrap_or_else(first_core);
    let folder = Folder::new()?;
    let result = SelfTest {
        core,
        frame_bytes: options.frame,
        transmit: transmit(core, options).context("transmit only")?,
        own_loop: own_loop(core, options, &folder.0).context("loop")?,
        peer: options
            .peer_core
            .map(|peer| over_peer(core, peer, options, &folder.0).context("peer"))
            .transpose()?,
    };
    let text =
        if options.json { serde_json::to_string_pretty(&result)? + "\n" } else { render(&result) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn render(result: &SelfTest) -> String {
    let mut text = format!(
        "core {}, frames of {} B, both directions summed\n",
        result.core, result.frame_bytes
    );
    let parts = [
        ("transmit only", Some(&result.transmit)),
        ("loop over memif", Some(&result.own_loop)),
        ("bare forwarder", result.peer.as_ref()),
    ];
    for (name, part) in parts {
        let Some(part) = part else { continue };
        text += &format!("{name:<16} sent {:>14}", scaled(part.offered_pps, "pps"));
        if part.received_pps > 0.0 {
            text +=
                &format!("  received {:>14}  lost {}", scaled(part.received_pps, "pps"), part.lost);
        }
        if let Some(l) = &part.latency_ns {
            text += &format!(
                "  latency at a tenth: p50 {:.1} µs, p99.9 {:.1} µs",
                l.p50 as f64 / 1e3,
                l.p99_9 as f64 / 1e3
            );
        }
        text.push('\n');
    }
    text
}

/// A folder for sockets that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Folder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("quiver-tg-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
