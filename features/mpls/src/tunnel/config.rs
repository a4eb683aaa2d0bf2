//! MPLS tunnels on the control thread.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use quiver_control::{ETHERNET_INPUT, Refusal, modes};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::tunnel_interface::TunnelInterfaceSpec;
use quiver_core::worker::device::Device;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Link, Path, Target};
use quiver_tables::GroupId;
use quiver_tables::mac::CORE_GROUP;

use super::output::{Ends, NODE, PublishedEnds};
use crate::state::fib_mut;

/// Instances are counted from 0 up to this.
pub(super) const INSTANCE_MAX: u32 = 16_383;
/// The largest layer 3 packet of a tunnel until it is set, bytes. It says nothing of the path.
const MTU_BYTES: u32 = 9_000;
/// Paths of a tunnel at most.
const PATHS_MAX: usize = quiver_forwarding::next_hop_group::PATHS_MAX;

/// A tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    pub instance: u32,
    pub is_l2: bool,
    pub control_word: bool,
    /// The address that the operator gave.
    pub mac: Option<[u8; 6]>,
    pub paths: Vec<Path>,
    /// The group of the paths, while there are any.
    pub group: Option<GroupId>,
}

/// All tunnels, by interface.
pub(super) struct Tunnels {
    tunnels: BTreeMap<InterfaceId, Tunnel>,
    ends: Arc<PublishedEnds>,
}

/// The control thread's handle.
struct TunnelDevice;

impl Device for TunnelDevice {
    fn kind(&self) -> &'static str {
        "mpls-tunnel"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl Tunnels {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, &Tunnel)> {
        self.tunnels.iter().map(|(id, tunnel)| (*id, tunnel))
    }

    /// The tunnel that an interface is.
    pub fn get(&self, id: InterfaceId) -> Option<&Tunnel> {
        self.tunnels.get(&id)
    }

    fn publish(&self, id: InterfaceId) {
        let ends = self.tunnels.get(&id).and_then(|tunnel| {
            let Tunnel { is_l2, control_word, .. } = *tunnel;
            Some(Ends { group: tunnel.group?, is_l2, control_word })
        });
        self.ends.publish(id.index(), ends);
    }
}

/// Keep them, and follow their interfaces.
pub(super) fn start(engine: &mut Engine, ends: Arc<PublishedEnds>) {
    engine.insert(Tunnels { tunnels: BTreeMap::new(), ends });
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted {
            forget(engine, id);
        }
    });
}

/// The name of an instance.
pub(super) fn name(instance: u32) -> String {
    format!("mpls-tunnel{instance}")
}

/// What an operator says of a new tunnel.
pub(super) struct New {
    pub instance: Option<u32>,
    pub is_l2: bool,
    pub control_word: bool,
    pub mac: Option<[u8; 6]>,
}

/// Make a tunnel; returns its interface.
pub(super) fn create(engine: &mut Engine, new: &New) -> Result<InterfaceId, Refusal> {
    let instance = free_instance(engine, new.instance)?;
    let node = engine.node_id(NODE).ok_or_else(|| Refusal::new(format!("no node {NODE}")))?;
    let id = engine.create_tunnel_interface(TunnelInterfaceSpec {
        name: name(instance),
        device: Box::new(TunnelDevice),
        mac: if new.is_l2 { new.mac.unwrap_or_else(made_up_mac) } else { [0; 6] },
        mtu_bytes: MTU_BYTES,
        input: if new.is_l2 { ETHERNET_INPUT } else { "error-drop" }.to_owned(),
        encap: node,
        takes_offloads: false,
    })?;
    if new.is_l2 {
        modes::set_group(engine, id, CORE_GROUP);
    }
    let New { is_l2, control_word, mac, .. } = *new;
    engine.with(|_, tunnels: &mut Tunnels| {
        let tunnel = Tunnel { instance, is_l2, control_word, mac, paths: Vec::new(), group: None };
        tunnels.tunnels.insert(id, tunnel);
    });
    Ok(id)
}

/// Locally administered, different each time (RFC 9542 §2.1).
fn made_up_mac() -> [u8; 6] {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    [0x02, 0xfe, a, b, c, d]
}

fn free_instance(engine: &Engine, wanted: Option<u32>) -> Result<u32, Refusal> {
    let free = |instance: u32| engine.interface_id(&name(instance)).is_none();
    match wanted {
        Some(instance) if free(instance) => Ok(instance),
        Some(instance) => Err(Refusal::new(format!("{} exists already", name(instance)))
            .remedy("`show mpls tunnel`; without `instance` the first free number is taken")),
        None => (0..=INSTANCE_MAX).find(|instance| free(*instance)).ok_or_else(|| {
            Refusal::new(format!("there are {} MPLS tunnels already", INSTANCE_MAX + 1))
                .remedy("delete some")
        }),
    }
}

/// The paths of a tunnel without some and with others.
pub(super) fn change_paths(
    engine: &mut Engine,
    id: InterfaceId,
    added: &[Path],
    removed: &[Path],
) -> Result<(), Refusal> {
    engine.with(|engine, tunnels: &mut Tunnels| {
        let Some(tunnel) = tunnels.tunnels.get_mut(&id) else {
            return Err(Refusal::new(format!("{} is no MPLS tunnel", engine.interface_name(id)))
                .remedy("`show mpls tunnel`"));
        };
        let stays = |path: &&Path| !removed.iter().chain(added).any(|other| other.is_same(path));
        let mut paths: Vec<Path> = tunnel.paths.iter().filter(stays).copied().collect();
        paths.extend(added);
        paths.sort_unstable();
        if paths.len() > PATHS_MAX {
            return Err(Refusal::new(format!("a tunnel has at most {PATHS_MAX} paths")));
        }
        let held = match paths.is_empty() {
            true => None,
            false => {
                let held = fib_mut(engine)?.hold_paths(Link::Ethernet, 0, &paths);
                let subject = name(tunnel.instance);
                Some(held.map_err(|error| Refusal::of_table(engine, error.about(&subject)))?)
            }
        };
        let before = std::mem::replace(&mut tunnel.group, held);
        tunnel.paths = paths;
        tunnels.publish(id);
        release(engine, before);
        Ok(())
    })
}

fn release(engine: &mut Engine, group: Option<GroupId>) {
    if let (Some(group), Ok(fib)) = (group, fib_mut(engine)) {
        fib.release_paths(group);
    }
}

/// An interface goes: its tunnel, too; or another one, and the paths that name it.
fn forget(engine: &mut Engine, id: InterfaceId) {
    let gone = engine.with(|_, tunnels: &mut Tunnels| {
        let gone = tunnels.tunnels.remove(&id)?;
        tunnels.publish(id);
        Some(gone)
    });
    if let Some(tunnel) = gone {
        return release(engine, tunnel.group);
    }
    let names =
        |path: &Path| matches!(path.target, Target::Via { interface: Some(on), .. } if on == id);
    let affected: Vec<(InterfaceId, Vec<Path>)> = engine
        .get::<Tunnels>()
        .into_iter()
        .flat_map(Tunnels::iter)
        .map(|(on, tunnel)| (on, tunnel.paths.iter().filter(|path| names(path)).copied().collect()))
        .filter(|(_, paths): &(InterfaceId, Vec<Path>)| !paths.is_empty())
        .collect();
    for (on, paths) in affected {
        // Fewer paths than before are held without fail.
        let _ = change_paths(engine, on, &[], &paths);
    }
}
