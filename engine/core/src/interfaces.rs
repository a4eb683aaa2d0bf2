//! Interfaces as the control thread holds them: made, changed and deleted while traffic goes on.

mod receive;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::arc::{ARCS_MAX, ArcId, Chain, FEATURES_PER_CHAIN_MAX};
use crate::counters::INTERFACES_MAX;
use crate::device::{Device, TxQueue};
use crate::engine::{Engine, Stalled};
use crate::epoch::Stamp;
use crate::graph::BuildError;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::interface::{Encapsulation, InterfaceRow};
use crate::worker::Worker;

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
    /// The device.
    pub device: Box<dyn Device>,
    /// Set up by the operator?
    pub admin_up: bool,
    /// Does the device say that the other side is there?
    pub link_up: bool,
    /// Can it only pass frames on? A sub-interface for frames that have not all the same tags: nothing says
    /// with which of them a packet of the router's would leave.
    pub passes_on_only: bool,
    /// Its receive queues.
    pub rx: Vec<RxPlacement>,
    /// What the operator wants of them.
    pub rx_wishes: Vec<RxWish>,
    /// See [`own_mtu_bytes`](Self::own_mtu_bytes).
    pub(crate) own_mtu: Option<u32>,
    pub(crate) row: InterfaceRow,
    /// Smaller MTUs of protocols, bytes.
    protocol_mtus: BTreeMap<&'static str, u16>,
    /// Features that others need here, and who they are.
    pub(crate) needed: BTreeMap<(ArcId, NodeId), BTreeSet<&'static str>>,
}

/// What is known of an interface when it is made.
pub(crate) struct Facts {
    pub(crate) link_up: bool,
    pub(crate) passes_on_only: bool,
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
    /// It is set down or deleted, or what it is a part of is, or the router ends; it is still up while
    /// observers hear of it, for a last word to neighbours.
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
    pub(crate) by_name: HashMap<String, InterfaceId>,
    /// Sub-interfaces by the interface that they are a part of.
    pub(crate) parts: BTreeMap<InterfaceId, BTreeSet<InterfaceId>>,
    free: VecDeque<(Stamp, InterfaceId)>,
    observers: Vec<Observer>,
    changes: VecDeque<(InterfaceId, InterfaceChange)>,
    telling: bool,
    /// Rows that workers see as they were: there was no room for what replacing them retires.
    stale: BTreeSet<InterfaceId>,
    next_worker: usize,
}

impl Engine {
    /// Make an interface. It is down until [`set_admin_up`](Self::set_admin_up).
    pub fn create_interface(&mut self, spec: InterfaceSpec) -> Result<InterfaceId, InterfaceError> {
        let name = &spec.name;
        self.check_new_name(name)?;
        self.make_room()?;
        let input = self.node_id(&spec.input).ok_or_else(|| BuildError::EdgeMissing {
            node: spec.name.clone(),
            missing: spec.input.clone(),
        })?;
        let id = self.free_interface_id()?;
        let tx_node = crate::builtin::tx_node(name, &spec.tx);
        let tx_instances = spec.tx.into_iter().map(|q| crate::builtin::tx_instance(id, q)).collect();
        let tx = self.add_node(tx_node, tx_instances)?;
        let output = self.add_node(crate::builtin::output_node(name, id), Vec::new())?;
        let row = InterfaceRow {
            up: false,
            mac: spec.mac,
            promiscuous: false,
            mtu_bytes: spec.mtu_bytes,
            input,
            output,
            tx,
            parent: InterfaceId::NONE,
            encapsulation: Encapsulation::default(),
            chains: [Chain::default(); ARCS_MAX],
        };
        let facts = Facts { link_up: spec.link_up, passes_on_only: false };
        self.place_interface(id, spec.name, spec.device, facts, row);
        Ok(id)
    }

    /// May a new interface be called so?
    pub(crate) fn check_new_name(&self, name: &str) -> Result<(), InterfaceError> {
        if name.is_empty() || name.len() > INTERFACE_NAME_MAX || name.contains(char::is_whitespace) {
            return Err(InterfaceError::BadName(name.to_owned()));
        }
        if self.interfaces.by_name.contains_key(name) {
            return Err(InterfaceError::Exists(name.to_owned()));
        }
        Ok(())
    }

    /// Show a new interface to workers, then to observers.
    pub(crate) fn place_interface(
        &mut self,
        id: InterfaceId,
        name: String,
        device: Box<dyn Device>,
        facts: Facts,
        row: InterfaceRow,
    ) {
        self.rows.set(id, Some(row.clone()));
        self.interfaces.by_name.insert(name.clone(), id);
        self.clear_interface_baseline(id);
        self.interfaces.list[id.index()] = Some(Interface {
            id,
            name,
            device,
            admin_up: false,
            link_up: facts.link_up,
            passes_on_only: facts.passes_on_only,
            rx: Vec::new(),
            rx_wishes: Vec::new(),
            needed: BTreeMap::new(),
            protocol_mtus: BTreeMap::new(),
            own_mtu: None,
            row,
        });
        self.tell(id, InterfaceChange::Created);
    }

    pub(crate) fn free_interface_id(&mut self) -> Result<InterfaceId, InterfaceError> {
        match self.interfaces.free.front() {
            Some((stamp, id)) if self.epochs.has_passed(*stamp) => {
                let id = *id;
                self.interfaces.free.pop_front();
                Ok(id)
            }
            // The last row of the counters belongs to what the router made itself.
            _ if self.interfaces.list.len() < INTERFACES_MAX - 1 => {
                self.interfaces.list.push(None);
                Ok(InterfaceId((self.interfaces.list.len() - 1) as u32))
            }
            _ => Err(InterfaceError::TooMany),
        }
    }

    /// Delete an interface, and its sub-interfaces before it. Packets under way to it are dropped and
    /// counted.
    pub fn delete_interface(&mut self, id: InterfaceId) -> Result<(), InterfaceError> {
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let workers: BTreeSet<WorkerId> = interface.rx.iter().map(|p| p.worker).collect();
        self.make_room()?;
        for worker in workers {
            self.call(worker, |_: &mut Worker| ())?; // it will let go of its queues, too
        }
        self.take_leave(id);
        let parts: Vec<InterfaceId> = self.sub_interfaces(id).collect();
        parts.into_iter().try_for_each(|part| self.delete_interface(part))?;
        self.tell(id, InterfaceChange::Deleted);
        self.remove_rx_queues(id)?;
        let Some(interface) = self.interfaces.list[id.index()].take() else {
            return Err(InterfaceError::Unknown);
        };
        self.interfaces.by_name.remove(&interface.name);
        self.rows.set(id, None);
        if interface.row.is_sub_interface() {
            self.forget_sub_interface(id, interface.row.parent);
        } else {
            self.remove_node(interface.row.output);
            self.remove_node(interface.row.tx);
        }
        self.interfaces.free.push_back((self.epochs.stamp(), id));
        Ok(())
    }

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

    /// The name of a number; `local` for what the router made itself, `interface-N` when it is gone.
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

    /// Call `observer` after every change of any interface.
    pub fn on_interface_change(
        &mut self,
        observer: impl FnMut(&mut Engine, InterfaceId, InterfaceChange) + 'static,
    ) {
        self.interfaces.observers.push(Box::new(observer));
    }

    pub(crate) fn tell(&mut self, id: InterfaceId, change: InterfaceChange) {
        self.interfaces.changes.push_back((id, change));
        if self.interfaces.telling {
            return; // an observer made this change; it is told when the one under way is done
        }
        self.interfaces.telling = true;
        while let Some((id, change)) = self.interfaces.changes.pop_front() {
            let mut observers = std::mem::take(&mut self.interfaces.observers);
            observers.iter_mut().for_each(|observer| observer(self, id, change));
            observers.append(&mut self.interfaces.observers);
            self.interfaces.observers = observers;
        }
        self.interfaces.telling = false;
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

    fn change_and_tell(
        &mut self,
        id: InterfaceId,
        what: InterfaceChange,
        change: impl FnOnce(&mut Interface) -> Result<(), InterfaceError>,
    ) -> Result<(), InterfaceError> {
        if self.change_row(id, change)? {
            self.tell(id, what);
            self.sub_interfaces_follow(id);
        }
        Ok(())
    }

    /// An interface is about to go down: a last word to its neighbours, and to those of its parts.
    fn take_leave(&mut self, id: InterfaceId) {
        if self.interface(id).is_some_and(|interface| interface.row.up) {
            let parts: Vec<InterfaceId> = self.sub_interfaces(id).collect();
            parts.into_iter().for_each(|part| self.take_leave(part));
            self.tell(id, InterfaceChange::GoingDown);
        }
    }

    /// The router is about to end: a last word to all neighbours.
    pub fn take_leave_of_all(&mut self) {
        let ports = self.all_interfaces().filter(|interface| !interface.row.is_sub_interface());
        let ports: Vec<InterfaceId> = ports.map(|interface| interface.id).collect();
        ports.into_iter().for_each(|port| self.take_leave(port));
    }

    /// Set an interface up or down.
    pub fn set_admin_up(&mut self, id: InterfaceId, up: bool) -> Result<(), InterfaceError> {
        if !up {
            self.make_room()?;
            self.take_leave(id);
        }
        self.change_and_tell(id, InterfaceChange::State, |interface| {
            interface.device.set_admin_up(up).map_err(InterfaceError::Device)?;
            interface.admin_up = up;
            Ok(())
        })
    }

    /// The driver says whether there is a link. That is a fact: it is never refused.
    pub fn set_link_up(&mut self, id: InterfaceId, up: bool) -> Result<(), InterfaceError> {
        let has_room = self.make_room().is_ok();
        let changed = self.change_row_anyway(id, has_room, |interface| {
            interface.link_up = up;
            Ok(())
        })?;
        if changed {
            self.tell(id, InterfaceChange::State);
            self.sub_interfaces_follow(id);
        }
        Ok(())
    }

    /// Set the largest layer 3 packet.
    pub fn set_mtu(&mut self, id: InterfaceId, mtu_bytes: u32) -> Result<(), InterfaceError> {
        if !(MTU_BYTES_MIN..=MTU_BYTES_MAX).contains(&mtu_bytes) {
            return Err(InterfaceError::BadMtu(mtu_bytes));
        }
        let own_mtu = self.own_mtu(id, mtu_bytes)?;
        self.change_and_tell(id, InterfaceChange::Mtu, |interface| {
            interface.own_mtu = own_mtu;
            interface.row.mtu_bytes = mtu_bytes;
            Ok(())
        })
    }

    /// Set the largest packet of one protocol; without one, the interface's MTU holds. Who speaks the
    /// protocol hears of a change of the MTU.
    pub fn set_protocol_mtu(
        &mut self,
        id: InterfaceId,
        protocol: &'static str,
        mtu_bytes: Option<u16>,
    ) -> Result<(), InterfaceError> {
        self.make_room()?;
        let interface = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut);
        let mtus = &mut interface.ok_or(InterfaceError::Unknown)?.protocol_mtus;
        match mtu_bytes {
            Some(mtu_bytes) => mtus.insert(protocol, mtu_bytes),
            None => mtus.remove(protocol),
        };
        self.tell(id, InterfaceChange::Mtu);
        Ok(())
    }

    /// Set the layer 2 address.
    pub fn set_mac(&mut self, id: InterfaceId, mac: [u8; 6]) -> Result<(), InterfaceError> {
        self.change_and_tell(id, InterfaceChange::Mac, |interface| {
            interface.device.set_mac(mac).map_err(InterfaceError::Device)?;
            interface.row.mac = mac;
            Ok(())
        })
    }

    /// Receive every frame, or only those for this interface.
    pub fn set_promiscuous(&mut self, id: InterfaceId, on: bool) -> Result<(), InterfaceError> {
        self.change_and_tell(id, InterfaceChange::Promiscuous, |interface| {
            interface.device.set_promiscuous(on).map_err(InterfaceError::Device)?;
            interface.row.promiscuous = on;
            Ok(())
        })
    }

    /// Say that what an interface sends leaves by another port from now on.
    pub fn say_moved(&mut self, id: InterfaceId) {
        if self.interface(id).is_some() {
            self.tell(id, InterfaceChange::Moved);
        }
    }

    /// Send received packets to another node (`ethernet-input`, a bridge, …).
    pub fn set_input_node(&mut self, id: InterfaceId, node: NodeId) -> Result<(), InterfaceError> {
        self.change_and_tell(id, InterfaceChange::Input, |interface| {
            interface.row.input = node;
            Ok(())
        })
    }

    /// Switch a feature on or off on an interface. Its place among the others is fixed by the arc.
    pub fn set_feature(
        &mut self,
        id: InterfaceId,
        arc: &str,
        feature: &str,
        on: bool,
    ) -> Result<(), InterfaceError> {
        let unknown = || InterfaceError::NoFeature { feature: feature.to_owned(), arc: arc.to_owned() };
        let arc_id = self.arc_id(arc).ok_or_else(unknown)?;
        let node = self.node_id(feature).ok_or_else(unknown)?;
        let order: Vec<NodeId> =
            self.arcs[arc_id.0 as usize].features.iter().filter_map(|f| self.node_id(f)).collect();
        if !order.contains(&node) {
            return Err(unknown());
        }
        self.change_row(id, |interface| {
            let chain = &mut interface.row.chains[arc_id.0 as usize];
            let mut enabled: Vec<NodeId> = chain.iter().filter(|n| *n != node).collect();
            if on {
                enabled.push(node);
            }
            if enabled.len() > FEATURES_PER_CHAIN_MAX {
                return Err(InterfaceError::TooManyFeatures);
            }
            enabled.sort_by_key(|n| order.iter().position(|o| o == n));
            *chain = Chain::default();
            chain.nodes.iter_mut().zip(enabled).for_each(|(place, n)| *place = n.0);
            Ok(())
        })?;
        Ok(())
    }

    /// Say that `who` needs a feature in an arc on an interface, or needs it no more. It is enabled while
    /// anybody does: for features that others build upon. Nothing else should switch such a feature.
    pub fn need_feature(
        &mut self,
        id: InterfaceId,
        arc: &str,
        feature: &str,
        who: &'static str,
        needed: bool,
    ) -> Result<(), InterfaceError> {
        let unknown = || InterfaceError::NoFeature { feature: feature.to_owned(), arc: arc.to_owned() };
        let key = (self.arc_id(arc).ok_or_else(unknown)?, self.node_id(feature).ok_or_else(unknown)?);
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let others = interface.who_needs(key.0, key.1).any(|other| other != who);
        self.set_feature(id, arc, feature, needed || others)?;
        let interface = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut);
        let all = &mut interface.ok_or(InterfaceError::Unknown)?.needed;
        if needed {
            all.entry(key).or_default().insert(who);
        } else if let Some(of_feature) = all.get_mut(&key) {
            of_feature.remove(who);
        }
        Ok(())
    }

    /// The features enabled on an interface in an arc, in order.
    pub fn features_of(&self, id: InterfaceId, arc: ArcId) -> Vec<String> {
        let chain = self.interface(id).map(|i| i.row.chains[arc.0 as usize % ARCS_MAX]);
        chain.iter().flat_map(Chain::iter).map(|n| self.node_name(n)).collect()
    }
}
