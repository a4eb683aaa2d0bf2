//! A router on the calling thread: its time stands still until a test moves it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quiver_control::{
    Collected, Command, Commands, Execution, Job, OnRefusal, Output, Refusal, Registry,
    SharedCommands, Sink, Started, Step,
};
use quiver_core::clock::Clock;
use quiver_core::control::engine::Unasked;
use quiver_core::control::statistics::{InterfaceTotals, ReasonCount};
use quiver_core::cpu::Variant;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Severity;
use quiver_core::memory::buffer::{BufferPool, DATA_BYTES_DEFAULT, Offload};
use quiver_core::memory::mapping::PageSize;
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::answers;
use crate::wire::{self, TestDevice, Wire};

/// What a driver or feature exposes.
pub type Register = fn(&mut Registry);

/// Passes after which a router that still has packets under way is said to loop.
const PASSES_MAX: usize = 10_000;
/// Time moves in so many hops, so that timers fire in between …
const HOPS_MAX: u32 = 1000;
/// … but in none shorter than this.
const HOP_MIN: Duration = Duration::from_millis(10);
/// Steps after which a command waits for a thread beside the router, as for one that opens a file:
/// it gets a millisecond of real time before each further step.
const COMMAND_STEPS_AT_ONCE: usize = 10_000;
/// Steps after which a command that does not end is said to hang.
const COMMAND_STEPS_MAX: usize = COMMAND_STEPS_AT_ONCE + 60_000;

/// What a test may want otherwise than usual.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Workers, all on the calling thread.
    pub workers: usize,
    /// Buffers in the pool.
    pub buffers: usize,
    /// Bytes of data in a buffer.
    pub buffer_data_bytes: usize,
    /// The form of loops and look-ups.
    pub variant: Variant,
    /// Does the block driver run? Otherwise vectors go node by node.
    pub block_driver: bool,
    /// May features send what nobody asked for, such as announcements of addresses?
    pub unasked: bool,
    /// Folder for sockets; the system's folder for temporary files unless it is given.
    pub runtime_dir: Option<&'static Path>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 1,
            buffers: 2048,
            buffer_data_bytes: DATA_BYTES_DEFAULT,
            variant: Variant::best(),
            block_driver: true,
            unasked: false,
            runtime_dir: None,
        }
    }
}

/// A router under test. When it is dropped, every buffer must have come back.
pub struct Router {
    /// `None` only while it is dropped.
    engine: Option<Engine>,
    commands: Rc<RefCell<Commands<Engine>>>,
    time: Arc<AtomicU64>,
    held: usize,
    /// It has all features: its answers are those that are published.
    is_whole: bool,
}

impl Router {
    /// A router with one worker, the engine's own commands and these features.
    pub fn new(features: &[Register]) -> Router {
        Router::with(Settings::default(), features)
    }

    /// A router set up otherwise.
    pub fn with(settings: Settings, features: &[Register]) -> Router {
        Router::made(settings, |registry| {
            quiver_control::commands::register(registry);
            features.iter().for_each(|register| register(registry));
        })
    }

    /// A router of one list that registers everything, the engine's own commands too, as quiverd's
    /// does.
    pub fn whole(settings: Settings, register: Register) -> Router {
        let mut router = Router::made(settings, register);
        router.is_whole = true;
        router
    }

    fn made(settings: Settings, register: impl FnOnce(&mut Registry)) -> Router {
        let (clock, time) = Clock::manual();
        let config = EngineConfig {
            worker_cores: (0..settings.workers).collect(),
            main_core: None,
            buffers: settings.buffers,
            buffer_data_bytes: settings.buffer_data_bytes,
            pages: PageSize::Small,
            runtime_dir: settings.runtime_dir.map_or_else(std::env::temp_dir, Path::to_owned),
            variant: settings.variant,
            block_driver: settings.block_driver,
        };
        let graph = GraphBuilder::new(config, clock).unwrap_or_else(|error| panic!("{error}"));
        let mut registry = Registry::new(graph);
        wire::register(&mut registry);
        register_clock(&mut registry, &time);
        register(&mut registry);
        let (mut engine, commands) = registry.build().unwrap_or_else(|error| panic!("{error}"));
        engine.insert(Unasked(settings.unasked));
        Router { engine: Some(engine), commands, time, held: 0, is_whole: false }
    }

    /// The engine, for what has no word here.
    pub fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("only dropping takes it away")
    }

    /// The commands, for a server of the test's own.
    pub fn commands(&self) -> SharedCommands {
        self.commands.clone()
    }

    fn engine_ref(&self) -> &Engine {
        self.engine.as_ref().expect("only dropping takes it away")
    }

    /// Add a test interface and set it up.
    pub fn interface(&mut self, name: &str) -> InterfaceId {
        self.cli(&format!("create test interface {name}"));
        self.cli(&format!("set interface state {name} up"));
        self.id(name)
    }

    /// The number of an interface.
    pub fn id(&self, name: &str) -> InterfaceId {
        self.engine_ref()
            .interface_id(name)
            .unwrap_or_else(|| panic!("there is no interface {name}"))
    }

    // Commands.

    /// Execute a line and return its text; a refusal is a panic.
    #[track_caller]
    pub fn cli(&mut self, line: &str) -> String {
        self.execute(line)
            .unwrap_or_else(|refusal| panic!("`{line}` is refused: {refusal}"))
            .to_text()
    }

    /// Execute a line and return its JSON; a refusal is a panic.
    #[track_caller]
    pub fn json(&mut self, line: &str) -> serde_json::Value {
        self.execute(line)
            .unwrap_or_else(|refusal| panic!("`{line}` is refused: {refusal}"))
            .to_json()
    }

    /// Execute a line that must be refused, and return the message.
    #[track_caller]
    pub fn refused(&mut self, line: &str) -> String {
        match self.execute(line) {
            Ok(output) => panic!("`{line}` is not refused, it says: {}", output.to_text()),
            Err(refusal) => refusal.to_string(),
        }
    }

    /// Execute a line. What takes a while gets the time it waits for, and the router runs
    /// meanwhile.
    ///
    /// # Errors
    /// The line is no command, or the command is refused.
    pub fn execute(&mut self, line: &str) -> Result<Output, Refusal> {
        let commands = self.commands.clone();
        let commands = commands.borrow();
        match commands.start(self.engine(), line)? {
            Started::Done(output) => Ok(output),
            Started::Running(execution) => self.finish(&commands, execution),
        }
        .inspect(|output| {
            if self.is_whole {
                answers::check(&commands, line, output);
            }
        })
    }

    /// Execute many lines, as from a file called `name`; it stops at the first refusal.
    ///
    /// # Errors
    /// The first refusal, with the line of the script.
    pub fn script(&mut self, name: &str, text: &str) -> Result<Output, Refusal> {
        let commands = self.commands.clone();
        let commands = commands.borrow();
        let execution =
            commands.start_script(text.to_owned(), Some(name.to_owned()), OnRefusal::Stop);
        self.finish(&commands, execution)
    }

    /// Execute a file of commands; a refusal is a panic.
    #[track_caller]
    pub fn exec(&mut self, path: &Path) {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Err(refusal) = self.script(&path.display().to_string(), &text) {
            panic!("{refusal}");
        }
    }

    fn finish(
        &mut self,
        commands: &Commands<Engine>,
        mut execution: Execution<Engine>,
    ) -> Result<Output, Refusal> {
        let mut sink = Collected::default();
        let mut waited_for = None;
        for step in 0..COMMAND_STEPS_MAX {
            match execution.step(commands, self.engine(), &mut sink)? {
                Step::Again => {
                    self.step();
                    if step >= COMMAND_STEPS_AT_ONCE {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                Step::Until(when) => {
                    if waited_for.replace(when) != Some(when) {
                        self.advance(when.saturating_duration_since(Instant::now()));
                    } else {
                        std::thread::sleep(Duration::from_millis(1)); // it looks at the real clock
                    }
                    self.run();
                }
                Step::Done(last) => {
                    sink.output(last);
                    if sink.outputs.len() == 1 {
                        return Ok(sink.outputs.remove(0));
                    }
                    return Ok(Output::text(
                        sink.outputs.iter().map(Output::to_text).collect::<String>(),
                    ));
                }
            }
        }
        panic!("the command does not end");
    }

    // Packets.

    fn device(&mut self, name: &str) -> &mut TestDevice {
        let id = self.id(name);
        let device = self.engine().device::<TestDevice>(id);
        device.unwrap_or_else(|| panic!("{name} is not a test interface"))
    }

    fn wire(&mut self, name: &str) -> Wire {
        self.device(name).wire.clone()
    }

    /// Let a frame wait at an interface's first receive queue.
    pub fn inject(&mut self, interface: &str, bytes: &[u8]) {
        self.inject_queue(interface, 0, bytes);
    }

    /// Let a frame wait at one of an interface's receive queues.
    pub fn inject_queue(&mut self, interface: &str, queue: usize, bytes: &[u8]) {
        let taken = self.device(interface).inject(queue, bytes, None);
        assert!(taken, "{interface} has no receive queue {queue}");
    }

    /// Let a frame wait that may leave work to the transmitting device.
    pub fn inject_unfinished(&mut self, interface: &str, bytes: &[u8], offload: Option<Offload>) {
        assert!(self.device(interface).inject(0, bytes, offload));
    }

    /// Put in a frame that leaves work to the transmitting device, and run.
    pub fn send_unfinished(&mut self, interface: &str, bytes: &[u8], offload: Offload) {
        self.inject_unfinished(interface, bytes, Some(offload));
        self.run();
    }

    /// Put a frame in and run.
    pub fn send(&mut self, interface: &str, bytes: &[u8]) {
        self.inject(interface, bytes);
        self.run();
    }

    /// What an interface has sent since this was last asked.
    pub fn sent(&mut self, interface: &str) -> Vec<Vec<u8>> {
        self.sent_unfinished(interface).into_iter().map(|(bytes, _)| bytes).collect()
    }

    /// As [`sent`](Self::sent), with what the frames leave to the device: super-frames and open
    /// checksums, of an interface made with `takes-offloads`.
    pub fn sent_unfinished(&mut self, interface: &str) -> Vec<(Vec<u8>, Option<Offload>)> {
        self.wire(interface).take_sent()
    }

    /// The device takes nothing (its ring is full), or takes again.
    pub fn stall(&mut self, interface: &str, stalled: bool) {
        self.wire(interface).set_stalled(stalled);
    }

    /// The device takes so many packets of a vector and leaves the rest, or takes all again.
    pub fn take_at_most(&mut self, interface: &str, packets: Option<usize>) {
        self.wire(interface).set_taken_max(packets);
    }

    /// The device gives nothing of what waits (its queue has stopped), or gives again.
    pub fn silence(&mut self, interface: &str, silent: bool) {
        self.wire(interface).set_silent(silent);
    }

    /// The names of all test interfaces.
    pub fn interfaces(&mut self) -> Vec<String> {
        let of_tests = self.engine_ref().all_interfaces().filter(|i| i.device.kind() == "test");
        of_tests.map(|i| i.name.clone()).collect()
    }

    /// One pass of every worker, and what is due on the control thread. Returns the packets that
    /// came in.
    pub fn step(&mut self) -> usize {
        self.engine().step()
    }

    /// Pass after pass until nothing comes in any more, and nothing that waits for the next pass
    /// goes on. A router that never rests is a panic.
    pub fn run(&mut self) {
        let (mut quiet, mut moved) = (0, 0);
        for _ in 0..PASSES_MAX {
            if self.step() > 0 || self.waiting() {
                quiet = 0;
                continue;
            }
            let before = std::mem::replace(&mut moved, self.moved());
            quiet = if before == moved { quiet + 1 } else { 0 };
            // The second quiet pass sees what the first has handed to a worker before it.
            if quiet == 2 {
                return;
            }
            // What waits for the next pass is due in a later moment.
            self.time.fetch_add(u64::from(before != moved), Ordering::Relaxed);
        }
        panic!("packets still go round after {PASSES_MAX} passes");
    }

    /// Packets that nodes have taken, all together.
    fn moved(&self) -> u64 {
        let engine = self.engine_ref();
        let workers = (0..engine.worker_count() as u16).map(WorkerId);
        let of =
            |worker| engine.all_nodes().map(move |(id, _)| engine.node_totals(worker, id).vectors);
        workers.flat_map(of).sum()
    }

    /// Do frames wait at an awake queue?
    fn waiting(&mut self) -> bool {
        let names = self.interfaces();
        names.iter().any(|name| {
            let served =
                self.engine_ref().interface(self.id(name)).is_some_and(|i| !i.rx.is_empty());
            served && self.wire(name).waits()
        })
    }

    // Time.

    /// Move the clock, in hops, and run after each.
    pub fn advance(&mut self, by: Duration) {
        let hop = (by / HOPS_MAX).max(HOP_MIN);
        let mut left = by;
        while !left.is_zero() {
            let now = left.min(hop);
            self.time.fetch_add(now.as_nanos() as u64, Ordering::Relaxed);
            self.run();
            left -= now;
        }
    }

    /// The router's time.
    pub fn now_ns(&self) -> u64 {
        self.time.load(Ordering::Relaxed)
    }

    // Counters.

    /// What died since `clear errors`: node, reason, count.
    pub fn dropped(&self) -> Vec<(String, String, u64)> {
        self.reasons(Severity::Error)
    }

    /// What was counted and is no death: node, event, count.
    pub fn events(&self) -> Vec<(String, String, u64)> {
        self.reasons(Severity::Info)
    }

    fn reasons(&self, severity: Severity) -> Vec<(String, String, u64)> {
        let all = self.engine_ref().reason_counts(false);
        let wanted = all.into_iter().filter(|line: &ReasonCount| line.severity == severity);
        wanted.map(|line| (line.node, line.reason.to_owned(), line.count)).collect()
    }

    /// How often one reason or event was counted since `clear errors`.
    pub fn count(&self, node: &str, reason: &str) -> u64 {
        let all = self.engine_ref().reason_counts(true);
        let line = all.iter().find(|line| line.node == node && line.reason == reason);
        line.unwrap_or_else(|| panic!("node {node} knows no reason {reason}")).count
    }

    /// An interface's counters since `clear interfaces`.
    pub fn totals(&self, interface: &str) -> InterfaceTotals {
        self.engine_ref().interface_totals(self.id(interface))
    }

    // Buffers.

    /// Buffers that are not free.
    pub fn buffers_in_use(&self) -> usize {
        let pool = self.engine_ref().pool();
        pool.total() - pool.free()
    }

    /// End it without looking at its buffers, for a test of what is configured: packets that the
    /// router itself sent may be on their way still.
    pub fn discard(mut self) {
        drop(self.engine.take());
    }

    /// At the end, so many buffers are in flight and rightly so: a feature keeps them (packets that
    /// wait for a neighbour, fragments that wait for the rest).
    pub fn expect_held(&mut self, buffers: usize) {
        self.held = buffers;
    }
}

/// `test advance`: the clock for files of commands.
fn register_clock(registry: &mut Registry, time: &Arc<AtomicU64>) {
    let time = time.clone();
    registry.command(
        Command::new("test advance <time:seconds>")
            .group("Tests")
            .help("Move the clock, so that timers fire")
            .example("test advance 1.5")
            .begin(move |_, args| {
                let left = Duration::try_from_secs_f64(args.get("time")?)?;
                Ok(Box::new(Advance {
                    time: time.clone(),
                    hop: (left / HOPS_MAX).max(HOP_MIN),
                    left,
                }))
            }),
    );
}

/// The clock on its way; the router runs between two hops.
struct Advance {
    time: Arc<AtomicU64>,
    hop: Duration,
    left: Duration,
}

impl Job<Engine> for Advance {
    fn step(&mut self, _: &mut Engine, _: &mut dyn Sink) -> Result<Step, Refusal> {
        if self.left.is_zero() {
            return Ok(Step::Done(Output::none()));
        }
        let now = self.left.min(self.hop);
        self.time.fetch_add(now.as_nanos() as u64, Ordering::Relaxed);
        self.left -= now;
        Ok(Step::Again)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let Some(engine) = self.engine.take() else { return };
        let pool: Arc<BufferPool> = engine.pool().clone();
        drop(engine); // the workers' caches go back to the pool
        if !std::thread::panicking() {
            assert_eq!(
                pool.total(),
                pool.free() + self.held,
                "buffers are lost or there are too many: allocated must be free + in flight"
            );
        }
    }
}
