//! Interfaces on Linux devices by AF_XDP: made, followed while Linux changes them, deleted.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::worker::Worker;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::followed::{self, mtu_of};
use quiver_linux::{FollowedLink, FollowsLink, LinkError, LinkState};

use crate::bpf::{self, Hook};
use crate::live::LiveFrames;
use crate::program;
use crate::receive::XdpRx;
use crate::socket::{self, RxSide, TxSide};
use crate::transmit::XdpTx;

/// What `show hardware-interfaces` calls it.
const KIND: &str = "af-xdp";
/// Queues at most.
pub const QUEUES_MAX: usize = 64;
/// Frames in a ring: fewest, most, and unless said otherwise.
pub const RING_FRAMES_MIN: u32 = 64;
/// See [`RING_FRAMES_MIN`].
pub const RING_FRAMES_MAX: u32 = 32_768;
/// See [`RING_FRAMES_MIN`].
pub const RING_FRAMES: u32 = 4096;
/// What it takes to open the sockets and to put a program at a device.
const CAPABILITIES: &str = "cap_net_raw,cap_net_admin,cap_bpf";

/// For so long after a deletion Linux may still hold the queues of the closed sockets.
const RELEASE_MAX: Duration = Duration::from_millis(500);

/// How an interface sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transmit {
    /// By the socket: to any device, frames of any length.
    #[default]
    Socket,
    /// By live frames: faster, to devices that take XDP frames (a veth whose other end has an XDP
    /// program or GRO); frames of up to [`FRAME_BYTES_MAX`](crate::LIVE_FRAME_BYTES_MAX) bytes,
    /// from one worker.
    Live,
}

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpConfig {
    /// The name that Linux has for the device.
    pub linux_name: String,
    /// The router's name for it; otherwise the device's and `/0`.
    pub name: Option<String>,
    /// Queues of the device that are used, from the first; each receives and sends.
    pub queues: usize,
    /// Frames in each ring, a power of two.
    pub ring_frames: u32,
    /// How it sends.
    pub transmit: Transmit,
    /// The node that received packets go to; otherwise `ethernet-input`.
    pub input: Option<String>,
}

impl XdpConfig {
    /// One queue of a device.
    pub fn new(linux_name: impl Into<String>) -> XdpConfig {
        XdpConfig {
            linux_name: linux_name.into(),
            name: None,
            queues: 1,
            ring_frames: RING_FRAMES,
            transmit: Transmit::Socket,
            input: None,
        }
    }

    fn interface_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}/0", self.linux_name))
    }
}

/// Why it cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// Linux.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The engine.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Numbers.
    #[error("{0} queues: 1 to {QUEUES_MAX} are possible")]
    Queues(usize),
    /// Numbers.
    #[error(
        "rings of {0} frames: a power of two from {RING_FRAMES_MIN} to {RING_FRAMES_MAX} is \
         possible"
    )]
    Ring(u32),
    /// The device's.
    #[error("{linux_name} has {has} receive queues, not {queues}")]
    TooFewQueues {
        /// The device.
        linux_name: String,
        /// Those that it has.
        has: usize,
        /// Those that were asked for.
        queues: usize,
    },
    /// Somebody else's program.
    #[error("{0} has an XDP program already; `ip link set dev {0} xdp off` takes it away")]
    Occupied(String),
    /// Somebody else's socket.
    #[error("queue {queue} of {linux_name} is used by another AF_XDP socket")]
    QueueTaken {
        /// The device.
        linux_name: String,
        /// Its queue.
        queue: usize,
    },
    /// Live frames come from one thread.
    #[error("live frames are sent by one worker, and there are {0}")]
    LiveWorkers(usize),
    /// Ours, but not of this kind.
    #[error("{0} was not made by `create interface af_xdp`")]
    NotXdp(String),
}

/// The control thread's handle.
pub(crate) struct XdpDevice {
    queues: usize,
    hook: Hook,
    link: FollowedLink,
    /// The sending sides of the sockets; the workers' queues share them.
    senders: Vec<Arc<Mutex<TxSide>>>,
    /// The device of live frames.
    live_index: Arc<AtomicI32>,
    /// The program at the device; it goes with this.
    attachment: OwnedFd,
}

impl FollowsLink for XdpDevice {
    fn link(&mut self) -> &mut FollowedLink {
        &mut self.link
    }

    fn reopen(
        engine: &mut Engine,
        id: InterfaceId,
        index: i32,
        _: &LinkState,
    ) -> Result<(), String> {
        let config = engine.get::<Interfaces>().and_then(|all| all.configs.get(&id)).cloned();
        let config = config.ok_or("it is just going")?;
        let parts = open(&config, index).map_err(|e| e.to_string())?;
        let device = engine.device::<XdpDevice>(id).ok_or("it is just going")?;
        for (place, sender) in device.senders.iter().zip(parts.senders) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = sender;
        }
        device.live_index.store(index, Ordering::Relaxed);
        (device.attachment, device.hook) = (parts.attachment, parts.hook);
        engine.remove_rx_queues(id).map_err(|e| e.to_string())?;
        add_queues(engine, id, parts.rx).map_err(|e| e.to_string())
    }
}

impl Device for XdpDevice {
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
        let own = [
            ("queues".to_owned(), self.queues.into()),
            ("xdp-hook".to_owned(), self.hook.name().into()),
        ];
        self.link.facts().into_iter().chain(own).collect()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Interfaces {
    /// What sends live frames: from the first interface on that does so.
    live: Option<LiveFrames>,
    /// As they were created.
    pub(crate) configs: BTreeMap<InterfaceId, XdpConfig>,
    /// When one was deleted last.
    deleted: Option<Instant>,
}

/// What is open at a device.
struct Parts {
    rx: Vec<RxSide>,
    senders: Vec<TxSide>,
    attachment: OwnedFd,
    hook: Hook,
}

fn check(engine: &Engine, config: &XdpConfig) -> Result<(), XdpError> {
    if !(1..=QUEUES_MAX).contains(&config.queues) {
        return Err(XdpError::Queues(config.queues));
    }
    let fits = (RING_FRAMES_MIN..=RING_FRAMES_MAX).contains(&config.ring_frames);
    if !fits || !config.ring_frames.is_power_of_two() {
        return Err(XdpError::Ring(config.ring_frames));
    }
    let name = config.interface_name();
    match engine.interface_id(&name) {
        Some(_) => Err(InterfaceError::Exists(name).into()),
        None => Ok(()),
    }
}

/// Open the sockets, and lead the device's frames to them.
fn open(config: &XdpConfig, index: i32) -> Result<Parts, XdpError> {
    let linux_name = &config.linux_name;
    let system = |what: &'static str| {
        let what = format!("{what} for {linux_name}");
        move |e: io::Error| LinkError::of(e, what, CAPABILITIES)
    };
    let map = bpf::socket_map(config.queues as u32).map_err(system("a map of sockets"))?;
    let mut rx = Vec::new();
    let mut senders = Vec::new();
    for queue in 0..config.queues {
        let (receiving, sending) =
            socket::open(index, queue as u32, config.ring_frames).map_err(|e| {
                match e.raw_os_error() {
                    Some(libc::EINVAL) if queue > 0 => XdpError::TooFewQueues {
                        linux_name: linux_name.clone(),
                        has: queue,
                        queues: config.queues,
                    },
                    Some(libc::EBUSY) => {
                        XdpError::QueueTaken { linux_name: linux_name.clone(), queue }
                    }
                    _ => system("an AF_XDP socket")(e).into(),
                }
            })?;
        bpf::set_socket(map.as_fd(), queue as u32, receiving.socket().fd())
            .map_err(system("the map of sockets"))?;
        rx.push(receiving);
        senders.push(sending);
    }
    let program =
        bpf::load(&program::to_sockets(map.as_raw_fd())).map_err(system("the XDP program"))?;
    let (attachment, hook) = attach(&program, index, linux_name)?;
    Ok(Parts { rx, senders, attachment, hook })
}

/// Transmit queues of all workers.
fn transmit_queues(
    engine: &Engine,
    config: &XdpConfig,
    senders: &[Arc<Mutex<TxSide>>],
    live_index: &Arc<AtomicI32>,
) -> Vec<Box<dyn TxQueue>> {
    (0..engine.worker_count())
        .map(|worker| match (config.transmit, live_frames(engine)) {
            (Transmit::Live, Some(live)) => {
                Box::new(live.queue(live_index.clone())) as Box<dyn TxQueue>
            }
            _ => Box::new(XdpTx::new(senders[worker % senders.len()].clone())),
        })
        .collect()
}

fn add_queues(engine: &mut Engine, id: InterfaceId, rx: Vec<RxSide>) -> Result<(), InterfaceError> {
    for side in rx {
        let queue: Box<dyn RxQueue> = Box::new(XdpRx::new(side, id));
        engine.add_rx_queue(id, "af-xdp-input", queue, RxMode::Adaptive, None)?;
    }
    Ok(())
}

fn live_frames(engine: &Engine) -> Option<&LiveFrames> {
    engine.get::<Interfaces>()?.live.as_ref()
}

/// What sends live frames, made with the first interface that wants it.
fn prepare_live(engine: &mut Engine, index: i32) -> Result<(), XdpError> {
    if engine.worker_count() != 1 {
        return Err(XdpError::LiveWorkers(engine.worker_count()));
    }
    if live_frames(engine).is_none() {
        let live = LiveFrames::new(index)
            .map_err(|e| LinkError::of(e, "live frames", "cap_net_admin,cap_bpf,cap_sys_admin"))?;
        if let Some(interfaces) = engine.get_mut::<Interfaces>() {
            interfaces.live = Some(live);
        }
    }
    Ok(())
}

/// At the native hook, or at the generic one where the device has no other.
fn attach(program: &OwnedFd, index: i32, linux_name: &str) -> Result<(OwnedFd, Hook), XdpError> {
    let mut refusal = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    for hook in [Hook::Native, Hook::Generic] {
        match bpf::attach(program.as_fd(), index, hook) {
            Ok(attachment) => return Ok((attachment, hook)),
            Err(e) => match e.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => {
                    return Err(XdpError::Occupied(linux_name.to_owned()));
                }
                Some(libc::EPERM) => {
                    refusal = e;
                    break;
                }
                _ => refusal = e,
            },
        }
    }
    Err(LinkError::of(refusal, format!("the XDP program at {linux_name}"), CAPABILITIES).into())
}

/// Make an interface. It is down until the operator sets it up. Right after a deletion it may fail,
/// because Linux holds the queues of closed sockets for a while.
///
/// # Errors
/// There is no such link, it has an interface already, a size is out of range, or the system
/// refuses.
pub fn create_interface(engine: &mut Engine, config: XdpConfig) -> Result<InterfaceId, XdpError> {
    check(engine, &config)?;
    let (link, seen) = FollowedLink::ethernet(&config.linux_name, CAPABILITIES)?;
    let index = link.index();
    if config.transmit == Transmit::Live {
        prepare_live(engine, index)?;
    }
    let parts = open(&config, index)?;
    let senders: Vec<_> =
        parts.senders.into_iter().map(|side| Arc::new(Mutex::new(side))).collect();
    let live_index = Arc::new(AtomicI32::new(index));
    let tx = transmit_queues(engine, &config, &senders, &live_index);
    followed::follow::<XdpDevice>(engine, KIND)
        .map_err(|e| LinkError::of(e, "hearing of links", CAPABILITIES))?;
    let (mac, mtu_bytes, link_up) = (seen.mac, mtu_of(&seen), seen.is_running);
    let (hook, attachment) = (parts.hook, parts.attachment);
    let device = XdpDevice { queues: config.queues, hook, link, senders, live_index, attachment };
    let id = engine.create_interface(InterfaceSpec {
        name: config.interface_name(),
        device: Box::new(device),
        mac,
        mtu_bytes,
        input: config.input.clone().unwrap_or_else(|| "ethernet-input".into()),
        link_up,
        tx,
    })?;
    if let Err(error) = add_queues(engine, id, parts.rx) {
        let _ = engine.delete_interface(id);
        return Err(error.into());
    }
    if let Some(interfaces) = engine.get_mut::<Interfaces>() {
        interfaces.configs.insert(id, config);
    }
    followed::refresh::<XdpDevice>(engine, id); // what changed while it was made
    Ok(id)
}

/// Delete an interface that this driver has made.
///
/// # Errors
/// The interface is none of this driver, or a worker does not answer.
pub fn delete_interface(engine: &mut Engine, id: InterfaceId) -> Result<(), XdpError> {
    if engine.device::<XdpDevice>(id).is_none() {
        return Err(XdpError::NotXdp(engine.interface_name(id)));
    }
    engine.delete_interface(id)?;
    // Once this is answered, the workers have given their queues back, and the sockets are closed.
    engine.call_all(|_: &mut Worker| ()).map_err(InterfaceError::from)?;
    if let Some(interfaces) = engine.get_mut::<Interfaces>() {
        interfaces.deleted = Some(Instant::now());
    }
    Ok(())
}

/// Until when it pays to try again after this error: for a while after a deletion of ours, Linux
/// holds the queues of the closed sockets.
pub(crate) fn busy_until(engine: &Engine, error: &XdpError) -> Option<Instant> {
    let is_busy = matches!(error, XdpError::QueueTaken { .. } | XdpError::Occupied(_));
    let deleted = engine.get::<Interfaces>()?.deleted?;
    Some(deleted + RELEASE_MAX).filter(|until| is_busy && Instant::now() < *until)
}
