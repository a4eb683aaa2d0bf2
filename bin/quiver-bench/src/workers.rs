//! Two workers beside one: the same paths on the worker that owns their sessions, on another one,
//! to which all packets come wrong, and on both at once with the same sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use quiver_core::WorkerId;
use quiver_core::cpu::Variant;
use quiver_core::worker::device::RxMode;

use crate::device::{Ender, TurnSource};
use crate::measure::{self, Form, INPUT, Router};
use crate::paths::{self, Path};

/// Buffers: a vector of each worker, and those that wait for sessions.
const BUFFERS: usize = 32_768;
/// How long packets come before it is measured, and while it is.
const STRETCH: Duration = Duration::from_millis(150);
/// Sessions that take longer to be made than this are none.
const PATIENCE: Duration = Duration::from_secs(60);
/// Which workers take packets, by their bits.
const OWNER: u32 = 1;
const OTHER: u32 = 2;
const BOTH: u32 = OWNER | OTHER;

/// Clocks per packet.
#[derive(Default)]
struct Clocks {
    owner: Vec<f64>,
    other: Vec<f64>,
    both: [Vec<f64>; 2],
}

/// Measure the paths whose names begin so on two cores.
pub fn run(names: &[String], rounds: usize, cores: [usize; 2]) -> Result<()> {
    println!(
        "{:22} {:>8} {:>8} {:>8} {:>8} {:>10}  clocks per packet",
        "path", "owner", "other", "both: 0", "1", "two / one"
    );
    let wanted = |path: &Path| names.iter().any(|name| path.name.starts_with(name.as_str()));
    for path in
        paths::all().iter().filter(|path| wanted(path) && !path.cold && path.primer.is_none())
    {
        line(&path.name, measure(path, rounds, cores)?);
    }
    Ok(())
}

fn line(name: &str, clocks: Clocks) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (owner, other) = (median(clocks.owner), median(clocks.other));
    let [first, second] = clocks.both.map(median);
    let ratio = (first.recip() + second.recip()) * owner;
    println!("{name:22} {owner:8.0} {other:8.0} {first:8.0} {second:8.0} {ratio:10.2}");
}

fn measure(path: &Path, rounds: usize, cores: [usize; 2]) -> Result<Clocks> {
    let form = Form { variant: Variant::best(), block_driver: true };
    let mut router = Router::empty(form, cores.to_vec(), BUFFERS)?;
    let [first, _] = router.interfaces(Ender::default())?;
    router.configure(path)?;
    let turns = Arc::new(AtomicU32::new(OWNER));
    let mut once = 0;
    for worker in [WorkerId(0), WorkerId(1)] {
        let mut maker = measure::maker(path);
        once = maker.once() as u64;
        if worker.index() > 0 {
            maker.skip_once(once as usize / 2);
        }
        let source = Box::new(TurnSource::new(maker, worker, turns.clone()));
        router.engine.add_rx_queue(first, INPUT, source, RxMode::Polling, Some(worker))?;
    }
    router.engine.start_threads()?.iter().for_each(|complaint| eprintln!("{complaint}"));
    let begin = Instant::now();
    while router.packets().1 < once {
        if begin.elapsed() > PATIENCE {
            return Err(anyhow!(
                "{}: {} of {once} first packets left",
                path.name,
                router.packets().1
            ));
        }
        router.engine.turn(1);
    }
    let mut clocks = Clocks::default();
    for _ in 0..rounds.max(1) {
        clocks.owner.extend(stretch(&mut router, &turns, OWNER).map(|[owner, _]| owner));
        clocks.other.extend(stretch(&mut router, &turns, OTHER).map(|[_, other]| other));
        if let Some(each) = stretch(&mut router, &turns, BOTH) {
            clocks.both.iter_mut().zip(each).for_each(|(all, one)| all.push(one));
        }
    }
    turns.store(0, Ordering::Relaxed);
    wait(&mut router, STRETCH);
    let drops = router.engine.interface_totals(first).drops;
    let (received, sent) = router.packets();
    // The router announces its own addresses, too.
    if drops > 0 || sent < received {
        return Err(anyhow!("{}: {received} in, {sent} out, {drops} dropped", path.name));
    }
    Ok(clocks)
}

/// Clocks per packet of each worker while some take packets.
fn stretch(router: &mut Router, turns: &AtomicU32, who: u32) -> Option<[f64; 2]> {
    turns.store(who, Ordering::Relaxed);
    wait(router, STRETCH / 3);
    router.engine.clear_runtime();
    wait(router, STRETCH);
    let each = [0, 1].map(|worker| router.measured_on(WorkerId(worker)).total);
    // A core without time, or a worker whose turn it is not, has no packets and no clocks.
    let has_run = |worker: usize| who >> worker & 1 == 0 || each[worker] > 0.0;
    (has_run(0) && has_run(1)).then_some(each)
}

fn wait(router: &mut Router, time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        router.engine.turn(10);
    }
}
