//! The FIB, control side: routes from several sources become path lists, path lists become next-hop
//! groups, and what groups say follows interfaces, neighbours and other routes.
//!
//! ```text
//! prefix ──► group ──► hop: node + adjacency        what workers follow
//!    │         │              │
//!  sources  path list      interface, neighbour     what this module keeps
//! ```
//!
//! A change is checked first and then made; a refused one changes nothing. Whatever follows from a
//! change (a neighbour's new address, a covering route) is resolved anew before the call returns.

mod adjacencies;
mod attached;
mod error;
mod explain;
mod flow;
mod interfaces;
mod limits;
mod neighbours;
mod path;
mod path_list;
mod range;
mod replace;
mod resolve;
mod routes;
mod series;
mod stacks;
mod tables;
mod view;

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_wire::MacAddress;
use quiver_wire::flow::FlowFields;

use crate::adjacency::Adjacencies;
use crate::adjacency::counts::AdjacencyCounts;
use crate::neighbour::Neighbours;
use crate::next_hop_group::{GroupSlots, Groups, Hop};
use quiver_tables::GroupId;
use quiver_tables::ip4_lpm::Ip4Tables;
use quiver_tables::ip6_lpm::Ip6Tables;
use quiver_tables::prefix::{Address, IpPrefix};

use adjacencies::{AdjacencyBook, Surroundings};
use attached::AttachedRoutes;
use interfaces::Interface;
use path_list::{ListKey, PathLists};
use resolve::Resolver;
use stacks::Stacks;
use tables::FamilyTables;

pub use adjacencies::AdjacencyKey;
pub use error::FibError;
pub use explain::{PathState, Unusable};
pub use limits::{FibLimits, FibStores, FibWeight};
pub use path::{Family, Only, Path, Source, Target};
pub use range::{RangeAction, RangeChange};
pub use replace::Swept;
pub use resolve::RECURSION_MAX;
pub use series::{Change, RouteChange, SeriesRefused};
pub use stacks::StackedHop;
pub use view::{AdjacencyView, GroupView, RouteView};

/// The index of the hop that a table answers when no route matches.
pub const NO_ROUTE_INDEX: u32 = u32::MAX;
/// The index of a drop hop whose route says unreachable.
pub const UNREACHABLE_INDEX: u32 = u32::MAX - 1;
/// The index of a drop hop whose route says prohibited.
pub const PROHIBIT_INDEX: u32 = u32::MAX - 2;
/// The index of a local hop whose route was made by the operator or a feature; that of an
/// interface's own address has 0.
pub const LOCAL_ROUTE_INDEX: u32 = 1;

/// The nodes that a family's hops name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyNodes {
    /// Writes a complete adjacency's rewrite; index: adjacency.
    pub rewrite: NodeId,
    /// Counts packets of an adjacency, and sends on to `rewrite`; index: the complete adjacency.
    pub count: NodeId,
    /// Has a neighbour confirmed that was not heard from for some time, and sends on to `rewrite`;
    /// index: the complete adjacency.
    pub confirm: NodeId,
    /// Packets for the router itself; index: 0, or [`LOCAL_ROUTE_INDEX`].
    pub local: NodeId,
    /// Asks for a neighbour's address (ARP, ND); index: the incomplete adjacency.
    pub incomplete: NodeId,
    /// A connected subnet: makes the packet's destination a neighbour; index: the glean adjacency.
    pub glean: NodeId,
    /// Packets for nobody; index: 0, [`NO_ROUTE_INDEX`] when no route matched,
    /// [`UNREACHABLE_INDEX`] or [`PROHIBIT_INDEX`] when the sender is to be told.
    pub drop: NodeId,
    /// Packets for the control plane; index: 0.
    pub punt: NodeId,
    /// Looks up in another table; index: the table's small number.
    pub lookup: NodeId,
    /// Looks the source up in a table; index: the table's small number.
    pub source_lookup: NodeId,
    /// Receives a packet once more; index: the interface.
    pub interface_rx: NodeId,
}

/// The nodes that hops name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibNodes {
    /// For IPv4 packets.
    pub ip4: FamilyNodes,
    /// For IPv6 packets.
    pub ip6: FamilyNodes,
    /// Looks a link-local destination up in the receiving interface's own table
    /// ([`Fib::link_local_table`]); index: 0.
    pub ip6_link_local: NodeId,
    /// Packets to all hosts of an IPv4 subnet; index: an adjacency of its interface, complete where
    /// they are forwarded.
    pub ip4_broadcast: NodeId,
}

impl FibNodes {
    fn of(&self, family: Family) -> &FamilyNodes {
        match family {
            Family::Ip4 => &self.ip4,
            Family::Ip6 => &self.ip6,
        }
    }
}

/// What the FIB must know of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Its number.
    pub id: InterfaceId,
    /// Its output node.
    pub output: NodeId,
    /// Its MAC address; none where frames have no Ethernet header (then there are no neighbours).
    pub mac: Option<MacAddress>,
    /// VLAN tags of what it sends, as on the wire, at most 8 bytes.
    pub vlan_tags: Vec<u8>,
    /// Its L3 MTU in bytes.
    pub mtu_bytes: u16,
    /// A smaller one for IPv4 and for IPv6, in bytes.
    pub family_mtu_bytes: [Option<u16>; 2],
    /// May it send and receive?
    pub up: bool,
    /// Small number of its IPv4 table.
    pub ip4_table: u32,
    /// Small number of its IPv6 table.
    pub ip6_table: u32,
}

/// Both families' tables.
pub(crate) struct Families {
    ip4: FamilyTables<u32>,
    ip6: FamilyTables<u128>,
}

impl Families {
    /// The route of the longest prefix that holds `address`.
    fn cover(&self, table: u32, address: IpAddr) -> Option<Cover> {
        match address {
            IpAddr::V4(address) => self.ip4.cover(table, address.to_bits()).map(Cover::of),
            IpAddr::V6(address) => self.ip6.cover(table, address.to_bits()).map(Cover::of),
        }
    }

    fn exists(&self, family: Family, table: u32) -> bool {
        match family {
            Family::Ip4 => self.ip4.exists(table),
            Family::Ip6 => self.ip6.exists(table),
        }
    }
}

/// The route that covers an address.
struct Cover {
    group: GroupId,
    source: Source,
    /// Is it for that address alone?
    is_host: bool,
}

impl Cover {
    fn of<A: Address>(
        (prefix, route): (quiver_tables::prefix::Prefix<A>, quiver_tables::lpm::Route),
    ) -> Cover {
        let is_host = u32::from(prefix.len()) == A::BITS;
        Cover { group: route.group, source: tables::source_of(route), is_host }
    }
}

/// An address whose family has tables.
trait Side: Address {
    const FAMILY: Family;
    fn tables(families: &Families) -> &FamilyTables<Self>;
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<Self>;
    fn ip_prefix(prefix: quiver_tables::prefix::Prefix<Self>) -> IpPrefix;
}

impl Side for u32 {
    const FAMILY: Family = Family::Ip4;
    fn tables(families: &Families) -> &FamilyTables<u32> {
        &families.ip4
    }
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<u32> {
        &mut families.ip4
    }
    fn ip_prefix(prefix: quiver_tables::prefix::Ip4Prefix) -> IpPrefix {
        IpPrefix::V4(prefix)
    }
}

impl Side for u128 {
    const FAMILY: Family = Family::Ip6;
    fn tables(families: &Families) -> &FamilyTables<u128> {
        &families.ip6
    }
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<u128> {
        &mut families.ip6
    }
    fn ip_prefix(prefix: quiver_tables::prefix::Ip6Prefix) -> IpPrefix {
        IpPrefix::V6(prefix)
    }
}

/// The FIB of the router. One, on the control thread.
pub struct Fib {
    nodes: FibNodes,
    families: Families,
    lists: PathLists,
    groups: GroupSlots,
    adjacencies: AdjacencyBook,
    interfaces: BTreeMap<InterfaceId, Interface>,
    neighbours: Neighbours,
    limits: FibLimits,
    route_counts: [usize; 2],
    /// Which tables features name, and who they are.
    table_holders: Vec<(Family, u32, &'static str)>,
    /// What makes a flow in tables where that is not the default.
    flow_fields: BTreeMap<(Family, u32), FlowFields>,
    /// Tables whose static routes are being replaced, and the routes that were given since that
    /// began.
    replacing: BTreeMap<(Family, u32), HashSet<IpPrefix>>,
    /// Attached routes by interface and table.
    attached: AttachedRoutes,
    /// Which interface has an address with this subnet or host, by table; up or not.
    connected: BTreeMap<(u32, IpPrefix), InterfaceId>,
    prefix_stores: u64,
    /// Where packets to groups go, IPv4 and IPv6, when somebody forwards them.
    groups_lead: Option<[NodeId; 2]>,
    /// The header stacks of tunnels' interfaces.
    stacks: Stacks,
}

impl Fib {
    /// A FIB with table 0 of each family.
    ///
    /// # Errors
    /// The system refuses the address space of a table.
    pub fn new(epochs: &Arc<Epochs>, nodes: FibNodes) -> Result<Fib, FibError> {
        let mut groups = GroupSlots::new(epochs)?;
        let drop = |next, index| [(Hop { next, index }, 1)];
        groups.add(&drop(nodes.ip4.drop, 0))?; // group 0, where a wrong index ends
        let miss4 = groups.add(&drop(nodes.ip4.drop, NO_ROUTE_INDEX))?;
        let miss6 = groups.add(&drop(nodes.ip6.drop, NO_ROUTE_INDEX))?;
        let families = Families {
            ip4: FamilyTables::new(epochs, miss4)?,
            ip6: FamilyTables::new(epochs, miss6)?,
        };
        let mut fib = Fib {
            nodes,
            families,
            lists: PathLists::default(),
            groups,
            adjacencies: AdjacencyBook::new(epochs)?,
            interfaces: BTreeMap::new(),
            neighbours: Neighbours::default(),
            limits: FibLimits::default(),
            route_counts: [0; 2],
            table_holders: Vec::new(),
            flow_fields: BTreeMap::new(),
            replacing: BTreeMap::new(),
            attached: AttachedRoutes::default(),
            connected: BTreeMap::new(),
            prefix_stores: 0,
            groups_lead: None,
            stacks: Stacks::default(),
        };
        fib.add_special_routes(Family::Ip4, 0)?;
        fib.add_special_routes(Family::Ip6, 0)?;
        Ok(fib)
    }

    /// The IPv4 tables, for workers.
    pub fn ip4_tables(&self) -> &Arc<Ip4Tables> {
        self.families.ip4.lpm.space()
    }

    /// The IPv6 tables, for workers.
    pub fn ip6_tables(&self) -> &Arc<Ip6Tables> {
        self.families.ip6.lpm.space()
    }

    /// The next-hop groups, for workers.
    pub fn groups(&self) -> &Arc<Groups> {
        self.groups.table()
    }

    /// The adjacencies, for workers.
    pub fn adjacencies(&self) -> &Arc<Adjacencies> {
        self.adjacencies.table()
    }

    /// Make free what no worker sees any more. The control thread calls this on every turn of its
    /// loop.
    pub fn collect(&mut self) {
        self.families.ip4.lpm.collect();
        self.families.ip6.lpm.collect();
        self.groups.reclaim();
        self.adjacencies.slots().reclaim();
    }

    /// Count packets by adjacency from now on, from zero, or no more.
    pub fn count_adjacencies(&mut self, counts: Option<Arc<AdjacencyCounts>>) {
        self.adjacencies.count(counts);
        let keys: Vec<AdjacencyKey> = self.adjacencies.iter().map(|(key, ..)| key).collect();
        self.refresh_adjacencies(&keys);
    }

    /// Are packets counted by adjacency?
    pub fn counts_adjacencies(&self) -> bool {
        self.adjacencies.counts()
    }

    /// What the router's own tables must say before anybody adds a route.
    fn add_special_routes(&mut self, family: Family, table: u32) -> Result<(), FibError> {
        let prefix = |text: &str, len| IpPrefix::new(text.parse().expect("a literal address"), len);
        let link_local = Target::Feature(Hop { next: self.nodes.ip6_link_local, index: 0 });
        let lead = |next| Target::Feature(Hop { next, index: table });
        let [groups4, groups6] =
            self.groups_lead.map_or([Target::Drop; 2], |nodes| nodes.map(lead));
        let routes = match family {
            // RFC 5771 §3, RFC 1112 §4: routed by other means or not at all. RFC 919 §7: the
            // limited broadcast is for every host that hears it, and is never forwarded.
            Family::Ip4 => vec![
                (prefix("224.0.0.0", 4), groups4),
                (prefix("240.0.0.0", 4), Target::Drop),
                (prefix("255.255.255.255", 32), Target::Local),
            ],
            // RFC 4291 §2.5.6 and §2.7: link-local destinations mean nothing without an interface;
            // link-local groups are the router's to hear.
            Family::Ip6 => vec![
                (prefix("fe80::", 10), link_local),
                (prefix("ff00::", 8), groups6),
                (prefix("ff02::", 16), Target::Local),
            ],
        };
        // RFC 5771 §4: link-local groups are the router's to hear, if anybody in it listens to
        // groups.
        let hears = family == Family::Ip4 && self.groups_lead.is_some();
        let local4 = hears.then(|| (prefix("224.0.0.0", 24), Target::Local));
        for (prefix, target) in routes.into_iter().chain(local4) {
            self.replace_route(table, prefix, Source::Special, &[Path::new(target)])?;
        }
        Ok(())
    }

    /// From now on packets to groups go to these nodes, with the small number of their table, and
    /// those to IPv4 groups of the link to the router itself.
    ///
    /// # Errors
    /// A table is full.
    pub fn lead_groups(&mut self, ip4: NodeId, ip6: NodeId) -> Result<(), FibError> {
        self.groups_lead = Some([ip4, ip6]);
        for family in [Family::Ip4, Family::Ip6] {
            for (_, table) in self.tables(family) {
                self.add_special_routes(family, table)?;
            }
        }
        Ok(())
    }

    /// Add a table with the operator's number `id`; returns its small number.
    ///
    /// # Errors
    /// The number is taken, or there is no table left.
    pub fn add_table(&mut self, family: Family, id: u32) -> Result<u32, FibError> {
        self.make_table(family, Some(id))
    }

    /// Add a table that has no number for operators: a feature's own, to hold what routes of other
    /// tables are resolved by ([`Path::resolved`]). Returns its small number.
    ///
    /// # Errors
    /// There is no table left.
    pub fn add_own_table(&mut self, family: Family) -> Result<u32, FibError> {
        self.make_table(family, None)
    }

    fn make_table(&mut self, family: Family, id: Option<u32>) -> Result<u32, FibError> {
        let index = match family {
            Family::Ip4 => self.families.ip4.add(id)?,
            Family::Ip6 => self.families.ip6.add(id)?,
        };
        if let Err(error) = self.add_special_routes(family, index) {
            self.drop_table(family, index);
            return Err(error);
        }
        Ok(index)
    }

    /// Delete a table with all its routes. Interfaces must have left it, and no route of another
    /// table may look up in it.
    ///
    /// # Errors
    /// There is no such table, or it is in use.
    pub fn delete_table(&mut self, family: Family, id: u32) -> Result<(), FibError> {
        let index = self.table_index(family, id).ok_or(FibError::NoTable { family, id })?;
        let in_use = |user: String| FibError::TableInUse { family, id, user };
        if index == 0 {
            return Err(in_use("the router itself, as the default".into()));
        }
        let bound = |on: &&Interface| index == on.info.table(family);
        if let Some(on) = self.interfaces.values().find(bound) {
            return Err(in_use(format!("interface number {}", on.info.id.0)));
        }
        if self
            .lists
            .iter()
            .any(|(_, list)| list.key.paths.iter().any(|path| path.looks_in(family, index)))
        {
            return Err(in_use("a route that looks up in it".into()));
        }
        if let Some((.., holder)) =
            self.table_holders.iter().find(|held| (held.0, held.1) == (family, index))
        {
            return Err(in_use((*holder).into()));
        }
        self.drop_table(family, index);
        Ok(())
    }

    /// A feature names this table (its small number): until it is released, it is not deleted.
    /// `holder` says who, in the refusal.
    pub fn hold_table(&mut self, family: Family, index: u32, holder: &'static str) {
        self.table_holders.push((family, index, holder));
    }

    /// A feature names this table no more; once for each hold.
    pub fn release_table(&mut self, family: Family, index: u32, holder: &'static str) {
        if let Some(at) =
            self.table_holders.iter().position(|held| *held == (family, index, holder))
        {
            self.table_holders.swap_remove(at);
        }
    }

    fn drop_table(&mut self, family: Family, index: u32) {
        let held = match family {
            Family::Ip4 => self.families.ip4.delete(index),
            Family::Ip6 => self.families.ip6.delete(index),
        };
        self.route_counts[family as usize] -= held.len();
        self.flow_fields.remove(&(family, index));
        self.attached.forget_table(family, index);
        self.replacing.remove(&(family, index));
        held.into_iter().for_each(|group| self.lists.release(group));
        self.sweep();
    }

    /// The small number of the operator's table `id`.
    pub fn table_index(&self, family: Family, id: u32) -> Option<u32> {
        match family {
            Family::Ip4 => self.families.ip4.index_of(id),
            Family::Ip6 => self.families.ip6.index_of(id),
        }
    }

    /// The operator's number of the table with this small number.
    pub fn table_id(&self, family: Family, index: u32) -> Option<u32> {
        match family {
            Family::Ip4 => self.families.ip4.id_of(index),
            Family::Ip6 => self.families.ip6.id_of(index),
        }
    }

    /// The operator's tables: their numbers, and their small numbers.
    pub fn tables(&self, family: Family) -> Vec<(u32, u32)> {
        match family {
            Family::Ip4 => self.families.ip4.ids().collect(),
            Family::Ip6 => self.families.ip6.ids().collect(),
        }
    }

    /// The group for these paths, made if there is none yet. A new one lives until the next
    /// [`sweep`](Self::sweep) unless a route takes it.
    fn list(
        &mut self,
        payload: Family,
        table: u32,
        paths: &[Path],
        of_default: bool,
    ) -> Result<GroupId, FibError> {
        let mut paths = paths.to_vec();
        paths.sort_unstable();
        paths.dedup_by_key(|path| (path.preference, path.target));
        let of_table =
            paths.len() > 1 || paths.iter().any(|path| path.is_recursive() || path.unfolds());
        let key = ListKey { payload, table: if of_table { table } else { 0 }, of_default, paths };
        if let Some(group) = self.lists.find(&key) {
            return Ok(group);
        }
        if self.lists.len() >= self.limits.path_lists {
            return Err(FibError::PathListsFull(self.limits.path_lists));
        }
        if !self.adjacencies.slots().has_room(key.paths.len()) {
            return Err(FibError::AdjacenciesFull(self.limits.adjacencies));
        }
        let (mut resolver, _) = self.resolver();
        let hops = resolver.hops(&key, None);
        let dependencies = resolver.dependencies;
        let fields = self.group_fields(payload, key.table);
        let resolved = self.lists.resolved(&key);
        let group = match resolved.map_or_else(|| self.groups.add_by(fields, &hops), Ok) {
            Ok(group) => group,
            Err(error) => {
                dependencies.adjacencies.iter().for_each(|key| self.adjacencies.drop_unused(*key));
                return Err(error.into());
            }
        };
        self.lists.add(group, Arc::new(key), hops);
        self.follow(group, dependencies);
        Ok(group)
    }

    /// A resolver, and beside it the groups, which it does not touch.
    fn resolver(&mut self) -> (Resolver<'_, AdjacencyBook>, &mut GroupSlots) {
        let around = Surroundings {
            nodes: &self.nodes,
            interfaces: &self.interfaces,
            neighbours: &self.neighbours,
            stacks: &self.stacks,
            counts: self.adjacencies.counts(),
        };
        let resolver = Resolver::new(around, &self.families, &self.lists, &mut self.adjacencies);
        (resolver, &mut self.groups)
    }

    /// Enter what `group` follows from now.
    fn follow(&mut self, group: GroupId, now: path_list::Dependencies) {
        let Some(list) = self.lists.get_mut(group) else { return };
        let before = std::mem::replace(&mut list.dependencies, now.clone());
        if before == now {
            return;
        }
        self.lists.depend(group, &before, &now);
        now.adjacencies
            .difference(&before.adjacencies)
            .for_each(|key| self.adjacencies.add_user(*key, group));
        before
            .adjacencies
            .difference(&now.adjacencies)
            .for_each(|key| self.adjacencies.remove_user(*key, group));
    }

    /// Resolve these lists anew and publish what changed.
    fn resolve_again(&mut self, groups: Vec<GroupId>) {
        let mut groups = groups;
        // Each round follows tunnels one deeper.
        for _ in 0..=RECURSION_MAX {
            let changed = self.resolve_round(groups);
            groups = self.lists_behind(&changed);
            if groups.is_empty() {
                return;
            }
        }
    }

    /// Resolve these lists anew once; returns those that changed.
    fn resolve_round(&mut self, groups: Vec<GroupId>) -> Vec<GroupId> {
        let mut changed = Vec::new();
        for group in groups {
            let Some(key) = self.lists.get(group).map(|list| list.key.clone()) else { continue };
            let (mut resolver, _) = self.resolver();
            let hops = resolver.hops(&key, Some(group));
            let dependencies = resolver.dependencies;
            let fields = self.group_fields(key.payload, key.table);
            let Some(list) = self.lists.get_mut(group) else { continue };
            if list.hops != hops {
                if self.groups.replace_by(fields, group, &hops).is_err() {
                    // No buckets left: better one of the paths than an old one that is gone.
                    self.groups.replace_single(group, hops[0].0);
                }
                list.hops = hops;
                changed.push(group);
            }
            self.follow(group, dependencies);
        }
        changed
    }

    /// Let go of path lists that no route holds.
    fn sweep(&mut self) {
        while let Some((group, list)) = self.lists.take_orphan() {
            let nothing = path_list::Dependencies::default();
            self.lists.depend(group, &list.dependencies, &nothing);
            list.dependencies
                .adjacencies
                .iter()
                .for_each(|key| self.adjacencies.remove_user(*key, group));
            self.groups.retire(group);
        }
    }

    /// See that the adjacencies of `keys` are as interfaces and neighbours say; a group
    /// that uses one that changes moves to its new slot by one store.
    fn refresh_adjacencies(&mut self, keys: &[AdjacencyKey]) {
        let around = Surroundings {
            nodes: &self.nodes,
            interfaces: &self.interfaces,
            neighbours: &self.neighbours,
            stacks: &self.stacks,
            counts: self.adjacencies.counts(),
        };
        let (mut old, mut users) = (Vec::new(), Vec::new());
        for key in keys {
            if let Some((index, who)) = self.adjacencies.refresh(*key, &around) {
                old.extend(index);
                users.extend(who);
            }
        }
        users.sort_unstable();
        users.dedup();
        self.resolve_again(users);
        old.into_iter().for_each(|index| self.adjacencies.slots().retire(index));
    }
}
