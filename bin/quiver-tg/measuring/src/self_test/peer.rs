//! A bare forwarder on a core of its own: two memifs, what comes in by one goes out by the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeSpec};
use quiver_memif::{MemifConfig, Role};

/// How often its control thread looks whether it should end.
const LOOK_MS: u64 = 50;

/// The forwarder's thread.
pub(super) struct Peer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Sends everything out by one interface.
struct Patch(InterfaceId);

impl Node for Patch {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let output = cx.interface(self.0).map_or(quiver_core::graph::node::DROP, |row| row.output);
        frame.set_all_next(output);
    }
}

impl Peer {
    /// Start it; its memifs listen when this returns.
    pub(super) fn start(core: usize, socket: &Path) -> anyhow::Result<Peer> {
        let socket = socket.to_str().context("the socket's path is not UTF-8")?.to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let (started, result) = mpsc::channel();
        let should_stop = stop.clone();
        let thread = std::thread::spawn(move || match forwarder(core, &socket) {
            Ok(mut engine) => {
                let _ = started.send(Ok(()));
                while !should_stop.load(Ordering::Relaxed) {
                    engine.turn(LOOK_MS);
                }
            }
            Err(error) => drop(started.send(Err(error))),
        });
        result.recv().context("the forwarder's thread ended")??;
        Ok(Peer { stop, thread })
    }

    /// End it.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

fn forwarder(core: usize, socket: &str) -> anyhow::Result<Engine> {
    let config = EngineConfig { worker_cores: vec![core], ..EngineConfig::default() };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc())?);
    quiver_memif::register(&mut registry);
    let (mut engine, _) = registry.build()?;
    quiver_memif::add_socket(&mut engine, 1, socket)?;
    let mut ids = Vec::new();
    for number in 0..2 {
        let input = Some("null-node".to_owned());
        let config = MemifConfig { input, ..MemifConfig::new(1, number, Role::Master) };
        ids.push(quiver_memif::create(&mut engine, config)?);
    }
    for (number, id) in ids.iter().enumerate() {
        let spec =
            NodeSpec::input(format!("patch-{number}"), "Sends everything out by the other memif");
        let node = engine.add_node(spec, vec![Box::new(Patch(ids[1 - number]))])?;
        engine.set_input_node(*id, node)?;
        engine.set_admin_up(*id, true)?;
    }
    engine.start_threads()?;
    Ok(engine)
}
