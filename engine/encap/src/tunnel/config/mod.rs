//! Tunnels of a protocol on the control thread: their interfaces, their ends, and where their
//! packets go.

mod far_ends;
mod lifecycle;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::control::interfaces::InterfaceError;
use quiver_core::memory::epoch::Epochs;
use quiver_core::worker::device::Device;
use quiver_core::{Engine, InterfaceId, NodeId};
use quiver_forwarding::fib::{Family, Fib, FibError, Path, PathState, StackedHop};
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::GroupId;
use quiver_tables::exact::ExactError;
use quiver_tables::memory::MemoryError;

use super::errors::PathReport;
use super::far_end_book::FarEndBook;
use super::far_ends::FarEndTables;
use super::frames::EntryByInterface;
use super::protocol::TunnelProtocol;
use super::table::{End, Key, SENT, TunnelTable, TunnelTableWriter, bits, key};
use super::udp;
use crate::entries::{EncapEntries, WorkerEncapEntries};
use crate::entry::EntryWords;
use crate::outer::OuterHeader;
use crate::path_mtu::{PathMtu, PathMtus, SWEEP_NS};

pub(in crate::tunnel) use lifecycle::start;
pub use lifecycle::{create, reconfigure, set_group_interface, set_peer};

/// Instances are counted from 0 up to this.
pub const INSTANCE_MAX: u32 = 16_383;
/// The MTU of a tunnel's interface until it is set, bytes. What does not fit the path is told to
/// senders one by one.
const MTU_BYTES: u32 = 9_000;
/// The hop limit of outer headers around frames, and the default where one is set at all.
pub const HOP_LIMIT: u8 = 64;
/// Who holds an outer table, in the refusal to delete it.
const HOLDER: &str = "a tunnel";

/// What an operator says of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelConfig<X = ()> {
    /// The number in its name.
    pub instance: Option<u32>,
    /// The outer source, an address of this router.
    pub source: IpAddr,
    /// The outer destination; none for a multipoint tunnel.
    pub destination: Option<IpAddr>,
    /// The number of the table that has the outer destination.
    pub table: u32,
    /// The key.
    pub key: Option<u32>,
    /// Does it carry Ethernet frames?
    pub carries_frames: bool,
    /// The outer TTL or hop limit; without one that of the inner packet.
    pub hop_limit: Option<u8>,
    /// The outer DSCP; without one that of the inner packet.
    pub dscp: Option<u8>,
    /// What a tunnel in UDP has besides.
    pub udp: Option<UdpConfig>,
    /// What only tunnels of this protocol have.
    pub extra: X,
}

/// What an operator says of a tunnel in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The UDP port at which this end takes packets.
    pub local_port: u16,
    /// The UDP port at which the other end does.
    pub remote_port: u16,
    /// Is the UDP checksum zero over IPv6, too (RFC 6935)?
    pub zero_checksum: bool,
    /// Is the destination a multicast group, which the tunnel listens to, too?
    pub is_group: bool,
    /// The interface that leads to the group. Without one the tunnel neither sends nor listens.
    pub group_interface: Option<InterfaceId>,
    /// The node that takes what the tunnel receives, instead of `ethernet-input`.
    pub input: Option<NodeId>,
    /// Did the operator say that the interface routes?
    pub is_layer3: bool,
}

impl<X> TunnelConfig<X> {
    /// The group that the tunnel is for, if it is for one.
    pub fn group_address(&self) -> Option<IpAddr> {
        self.destination.filter(|_| self.udp.is_some_and(|udp| udp.is_group))
    }

    /// The group that the tunnel sends to and listens to, and the interface that leads there.
    pub fn group(&self) -> Option<(IpAddr, InterfaceId)> {
        self.group_address().zip(self.udp.and_then(|udp| udp.group_interface))
    }

    /// Has the tunnel many far ends, to which frames go as the MAC table says?
    pub fn has_far_ends(&self) -> bool {
        self.destination.is_none() && self.carries_frames
    }

    /// The UDP port at which this end takes packets; 0 for none.
    fn local_port(&self) -> u16 {
        self.udp.map_or(0, |udp| udp.local_port)
    }
}

/// What workers match beside the ends and the table: the UDP port or the space of numbers, and the
/// number.
fn number<P: TunnelProtocol>(config: &TunnelConfig<P::Extra>) -> (u16, Option<u32>) {
    (config.local_port() | P::space(config), P::key(config))
}

/// Why a tunnel cannot be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The ends are of two families.
    #[error(
        "{0} and {1} are not both IPv4 or both IPv6: an outer header has addresses of one family"
    )]
    Families(IpAddr, IpAddr),
    /// Not a host's.
    #[error("{0} is no address that one host has")]
    Address(IpAddr),
    /// Not a group.
    #[error("{0} is no multicast group")]
    NoGroup(IpAddr),
    /// Nobody joins it.
    #[error("groups cannot be joined: group-membership is not built in")]
    NoMembership,
    /// Another kind.
    #[error("the interface is no tunnel to a multicast group")]
    NoGroupTunnel,
    /// Gone.
    #[error("the interface is no tunnel with many far ends")]
    NoPort,
    /// No number is left.
    #[error("there are {0} far ends of tunnels already; remove some")]
    FarEnds(usize),
    /// Another protocol has the port.
    #[error("UDP port {0} is another protocol's")]
    Port(u16),
    /// The name is there.
    #[error("{0} exists already")]
    Exists(String),
    /// All names are there.
    #[error("there are {0} tunnels already; delete some")]
    TooMany(u32),
    /// The ends are those of another.
    #[error("{0} has the same ends, table and key: one of them would receive nothing")]
    Ends(String),
    /// No such table.
    #[error(
        "there is no {family} table {table}; `{word} table add {table}` makes it",
        word = family.word()
    )]
    NoTable {
        /// Of the outer addresses.
        family: Family,
        /// The operator's number.
        table: u32,
    },
    /// No entry left.
    #[error("there are {0} peers of tunnels already; delete some")]
    EntriesFull(usize),
    /// Multipoint tunnels carry packets.
    #[error(
        "a multipoint tunnel carries packets, not frames: there is no table of stations behind its \
         peers"
    )]
    MultipointFrames,
    /// The FIB.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The table of ends.
    #[error(transparent)]
    Table(#[from] ExactError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The FIB is not built in.
    #[error("{0} is not built in")]
    NotBuiltIn(&'static str),
}

/// A peer to which packets are encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    entry: u32,
    underlay: GroupId,
    /// The family and the small number of the outer table, which is held.
    family: Family,
    table: u32,
    key: Key,
    /// The key of what is sent, where it is another one.
    sent_key: Option<Key>,
}

impl Peer {
    /// Its encapsulation entry.
    pub(super) fn entry(&self) -> u32 {
        self.entry
    }
}

/// A tunnel.
#[derive(Debug)]
pub struct Tunnel<P: TunnelProtocol> {
    /// As it was asked for, with its instance.
    pub config: TunnelConfig<P::Extra>,
    /// The small number of its outer table.
    table: u32,
    /// Its peer, or with a multipoint tunnel those of its next hops.
    peers: BTreeMap<Option<IpAddr>, Peer>,
    /// Another key of what it receives: packets to a group that another tunnel listens to, or those
    /// of members of its group to this end.
    alias: Option<Key>,
}

impl<P: TunnelProtocol> Tunnel<P> {
    /// The small number of its outer table.
    pub(super) fn table(&self) -> u32 {
        self.table
    }

    /// Has it many far ends, to which frames go as the MAC table says?
    pub fn has_far_ends(&self) -> bool {
        self.config.has_far_ends()
    }

    /// The family of the outer header.
    fn family(&self) -> Family {
        Family::of(self.config.source)
    }

    /// The keys of packets from any sender to a multipoint tunnel.
    fn keys_of_any(&self) -> impl Iterator<Item = Key> + use<P> {
        let ((port, number), table) = (number::<P>(&self.config), self.table);
        let sources = P::sources(&self.config).into_iter().flatten();
        sources.map(move |source| key(0, bits(source), table, port, number))
    }

    /// The key of packets from any sender, of a multipoint tunnel or of one that listens to a
    /// group.
    fn key_of_any(&self) -> Key {
        let to = self.config.group_address().unwrap_or(self.config.source);
        let (port, number) = number::<P>(&self.config);
        key(0, bits(to), self.table, port, number)
    }

    /// The key of what it receives.
    fn own_key(&self) -> Key {
        let TunnelConfig { source, destination, .. } = self.config;
        match destination.filter(|_| self.config.group_address().is_none()) {
            None => self.key_of_any(),
            Some(from) => {
                let (port, number) = number::<P>(&self.config);
                key(bits(from), bits(source), self.table, port, number)
            }
        }
    }

    /// Is it for packets with the same table, port and number as another one?
    fn has_number_of(&self, other: &Tunnel<P>) -> bool {
        let number = |tunnel: &Tunnel<P>| (tunnel.table, number::<P>(&tunnel.config));
        self.family() == other.family() && number(self) == number(other)
    }
}

/// What is known of a peer, for `show`.
#[derive(Clone, Copy, Debug)]
pub struct PeerView {
    /// The inner next hop, of a multipoint tunnel.
    pub next_hop: Option<IpAddr>,
    /// What the route of the outer destination is doing.
    pub underlay: Option<PathState>,
    /// A known path MTU.
    pub path_mtu: Option<PathMtu>,
    /// Packets and bytes that were sent, with the outer headers.
    pub sent: [u64; 2],
}

/// All tunnels of a protocol.
pub struct Tunnels<P: TunnelProtocol> {
    by_interface: BTreeMap<InterfaceId, Tunnel<P>>,
    entries: EncapEntries,
    ends: TunnelTableWriter,
    frames: Arc<EntryByInterface>,
    path_mtus: PathMtus,
    pub(super) far: FarEndBook,
    pub(super) far_tables: Arc<FarEndTables>,
    shared: Arc<P::Shared>,
}

/// The control thread's handle.
struct TunnelDevice(&'static str);

impl Device for TunnelDevice {
    fn kind(&self) -> &'static str {
        self.0
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// May one host have this address?
fn is_host(address: IpAddr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback())
        && address != IpAddr::from([u8::MAX; 4])
}

impl<P: TunnelProtocol> Tunnels<P> {
    /// None yet.
    pub(super) fn new(workers: usize, epochs: &Arc<Epochs>) -> Result<Tunnels<P>, MemoryError> {
        Ok(Tunnels {
            by_interface: BTreeMap::new(),
            entries: EncapEntries::new("peers of tunnels", workers, epochs)?,
            ends: TunnelTableWriter::new(epochs)?,
            frames: Arc::new(EntryByInterface::new()),
            path_mtus: PathMtus::default(),
            far: FarEndBook::default(),
            far_tables: Arc::new(FarEndTables::new(epochs)),
            shared: Arc::default(),
        })
    }

    pub(super) fn worker_entries(&self) -> Arc<[Arc<WorkerEncapEntries>]> {
        self.entries.workers().into()
    }

    pub(super) fn table(&self) -> TunnelTable {
        self.ends.table()
    }

    pub(super) fn frames(&self) -> &Arc<EntryByInterface> {
        &self.frames
    }

    pub(super) fn shared(&self) -> &Arc<P::Shared> {
        &self.shared
    }

    /// All tunnels, by interface.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, &Tunnel<P>)> {
        self.by_interface.iter().map(|(id, tunnel)| (*id, tunnel))
    }

    /// The tunnel that an interface is.
    pub fn get(&self, id: InterfaceId) -> Option<&Tunnel<P>> {
        self.by_interface.get(&id)
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.entries.resident_bytes()
    }

    /// What is known of the peers of a tunnel.
    pub fn peers<'a>(
        &'a self,
        tunnel: &'a Tunnel<P>,
        fib: &'a Fib,
    ) -> impl Iterator<Item = PeerView> + 'a {
        tunnel.peers.iter().map(|(next_hop, peer)| PeerView {
            next_hop: *next_hop,
            underlay: fib.underlay_state(peer.underlay),
            path_mtu: self.path_mtus.get(peer.entry),
            sent: self.entries.sums(peer.entry),
        })
    }

    /// The header stack to a destination.
    fn stack(config: &TunnelConfig<P::Extra>, destination: IpAddr) -> Option<Vec<u8>> {
        let class = config.dscp.unwrap_or(0) << 2;
        let hops = config.hop_limit.unwrap_or(HOP_LIMIT);
        let outer = match config.source {
            IpAddr::V4(_) => Ip4::template(config.source, destination, class, hops),
            IpAddr::V6(_) => Ip6::template(config.source, destination, class, hops),
        };
        let udp = config.udp.map(|udp| udp::template(P::source_port(config), udp.remote_port));
        let udp = udp.as_ref().map_or(&[][..], |udp| udp);
        outer.map(|outer| [&outer, udp, &P::header_of(config)].concat())
    }

    /// An entry for packets to a destination, and the group that leads there. Nothing is left of
    /// what is refused.
    pub(super) fn add_peer(
        &mut self,
        fib: &mut Fib,
        config: &TunnelConfig<P::Extra>,
        destination: IpAddr,
        table: u32,
    ) -> Result<Peer, TunnelError> {
        let family = Family::of(destination);
        let source = P::sources(config)[family as usize];
        let source = source.ok_or(TunnelError::Families(config.source, destination))?;
        let config = &TunnelConfig { source, ..*config };
        let stack = Self::stack(config, destination)
            .ok_or(TunnelError::Families(config.source, destination))?;
        let path = match config.group() {
            Some((group, interface)) => Path::via(group, Some(interface)),
            None => Path::resolved(destination, Some(table), None),
        };
        let underlay = fib.hold_paths(family, table, &[path])?;
        let words = EntryWords {
            underlay,
            table,
            protocol_offset: 0,
            copies_hop_limit: config.hop_limit.is_none() && !config.carries_frames,
            copies_dscp: config.dscp.is_none(),
            feature_flag: config.udp.is_some_and(|udp| udp.zero_checksum),
        };
        let Some(entry) = self.entries.add(&stack, words.words()) else {
            fib.release_paths(underlay);
            return Err(TunnelError::EntriesFull(self.entries.len()));
        };
        fib.hold_table(family, table, HOLDER);
        let (port, number) = number::<P>(config);
        let (local, remote) = (bits(config.source), bits(destination));
        let sent_key =
            P::HAS_SENT_KEY.then(|| key(remote, local, table, port | SENT, P::sent_key(config)));
        let key = match config.group() {
            Some((group, _)) => key(0, bits(group), table, port, number),
            None => key(remote, local, table, port, number),
        };
        Ok(Peer { entry, underlay, family, table, key, sent_key })
    }

    /// Workers find this peer no more.
    pub(super) fn remove_peer(&mut self, fib: &mut Fib, peer: Peer) {
        self.path_mtus.entry_gone(peer.entry);
        self.entries.retire(peer.entry);
        fib.release_paths(peer.underlay);
        fib.release_table(peer.family, peer.table, HOLDER);
    }

    /// Workers match what comes from a peer, and ICMP errors about what it is sent.
    fn insert_end(&mut self, peer: &Peer, end: End) -> Result<(), TunnelError> {
        self.ends.insert(peer.key, end)?;
        let table = self.table();
        let is_free = |key: &Key| table.find(key).is_none_or(|of| of.interface == end.interface);
        // Of tunnels whose packets are the same, the first has ICMP errors about them.
        if let Some(sent_key) = peer.sent_key.filter(is_free)
            && let Err(error) = self.ends.insert(sent_key, end)
        {
            self.ends.remove(&peer.key);
            return Err(error.into());
        }
        Ok(())
    }

    /// Workers do not any more.
    fn remove_end(&mut self, peer: &Peer) {
        self.ends.remove(&peer.key);
        let table = self.table();
        let is_own = |key: &Key| table.find(key).is_some_and(|end| end.entry == peer.entry);
        if let Some(sent_key) = peer.sent_key.filter(is_own) {
            self.ends.remove(&sent_key);
        }
    }

    /// Let packets to a group that come from the peer of a point-to-point tunnel be that tunnel's:
    /// what is learned from them leads there.
    fn follow_groups(&mut self, id: InterfaceId) {
        let Some(changed) = self.by_interface.get(&id) else { return };
        let alike = self.by_interface.iter().filter(|(_, other)| other.has_number_of(changed));
        let groups = alike.clone().find_map(|(_, tunnel)| tunnel.config.group_address());
        let mut wanted = Vec::new();
        for (id, tunnel) in alike.filter(|(_, tunnel)| tunnel.config.group_address().is_none()) {
            let alias = groups.zip(tunnel.config.destination).map(|(group, from)| {
                let (port, number) = number::<P>(&tunnel.config);
                key(bits(from), bits(group), tunnel.table, port, number)
            });
            wanted.push((*id, alias));
        }
        for (id, alias) in wanted {
            let Some(tunnel) = self.by_interface.get_mut(&id) else { continue };
            if tunnel.alias == alias {
                continue;
            }
            if let Some(old) = tunnel.alias.take() {
                self.ends.remove(&old);
            }
            let entry = tunnel.peers.get(&None).map_or(0, |peer| peer.entry);
            let end = End { entry, ..end::<P>(id, &tunnel.config) };
            // Where the table is full, the tunnel that listens to the group takes them.
            tunnel.alias = alias.filter(|alias| self.ends.insert(*alias, end).is_ok());
        }
    }

    fn learn(&mut self, report: PathReport, now_ns: u64) {
        let known = self.by_interface.values().flat_map(|tunnel| tunnel.peers.values());
        if known.chain(self.far.peers()).any(|peer| peer.entry == report.entry) {
            self.path_mtus.learn(&self.entries, report.entry, report.mtu_bytes, now_ns);
        }
    }
}

/// The hop of packets to a peer.
fn stacked_hop<P: TunnelProtocol>(
    engine: &Engine,
    family: Family,
    peer: Peer,
) -> Result<StackedHop, TunnelError> {
    let names = P::NODES.encap[family as usize];
    let node = |name: &'static str| engine.node_id(name).ok_or(TunnelError::NotBuiltIn(name));
    Ok(StackedHop {
        nodes: [node(names[0])?, node(names[1])?],
        entry: peer.entry,
        underlay: peer.underlay,
    })
}

/// The name of an instance.
pub fn name<P: TunnelProtocol>(instance: u32) -> String {
    format!("{}{instance}", P::INTERFACE)
}

fn free_instance<P: TunnelProtocol>(
    engine: &Engine,
    wanted: Option<u32>,
) -> Result<u32, TunnelError> {
    let free = |instance: u32| engine.interface_id(&name::<P>(instance)).is_none();
    match wanted {
        Some(instance) if free(instance) => Ok(instance),
        Some(instance) => Err(TunnelError::Exists(name::<P>(instance))),
        None => (0..=INSTANCE_MAX)
            .find(|instance| free(*instance))
            .ok_or(TunnelError::TooMany(INSTANCE_MAX + 1)),
    }
}

pub(super) fn fib(engine: &mut Engine) -> Result<&mut Fib, TunnelError> {
    engine.get_mut::<Fib>().ok_or(TunnelError::NotBuiltIn("IP forwarding"))
}

/// The end of a tunnel, as long as it has no peer.
fn end<P: TunnelProtocol>(interface: InterfaceId, config: &TunnelConfig<P::Extra>) -> End {
    let words = P::end_words(config);
    End { interface, carries_frames: config.carries_frames, entry: 0, words }
}
