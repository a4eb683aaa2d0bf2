//! Interfaces `tapN`: made, followed while Linux changes its end, deleted.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use quiver_core::control::interfaces::{
    InterfaceError, InterfaceSpec, MTU_BYTES_MAX, MTU_BYTES_MIN,
};
use quiver_core::control::reactor::{Interest, Token};
use quiver_core::worker::Worker;
use quiver_core::worker::device::{Device, RxMode, RxQueue, TxQueue};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::machine::address_of;
use quiver_linux::{Arrival, LinkError, LinkSocket, LinkState, TapKind, in_namespace, link};
use quiver_netlink::{Group, NetlinkSocket};

use crate::queues::{TapRx, TapTx};
use crate::tun::{TUN, TunQueue};

/// Receive queues at most.
pub const QUEUES_MAX: usize = 64;

/// What to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapConfig {
    /// The interface is called `tap<id>`.
    pub id: u32,
    /// Frames or packets.
    pub kind: TapKind,
    /// What Linux calls its end; none = `tap<id>`.
    pub host_name: Option<String>,
    /// The network namespace of Linux's end, a name of `ip netns` or a path; none = ours.
    pub host_namespace: Option<String>,
    /// An address of Linux's end.
    pub host_ip4: Option<(Ipv4Addr, u8)>,
    /// An address of Linux's end.
    pub host_ip6: Option<(Ipv6Addr, u8)>,
    /// The layer 2 address of Linux's end.
    pub host_mac: Option<[u8; 6]>,
    /// MTU of Linux's end, bytes.
    pub host_mtu_bytes: Option<u32>,
    /// Receive queues; 0 is 1.
    pub rx_queues: usize,
    /// Frames that wait for us in each.
    pub rx_ring: Option<u32>,
    /// Taken for the sake of existing configurations; sending needs no ring.
    pub tx_ring: Option<u32>,
    /// The feature that made it, and alone deletes it; none = the operator.
    pub owner: Option<&'static str>,
}

impl TapConfig {
    pub(crate) fn host_name(&self) -> String {
        self.host_name.clone().unwrap_or_else(|| format!("tap{}", self.id))
    }
}

/// Why it cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// Linux.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The engine.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The namespace.
    #[error("{0}; `ip netns list` lists the namespaces, and entering one needs cap_sys_admin")]
    Namespace(std::io::Error),
    /// This kernel or container has no tun.
    #[error(
        "/dev/net/tun: {0}; load the module with `modprobe tun`, or give the container the device \
         (`--device /dev/net/tun`)"
    )]
    NoTun(std::io::Error),
    /// Linux has one of this name.
    #[error("Linux has an interface {0} already; `host-if-name` chooses another name")]
    HostExists(String),
    /// Numbers.
    #[error("{0} queues: 1 to {QUEUES_MAX} are possible")]
    Queues(usize),
    /// Not one of ours.
    #[error("{0} was not made by `create tap`")]
    NotTap(String),
}

/// The control thread's handle.
pub(crate) struct TapDevice {
    queues: Vec<Arc<TunQueue>>,
    /// Linux's end as last heard; none when it is gone.
    pub(crate) seen: Option<LinkState>,
}

impl Device for TapDevice {
    fn kind(&self) -> &'static str {
        "tap"
    }

    /// Linux sees a carrier while the interface is up.
    fn set_admin_up(&mut self, up: bool) -> Result<(), String> {
        match self.queues.first() {
            Some(queue) if self.seen.is_some() => {
                queue.set_carrier(up).map_err(|e| format!("carrier of the Linux end: {e}"))
            }
            _ if up => {
                Err("the Linux end is gone; delete this interface and create it again".into())
            }
            _ => Ok(()),
        }
    }

    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), String> {
        Ok(())
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        let seen = self.seen.as_ref();
        let state = seen.map_or("gone", |s| if s.is_up { "up" } else { "down" });
        vec![
            ("linux-name".into(), seen.map_or("", |s| s.name.as_str()).into()),
            ("linux-state".into(), state.into()),
            ("linux-mac".into(), seen.map_or(String::new(), |s| text_of(s.mac)).into()),
            ("linux-mtu-bytes".into(), seen.map_or(0, |s| s.mtu_bytes).into()),
            ("rx-queues".into(), self.queues.len().into()),
        ]
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub(crate) fn text_of([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// One of them.
pub(crate) struct Tap {
    pub(crate) config: TapConfig,
    end: HostEnd,
    token: Token,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Taps(pub(crate) BTreeMap<InterfaceId, Tap>);

/// Linux's end: how to ask about it and hear of it, in its namespace.
struct HostEnd {
    link: LinkSocket,
    watch: NetlinkSocket,
    index: i32,
}

/// Make Linux's end, in the calling thread's namespace.
fn make_host_end(config: &TapConfig) -> Result<(HostEnd, Vec<TunQueue>), TapError> {
    let name = config.host_name();
    link::check_name(&name)?;
    let system = |what: &str| {
        let what = format!("{what} {name}");
        move |e: std::io::Error| LinkError::of(e, what, "cap_net_admin")
    };
    let link = LinkSocket::new().map_err(system("a socket for"))?;
    if link.index_of(&name).is_ok() {
        return Err(TapError::HostExists(name));
    }
    let watch = NetlinkSocket::open(Group::LINKS).map_err(system("hearing of"))?;
    if let Err(error) = std::fs::metadata(TUN) {
        return Err(TapError::NoTun(error));
    }
    let queues: Vec<TunQueue> = (0..config.rx_queues.max(1))
        .map(|number| {
            TunQueue::open(&name, config.kind, number == 0).map_err(system("making the tap device"))
        })
        .collect::<Result<_, _>>()?;
    // Linux finishes packets without a link-layer header itself: only frames are cut here.
    if config.kind == TapKind::Tap {
        queues[0].accept_offloads().map_err(system("offloads of"))?;
    }
    let index = link.index_of(&name)?;
    if let Some(mac) = config.host_mac {
        link.set_mac(&name, mac)?;
    }
    if let Some(mtu_bytes) = config.host_mtu_bytes {
        link.set_mtu(&name, mtu_bytes)?;
    }
    if let Some(frames) = config.rx_ring {
        link.set_queue_length(&name, frames)?;
    }
    link.set_up(&name, true)?;
    if let Some((address, length)) = config.host_ip4 {
        link.add_ip4(&name, address, length)?;
    }
    if let Some((address, length)) = config.host_ip6 {
        link.add_ip6(&name, address, length)?;
    }
    Ok((HostEnd { link, watch, index }, queues))
}

/// The same for this end of this device on this machine each time.
fn own_mac(config: &TapConfig) -> [u8; 6] {
    address_of((config.id, &config.host_namespace, config.host_name()))
}

fn mtu_of(state: &LinkState) -> u32 {
    state.mtu_bytes.clamp(MTU_BYTES_MIN, MTU_BYTES_MAX)
}

/// Make `tapN`. It is down until the operator sets it up.
///
/// # Errors
/// The configuration contradicts itself or other interfaces, or the system refuses the device.
pub fn create_tap(engine: &mut Engine, config: TapConfig) -> Result<InterfaceId, TapError> {
    check(engine, &config)?;
    attach(engine, MadeTap::new(config)?)
}

/// Is there room for it? The kernel is asked later.
pub(crate) fn check(engine: &Engine, config: &TapConfig) -> Result<(), TapError> {
    let name = format!("tap{}", config.id);
    if config.rx_queues > QUEUES_MAX {
        return Err(TapError::Queues(config.rx_queues));
    }
    match engine.interface_id(&name) {
        Some(_) => Err(InterfaceError::Exists(name).into()),
        None => Ok(()),
    }
}

/// A tap device that Linux has made, and no interface yet. Dropped, it vanishes.
pub(crate) struct MadeTap {
    pub(crate) config: TapConfig,
    end: HostEnd,
    queues: Vec<TunQueue>,
    seen: LinkState,
}

impl MadeTap {
    /// Have Linux make it, which takes it milliseconds: the control thread does not wait for it.
    pub(crate) fn new(config: TapConfig) -> Result<MadeTap, TapError> {
        let made = in_namespace(config.host_namespace.as_deref(), || make_host_end(&config));
        let (end, queues) = made.map_err(TapError::Namespace)??;
        let seen =
            end.link.state(end.index).ok_or_else(|| LinkError::Unknown(config.host_name()))?;
        let _ = queues[0].set_carrier(false); // until it is set up; older kernels do not know it
        Ok(MadeTap { config, end, queues, seen })
    }
}

/// Make the interface of a tap device.
pub(crate) fn attach(engine: &mut Engine, made: MadeTap) -> Result<InterfaceId, TapError> {
    let MadeTap { config, end, queues, seen } = made;
    check(engine, &config)?;
    let name = format!("tap{}", config.id);
    let queues: Vec<Arc<TunQueue>> = queues.into_iter().map(Arc::new).collect();
    let tx = (0..engine.worker_count())
        .map(|w| Box::new(TapTx(queues[w % queues.len()].clone())) as Box<dyn TxQueue>)
        .collect();
    // Packets without a link-layer header go to the feature that asked for the device.
    let (mac, input) = match config.kind {
        TapKind::Tap => (own_mac(&config), "ethernet-input"),
        TapKind::Tun => ([0; 6], "error-drop"),
    };
    let spec = InterfaceSpec {
        name,
        mac,
        mtu_bytes: mtu_of(&seen),
        input: input.into(),
        link_up: seen.is_up,
        tx,
        device: Box::new(TapDevice { queues: queues.clone(), seen: Some(seen) }),
    };
    let id = engine.create_interface(spec)?;
    for queue in queues {
        let arrival = match config.kind {
            TapKind::Tap => Arrival::new(id),
            TapKind::Tun => Arrival::of_packets(id),
        };
        let data_bytes = engine.pool().data_bytes();
        let queue: Box<dyn RxQueue> = Box::new(TapRx::new(queue, arrival, data_bytes));
        if let Err(error) = engine.add_rx_queue(id, "tap-input", queue, RxMode::Adaptive, None) {
            let _ = engine.delete_interface(id);
            return Err(error.into());
        }
    }
    let token = hear(engine, id, &end);
    if let Some(taps) = engine.get_mut::<Taps>() {
        taps.0.insert(id, Tap { config, end, token });
    }
    refresh(engine, id); // what changed while it was made
    Ok(id)
}

/// Hear of changes to Linux's end from now on.
fn hear(engine: &mut Engine, id: InterfaceId, end: &HostEnd) -> Token {
    engine.watch(end.watch.as_fd().as_raw_fd(), Interest::READ, move |engine| {
        if engine
            .get::<Taps>()
            .and_then(|taps| taps.0.get(&id))
            .is_some_and(|tap| tap.end.watch.drain())
        {
            refresh(engine, id);
        }
    })
}

/// Delete a tap; Linux's end vanishes with it.
///
/// # Errors
/// The interface is no tap, or a worker does not answer.
pub fn delete_tap(engine: &mut Engine, id: InterfaceId) -> Result<(), TapError> {
    if engine.device::<TapDevice>(id).is_none() {
        return Err(TapError::NotTap(engine.interface_name(id)));
    }
    engine.delete_interface(id)?;
    // Linux's end vanishes with its last queue: when this is answered, the workers have given
    // theirs back.
    engine.call_all(|_: &mut Worker| ()).map_err(InterfaceError::from)?;
    Ok(())
}

/// The operator has set the MTU of our end; Linux's end gets the same.
pub(crate) fn follow_mtu(engine: &mut Engine, id: InterfaceId) {
    let Some(end) = engine.get::<Taps>().and_then(|taps| taps.0.get(&id)).map(|tap| &tap.end)
    else {
        return;
    };
    let (Some(interface), Some(state)) = (engine.interface(id), end.link.state(end.index)) else {
        return;
    };
    let mtu_bytes = interface.row().mtu_bytes;
    if mtu_of(&state) != mtu_bytes
        && let Err(error) = end.link.set_mtu(&state.name, mtu_bytes)
    {
        tracing::warn!("{}: Linux's end keeps MTU {}: {error}", interface.name, state.mtu_bytes);
    }
}

/// The interface goes away.
pub(crate) fn forget(engine: &mut Engine, id: InterfaceId) {
    if let Some(tap) = engine.get_mut::<Taps>().and_then(|taps| taps.0.remove(&id)) {
        engine.unwatch(tap.token);
    }
}

/// Find Linux's end again, which may have been moved to another namespace; `None` when it is gone.
fn find_again(queue: &TunQueue) -> Option<HostEnd> {
    let namespace = queue.namespace().ok()?;
    let name = queue.linux_name()?;
    let path = format!("/proc/self/fd/{}", namespace.as_raw_fd());
    let found = in_namespace(Some(&path), || {
        let link = LinkSocket::new().ok()?;
        // Hear first, then ask: what changes between the two is heard.
        let watch = NetlinkSocket::open(Group::LINKS).ok()?;
        let index = link.index_of(&name).ok()?;
        Some(HostEnd { link, watch, index })
    });
    found.ok().flatten()
}

/// What Linux now says of its end, wherever it is.
fn look(engine: &mut Engine, id: InterfaceId) -> Option<LinkState> {
    let end = &engine.get::<Taps>()?.0.get(&id)?.end;
    if let Some(state) = end.link.state(end.index) {
        return Some(state);
    }
    let queue = engine.device::<TapDevice>(id)?.queues.first()?.clone();
    let end = find_again(&queue)?;
    let state = end.link.state(end.index);
    let token = hear(engine, id, &end);
    let tap = engine.get_mut::<Taps>()?.0.get_mut(&id)?;
    tap.end = end;
    let old = std::mem::replace(&mut tap.token, token);
    engine.unwatch(old);
    state
}

/// Take over what Linux now says of its end.
fn refresh(engine: &mut Engine, id: InterfaceId) {
    let now = look(engine, id);
    let Some(device) = engine.device::<TapDevice>(id) else { return };
    let before = std::mem::replace(&mut device.seen, now.clone());
    // What the engine refuses here (an interface that is just going) needs no answer.
    let _ = engine.set_link_up(id, now.as_ref().is_some_and(|s| s.is_up));
    match (before, now) {
        (Some(before), Some(now)) if mtu_of(&before) != mtu_of(&now) => {
            let _ = engine.set_mtu(id, mtu_of(&now));
        }
        // The descriptors are dead and would wake workers for ever.
        (Some(_), None) => {
            tracing::warn!(
                "{}: Linux's end is gone; delete the interface and create it again",
                engine.interface_name(id)
            );
            let _ = engine.remove_rx_queues(id);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_address_is_nobody_elses_and_the_same_each_time() {
        let config = TapConfig { id: 7, ..TapConfig::default() };
        let mac = own_mac(&config);
        assert_eq!(mac[0] & 3, 2);
        assert_eq!(mac, own_mac(&config));
        assert_ne!(mac, own_mac(&TapConfig { id: 8, ..TapConfig::default() }));
        let elsewhere = TapConfig { host_namespace: Some("alice".into()), ..config };
        assert_ne!(mac, own_mac(&elsewhere));
    }
}
