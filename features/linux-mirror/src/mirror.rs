//! The mirror as the control thread holds it: pairs, and a reader for each namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use quiver_core::control::reactor::Token;
use quiver_core::{Engine, InterfaceId};

use quiver_netlink::Request;

use crate::classes::Limits;
use crate::evpn::EvpnTwin;
use crate::fdb::Stations;
use crate::objects::Objects;
use crate::own_routes::OwnRoutes;
use crate::reader::{Again, BUFFER_BYTES, Order, OwnChange, Reader};
use crate::routes::RouteCounts;
use crate::segments::{HeldLists, Sids};
use crate::twins::{Crossing, Published, Twins};
use crate::upper_links::UpperLinks;
use crate::vlan_links::VlanLinks;

/// A network namespace: a name of `ip netns`, or a path; none = the router's.
pub(crate) type Namespace = Option<String>;

/// An interface and its twin.
pub(crate) struct Pair {
    /// The tap or tun device whose other end Linux has; that of the port, for a VLAN of Linux.
    pub twin: InterfaceId,
    /// What crosses it.
    pub crossing: Crossing,
    /// What Linux calls it.
    pub host_name: String,
    /// Where it is in Linux.
    pub namespace: Namespace,
    /// Its number in Linux, once that is known.
    pub link: Option<u32>,
    /// What Linux last said: is it up, and its MTU.
    pub linux: Option<(bool, u32)>,
    /// The layer 2 address that Linux last said.
    pub linux_mac: Option<[u8; 6]>,
    /// Is it a port of a bridge of Linux?
    pub is_bridge_port: bool,
    /// Does it belong to a VRF device of Linux?
    pub is_in_vrf: bool,
    /// Was it made because of another twin?
    pub is_automatic: bool,
    /// Configured neighbours that Linux was given.
    pub written_neighbours: BTreeMap<IpAddr, [u8; 6]>,
    /// Neighbours that Linux has configured, as it calls them.
    pub linux_neighbours: BTreeSet<IpAddr>,
    /// Addresses that both have.
    pub addresses: BTreeSet<(IpAddr, u8)>,
    /// Addresses of Linux that the router refused, and why.
    pub refused: BTreeMap<(IpAddr, u8), String>,
}

impl Pair {
    /// Of a twin that is not known to Linux's reader yet.
    pub fn new(
        twin: InterfaceId,
        crossing: Crossing,
        host_name: String,
        namespace: Namespace,
    ) -> Pair {
        Pair {
            twin,
            crossing,
            host_name,
            namespace,
            link: None,
            linux: None,
            linux_mac: None,
            is_bridge_port: false,
            is_in_vrf: false,
            is_automatic: false,
            written_neighbours: BTreeMap::new(),
            linux_neighbours: BTreeSet::new(),
            addresses: BTreeSet::new(),
            refused: BTreeMap::new(),
        }
    }
}

/// Who configures routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The kernel, which is read by netlink.
    Kernel,
    /// A routing daemon, which sends them by FPM.
    Daemon,
}

/// What one of them configures.
pub(crate) struct Feed {
    pub reader: Reader,
    pub token: Token,
    pub objects: Objects,
    /// Segment lists of its routes.
    pub lists: HeldLists,
    pub routes: RouteCounts,
    /// Whose next-hop objects these are in the FIB.
    pub owner: u32,
}

/// A namespace that is followed.
pub(crate) struct Followed {
    pub kernel: Feed,
    /// Where a routing daemon connects, and what it has sent.
    pub daemon: Option<(SocketAddr, Feed)>,
    /// The far ends of next-hop objects of VXLAN devices.
    pub far_objects: BTreeMap<u32, IpAddr>,
    /// The IDs of the tables that Linux's main table is here, once that is known.
    pub main_tables: Option<[u32; 2]>,
}

impl Followed {
    /// What is followed there.
    pub fn feeds(&self) -> impl Iterator<Item = (Origin, &Feed)> {
        let daemon = self.daemon.iter().map(|(_, feed)| (Origin::Daemon, feed));
        [(Origin::Kernel, &self.kernel)].into_iter().chain(daemon)
    }

    /// What one of them configures.
    pub fn feed(&mut self, origin: Origin) -> Option<&mut Feed> {
        match origin {
            Origin::Kernel => Some(&mut self.kernel),
            Origin::Daemon => self.daemon.as_mut().map(|(_, feed)| feed),
        }
    }
}

/// All of it.
pub(crate) struct Mirror {
    /// By the interface that has a twin.
    pub pairs: BTreeMap<InterfaceId, Pair>,
    /// By namespace and Linux's number of the twin.
    pub by_link: BTreeMap<(Namespace, u32), InterfaceId>,
    pub followed: BTreeMap<Namespace, Followed>,
    /// The number of the namespace that is followed next.
    pub next_owner: u32,
    /// Where twins are unless `lcp create` says it.
    pub default_namespace: Namespace,
    /// Does Linux follow the router, too?
    pub updates_linux: bool,
    /// Do sub-interfaces of interfaces with twins get twins by themselves?
    pub has_automatic_twins: bool,
    /// Bytes of changes that may wait in the kernel.
    pub buffer_bytes: usize,
    /// Addresses were compared when they had changed so often.
    pub address_changes: u64,
    /// Links of Linux on twins.
    pub uppers: UpperLinks,
    /// VLANs of Linux on twins.
    pub vlans: VlanLinks,
    /// Local SIDs of Linux.
    pub sids: Sids,
    /// Stations behind ports of bridges.
    pub stations: Stations,
    /// VXLAN interfaces with many far ends, which FRR finds in Linux.
    pub evpn: BTreeMap<InterfaceId, EvpnTwin>,
    /// Routes that Linux was given.
    pub own: OwnRoutes,
    /// How much of what Linux deals with reaches it.
    pub limits: Arc<Limits>,
    twins: Arc<Published>,
}

impl Mirror {
    pub fn new(twins: Arc<Published>, limits: Arc<Limits>) -> Mirror {
        Mirror {
            pairs: BTreeMap::new(),
            by_link: BTreeMap::new(),
            followed: BTreeMap::new(),
            next_owner: 1,
            default_namespace: None,
            updates_linux: true,
            has_automatic_twins: false,
            buffer_bytes: BUFFER_BYTES,
            address_changes: 0,
            uppers: UpperLinks::default(),
            vlans: VlanLinks::default(),
            sids: Sids::new(),
            stations: Stations::default(),
            evpn: BTreeMap::new(),
            own: OwnRoutes::default(),
            limits,
            twins,
        }
    }

    /// The interface whose twin this is.
    pub fn mirrored_by(&self, twin: InterfaceId) -> Option<InterfaceId> {
        let is_of = |pair: &Pair| pair.twin == twin && pair.crossing != Crossing::Tagged;
        self.pairs.iter().find(|(_, pair)| is_of(pair)).map(|(id, _)| *id)
    }

    /// The interface whose twin has this number in Linux.
    pub fn by_link(&self, namespace: &Namespace, link: u32) -> Option<InterfaceId> {
        self.by_link.get(&(namespace.clone(), link)).copied()
    }

    /// Let workers see who is whose twin.
    pub fn publish(&self) {
        let pairs = self.pairs.iter().map(|(id, pair)| (*id, pair.twin, pair.crossing));
        self.twins.publish(Twins::new(pairs));
    }

    /// Have Linux change something in a namespace; in words, for the log.
    pub fn ask(&self, namespace: &Namespace, what: String, request: Request) {
        if let Some(followed) = self.followed.get(namespace) {
            followed.kernel.reader.order(Order::Ask(what, request));
        }
    }

    /// Have Linux get or lose routes and neighbours of the router in a namespace.
    pub fn write(&self, namespace: &Namespace, changes: Vec<OwnChange>) {
        if let Some(followed) = self.followed.get(namespace).filter(|_| !changes.is_empty()) {
            followed.kernel.reader.write(changes);
        }
    }

    /// Have all that follow a namespace tell something again.
    pub fn report_again(&self, namespace: &Namespace, what: Again) {
        let Some(followed) = self.followed.get(namespace) else { return };
        followed.feeds().for_each(|(_, feed)| feed.reader.order(Order::Report(what)));
    }

    /// The interfaces whose twins are in a namespace.
    pub fn of_namespace(&self, namespace: &Namespace) -> impl Iterator<Item = InterfaceId> {
        let those = self.pairs.iter().filter(move |(_, pair)| pair.namespace == *namespace);
        those.map(|(id, _)| *id)
    }
}

/// The mirror of an engine, to change.
pub(crate) fn mirror(engine: &mut Engine) -> Option<&mut Mirror> {
    engine.get_mut::<Mirror>()
}

/// A namespace in words.
pub(crate) fn name_of(namespace: &Namespace) -> &str {
    namespace.as_deref().unwrap_or("")
}
