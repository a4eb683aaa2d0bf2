//! The environment of a generator: an engine with one worker, ports, and time.

use quiver_control::Registry;
use quiver_core::clock::Clock;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeSpec, WorkerId};
use quiver_tg_traffic::profile::{Port, Profile};

use crate::own_share::OwnShare;

/// How often links are looked for.
pub const LINK_LOOK_NS: u64 = 20_000_000;
/// The only worker.
pub const WORKER: WorkerId = WorkerId(0);

/// How the rings of a port behave.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// Frames that the receive ring holds, where its driver does not count how often it was full.
    pub untold_frames: Option<usize>,
    /// A full transmit ring takes no frame behind the first one that it refused.
    pub refuses_the_rest: bool,
    /// Frames go through the kernel.
    pub is_kernel: bool,
}

impl Rings {
    /// In memory shared with the forwarder.
    pub const SHARED: Rings =
        Rings { untold_frames: None, refuses_the_rest: true, is_kernel: false };
}

/// The parts of a generator that tests replace: ports, time, threads.
pub trait Surroundings {
    /// Register the drivers.
    fn register(&mut self, registry: &mut Registry);
    /// Make a port's interface; its frames go to the node `input`.
    ///
    /// # Errors
    /// When the device cannot be opened.
    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        port: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId>;
    /// Let time pass, at most so many nanoseconds, and do what is due on the control thread.
    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64);
    /// The longest frame that a port takes, bytes without FCS; `None` when any will do.
    fn frame_bytes_max(&self, engine: &Engine, id: InterfaceId, port: &Port) -> Option<usize> {
        let _ = (engine, id, port);
        None
    }
    /// How a port's rings behave.
    fn rings(&self, port: &Port) -> Rings {
        let _ = port;
        Rings::SHARED
    }
    /// Why a port has no link.
    fn link_trouble(&self, engine: &Engine, id: InterfaceId) -> String {
        let _ = (engine, id);
        "its link is down".to_owned()
    }
    /// Measure what the generator can do by itself with other streams, while its worker is paused,
    /// if that is wanted and can be done here.
    fn own_share(&mut self, engine: &mut Engine, profile: &Profile) -> Option<OwnShare> {
        let _ = (engine, profile);
        None
    }
    /// The measurement under way shall be aborted.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Receives the progress of a measurement.
pub trait ProgressObserver {
    /// So many frames have been sent and have come back, all streams together, after so many
    /// seconds of `of_s`.
    fn progress(&mut self, at_s: f64, of_s: f64, sent: u64, received: u64);
}

/// Discards the progress.
pub struct NoObserver;

impl ProgressObserver for NoObserver {
    fn progress(&mut self, _: f64, _: f64, _: u64, _: u64) {}
}

/// Link and counters of a port since it was made. Frames are without FCS.
#[derive(Clone, Debug)]
pub struct PortState {
    /// The interface's name.
    pub name: String,
    /// It has a link.
    pub is_up: bool,
    /// Frames given to the device.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that the device did not take.
    pub tx_refused: u64,
    /// Frames that came.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
}

/// Link and counters of the port with this name and interface since it was made.
pub fn port_state(engine: &Engine, name: &str, interface: InterfaceId) -> PortState {
    let totals = engine.interface_totals(interface);
    PortState {
        name: name.to_owned(),
        is_up: engine.interface(interface).is_some_and(|i| i.row().up),
        tx_frames: totals.tx_packets,
        tx_bytes: totals.tx_bytes,
        tx_refused: totals.tx_errors,
        rx_frames: totals.rx_packets,
        rx_bytes: totals.rx_bytes,
    }
}

/// An engine with the drivers of `surroundings`, and the interface that the generator's own inputs
/// belong to.
///
/// # Errors
/// When the engine or a driver cannot be set up.
pub fn make_engine<S: Surroundings>(
    config: EngineConfig,
    clock: Clock,
    surroundings: &mut S,
) -> anyhow::Result<(Engine, InterfaceId)> {
    let mut registry = Registry::new(GraphBuilder::new(config, clock)?);
    registry.graph.node(NodeSpec::input("tg-input", "Frames that the generator makes"));
    surroundings.register(&mut registry);
    let (mut engine, _) = registry.build()?;
    let inputs = engine.create_interface(InterfaceSpec {
        name: "generator".to_owned(),
        device: Box::new(Inputs),
        mac: [0; 6],
        mtu_bytes: 1500,
        input: "tg-input".to_owned(),
        link_up: false,
        tx: vec![Box::new(Inputs)],
    })?;
    Ok((engine, inputs))
}

/// The interface that the generator's own inputs belong to: drivers take their interfaces' queues
/// away when a link is lost. It sends nothing.
struct Inputs;

impl Device for Inputs {
    fn kind(&self) -> &'static str {
        "generator"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl TxQueue for Inputs {
    fn transmit(&mut self, _: &mut Context<'_>, _: &mut Frame) {}
}
