//! Interfaces as the control thread holds them: made, changed and deleted while traffic goes on.

mod creation;
mod features;
mod naming;
mod order;
mod receive;
mod settings;

pub use order::natural_key;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::engine::{Engine, Stalled};
use crate::graph::arc::{ArcId, FEATURES_PER_CHAIN_MAX};
use crate::graph::builder::BuildError;
use crate::graph::counters::INTERFACES_MAX;
use crate::graph::interface::InterfaceRow;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::epoch::Stamp;
use crate::worker::device::{Device, TxQueue};

pub use receive::{RxPlacement, RxWish};

/// Characters in an interface's name.
pub const INTERFACE_NAME_MAX: usize = 63;
/// Smallest MTU that can be set, bytes (RFC 791 §3.1).
pub const MTU_BYTES_MIN: u32 = 68;
/// Largest MTU that can be set, bytes.
pub const MTU_BYTES_MAX: u32 = 65_535;

/// What a driver says of the interface that it makes.
pub struct InterfaceSpec {
    /// Its name, unique in the router.
    pub name: String,
    /// The control thread's handle on the device.
    pub device: Box<dyn Device>,
    /// Layer 2 address; zero where there is none.
    pub mac: [u8; 6],
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
    /// The node that received packets go to: `ethernet-input`, …
    pub input: String,
    /// Has it a link from the start?
    pub link_up: bool,
    /// One transmit queue per worker.
    pub tx: Vec<Box<dyn TxQueue>>,
}

/// An interface.
pub struct Interface {
    /// Its number.
    pub id: InterfaceId,
    /// Its name.
    pub name: String,
    /// See [`made_name`](Self::made_name); `None` while it has that name.
    made_name: Option<String>,
    /// The device.
    pub device: Box<dyn Device>,
    /// Set up by the operator?
    pub admin_up: bool,
    /// Does the device say that the other side is there?
    pub link_up: bool,
    /// Can it only pass frames on? A sub-interface for frames that have not all the same tags:
    /// nothing says with which of them a packet of the router's would leave.
    pub passes_on_only: bool,
    /// Does its device take super-frames and open checksums
    /// ([`TxQueue::takes_offloads`](crate::worker::device::TxQueue::takes_offloads))?
    pub takes_offloads: bool,
    /// Its receive queues.
    pub rx: Vec<RxPlacement>,
    /// What the operator wants of them.
    pub rx_wishes: Vec<RxWish>,
    /// See [`own_mtu_bytes`](Self::own_mtu_bytes).
    pub(crate) own_mtu: Option<u32>,
    /// See [`Engine::limit_mtu`]: the limit, and the MTU that the operator wants.
    pub(crate) mtu_limit: Option<MtuLimit>,
    pub(crate) row: InterfaceRow,
    /// Further layer 2 addresses, by who wants them.
    virtual_macs: BTreeMap<&'static str, Vec<[u8; 6]>>,
    /// Smaller MTUs of protocols, bytes.
    protocol_mtus: BTreeMap<&'static str, u16>,
    /// Features that others need here, and who they are.
    pub(crate) needed: BTreeMap<(ArcId, NodeId), BTreeSet<&'static str>>,
}

/// A limit of an interface's MTU that others set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuLimit {
    /// The limit, bytes.
    pub(crate) limit_bytes: u32,
    /// The MTU that the operator wants, bytes.
    pub(crate) wanted_bytes: u32,
}

/// What is known of an interface when it is made.
pub(crate) struct Facts {
    pub(crate) link_up: bool,
    pub(crate) passes_on_only: bool,
    pub(crate) takes_offloads: bool,
}

impl Interface {
    /// What workers see of it.
    pub fn row(&self) -> &InterfaceRow {
        &self.row
    }

    /// The MTU that the operator wants of a sub-interface, in bytes, when that is not its parent's.
    pub fn own_mtu_bytes(&self) -> Option<u32> {
        self.own_mtu
    }

    /// The MTU that the operator wants, in bytes, whether or not a limit ([`Engine::limit_mtu`])
    /// allows it.
    pub fn wanted_mtu_bytes(&self) -> u32 {
        self.mtu_limit.map_or(self.row.mtu_bytes, |limit| limit.wanted_bytes)
    }

    /// The largest packet of a protocol, when that is not the interface's MTU, in bytes.
    pub fn protocol_mtu_bytes(&self, protocol: &str) -> Option<u16> {
        self.protocol_mtus.get(protocol).copied()
    }

    /// Who needs this feature here ([`Engine::need_feature`]).
    pub fn who_needs(&self, arc: ArcId, feature: NodeId) -> impl Iterator<Item = &'static str> {
        self.needed.get(&(arc, feature)).into_iter().flatten().copied()
    }
}

/// What happened to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceChange {
    /// It is there.
    Created,
    /// It goes away; it still exists while observers hear of it.
    Deleted,
    /// It is set down or deleted, or what it is a part of is, or the router ends; it is still up
    /// while observers hear of it, for a last word to neighbours.
    GoingDown,
    /// Up or down, by the operator or the link.
    State,
    /// Its MTU.
    Mtu,
    /// Its layer 2 address.
    Mac,
    /// Whether it takes frames for other addresses.
    Promiscuous,
    /// What it sends leaves by another port than before: its addresses should be announced, so that
    /// bridges learn where it is now.
    Moved,
    /// The node that received packets go to.
    Input,
    /// Its name.
    Renamed,
}

/// Why something cannot be done to an interface.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// There is one of this name.
    #[error("interface {0} exists already")]
    Exists(String),
    /// A name that cannot be.
    #[error("interface name `{0}` is not 1 to {INTERFACE_NAME_MAX} characters without spaces")]
    BadName(String),
    /// Limits.
    #[error("there are {INTERFACES_MAX} interfaces already")]
    TooMany,
    /// Not there.
    #[error("there is no such interface")]
    Unknown,
    /// A size out of range.
    #[error("MTU {0} is outside {MTU_BYTES_MIN}..={MTU_BYTES_MAX}")]
    BadMtu(u32),
    /// A sub-interface of a sub-interface.
    #[error("{0} is a sub-interface itself")]
    NotAPort(String),
    /// More than the port that it is a part of takes.
    #[error("MTU {mtu_bytes} is more than the {parent_bytes} of {parent}, which it is a part of")]
    MtuBeyondParent {
        /// What was asked for.
        mtu_bytes: u32,
        /// The most there can be.
        parent_bytes: u32,
        /// Whose.
        parent: String,
    },
    /// The device refuses.
    #[error("{0}")]
    Device(String),
    /// No such arc or feature.
    #[error("there is no feature {feature} in arc {arc}; `show features` lists them")]
    NoFeature {
        /// What was asked for.
        feature: String,
        /// Where.
        arc: String,
    },
    /// Too many features.
    #[error("{FEATURES_PER_CHAIN_MAX} features are enabled on this interface already")]
    TooManyFeatures,
    /// No such worker.
    #[error("there is no worker {0}")]
    NoWorker(u16),
    /// No such queue.
    #[error("the interface has no receive queue {0}")]
    NoQueue(u16),
    /// The queue cannot wake anybody.
    #[error("this queue has nothing to wake a worker with: only polling works")]
    CannotSleep,
    /// The worker serves enough.
    #[error("worker {0} serves as many receive queues as it can")]
    QueuesMax(u16),
    /// The graph refuses.
    #[error(transparent)]
    Graph(#[from] BuildError),
    /// A worker does not answer.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

type Observer = Box<dyn FnMut(&mut Engine, InterfaceId, InterfaceChange)>;

/// All interfaces.
#[derive(Default)]
pub(crate) struct Interfaces {
    pub(crate) list: Vec<Option<Interface>>,
    pub(crate) by_name: BTreeMap<String, InterfaceId>,
    /// The same in their natural order.
    in_order: BTreeMap<String, InterfaceId>,
    /// Names that interfaces were made with which have other names now.
    made_names: BTreeSet<String>,
    /// Sub-interfaces by the interface that they are a part of.
    pub(crate) parts: BTreeMap<InterfaceId, BTreeSet<InterfaceId>>,
    free: VecDeque<(Stamp, InterfaceId)>,
    observers: Vec<Observer>,
    changes: VecDeque<(InterfaceId, InterfaceChange)>,
    notifying: bool,
    /// Rows that workers see as they were: there was no room for what replacing them retires.
    stale: BTreeSet<InterfaceId>,
    next_worker: usize,
}

impl Engine {
    /// An interface.
    pub fn interface(&self, id: InterfaceId) -> Option<&Interface> {
        self.interfaces.list.get(id.index())?.as_ref()
    }

    /// An interface's device, for its driver's commands.
    pub fn device<D: 'static>(&mut self, id: InterfaceId) -> Option<&mut D> {
        let interface = self.interfaces.list.get_mut(id.index())?.as_mut()?;
        interface.device.as_any().downcast_mut()
    }

    /// The number of a name.
    pub fn interface_id(&self, name: &str) -> Option<InterfaceId> {
        self.interfaces.by_name.get(name).copied()
    }

    /// The name of a number; `local` for what the router made itself, `interface-N` when it is
    /// gone.
    pub fn interface_name(&self, id: InterfaceId) -> String {
        match self.interface(id) {
            Some(interface) => interface.name.clone(),
            None if id == InterfaceId::NONE => "local".to_owned(),
            None => format!("interface-{}", id.0),
        }
    }

    /// All interfaces, by number.
    pub fn all_interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.list.iter().flatten()
    }

    /// All interfaces in the natural order of their names (`e2` before `e10`): the order in which
    /// they are written, so that the same configuration reads the same however it came about.
    pub fn interfaces_by_name(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.in_order.values().filter_map(|id| self.interface(*id))
    }

    /// Call `observer` after every change of any interface.
    pub fn on_interface_change(
        &mut self,
        observer: impl FnMut(&mut Engine, InterfaceId, InterfaceChange) + 'static,
    ) {
        self.interfaces.observers.push(Box::new(observer));
    }

    pub(crate) fn notify_observers(&mut self, id: InterfaceId, change: InterfaceChange) {
        self.interfaces.changes.push_back((id, change));
        if self.interfaces.notifying {
            // an observer made this change: observers are called when the current one is done
            return;
        }
        self.interfaces.notifying = true;
        while let Some((id, change)) = self.interfaces.changes.pop_front() {
            let mut observers = std::mem::take(&mut self.interfaces.observers);
            observers.iter_mut().for_each(|observer| observer(self, id, change));
            observers.append(&mut self.interfaces.observers);
            self.interfaces.observers = observers;
        }
        self.interfaces.notifying = false;
    }

    fn change_row(
        &mut self,
        id: InterfaceId,
        change: impl FnOnce(&mut Interface) -> Result<(), InterfaceError>,
    ) -> Result<bool, InterfaceError> {
        self.make_room()?;
        self.change_row_anyway(id, true, change)
    }

    /// As `change_row`; without room, workers see the change when there is some.
    pub(crate) fn change_row_anyway(
        &mut self,
        id: InterfaceId,
        has_room: bool,
        change: impl FnOnce(&mut Interface) -> Result<(), InterfaceError>,
    ) -> Result<bool, InterfaceError> {
        let interface = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut);
        let interface = interface.ok_or(InterfaceError::Unknown)?;
        let before = interface.row.clone();
        change(interface)?;
        interface.row.up = interface.admin_up && interface.link_up;
        let changed = interface.row != before;
        if changed && has_room {
            self.rows.set(id, Some(interface.row.clone()));
        } else if changed {
            self.interfaces.stale.insert(id);
        }
        Ok(changed)
    }

    /// Show workers the rows that there was no room for.
    pub(crate) fn publish_stale_rows(&mut self) {
        while !self.interfaces.stale.is_empty() && !self.waiting().is_full() {
            let Some(id) = self.interfaces.stale.pop_first() else { return };
            if let Some(row) = self.interface(id).map(|interface| interface.row.clone()) {
                self.rows.set(id, Some(row));
            }
        }
    }

    fn change_and_notify(
        &mut self,
        id: InterfaceId,
        what: InterfaceChange,
        change: impl FnOnce(&mut Interface) -> Result<(), InterfaceError>,
    ) -> Result<(), InterfaceError> {
        if self.change_row(id, change)? {
            self.notify_observers(id, what);
            self.sub_interfaces_follow(id);
        }
        Ok(())
    }
}
