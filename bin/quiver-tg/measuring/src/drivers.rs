//! The generator's real surroundings: ports made by the drivers, time that passes by itself.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;

use anyhow::Context as _;
use quiver_af_packet::HostConfig;
use quiver_af_xdp::{LIVE_FRAME_BYTES_MAX, Transmit, XdpConfig};
use quiver_control::Registry;
use quiver_core::graph::builder::EngineConfig;
use quiver_core::{Engine, InterfaceId, NodeSpec};
use quiver_memif::{MemifConfig, Role};
use quiver_tap::TapConfig;

use crate::faults::{HELD_FRAMES_MAX, RING_FRAMES};
use crate::own_share::OwnShare;
use crate::surroundings::{Rings, Surroundings, WORKER};
use quiver_tg_traffic::profile::{Memif, MemifRole, Port, Profile, XdpTransmit};

/// Buffers for each port: vectors in both directions, and the entries of its rings.
const BUFFERS_PER_PORT: usize = 2048;
/// Buffers besides for a port with faults: what is held back, and what waits for its fate.
const BUFFERS_PER_FAULTS: usize = 2 * HELD_FRAMES_MAX + RING_FRAMES;

/// Frames that a receive ring of the kernel's is taken to hold.
const KERNEL_RING_FRAMES: usize = 1024;

/// The drivers, and whether the program should end.
#[derive(Default)]
pub struct Drivers {
    /// Sockets, what they are used as, and their numbers.
    sockets: Vec<(PathBuf, MemifRole, u32)>,
    /// Measures what the generator can do by itself with a profile, when streams are replaced.
    self_test: Option<fn(&Profile) -> Option<OwnShare>>,
    /// Set by a signal or the end of the input.
    pub quit: Rc<Cell<bool>>,
}

/// The engine for a profile: one worker on the profile's core, or on the first that the process may
/// use.
pub fn engine_config(profile: &Profile) -> EngineConfig {
    let faulty = profile.ports.iter().filter(|port| port.value.faults.is_some()).count();
    EngineConfig {
        worker_cores: vec![profile.cores.first().copied().unwrap_or_else(first_core)],
        buffers: BUFFERS_PER_PORT * (profile.ports.len() + 1) + BUFFERS_PER_FAULTS * faulty,
        ..EngineConfig::default()
    }
}

/// The first core that this process may use.
pub fn first_core() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let digits =
        list.map(|l| l.trim().chars().take_while(char::is_ascii_digit).collect::<String>());
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}

impl Drivers {
    /// `quit` ends whatever is waited for.
    pub fn new(quit: Rc<Cell<bool>>) -> Drivers {
        Drivers { quit, ..Drivers::default() }
    }

    /// Measure with `self_test` what the generator can do by itself whenever streams are replaced.
    pub fn with_self_test(self, self_test: fn(&Profile) -> Option<OwnShare>) -> Drivers {
        Drivers { self_test: Some(self_test), ..self }
    }

    /// The number of a port's socket.
    fn socket(&mut self, engine: &mut Engine, memif: &Memif) -> anyhow::Result<u32> {
        let known = self
            .sockets
            .iter()
            .find(|(path, role, _)| *path == memif.socket && *role == memif.role);
        if let Some((_, _, number)) = known {
            return Ok(*number);
        }
        let taken = self.sockets.iter().any(|(path, ..)| *path == memif.socket);
        let path = if taken { other_spelling(&memif.socket) } else { memif.socket.clone() };
        let text = path.to_str().context("the socket's path is not UTF-8")?;
        // The driver has one of its own, which is the router's when both have the same runtime
        // folder.
        let number = match quiver_memif::socket_of_path(engine, text)? {
            Some(number) => number,
            None => {
                let number = self.sockets.len() as u32 + 1;
                quiver_memif::add_socket(engine, number, text)?;
                number
            }
        };
        self.sockets.push((memif.socket.clone(), memif.role, number));
        Ok(number)
    }

    fn make_memif(
        &mut self,
        engine: &mut Engine,
        memif: &Memif,
        input: &str,
    ) -> anyhow::Result<InterfaceId> {
        let number = self.socket(engine, memif)?;
        let role = match memif.role {
            MemifRole::Master => Role::Master,
            MemifRole::Slave => Role::Slave,
        };
        let queues = Some(memif.queues as u16);
        let config = MemifConfig {
            ring_size: memif.ring_size,
            buffer_bytes: memif.buffer_size,
            rx_queues: queues,
            tx_queues: queues,
            input: Some(input.to_owned()),
            ..MemifConfig::new(number, memif.id, role)
        };
        Ok(quiver_memif::create(engine, config)?)
    }
}

/// A path to the same file. The driver knows a socket by its path and one role; when a generator
/// plays both ends, the second gets another name.
fn other_spelling(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.parent().unwrap_or(Path::new("")).join(".").join(name)
}

impl Surroundings for Drivers {
    fn register(&mut self, registry: &mut Registry) {
        // The default input node of drivers. Ports have nodes of their own before
        // they are up.
        registry.graph.node(NodeSpec::input("ethernet-input", "The drivers' usual next node"));
        quiver_memif::register(registry);
        quiver_af_packet::register(registry);
        quiver_gso::register(registry);
        quiver_af_xdp::register(registry);
        quiver_tap::register(registry);
    }

    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        port: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId> {
        if let Some(memif) = &port.memif {
            return self.make_memif(engine, memif, input);
        }
        if let Some(af_packet) = &port.af_packet {
            let linux_name = af_packet.interface.clone();
            let config = HostConfig { linux_name, rx_queues: 1, tx_queues: Some(1) };
            return Ok(quiver_af_packet::create_host_interface(engine, config)?);
        }
        if let Some(xdp) = &port.af_xdp {
            let transmit = match xdp.transmit {
                XdpTransmit::Socket => Transmit::Socket,
                XdpTransmit::Live => Transmit::Live,
            };
            let ring_frames = xdp.ring_size;
            let input = Some(input.to_owned());
            let config =
                XdpConfig { ring_frames, transmit, input, ..XdpConfig::new(&xdp.interface) };
            return Ok(quiver_af_xdp::create_interface(engine, config)?);
        }
        let host_name = port
            .tap
            .as_ref()
            .context("a port is one of memif, af_packet, af_xdp and tap")?
            .name
            .clone();
        let config = TapConfig {
            id: number as u32,
            host_name: Some(host_name),
            rx_queues: 1,
            ..TapConfig::default()
        };
        Ok(quiver_tap::create_tap(engine, config)?)
    }

    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64) {
        engine.turn(at_most_ns.div_ceil(1_000_000));
    }

    fn frame_bytes_max(&self, engine: &Engine, id: InterfaceId, port: &Port) -> Option<usize> {
        // A memif has no MTU; Linux refuses what is longer than its device's and an Ethernet
        // header.
        let row = engine.interface(id)?.row();
        let is_live = port.af_xdp.as_ref().is_some_and(|xdp| xdp.transmit == XdpTransmit::Live);
        let live_max = if is_live { LIVE_FRAME_BYTES_MAX } else { usize::MAX };
        port.memif.is_none().then_some((row.mtu_bytes as usize + 14).min(live_max))
    }

    fn rings(&self, port: &Port) -> Rings {
        if port.memif.is_some() {
            return Rings::SHARED;
        }
        if port.af_xdp.is_some() {
            return Rings { untold_frames: None, refuses_the_rest: true, is_kernel: true };
        }
        // The kernel refuses a frame and takes the next.
        Rings { untold_frames: Some(KERNEL_RING_FRAMES), refuses_the_rest: false, is_kernel: true }
    }

    fn link_trouble(&self, engine: &Engine, id: InterfaceId) -> String {
        match quiver_memif::disconnect_reason(engine, id) {
            reason if reason.is_empty() => "it has no link".to_owned(),
            reason => format!("it has no link: {reason}"),
        }
    }

    fn own_share(&mut self, engine: &mut Engine, profile: &Profile) -> Option<OwnShare> {
        let self_test = self.self_test?;
        // The measurement needs the worker's core: the worker waits until `resume` is dropped.
        let (resume, wait) = mpsc::channel::<()>();
        let is_paused = profile.self_test
            && engine.post(WORKER, move |_| {
                let _ = wait.recv(); // it ends with the sender
            });
        let own = is_paused.then(|| self_test(profile)).flatten();
        drop(resume);
        own
    }

    fn is_interrupted(&self) -> bool {
        self.quit.get()
    }
}
