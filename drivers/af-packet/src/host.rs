//! Interfaces `host-NAME`: made, followed while Linux changes them, deleted.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::followed::{self, mtu_of};
use quiver_linux::{FollowedLink, FollowsLink, LinkError, LinkState};

use crate::receive::PacketRx;
use crate::ring::RxRing;
use crate::socket::PacketSocket;
use crate::transmit::PacketTx;

/// What `show hardware-interfaces` calls it.
const KIND: &str = "af-packet";
/// What it takes to open the sockets.
const CAPABILITIES: &str = "cap_net_raw";
/// Queues in each direction at most.
pub const QUEUES_MAX: usize = 64;

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The name that Linux has for it.
    pub linux_name: String,
    /// Receive queues; the kernel spreads flows over them.
    pub rx_queues: usize,
    /// Sending sockets, shared out among the workers; none = one for each worker.
    pub tx_queues: Option<usize>,
}

/// Why it cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Linux.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The engine.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Numbers.
    #[error("{0} queues: 1 to {QUEUES_MAX} are possible")]
    Queues(usize),
    /// Ours, but not of this kind.
    #[error("{0} was not made by `create host-interface`")]
    NotHost(String),
}

/// The control thread's handle.
pub(crate) struct HostDevice {
    rx_queues: usize,
    /// Sending sockets; the workers' queues share them.
    senders: Vec<Arc<PacketSocket>>,
    link: FollowedLink,
}

impl FollowsLink for HostDevice {
    fn link(&mut self) -> &mut FollowedLink {
        &mut self.link
    }

    fn reopen(
        engine: &mut Engine,
        id: InterfaceId,
        index: i32,
        state: &LinkState,
    ) -> Result<(), String> {
        let device = engine.device::<HostDevice>(id).ok_or("it is just going")?;
        let rings = open_rings(index, state, device.rx_queues).map_err(|e| e.to_string())?;
        for sender in &device.senders {
            sender.bind(index, 0).map_err(|e| format!("a sending socket: {e}"))?;
        }
        engine.remove_rx_queues(id).map_err(|e| e.to_string())?;
        add_queues(engine, id, rings).map_err(|e| e.to_string())
    }
}

impl Device for HostDevice {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn set_admin_up(&mut self, up: bool) -> Result<(), String> {
        self.link.set_admin_up(up)
    }

    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), String> {
        self.link.set_mac();
        Ok(())
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        let queues = [("rx-queues", self.rx_queues), ("tx-queues", self.senders.len())];
        let queues = queues.map(|(name, count)| (name.to_owned(), count.into()));
        self.link.facts().into_iter().chain(queues).collect()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Hosts {
    /// As they were created.
    pub(crate) configs: BTreeMap<InterfaceId, HostConfig>,
}

/// Receive rings at a link, which share its frames by flow.
fn open_rings(index: i32, seen: &LinkState, queues: usize) -> Result<Vec<RxRing>, LinkError> {
    let system = |what: &str| {
        let what = format!("{what} for {}", seen.name);
        move |e: std::io::Error| LinkError::of(e, what, CAPABILITIES)
    };
    let mut rings = Vec::new();
    let mut group = None;
    for number in 0..queues {
        let ring = RxRing::new(index, seen.mtu_bytes).map_err(system("a receive ring"))?;
        if queues > 1 {
            match group {
                None => {
                    group = Some(ring.socket().begin_fanout().map_err(system("a fanout group"))?)
                }
                Some(group) => {
                    let what = format!("queue {number} of the fanout group");
                    ring.socket().join_fanout(group).map_err(system(&what))?;
                }
            }
        }
        rings.push(ring);
    }
    Ok(rings)
}

fn add_queues(
    engine: &mut Engine,
    id: InterfaceId,
    rings: Vec<RxRing>,
) -> Result<(), InterfaceError> {
    let data_bytes = engine.pool().data_bytes();
    for ring in rings {
        let queue: Box<dyn RxQueue> = Box::new(PacketRx::new(ring, id, data_bytes));
        engine.add_rx_queue(id, "af-packet-input", queue, RxMode::Adaptive, None)?;
    }
    Ok(())
}

/// Make `host-NAME`. It is down until the operator sets it up.
///
/// # Errors
/// There is no such link, it has an interface already, a size is out of range, or the system
/// refuses.
pub fn create_host_interface(
    engine: &mut Engine,
    config: HostConfig,
) -> Result<InterfaceId, HostError> {
    for queues in [Some(config.rx_queues), config.tx_queues].into_iter().flatten() {
        if !(1..=QUEUES_MAX).contains(&queues) {
            return Err(HostError::Queues(queues));
        }
    }
    let linux_name = config.linux_name.clone();
    let system = |what: &str| {
        let what = format!("{what} for {linux_name}");
        move |e: std::io::Error| LinkError::of(e, what, CAPABILITIES)
    };
    let (link, seen) = FollowedLink::ethernet(&linux_name, CAPABILITIES)?;
    let index = link.index();
    let name = format!("host-{linux_name}");
    if engine.interface_id(&name).is_some() {
        return Err(InterfaceError::Exists(name).into());
    }
    let rings = open_rings(index, &seen, config.rx_queues)?;
    let tx_queues = config.tx_queues.unwrap_or(engine.worker_count()).min(engine.worker_count());
    let senders: Vec<Arc<PacketSocket>> = (0..tx_queues)
        .map(|_| PacketSocket::sender(index).map(Arc::new))
        .collect::<Result<_, _>>()
        .map_err(system("a sending socket"))?;
    let tx = (0..engine.worker_count())
        .map(|w| Box::new(PacketTx::new(senders[w % senders.len()].clone())) as Box<dyn TxQueue>)
        .collect();
    followed::follow::<HostDevice>(engine, KIND).map_err(system("hearing of links"))?;
    let (mac, mtu_bytes, link_up) = (seen.mac, mtu_of(&seen), seen.is_running);
    let device = HostDevice { rx_queues: config.rx_queues, senders, link };
    let id = engine.create_interface(InterfaceSpec {
        name,
        device: Box::new(device),
        mac,
        mtu_bytes,
        input: "ethernet-input".into(),
        link_up,
        tx,
    })?;
    if let Err(error) = add_queues(engine, id, rings) {
        let _ = engine.delete_interface(id);
        return Err(error.into());
    }
    if let Some(hosts) = engine.get_mut::<Hosts>() {
        hosts.configs.insert(id, config);
    }
    followed::refresh::<HostDevice>(engine, id); // what changed while it was made
    Ok(id)
}

/// Delete `host-NAME`, by Linux's name.
///
/// # Errors
/// There is no such interface, or a worker does not answer.
pub fn delete_host_interface(engine: &mut Engine, linux_name: &str) -> Result<(), HostError> {
    let name = format!("host-{linux_name}");
    let id = engine.interface_id(&name).ok_or(InterfaceError::Unknown)?;
    if engine.device::<HostDevice>(id).is_none() {
        return Err(HostError::NotHost(name));
    }
    Ok(engine.delete_interface(id)?)
}
