//! The tunnels on the control thread: their interfaces, and the policies that they send by.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::{ETHERNET_INPUT, Refusal, modes};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::tunnel_interface::TunnelInterfaceSpec;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::Epochs;
use quiver_core::worker::device::Device;
use quiver_core::{Engine, InterfaceId};
use quiver_tables::mac::CORE_GROUP;

use super::output::{Flood, NODE, NextNodes, Published};
use crate::headend::{PolicyReference, hold, release};

/// Instances are counted from 0 up to this.
pub(super) const INSTANCE_MAX: u32 = 16_383;
/// The largest layer 3 packet of a tunnel until it is set, bytes. It says nothing of the way: what
/// does not fit there dies where it is encapsulated.
const MTU_BYTES: u32 = 9000;

/// Which frames a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    /// Those to one station.
    Unicast,
    /// Those to many: broadcast, multicast, and to stations that are not known.
    Flood,
    /// Those to many that came by a port of this split-horizon group.
    FloodFrom(u8),
}

impl Which {
    /// As it stands in commands.
    pub fn words(self) -> String {
        match self {
            Which::Unicast => "unicast".to_owned(),
            Which::Flood => "flood".to_owned(),
            Which::FloodFrom(group) => format!("flood group {group}"),
        }
    }
}

/// What such frames are sent by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// This policy.
    By(PolicyReference),
    /// None: they do not go.
    Off,
}

/// A tunnel.
#[derive(Debug, Default)]
pub(super) struct Tunnel {
    pub instance: u32,
    /// The address that the operator gave.
    pub mac: Option<[u8; 6]>,
    /// What was said of it.
    pub sends: BTreeMap<Which, Sends>,
}

impl Tunnel {
    /// As workers read it.
    fn next_nodes(&self) -> NextNodes {
        let flood = |sends: &Sends| match sends {
            Sends::By(policy) => Flood::By(policy.group),
            Sends::Off => Flood::Off,
        };
        let by_group = self.sends.iter().filter_map(|(which, sends)| match which {
            Which::FloodFrom(group) => Some((*group, flood(sends))),
            _ => None,
        });
        let unicast = self.sends.get(&Which::Unicast).and_then(|sends| match sends {
            Sends::By(policy) => Some(policy.group),
            Sends::Off => None,
        });
        let flood_all = self.sends.get(&Which::Flood).map(flood).unwrap_or_default();
        NextNodes { unicast, flood: flood_all, by_group: by_group.collect() }
    }
}

/// All tunnels, by interface.
pub(crate) struct Tunnels {
    tunnels: BTreeMap<InterfaceId, Tunnel>,
    next_nodes: Arc<Published>,
}

/// The control thread's handle.
pub(super) struct TunnelDevice;

impl Device for TunnelDevice {
    fn kind(&self) -> &'static str {
        "sr-l2-tunnel"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// What an operator says of a new tunnel.
pub(super) struct New {
    pub instance: Option<u32>,
    pub mac: Option<[u8; 6]>,
    pub unicast: Option<Ipv6Addr>,
    pub flood: Option<Ipv6Addr>,
}

impl Tunnels {
    /// None yet.
    pub fn new(epochs: &Arc<Epochs>) -> Tunnels {
        Tunnels {
            tunnels: BTreeMap::new(),
            next_nodes: Arc::new(Published::new(epochs, INTERFACES_MAX)),
        }
    }

    /// What workers read.
    pub(super) fn next_nodes(&self) -> &Arc<Published> {
        &self.next_nodes
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (InterfaceId, &Tunnel)> {
        self.tunnels.iter().map(|(id, tunnel)| (*id, tunnel))
    }

    /// The tunnel that an interface is.
    pub(super) fn get(&self, id: InterfaceId) -> Option<&Tunnel> {
        self.tunnels.get(&id)
    }

    /// Is an interface one?
    pub fn has(&self, id: InterfaceId) -> bool {
        self.tunnels.contains_key(&id)
    }

    fn publish(&self, id: InterfaceId) {
        self.next_nodes.publish(id.index(), self.tunnels.get(&id).map(Tunnel::next_nodes));
    }
}

/// Keep them, and follow their interfaces.
pub(super) fn start(engine: &mut Engine, tunnels: Tunnels) {
    engine.insert(tunnels);
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted {
            forget(engine, id);
        }
    });
}

/// The name of an instance.
pub(super) fn name(instance: u32) -> String {
    format!("sr_l2_tunnel{instance}")
}

/// Make a tunnel; returns its name.
pub(super) fn create(engine: &mut Engine, new: New) -> Result<String, Refusal> {
    let instance = free_instance(engine, new.instance)?;
    let name = name(instance);
    let node = engine.node_id(NODE).ok_or_else(|| Refusal::new(format!("no node {NODE}")))?;
    let wanted = [(Which::Unicast, new.unicast), (Which::Flood, new.flood)];
    let mut sends = BTreeMap::new();
    let held = wanted.into_iter().filter_map(|(which, bsid)| Some((which, bsid?))).try_for_each(
        |(which, bsid)| -> Result<(), Refusal> {
            sends.insert(which, Sends::By(hold(engine, bsid)?));
            Ok(())
        },
    );
    let made = held.and_then(|()| {
        let id = engine.create_tunnel_interface(TunnelInterfaceSpec {
            name: name.clone(),
            device: Box::new(TunnelDevice),
            mac: new.mac.unwrap_or_else(made_up_mac),
            mtu_bytes: MTU_BYTES,
            input: ETHERNET_INPUT.to_owned(),
            encap: node,
            takes_offloads: true,
        })?;
        Ok(id)
    });
    let id = match made {
        Ok(id) => id,
        Err(refused) => {
            sends.into_values().for_each(|sends| end(engine, sends));
            return Err(refused);
        }
    };
    modes::set_group(engine, id, CORE_GROUP);
    engine.with(|_, tunnels: &mut Tunnels| {
        tunnels.tunnels.insert(id, Tunnel { instance, mac: new.mac, sends });
        tunnels.publish(id);
    });
    Ok(name)
}

/// Locally administered, different each time (RFC 9542 §2.1): tunnels of one service are ports of
/// several routers.
fn made_up_mac() -> [u8; 6] {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    [0x02, 0xfe, a, b, c, d]
}

fn free_instance(engine: &Engine, wanted: Option<u32>) -> Result<u32, Refusal> {
    let free = |instance: u32| engine.interface_id(&name(instance)).is_none();
    match wanted {
        Some(instance) if free(instance) => Ok(instance),
        Some(instance) => Err(Refusal::new(format!("{} exists already", name(instance)))
            .remedy("`show sr l2-tunnels`; without `instance` the first free number is taken")),
        None => (0..=INSTANCE_MAX).find(|instance| free(*instance)).ok_or_else(|| {
            Refusal::new(format!("there are {} layer 2 tunnels already", INSTANCE_MAX + 1))
                .remedy("delete some")
        }),
    }
}

/// The policy of an end is needed no more.
fn end(engine: &mut Engine, sends: Sends) {
    if let Sends::By(policy) = sends {
        release(engine, policy);
    }
}

/// What an operator says that frames are sent by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// This policy.
    By(Ipv6Addr),
    /// They do not go.
    Off,
    /// As if nothing had been said.
    Unsaid,
}

/// Say what a tunnel sends some frames by. Workers go by the old policy or the new one.
pub(super) fn set(
    engine: &mut Engine,
    id: InterfaceId,
    which: Which,
    wanted: Wanted,
) -> Result<(), Refusal> {
    let sends = match wanted {
        Wanted::By(bsid) => Some(Sends::By(hold(engine, bsid)?)),
        Wanted::Off => Some(Sends::Off),
        Wanted::Unsaid => None,
    };
    let before = engine.with(|_, tunnels: &mut Tunnels| {
        let tunnel = tunnels.tunnels.get_mut(&id)?;
        let before = match sends {
            Some(sends) => tunnel.sends.insert(which, sends),
            None => tunnel.sends.remove(&which),
        };
        tunnels.publish(id);
        before
    });
    if let Some(before) = before {
        end(engine, before);
    }
    Ok(())
}

/// An interface goes: its tunnel, too.
fn forget(engine: &mut Engine, id: InterfaceId) {
    let gone = engine.with(|_, tunnels: &mut Tunnels| {
        let gone = tunnels.tunnels.remove(&id)?;
        tunnels.publish(id);
        Some(gone)
    });
    for sends in gone.into_iter().flat_map(|tunnel| tunnel.sends.into_values()) {
        end(engine, sends);
    }
}
