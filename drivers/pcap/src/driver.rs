//! Interfaces made and deleted: what the router's commands call, and programs that have an engine.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quiver_control::Access;
use quiver_core::control::interfaces::{InterfaceChange, InterfaceError, InterfaceSpec};
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::pcap_file::{LINK_ETHERNET, LINK_RAW};
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::worker::poll::Bell;
use quiver_core::{Engine, InterfaceId, NodeSpec};

use crate::config::{MTU_BYTES_DEFAULT, PcapConfig, PcapDriverError};
use crate::file::{Packets, open_to_append};
use crate::receive::{PcapRx, RxState};
use crate::transmit::{NoFile, PcapTx, TxState};

/// The node under which packets come in.
pub const INPUT_NODE: &str = "pcap-input";

/// An interface.
#[derive(Clone)]
pub(crate) struct Pcap {
    pub(crate) config: PcapConfig,
    /// Packets in the file that comes in.
    pub(crate) packets: usize,
    pub(crate) rx: Arc<RxState>,
    pub(crate) tx: Arc<TxState>,
}

impl Pcap {
    /// How far it is, in a word.
    pub(crate) fn progress(&self) -> &'static str {
        let received = self.rx.received.load(Ordering::Relaxed);
        match (&self.config.rx, self.config.repeat) {
            (None, _) => "",
            (Some(_), false) if received >= self.packets as u64 => "done",
            (Some(_), _) if !self.rx.up.load(Ordering::Relaxed) => {
                "waits for the interface to be set up"
            }
            (Some(_), _) => "under way",
        }
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Pcaps(pub(crate) BTreeMap<InterfaceId, Pcap>);

/// The engine's handle on an interface.
struct PcapDevice(Pcap);

impl Device for PcapDevice {
    fn kind(&self) -> &'static str {
        "pcap"
    }

    fn set_admin_up(&mut self, up: bool) -> Result<(), String> {
        self.0.rx.up.store(up, Ordering::Release);
        self.0.rx.bell.ring();
        Ok(())
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        let Pcap { config, packets, rx, tx } = &self.0;
        let mut facts = Vec::new();
        if let Some(path) = &config.rx {
            facts.push(("rx-file".to_owned(), path.to_string_lossy().into()));
            facts.push(("rx-packets-in-file".to_owned(), (*packets).into()));
            facts.push(("rx-packets".to_owned(), rx.received.load(Ordering::Relaxed).into()));
        }
        if let Some(path) = &config.tx {
            facts.push(("tx-file".to_owned(), path.to_string_lossy().into()));
            facts
                .push(("tx-packets-written".to_owned(), tx.written.load(Ordering::Relaxed).into()));
            facts.push(("tx-failed".to_owned(), tx.failed.load(Ordering::Relaxed).into()));
        }
        facts
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Declare the driver's node. [`register`](crate::register) does it for a router; a program with an
/// engine of its own does it before the engine is built.
pub fn declare(graph: &mut GraphBuilder) {
    graph.node(NodeSpec::input(INPUT_NODE, "Packets read from files").describe(|record, names| {
        format!("{} bytes on {}", record.packet_bytes, names.interface(record.rx))
    }));
}

/// Put the driver's state into the engine, once.
fn start(engine: &mut Engine) -> Result<(), PcapDriverError> {
    if engine.get::<Pcaps>().is_some() {
        return Ok(());
    }
    engine.node_id(INPUT_NODE).ok_or(PcapDriverError::NotDeclared)?;
    engine.insert(Pcaps::default());
    engine.on_event(INPUT_NODE, |engine, event| {
        let number = event.bytes().try_into().map_or(0, i32::from_ne_bytes);
        write_failed(engine, event.interface, number);
    });
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted
            && let Some(pcaps) = engine.get_mut::<Pcaps>()
        {
            pcaps.0.remove(&id);
        }
    });
    Ok(())
}

/// Make `pcapN`. Its packets come in from when it is set up.
///
/// # Errors
/// A file cannot be opened or is in use, or the interface cannot be made.
pub fn create(engine: &mut Engine, config: PcapConfig) -> Result<InterfaceId, PcapDriverError> {
    check(engine, &config)?;
    let files = Files::open(&config, &Access::default())?;
    create_with(engine, config, files)
}

/// The files of an interface, open and read.
pub(crate) struct Files {
    packets: Option<Packets>,
    tx: Option<File>,
}

impl Files {
    /// Open and read them; it may take its time.
    pub(crate) fn open(config: &PcapConfig, access: &Access) -> Result<Files, PcapDriverError> {
        let packets = config.rx.as_deref().map(|path| Packets::read(access, path)).transpose()?;
        let link_type = packets.as_ref().map_or(LINK_ETHERNET, |packets| packets.link_type);
        let tx =
            config.tx.as_deref().map(|path| open_to_append(access, path, link_type)).transpose()?;
        Ok(Files { packets, tx })
    }
}

/// Can the interface be made?
pub(crate) fn check(engine: &mut Engine, config: &PcapConfig) -> Result<(), PcapDriverError> {
    start(engine)?;
    let name = config.name();
    if engine.interface_id(&name).is_some() {
        return Err(InterfaceError::Exists(name).into());
    }
    match (&config.rx, &config.tx) {
        (None, None) => Err(PcapDriverError::NoFile),
        (None, Some(_)) if config.repeat => Err(PcapDriverError::NothingToRepeat),
        _ => Ok(()),
    }
}

/// Make the interface of files that are open.
pub(crate) fn create_with(
    engine: &mut Engine,
    config: PcapConfig,
    files: Files,
) -> Result<InterfaceId, PcapDriverError> {
    check(engine, &config)?;
    let name = config.name();
    let packets = files.packets.map(Arc::new);
    let link_type = packets.as_ref().map_or(LINK_ETHERNET, |packets| packets.link_type);
    let system = |source| PcapDriverError::Io { path: name.clone(), source };
    let bell = Bell::new().map_err(system)?;
    let rx = Arc::new(RxState { received: AtomicU64::new(0), up: AtomicBool::new(false), bell });
    let tx = Arc::new(TxState::default());
    let queues = tx_queues(engine, files.tx, &tx)?;
    let count = packets.as_ref().map_or(0, |packets| packets.len());
    let pcap = Pcap { config: config.clone(), packets: count, rx: rx.clone(), tx };
    let is_ip = link_type == LINK_RAW;
    let id = engine.create_interface(InterfaceSpec {
        mac: if is_ip { [0; 6] } else { own_mac(&config) },
        name,
        device: Box::new(PcapDevice(pcap.clone())),
        mtu_bytes: MTU_BYTES_DEFAULT,
        input: if is_ip { "ip-input" } else { "ethernet-input" }.to_owned(),
        link_up: true,
        tx: queues,
    })?;
    if let Some(pcaps) = engine.get_mut::<Pcaps>() {
        pcaps.0.insert(id, pcap);
    }
    if let Some(packets) = packets {
        let queue = PcapRx { interface: id, packets, state: rx, repeat: config.repeat, at: 0 };
        if let Err(error) =
            engine.add_rx_queue(id, INPUT_NODE, Box::new(queue), config.rx_mode, None)
        {
            engine.delete_interface(id)?;
            return Err(error.into());
        }
    }
    Ok(id)
}

fn tx_queues(
    engine: &Engine,
    file: Option<File>,
    state: &Arc<TxState>,
) -> Result<Vec<Box<dyn TxQueue>>, PcapDriverError> {
    let workers = 0..engine.worker_count();
    let Some(file) = file else {
        return Ok(workers.map(|_| Box::new(NoFile) as Box<dyn TxQueue>).collect());
    };
    let node = engine.node_id(INPUT_NODE).ok_or(PcapDriverError::NotDeclared)?;
    let file = Arc::new(file);
    Ok(workers
        .map(|_| Box::new(PcapTx::new(file.clone(), state.clone(), node)) as Box<dyn TxQueue>)
        .collect())
}

/// Locally administered (RFC 9542 §2.1), the same for the same number: who makes the packets of a
/// file can know it.
fn own_mac(config: &PcapConfig) -> [u8; 6] {
    let mut hasher = DefaultHasher::new();
    config.name().hash(&mut hasher);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    [0x02, 0xfe, a, b, c, d]
}

/// A worker could not write: the interface loses its link, and the log says why.
fn write_failed(engine: &mut Engine, id: InterfaceId, number: i32) {
    let Some(pcap) = engine.get::<Pcaps>().and_then(|pcaps| pcaps.0.get(&id)) else { return };
    let path = pcap.config.tx.as_deref().unwrap_or(Path::new("")).display().to_string();
    let error = std::io::Error::from_raw_os_error(number);
    tracing::warn!(
        "{}: {path}: {error}; nothing more is written, delete the interface and create it again",
        engine.interface_name(id)
    );
    // An interface that is just going needs no link.
    let _ = engine.set_link_up(id, false);
}

/// Delete an interface. What was sent is in its file.
///
/// # Errors
/// The interface is none of this driver, or a worker does not answer.
pub fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), PcapDriverError> {
    if !engine.get::<Pcaps>().is_some_and(|pcaps| pcaps.0.contains_key(&id)) {
        return Err(match engine.interface(id) {
            Some(interface) => PcapDriverError::NotPcap(interface.name.clone()),
            None => InterfaceError::Unknown.into(),
        });
    }
    Ok(engine.delete_interface(id)?)
}
