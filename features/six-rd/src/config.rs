//! 6rd tunnels on the control thread: their interfaces, and what workers read of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quiver_control::IpPrefix;
use quiver_core::control::interfaces::{InterfaceChange, InterfaceError};
use quiver_core::control::tunnel_interface::TunnelInterfaceSpec;
use quiver_core::memory::epoch::Epochs;
use quiver_core::worker::device::Device;
use quiver_core::{Engine, InterfaceId};
use quiver_encap::OuterHeader;
use quiver_encap::entries::{EncapEntries, WorkerEncapEntries};
use quiver_encap::entry::EntryWords;
use quiver_encap::tunnel::INSTANCE_MAX;
use quiver_forwarding::fib::{Family, Fib, FibError, Path, StackedHop, Target};
use quiver_forwarding::ip::Ip4;
use quiver_tables::GroupId;
use quiver_tables::memory::MemoryError;

use crate::domain::{Domain, DomainError};
use crate::tables::{Tables, Tunnel};
use crate::{encap, output};

/// The MTU of a tunnel's interface until it is set, bytes: Ethernet's without the outer header
/// (RFC 5969 §9.1).
pub const MTU_BYTES: u32 = 1_480;
/// Tunnels at most.
pub const TUNNELS_MAX: usize = 1_024;
/// Who holds an outer table, in the refusal to delete it.
const HOLDER: &str = "a 6rd tunnel";
/// What names of interfaces begin with.
pub const NAME: &str = "sixrd";
/// The outer TTL is that of the inner packet; this one stands in the template.
const TTL: u8 = 64;

/// What an operator says of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SixRdConfig {
    /// The number in its name.
    pub instance: Option<u32>,
    /// The 6rd prefix.
    pub ip6: IpPrefix,
    /// What all IPv4 addresses of the domain have in common.
    pub ip4: IpPrefix,
    /// The outer source, an address of this router.
    pub source: Ipv4Addr,
    /// The border relay, for everything outside of the 6rd prefix.
    pub relay: Option<Ipv4Addr>,
    /// The number of the table that has the outer destinations.
    pub table: u32,
    /// Is the outer source compared with the one that the inner source names?
    pub checks_source: bool,
}

/// Why a tunnel cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SixRdError {
    /// The prefixes.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Not a host's.
    #[error("{0} is no address that one host has")]
    Address(Ipv4Addr),
    /// The name is there.
    #[error("{NAME}{0} exists already")]
    Exists(u32),
    /// All are there.
    #[error("there are {TUNNELS_MAX} 6rd tunnels already; delete some")]
    TooMany,
    /// The local end is that of another.
    #[error("{0} ends at {1} already: one of them would receive nothing")]
    Ends(String, Ipv4Addr),
    /// No such table.
    #[error("there is no IPv4 table {0}; `ip table add {0}` makes it")]
    NoTable(u32),
    /// The FIB.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The FIB is not built in.
    #[error("{0} is not built in")]
    NotBuiltIn(&'static str),
}

/// A tunnel.
#[derive(Clone, Copy, Debug)]
pub struct SixRd {
    /// As it was configured, with its instance.
    pub config: SixRdConfig,
    tunnel: Tunnel,
    underlay: GroupId,
}

/// All tunnels.
pub struct SixRds {
    by_interface: BTreeMap<InterfaceId, SixRd>,
    entries: EncapEntries,
    tables: Arc<Tables>,
}

struct SixRdDevice;

impl Device for SixRdDevice {
    fn kind(&self) -> &'static str {
        "6rd"
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl SixRds {
    /// None yet.
    pub(crate) fn new(workers: usize, epochs: &Arc<Epochs>) -> Result<SixRds, MemoryError> {
        Ok(SixRds {
            by_interface: BTreeMap::new(),
            entries: EncapEntries::new("6rd tunnels", workers, epochs)?,
            tables: Arc::new(Tables::new(epochs)),
        })
    }

    pub(crate) fn worker_entries(&self) -> Arc<[Arc<WorkerEncapEntries>]> {
        self.entries.workers().into()
    }

    pub(crate) fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// All tunnels, by interface.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, &SixRd)> {
        self.by_interface.iter().map(|(id, rd)| (*id, rd))
    }

    /// The tunnel that an interface is.
    pub fn get(&self, id: InterfaceId) -> Option<&SixRd> {
        self.by_interface.get(&id)
    }

    /// Packets and bytes that were sent, with the outer headers.
    pub fn sent(&self, rd: &SixRd) -> [u64; 2] {
        self.entries.sums(rd.tunnel.entry)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.entries.resident_bytes()
    }

    fn publish_ends(&self) {
        let ends =
            self.by_interface.iter().map(|(id, rd)| (rd.tunnel.table, rd.tunnel.source, *id));
        self.tables.set_ends(ends.collect());
    }
}

impl SixRd {
    /// The prefix that this router delegates, if its address is one of the domain.
    pub fn delegated(&self) -> Option<IpPrefix> {
        let source = self.config.source;
        self.tunnel.domain.is_member(source).then(|| self.tunnel.domain.delegated(source))
    }
}

fn fib(engine: &mut Engine) -> Result<&mut Fib, SixRdError> {
    engine.get_mut::<Fib>().ok_or(SixRdError::NotBuiltIn("IP forwarding"))
}

fn free_instance(engine: &Engine, wanted: Option<u32>) -> Result<u32, SixRdError> {
    let free = |instance: u32| engine.interface_id(&format!("{NAME}{instance}")).is_none();
    match wanted {
        Some(instance) if free(instance) => Ok(instance),
        Some(instance) => Err(SixRdError::Exists(instance)),
        None => (0..=INSTANCE_MAX).find(|instance| free(*instance)).ok_or(SixRdError::TooMany),
    }
}

/// Make a tunnel; returns its interface. Nothing is left of what is refused.
///
/// # Errors
/// The prefixes make no domain, the source is no host's or taken, the table is missing, or there
/// are too many tunnels.
pub fn create(engine: &mut Engine, mut config: SixRdConfig) -> Result<InterfaceId, SixRdError> {
    let domain = Domain::new(config.ip6, config.ip4, config.relay)?;
    for address in [Some(config.source), config.relay].into_iter().flatten() {
        let is_host = !(address.is_unspecified()
            || address.is_multicast()
            || address.is_loopback()
            || address.is_broadcast());
        if !is_host {
            return Err(SixRdError::Address(address));
        }
    }
    let instance = free_instance(engine, config.instance)?;
    config.instance = Some(instance);
    let no_table = SixRdError::NoTable(config.table);
    let table = fib(engine)?.table_index(Family::Ip4, config.table).ok_or(no_table)?;
    let rds = engine.get::<SixRds>().ok_or(SixRdError::NotBuiltIn("6rd"))?;
    if rds.by_interface.len() >= TUNNELS_MAX {
        return Err(SixRdError::TooMany);
    }
    let source = config.source.to_bits();
    let taken = |rd: &SixRd| (rd.tunnel.table, rd.tunnel.source) == (table, source);
    if let Some((id, _)) = rds.iter().find(|(_, rd)| taken(rd)) {
        return Err(SixRdError::Ends(engine.interface_name(id), config.source));
    }
    let id = create_interface(engine, instance)?;
    let made = engine.with(|engine, rds: &mut SixRds| -> Result<(), SixRdError> {
        let node = |name| engine.node_id(name).ok_or(SixRdError::NotBuiltIn(name));
        let nodes = [node(encap::NODE_IP4)?, node(encap::NODE)?];
        let fib = fib(engine)?;
        // Each packet has an outer destination of its own, which the table of the tunnel has.
        let path = Path::new(Target::LookupIn { family: Family::Ip4, table });
        let underlay = fib.hold_paths(Family::Ip4, table, &[path])?;
        let words = EntryWords {
            underlay,
            table,
            protocol_offset: 0,
            copies_hop_limit: true,
            copies_dscp: true,
            feature_flag: false,
        };
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let stack = Ip4::template(IpAddr::V4(config.source), nowhere, 0, TTL);
        let entry = stack.and_then(|stack| rds.entries.add(&stack, words.words()));
        let Some(entry) = entry else {
            fib.release_paths(underlay);
            return Err(SixRdError::TooMany);
        };
        fib.hold_table(Family::Ip4, table, HOLDER);
        let tunnel = Tunnel { domain, table, source, entry, checks_source: config.checks_source };
        rds.tables.set(id, Some(tunnel));
        fib.set_stack(id, Some(StackedHop { nodes, entry, underlay }));
        rds.by_interface.insert(id, SixRd { config, tunnel, underlay });
        rds.publish_ends();
        Ok(())
    });
    if let Err(error) = made {
        engine.delete_interface(id)?;
        return Err(error);
    }
    Ok(id)
}

fn create_interface(engine: &mut Engine, instance: u32) -> Result<InterfaceId, SixRdError> {
    let node = engine.node_id(output::NODE).ok_or(SixRdError::NotBuiltIn(output::NODE))?;
    Ok(engine.create_tunnel_interface(TunnelInterfaceSpec {
        name: format!("{NAME}{instance}"),
        device: Box::new(SixRdDevice),
        mac: [0; 6],
        mtu_bytes: MTU_BYTES,
        input: "error-drop".to_owned(),
        encap: node,
        takes_offloads: false,
    })?)
}

/// An interface is gone: its tunnel, too.
fn forget(engine: &mut Engine, id: InterfaceId) {
    engine.with(|engine, rds: &mut SixRds| {
        let Some(rd) = rds.by_interface.remove(&id) else { return };
        rds.publish_ends();
        rds.tables.set(id, None);
        if let Some(fib) = engine.get_mut::<Fib>() {
            fib.set_stack(id, None);
            fib.release_paths(rd.underlay);
            fib.release_table(Family::Ip4, rd.tunnel.table, HOLDER);
        }
        rds.entries.retire(rd.tunnel.entry);
    });
}

/// Keep the tunnels, and follow their interfaces.
pub(crate) fn start(engine: &mut Engine, rds: SixRds) {
    engine.insert(rds);
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted {
            forget(engine, id);
        }
    });
}
