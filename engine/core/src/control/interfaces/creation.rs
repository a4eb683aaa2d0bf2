//! Interfaces come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Facts, INTERFACE_NAME_MAX, Interface, InterfaceChange, InterfaceError, InterfaceSpec};
use crate::control::engine::Engine;
use crate::graph::arc::{ARCS_MAX, Chain};
use crate::graph::builder::BuildError;
use crate::graph::counters::INTERFACES_MAX;
use crate::graph::interface::{Encapsulation, InterfaceRow};
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::worker::Worker;
use crate::worker::device::Device;

impl Engine {
    /// Make an interface. It is down until [`set_admin_up`](Self::set_admin_up).
    ///
    /// # Errors
    /// The name is taken or malformed, the input node is missing, there are too many interfaces, or
    /// a worker does not answer.
    pub fn create_interface(&mut self, spec: InterfaceSpec) -> Result<InterfaceId, InterfaceError> {
        let name = &spec.name;
        self.check_new_name(name)?;
        self.make_room()?;
        let input = self.node_of(name, &spec.input)?;
        let id = self.free_interface_id()?;
        let takes_offloads = spec.tx.iter().all(|queue| queue.takes_offloads());
        let tx_node = crate::graph::builtin::tx_node(name, &spec.tx);
        let tx_instances =
            spec.tx.into_iter().map(|q| crate::graph::builtin::tx_instance(id, q)).collect();
        let tx = self.add_node(tx_node, tx_instances)?;
        let output = self.add_node(crate::graph::builtin::output_node(name, id), Vec::new())?;
        let row = InterfaceRow {
            up: false,
            mac: spec.mac,
            virtual_macs: Arc::default(),
            promiscuous: false,
            mtu_bytes: spec.mtu_bytes,
            input,
            output,
            shares_output: false,
            tx,
            parent: InterfaceId::NONE,
            host: None,
            encapsulation: Encapsulation::default(),
            chains: [Chain::default(); ARCS_MAX],
        };
        let facts = Facts { link_up: spec.link_up, passes_on_only: false, takes_offloads };
        self.place_interface(id, spec.name, spec.device, facts, row);
        Ok(id)
    }

    /// A node that a new interface leads to.
    pub(crate) fn node_of(&self, interface: &str, node: &str) -> Result<NodeId, BuildError> {
        let missing = || BuildError::EdgeMissing { node: interface.into(), missing: node.into() };
        self.node_id(node).ok_or_else(missing)
    }

    /// May a new interface be called so?
    pub(crate) fn check_new_name(&self, name: &str) -> Result<(), InterfaceError> {
        if name.is_empty() || name.len() > INTERFACE_NAME_MAX || name.contains(char::is_whitespace)
        {
            return Err(InterfaceError::BadName(name.to_owned()));
        }
        if !self.is_interface_name_free(name) {
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
        self.interfaces.enter_name(&name, id);
        self.clear_interface_baseline(id);
        self.interfaces.list[id.index()] = Some(Interface {
            id,
            name,
            made_name: None,
            device,
            admin_up: false,
            link_up: facts.link_up,
            passes_on_only: facts.passes_on_only,
            takes_offloads: facts.takes_offloads,
            rx: Vec::new(),
            rx_wishes: Vec::new(),
            needed: BTreeMap::new(),
            virtual_macs: BTreeMap::new(),
            protocol_mtus: BTreeMap::new(),
            own_mtu: None,
            mtu_limit: None,
            row,
        });
        self.notify_observers(id, InterfaceChange::Created);
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

    /// Delete an interface, and its sub-interfaces before it. Packets under way to it are dropped
    /// and counted.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
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
        self.notify_observers(id, InterfaceChange::Deleted);
        self.remove_rx_queues(id)?;
        let Some(interface) = self.interfaces.list[id.index()].take() else {
            return Err(InterfaceError::Unknown);
        };
        self.interfaces.forget_name(&interface.name);
        self.interfaces.made_names.remove(interface.made_name());
        self.rows.set(id, None);
        if interface.row.is_sub_interface() {
            self.forget_sub_interface(id, interface.row.parent);
        }
        if !interface.row.shares_output {
            self.remove_node(interface.row.output);
            self.remove_node(interface.row.tx);
        }
        self.interfaces.free.push_back((self.epochs.stamp(), id));
        Ok(())
    }
}
