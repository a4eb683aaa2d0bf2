//! Interfaces `host-NAME`: made, followed while Linux changes them, deleted.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_core::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::interfaces::{InterfaceError, InterfaceSpec, MTU_BYTES_MAX, MTU_BYTES_MIN};
use quiver_core::reactor::Interest;
use quiver_core::{Engine, InterfaceId};
use quiver_linux::{LinkError, LinkSocket, LinkState, LinkWatch};

use crate::receive::PacketRx;
use crate::ring::RxRing;
use crate::socket::PacketSocket;
use crate::transmit::PacketTx;

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
    /// Another kind of link.
    #[error("{0} is not Ethernet")]
    NotEthernet(String),
    /// Numbers.
    #[error("{0} queues: 1 to {QUEUES_MAX} are possible")]
    Queues(usize),
    /// Ours, but not of this kind.
    #[error("{0} was not made by `create host-interface`")]
    NotHost(String),
}

/// The control thread's handle.
pub(crate) struct HostDevice {
    pub(crate) config: HostConfig,
    /// Sending sockets that there are.
    tx_queues: usize,
    index: i32,
    /// As last heard; none when the link is gone.
    seen: Option<LinkState>,
    /// The operator has chosen an address of ours, which Linux does not know.
    own_mac: bool,
    following: bool,
    times_gone: u64,
}

impl Device for HostDevice {
    fn kind(&self) -> &'static str {
        "af-packet"
    }

    /// Sets the Linux interface up as well, but never down: others may use it.
    fn set_admin_up(&mut self, up: bool) -> Result<(), String> {
        match &self.seen {
            Some(seen) if up && !seen.is_up => {
                let link = LinkSocket::new().map_err(|e| e.to_string())?;
                link.set_up(&seen.name, true).map_err(|e| e.to_string())
            }
            None if up => Err(format!(
                "the Linux interface {} is gone; delete this interface and create it again",
                self.config.linux_name
            )),
            _ => Ok(()),
        }
    }

    /// Frames to any address are received, so ours need not be Linux's.
    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), String> {
        self.own_mac |= !self.following;
        Ok(())
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        let state = match &self.seen {
            None => "gone",
            Some(seen) if seen.is_running => "running",
            Some(seen) if seen.is_up => "up, no carrier",
            Some(_) => "down",
        };
        vec![
            (
                "linux-name".into(),
                self.seen.as_ref().map_or(&self.config.linux_name, |s| &s.name).as_str().into(),
            ),
            ("linux-index".into(), self.index.into()),
            ("linux-state".into(), state.into()),
            ("linux-mtu".into(), self.seen.as_ref().map_or(0, |s| s.mtu_bytes).into()),
            ("rx-queues".into(), self.config.rx_queues.into()),
            ("tx-queues".into(), self.tx_queues.into()),
            ("times-gone".into(), self.times_gone.into()),
        ]
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Hosts {
    /// Hears of changes; made with the first interface.
    watch: Option<LinkWatch>,
    /// As they were created.
    pub(crate) configs: BTreeMap<InterfaceId, HostConfig>,
}

fn mtu_of(state: &LinkState) -> u32 {
    state.mtu_bytes.clamp(MTU_BYTES_MIN, MTU_BYTES_MAX)
}

/// Make `host-NAME`. It is down until the operator sets it up.
pub fn create_host_interface(engine: &mut Engine, config: HostConfig) -> Result<InterfaceId, HostError> {
    for queues in [Some(config.rx_queues), config.tx_queues].into_iter().flatten() {
        if !(1..=QUEUES_MAX).contains(&queues) {
            return Err(HostError::Queues(queues));
        }
    }
    let linux_name = config.linux_name.clone();
    let system = |what: &str| {
        let what = format!("{what} for {linux_name}");
        move |e: std::io::Error| LinkError::of(e, what, "cap_net_raw")
    };
    let link = LinkSocket::new().map_err(system("a socket"))?;
    let index = link.index_of(&linux_name)?;
    let seen = link.state(index).ok_or_else(|| LinkError::Unknown(linux_name.clone()))?;
    if !seen.is_ethernet {
        return Err(HostError::NotEthernet(linux_name));
    }
    let name = format!("host-{linux_name}");
    if engine.interface_id(&name).is_some() {
        return Err(InterfaceError::Exists(name).into());
    }
    let mut rings = Vec::new();
    let mut group = None;
    for number in 0..config.rx_queues {
        let ring = RxRing::new(index, seen.mtu_bytes).map_err(system("a receive ring"))?;
        if config.rx_queues > 1 {
            match group {
                None => group = Some(ring.socket().begin_fanout().map_err(system("a fanout group"))?),
                Some(group) => {
                    let what = format!("queue {number} of the fanout group");
                    ring.socket().join_fanout(group).map_err(system(&what))?;
                }
            }
        }
        rings.push(ring);
    }
    let tx_queues = config.tx_queues.unwrap_or(engine.worker_count()).min(engine.worker_count());
    let senders: Vec<Arc<PacketSocket>> = (0..tx_queues)
        .map(|_| PacketSocket::sender(index).map(Arc::new))
        .collect::<Result<_, _>>()
        .map_err(system("a sending socket"))?;
    let tx = (0..engine.worker_count())
        .map(|w| Box::new(PacketTx::new(senders[w % senders.len()].clone())) as Box<dyn TxQueue>)
        .collect();
    follow(engine).map_err(system("hearing of links"))?;
    let (mac, mtu_bytes, link_up) = (seen.mac, mtu_of(&seen), seen.is_running);
    let device = HostDevice {
        config: config.clone(),
        tx_queues,
        index,
        seen: Some(seen),
        own_mac: false,
        following: false,
        times_gone: 0,
    };
    let id = engine.create_interface(InterfaceSpec {
        name,
        device: Box::new(device),
        mac,
        mtu_bytes,
        input: "ethernet-input".into(),
        link_up,
        tx,
    })?;
    for ring in rings {
        let queue: Box<dyn RxQueue> = Box::new(PacketRx::new(ring, id));
        if let Err(error) = engine.add_rx_queue(id, "af-packet-input", queue, RxMode::Adaptive, None) {
            let _ = engine.delete_interface(id);
            return Err(error.into());
        }
    }
    if let Some(hosts) = engine.get_mut::<Hosts>() {
        hosts.configs.insert(id, config);
    }
    refresh(engine, id); // what changed while it was made
    Ok(id)
}

/// Delete `host-NAME`, by Linux's name.
pub fn delete_host_interface(engine: &mut Engine, linux_name: &str) -> Result<(), HostError> {
    let name = format!("host-{linux_name}");
    let id = engine.interface_id(&name).ok_or(InterfaceError::Unknown)?;
    if engine.device::<HostDevice>(id).is_none() {
        return Err(HostError::NotHost(name));
    }
    Ok(engine.delete_interface(id)?)
}

/// Hear of changes from now on.
fn follow(engine: &mut Engine) -> std::io::Result<()> {
    if engine.get::<Hosts>().is_some_and(|h| h.watch.is_some()) {
        return Ok(());
    }
    let watch = LinkWatch::new()?;
    engine.watch(watch.fd(), Interest::READ, |engine| {
        let changed = engine.get::<Hosts>().and_then(|h| h.watch.as_ref()).is_some_and(LinkWatch::drain);
        if changed {
            let ids: Vec<InterfaceId> =
                engine.all_interfaces().filter(|i| i.device.kind() == "af-packet").map(|i| i.id).collect();
            ids.into_iter().for_each(|id| refresh(engine, id));
        }
    });
    if let Some(hosts) = engine.get_mut::<Hosts>() {
        hosts.watch = Some(watch);
    }
    Ok(())
}

/// Take over what Linux now says of a link.
fn refresh(engine: &mut Engine, id: InterfaceId) {
    let Ok(link) = LinkSocket::new() else { return };
    let Some(device) = engine.device::<HostDevice>(id) else { return };
    let now = link.state(device.index);
    let before = std::mem::replace(&mut device.seen, now.clone());
    device.times_gone += u64::from(before.is_some() && now.is_none());
    let own_mac = device.own_mac;
    // What the engine refuses here (an interface that is just going) needs no answer.
    let _ = engine.set_link_up(id, now.as_ref().is_some_and(|s| s.is_running));
    let (Some(before), Some(now)) = (before, now) else { return };
    if mtu_of(&before) != mtu_of(&now) {
        let _ = engine.set_mtu(id, mtu_of(&now));
    }
    if before.mac != now.mac && !own_mac {
        let say = |engine: &mut Engine, following| {
            if let Some(device) = engine.device::<HostDevice>(id) {
                device.following = following;
            }
        };
        say(engine, true);
        let _ = engine.set_mac(id, now.mac);
        say(engine, false);
    }
}
