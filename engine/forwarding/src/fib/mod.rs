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
mod families;
mod family_tables;
mod flow;
mod groups;
mod interface_info;
mod interfaces;
mod labels;
mod limits;
mod link;
mod liveness;
mod neighbours;
mod next_hop_objects;
mod nodes;
mod path;
mod path_list;
mod range;
mod replace;
mod resolve;
mod route_changes;
mod routes;
mod series;
mod special_routes;
mod stacks;
mod tables;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_wire::flow::FlowFields;

use crate::adjacency::Adjacencies;
use crate::adjacency::counts::AdjacencyCounts;
use crate::neighbour::Neighbours;
use crate::next_hop_group::{GroupSlots, Groups, Hop};
use quiver_tables::ip4_lpm::Ip4Tables;
use quiver_tables::ip6_lpm::Ip6Tables;
use quiver_tables::prefix::IpPrefix;

use adjacencies::AdjacencyBook;
use attached::AttachedRoutes;
use families::Families;
use family_tables::FamilyTables;
use interfaces::Interface;
use labels::LabelRoutes;
use next_hop_objects::NextHopObjects;
use path_list::PathLists;
use route_changes::RouteChanges;
use stacks::Stacks;

pub use adjacencies::AdjacencyKey;
pub use error::FibError;
pub use explain::{PathState, Unusable};
pub use interface_info::InterfaceInfo;
pub use labels::{LABEL_TABLES_MAX, LabelKey, LabelRouteView, LabelTables};
pub use limits::{FibLimits, FibStores, FibWeight};
pub use link::Link;
pub use liveness::Watched;
pub use next_hop_objects::NextHopObjectId;
pub use nodes::{
    FamilyNodes, FibNodes, LOCAL_ROUTE_INDEX, LabelNodes, LabelledNodes, NO_ROUTE_INDEX,
    POPPED_UNIFORM, PROHIBIT_INDEX, UNREACHABLE_INDEX,
};
pub use path::{Family, Only, Path, Source, Target};
pub use range::{RangeAction, RangeChange};
pub use replace::Swept;
pub use resolve::RECURSION_MAX;
pub use route_changes::{ROUTE_CHANGES_MAX, RoutePlace, RouteWatcher, TakenChanges};
pub use series::{Change, RouteChange, SeriesRefused};
pub use stacks::StackedHop;
pub use tables::by_table;
pub use view::{AdjacencyView, GroupView, RouteView};

/// The FIB of the router. One, on the control thread.
pub struct Fib {
    nodes: FibNodes,
    families: Families,
    /// The routes of labels.
    labels: LabelRoutes,
    /// What handles labels, when something does.
    label_nodes: Option<LabelNodes>,
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
    /// Paths that routes name by a number.
    objects: NextHopObjects,
    /// The header stacks of tunnels' interfaces.
    stacks: Stacks,
    /// Prefixes whose routes changed, while somebody wants to know.
    route_changes: RouteChanges,
    /// Neighbours that a liveness protocol says are down.
    dead: BTreeSet<Watched>,
    liveness_changes: u64,
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
            labels: LabelRoutes::new()?,
            label_nodes: None,
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
            objects: NextHopObjects::default(),
            stacks: Stacks::default(),
            route_changes: RouteChanges::default(),
            dead: BTreeSet::new(),
            liveness_changes: 0,
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
}
