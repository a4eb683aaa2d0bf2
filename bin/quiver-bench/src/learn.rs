//! Millions of addresses learned from traffic, while traffic of known ones goes on: what is lost,
//! and how long it takes.
//!
//! Packets arrive by the clock, whether the worker looks or not: what has arrived and was not taken
//! waits in a ring of so many places, and what finds it full is lost, as at a device. The worker
//! runs in a thread of its own, the control thread here. Every so-many-th packet comes from one of
//! the addresses. First they are learned at whatever rate, then the rate is found at which nothing
//! is lost, all being known; they are forgotten, and learned again at a part of that rate. All
//! packets go to known stations, so every one that was taken must leave by their port. Where the
//! host stops the worker's core, arrivals stop too; how often that happened is told for each
//! stretch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use quiver_bridge::Bridges;
use quiver_control::{Commands, Registry};
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::cpu::{clocks, clocks_per_second};
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::frame::{FRAME_PACKETS_MAX, Frame};
use quiver_core::graph::node::NodeSpec;
use quiver_core::worker::device::{RxMode, RxQueue};
use quiver_core::{Context, Engine, NodeId};
use quiver_wire::MacAddress;

use crate::device::{BenchDevice, Ender, Sink};
use crate::population::{OUR_MAC, ip4_frame};

const INPUT: &str = "bench-input";
/// Known stations on either side.
const KNOWN: u64 = 254;
const NEAR: u64 = 0x0210_0000_0000;
const FAR: u64 = 0x0220_0000_0000;
const NEW: u64 = 0x0230_0000_0000;
/// A rate counts as without loss when nothing is lost for so long.
const TRIAL: Duration = Duration::from_millis(1500);
/// A pass over 256 packets takes some ten thousand clocks. Who does not look for so many was
/// stopped by the host; arrivals stop with it, and it is counted: learning must not make it more.
const STOP_CLOCKS: u64 = 250_000;
/// Learning that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is wanted.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Addresses to be learned.
    pub macs: u64,
    /// Part of the rate without loss.
    pub part: f64,
    /// One packet in so many comes from an address to be learned.
    pub one_in: u64,
    /// Places of the ring that packets wait in.
    pub ring: u64,
    /// The worker's core; the control thread takes another one.
    pub core: usize,
}

/// How packets arrive now; what the worker tells.
#[derive(Default)]
struct Shared {
    /// Packets a second; 0: none, `u64::MAX`: as many as are taken.
    rate: AtomicU64,
    /// Addresses to be learned that take turns.
    macs: AtomicU64,
    /// Counts changes of the two.
    change: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU64,
    /// The host stopped the core so often, and for so many clocks in all.
    stops: AtomicU64,
    stopped: AtomicU64,
}

/// The device: an arrival process.
struct Arrivals {
    shared: Arc<Shared>,
    wanted: Wanted,
    change: u64,
    rate: f64,
    start: u64,
    last: u64,
    arrived: u64,
    /// Packets made, and those from addresses to be learned.
    made: u64,
    new: u64,
    macs: u64,
    frame: [u8; 60],
}

impl Arrivals {
    fn look_at_change(&mut self, now: u64) {
        let change = self.shared.change.load(Ordering::Acquire);
        if change == self.change {
            return;
        }
        self.change = change;
        (self.start, self.last, self.arrived) = (now, now, 0);
        self.rate = match self.shared.rate.load(Ordering::Relaxed) {
            u64::MAX => f64::INFINITY,
            rate => rate as f64 / clocks_per_second(),
        };
        self.macs = self.shared.macs.load(Ordering::Relaxed);
        [&self.shared.taken, &self.shared.lost, &self.shared.stops, &self.shared.stopped]
            .iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// How many packets wait.
    fn waiting(&mut self, now: u64) -> u64 {
        self.look_at_change(now);
        let add = |count: &AtomicU64, n: u64| {
            count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed)
        };
        let between = now - std::mem::replace(&mut self.last, now);
        if between > STOP_CLOCKS {
            add(&self.shared.stops, 1);
            add(&self.shared.stopped, between);
            self.start += between;
        }
        if self.rate.is_infinite() {
            return FRAME_PACKETS_MAX as u64;
        }
        let due = (now.saturating_sub(self.start) as f64 * self.rate) as u64;
        let mut backlog = due.saturating_sub(self.arrived);
        if backlog > self.wanted.ring {
            add(&self.shared.lost, backlog - self.wanted.ring);
            self.arrived += backlog - self.wanted.ring;
            backlog = self.wanted.ring;
        }
        backlog.min(FRAME_PACKETS_MAX as u64)
    }

    /// Whose packet is next.
    fn source(&mut self) -> u64 {
        self.made += 1;
        if self.macs > 0 && self.made.is_multiple_of(self.wanted.one_in) {
            self.new = if self.new + 1 < self.macs { self.new + 1 } else { 0 };
            return NEW + self.new;
        }
        NEAR + self.made % KNOWN
    }
}

impl RxQueue for Arrivals {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let waiting = self.waiting(clocks());
        let data_bytes = cx.buffers.pool().data_bytes();
        for _ in 0..waiting {
            let Some(mut packet) = cx.buffers.packet() else { break };
            if !packet.set_span(quiver_core::memory::buffer::DATA_OFFSET, 60, data_bytes) {
                break;
            }
            let source = self.source();
            let destination = FAR + self.made.wrapping_mul(7) % KNOWN;
            let bytes = packet.bytes_mut();
            bytes.copy_from_slice(&self.frame);
            bytes[..6].copy_from_slice(&MacAddress::from_u64(destination).0);
            bytes[6..12].copy_from_slice(&MacAddress::from_u64(source).0);
            let _ = frame.push(packet);
        }
        let taken = frame.len() as u64;
        self.arrived += taken;
        self.shared
            .taken
            .store(self.shared.taken.load(Ordering::Relaxed) + taken, Ordering::Relaxed);
        None
    }
}

/// What one stretch of traffic came to.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    taken: u64,
    lost: u64,
    took: Duration,
    stops: u64,
    stopped_ms: f64,
}

struct Bench {
    engine: Engine,
    commands: std::rc::Rc<std::cell::RefCell<Commands<Engine>>>,
    shared: Arc<Shared>,
}

impl Bench {
    fn new(wanted: Wanted) -> Result<Bench> {
        let config = EngineConfig {
            worker_cores: vec![wanted.core],
            buffers: 16_384,
            ..EngineConfig::default()
        };
        let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
        registry.graph.node(NodeSpec::input(INPUT, "The benchmark's packets"));
        quiver_control::commands::register(&mut registry);
        quiver_bridge::register(&mut registry);
        quiver_ethernet::register(&mut registry);
        quiver_ip::register(&mut registry);
        quiver_fused::register(&mut registry);
        let (mut engine, commands) = registry.build()?;
        for name in ["bench0", "bench1"] {
            engine.create_interface(InterfaceSpec {
                name: name.to_owned(),
                device: Box::new(BenchDevice),
                mac: OUR_MAC,
                mtu_bytes: 1500,
                input: "ethernet-input".to_owned(),
                link_up: true,
                tx: vec![Box::new(Sink(Ender::default()))],
            })?;
        }
        let mut bench = Bench { engine, commands, shared: Arc::default() };
        for line in [
            "set interface state bench0 up".to_owned(),
            "set interface state bench1 up".to_owned(),
            "set interface l2 bridge bench0 1".to_owned(),
            "set interface l2 bridge bench1 1".to_owned(),
            format!("l2fib add {} 1 bench0 count {KNOWN}", MacAddress::from_u64(NEAR)),
            format!("l2fib add {} 1 bench1 count {KNOWN}", MacAddress::from_u64(FAR)),
        ] {
            bench.command(&line)?;
        }
        let arrivals = Arrivals {
            shared: bench.shared.clone(),
            wanted,
            change: 0,
            rate: 0.0,
            start: 0,
            last: clocks(),
            arrived: 0,
            made: 0,
            new: 0,
            macs: 0,
            frame: ip4_frame(0x1400_0000),
        };
        let first = bench.engine.interface_id("bench0").ok_or_else(|| anyhow!("no bench0"))?;
        bench.engine.add_rx_queue(first, INPUT, Box::new(arrivals), RxMode::Polling, None)?;
        bench.engine.start_threads()?.iter().for_each(|complaint| eprintln!("{complaint}"));
        Ok(bench)
    }

    fn command(&mut self, line: &str) -> Result<()> {
        let done = self.commands.borrow().execute(&mut self.engine, line);
        done.map(|_| ()).map_err(|refusal| anyhow!("{line}: {refusal}"))
    }

    /// Let packets arrive until `enough`, and then until all are through.
    fn run(
        &mut self,
        rate: u64,
        macs: u64,
        mut enough: impl FnMut(&Engine, Duration) -> bool,
    ) -> Result<Stretch> {
        self.shared.rate.store(rate, Ordering::Relaxed);
        self.shared.macs.store(macs, Ordering::Relaxed);
        self.shared.change.fetch_add(1, Ordering::Release);
        let begin = Instant::now();
        while !enough(&self.engine, begin.elapsed()) {
            self.engine.turn(1);
        }
        let took = begin.elapsed();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let shared = &self.shared;
        let stretch = Stretch {
            taken: read(&shared.taken),
            lost: read(&shared.lost),
            took,
            stops: read(&shared.stops),
            stopped_ms: read(&shared.stopped) as f64 / clocks_per_second() * 1e3,
        };
        shared.rate.store(0, Ordering::Relaxed);
        shared.change.fetch_add(1, Ordering::Release);
        let still = Instant::now();
        while still.elapsed() < Duration::from_millis(50) {
            self.engine.turn(1);
        }
        self.check()?;
        Ok(stretch)
    }

    /// Every packet that was taken has left by the port of its destination.
    fn check(&self) -> Result<()> {
        let id = |name| self.engine.interface_id(name).ok_or_else(|| anyhow!("no {name}"));
        let received = self.engine.interface_totals(id("bench0")?).rx_packets;
        let sent = self.engine.interface_totals(id("bench1")?).tx_packets;
        if received == sent {
            return Ok(());
        }
        let reasons: Vec<String> = self
            .engine
            .reason_counts(false)
            .iter()
            .map(|line| format!("{} {} {}", line.count, line.node, line.reason))
            .collect();
        Err(anyhow!("{received} taken, {sent} sent: {}", reasons.join(", ")))
    }

    fn learned(engine: &Engine) -> u64 {
        engine.get::<Bridges>().map_or(0, |bridges| bridges.macs.learned() as u64)
    }
}

fn print_stretch(what: &str, stretch: Stretch) {
    println!(
        "{what}: {} packets in {:.2} s ({:.2} Mpps), lost {}; the host stopped the core {} times, \
         {:.1} ms",
        stretch.taken,
        stretch.took.as_secs_f64(),
        stretch.taken as f64 / stretch.took.as_secs_f64() / 1e6,
        stretch.lost,
        stretch.stops,
        stretch.stopped_ms
    );
}

impl Bench {
    /// Let packets arrive until `macs` addresses are learned. How long that took, too.
    fn learn(&mut self, rate: u64, macs: u64) -> Result<(Stretch, f64)> {
        let mut learned_in = None;
        let stretch = self.run(rate, macs, |engine, elapsed| {
            if Bench::learned(engine) >= macs && learned_in.is_none() {
                learned_in = Some(elapsed);
            }
            learned_in.is_some() || elapsed > PATIENCE
        })?;
        let seconds =
            learned_in.ok_or_else(|| anyhow!("{} learned", Bench::learned(&self.engine)))?;
        Ok((stretch, seconds.as_secs_f64()))
    }

    /// The rate at which nothing is lost when all addresses are known, packets a second.
    fn rate_without_loss(&mut self, macs: u64) -> Result<u64> {
        let for_a_trial = |_: &Engine, elapsed: Duration| elapsed >= TRIAL;
        let all = self.run(u64::MAX, macs, for_a_trial)?;
        let most = all.taken as f64 / all.took.as_secs_f64();
        println!("as many as are taken when all are known: {:.2} Mpps", most / 1e6);
        for hundredths in (50..100).rev() {
            let rate = (most * f64::from(hundredths) / 100.0) as u64;
            let trial = self.run(rate, macs, for_a_trial)?;
            if trial.lost == 0 {
                print_stretch(&format!("all known, at {hundredths} % of that"), trial);
                return Ok(rate);
            }
        }
        Err(anyhow!("known packets are lost at half of the rate already: something else runs here"))
    }

    /// Forget what was learned, all of it.
    fn forget(&mut self) -> Result<()> {
        self.command("l2fib flush-mac all")?;
        let begin = Instant::now();
        while Bench::learned(&self.engine) > 0 {
            if begin.elapsed() > PATIENCE {
                return Err(anyhow!("{} are still learned", Bench::learned(&self.engine)));
            }
            self.engine.turn(1);
        }
        Ok(())
    }
}

/// Measure, and print what came of it.
pub fn run(wanted: Wanted) -> Result<()> {
    let Wanted { macs, part, one_in, .. } = wanted;
    let mut bench = Bench::new(wanted)?;
    bench.run(u64::MAX, 0, |_, elapsed| elapsed >= TRIAL)?; // warms up
    bench.learn(u64::MAX, macs)?;
    let rate = (bench.rate_without_loss(macs)? as f64 * part) as u64;
    bench.forget()?;
    let (learning, seconds) = bench.learn(rate, macs)?;
    print_stretch(
        &format!("{macs} new addresses, one packet in {one_in}, at {:.0} %", part * 100.0),
        learning,
    );
    println!(
        "all were learned after {seconds:.2} s, {:.2} million a second",
        macs as f64 / seconds / 1e6
    );
    print_stretch("the same with all known", bench.run(rate, macs, |_, elapsed| elapsed >= TRIAL)?);
    if let Some(bridges) = bench.engine.get::<Bridges>() {
        let usage = bridges.macs.usage();
        let each = usage.resident_bytes as f64 / usage.entries as f64;
        println!(
            "{} entries in {} MiB, {each:.1} bytes each",
            usage.entries,
            usage.resident_bytes >> 20
        );
    }
    bench.engine.reason_counts(true).iter().filter(|line| line.count > 0).for_each(|line| {
        println!("  {} {} {}", line.count, line.node, line.reason);
    });
    Ok(())
}
