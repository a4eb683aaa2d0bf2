//! What an interface is set to: state, MTU, address, where its frames go.

use super::{InterfaceChange, InterfaceError, MTU_BYTES_MAX, MTU_BYTES_MIN, MtuLimit};
use crate::control::engine::Engine;
use crate::ids::{InterfaceId, NodeId};

impl Engine {
    /// Set an interface up or down.
    ///
    /// # Errors
    /// The interface does not exist, its device refuses, or a worker does not answer.
    pub fn set_admin_up(&mut self, id: InterfaceId, up: bool) -> Result<(), InterfaceError> {
        if !up {
            self.make_room()?;
            self.take_leave(id);
        }
        self.change_and_notify(id, InterfaceChange::State, |interface| {
            interface.device.set_admin_up(up).map_err(InterfaceError::Device)?;
            interface.admin_up = up;
            Ok(())
        })
    }

    /// The driver says whether there is a link. That is a fact: it is never refused.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn set_link_up(&mut self, id: InterfaceId, up: bool) -> Result<(), InterfaceError> {
        let has_room = self.make_room().is_ok();
        let changed = self.change_row_anyway(id, has_room, |interface| {
            interface.link_up = up;
            Ok(())
        })?;
        if changed {
            self.notify_observers(id, InterfaceChange::State);
            self.sub_interfaces_follow(id);
        }
        Ok(())
    }

    /// Set the largest layer 3 packet.
    ///
    /// # Errors
    /// The interface does not exist, the MTU is out of range, or a worker does not answer.
    pub fn set_mtu(&mut self, id: InterfaceId, mtu_bytes: u32) -> Result<(), InterfaceError> {
        if !(MTU_BYTES_MIN..=MTU_BYTES_MAX).contains(&mtu_bytes) {
            return Err(InterfaceError::BadMtu(mtu_bytes));
        }
        let own_mtu = self.own_mtu(id, mtu_bytes)?;
        self.change_and_notify(id, InterfaceChange::Mtu, |interface| {
            interface.own_mtu = own_mtu;
            interface.row.mtu_bytes = match &mut interface.mtu_limit {
                Some(limit) => {
                    limit.wanted_bytes = mtu_bytes;
                    mtu_bytes.min(limit.limit_bytes)
                }
                None => mtu_bytes,
            };
            Ok(())
        })
    }

    /// Let the MTU of an interface that is no sub-interface be at most this, whatever the operator
    /// wants; `None` ends the limit.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn limit_mtu(
        &mut self,
        id: InterfaceId,
        limit_bytes: Option<u32>,
    ) -> Result<(), InterfaceError> {
        self.change_and_notify(id, InterfaceChange::Mtu, |interface| {
            let wanted_bytes = interface.wanted_mtu_bytes();
            interface.mtu_limit =
                limit_bytes.map(|limit_bytes| MtuLimit { limit_bytes, wanted_bytes });
            interface.row.mtu_bytes =
                limit_bytes.map_or(wanted_bytes, |limit| limit.min(wanted_bytes));
            Ok(())
        })
    }

    /// Set the largest packet of one protocol; without one, the interface's MTU holds. Who speaks
    /// the protocol hears of a change of the MTU.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
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
        self.notify_observers(id, InterfaceChange::Mtu);
        Ok(())
    }

    /// Set the layer 2 address.
    ///
    /// # Errors
    /// The interface does not exist, its device refuses the address, or a worker does not answer.
    pub fn set_mac(&mut self, id: InterfaceId, mac: [u8; 6]) -> Result<(), InterfaceError> {
        self.change_and_notify(id, InterfaceChange::Mac, |interface| {
            interface.device.set_mac(mac).map_err(InterfaceError::Device)?;
            interface.row.mac = mac;
            Ok(())
        })
    }

    /// Receive every frame, or only those for this interface.
    ///
    /// # Errors
    /// The interface does not exist, or its device refuses.
    pub fn set_promiscuous(&mut self, id: InterfaceId, on: bool) -> Result<(), InterfaceError> {
        self.change_and_notify(id, InterfaceChange::Promiscuous, |interface| {
            interface.device.set_promiscuous(on).map_err(InterfaceError::Device)?;
            interface.row.promiscuous = on;
            Ok(())
        })
    }

    /// Let an interface take frames to these addresses, too. They take the place of those that
    /// `owner` gave before; those of other owners stay.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn set_virtual_macs(
        &mut self,
        id: InterfaceId,
        owner: &'static str,
        macs: Vec<[u8; 6]>,
    ) -> Result<(), InterfaceError> {
        self.change_row(id, |interface| {
            match macs.is_empty() {
                true => interface.virtual_macs.remove(owner),
                false => interface.virtual_macs.insert(owner, macs),
            };
            interface.row.virtual_macs =
                interface.virtual_macs.values().flatten().copied().collect();
            Ok(())
        })?;
        Ok(())
    }

    /// Say that what an interface sends leaves by another port from now on.
    pub fn say_moved(&mut self, id: InterfaceId) {
        if self.interface(id).is_some() {
            self.notify_observers(id, InterfaceChange::Moved);
        }
    }

    /// Send received packets to another node (`ethernet-input`, a bridge, …).
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn set_input_node(&mut self, id: InterfaceId, node: NodeId) -> Result<(), InterfaceError> {
        self.change_and_notify(id, InterfaceChange::Input, |interface| {
            interface.row.input = node;
            Ok(())
        })
    }

    /// Let a node take what a host deals with in the interface's place, or nobody.
    ///
    /// # Errors
    /// The interface does not exist, or a worker does not answer.
    pub fn set_host_node(
        &mut self,
        id: InterfaceId,
        node: Option<NodeId>,
    ) -> Result<(), InterfaceError> {
        self.change_and_notify(id, InterfaceChange::Input, |interface| {
            interface.row.host = node;
            Ok(())
        })
    }

    /// An interface is about to go down: a last word to its neighbours, and to those of its parts.
    pub(super) fn take_leave(&mut self, id: InterfaceId) {
        if self.interface(id).is_some_and(|interface| interface.row.up) {
            let parts: Vec<InterfaceId> = self.sub_interfaces(id).collect();
            parts.into_iter().for_each(|part| self.take_leave(part));
            self.notify_observers(id, InterfaceChange::GoingDown);
        }
    }

    /// The router is about to end: a last word to all neighbours.
    pub fn take_leave_of_all(&mut self) {
        let ports = self.all_interfaces().filter(|interface| !interface.row.is_sub_interface());
        let ports: Vec<InterfaceId> = ports.map(|interface| interface.id).collect();
        ports.into_iter().for_each(|port| self.take_leave(port));
    }
}
