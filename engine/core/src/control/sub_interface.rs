//! Sub-interfaces: interfaces that are a part of another one, told by what a feature reads in its
//! packets. A sub-interface has a number, counters, state, MTU and features of its own, but no
//! device: link and layer 2 address are its parent's, and what it sends leaves through its parent's
//! output.

use std::sync::Arc;

use crate::control::engine::Engine;
use crate::control::interfaces::{Facts, InterfaceChange, InterfaceError};
use crate::graph::arc::{ARCS_MAX, Chain};
use crate::graph::builtin::shared_output_node;
use crate::graph::interface::{Encapsulation, InterfaceRow};
use crate::graph::node::NodeSpec;
use crate::ids::InterfaceId;
use crate::worker::device::Device;

/// The node that all sub-interfaces send by.
pub const OUTPUT: &str = "sub-interface-output";

/// What a feature says of the sub-interface that it makes.
pub struct SubInterfaceSpec {
    /// The interface that it is a part of.
    pub parent: InterfaceId,
    /// Its name, unique in the router.
    pub name: String,
    /// What its frames carry behind their addresses; `None` when that differs from frame to frame,
    /// so that it can only pass frames on.
    pub encapsulation: Option<Encapsulation>,
    /// The node that received packets go to: `ethernet-input`, …
    pub input: String,
}

/// The control thread's handle: there is no device.
struct NoDevice;

impl Device for NoDevice {
    fn kind(&self) -> &'static str {
        "sub-interface"
    }

    fn set_mac(&mut self, _: [u8; 6]) -> Result<(), String> {
        Err("the layer 2 address of a sub-interface is its parent's".to_owned())
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl Engine {
    /// Make a sub-interface. It is down until [`set_admin_up`](Self::set_admin_up).
    ///
    /// # Errors
    /// The name is taken or malformed, the parent does not exist or is no port, its tags are taken,
    /// or a worker does not answer.
    pub fn create_sub_interface(
        &mut self,
        spec: SubInterfaceSpec,
    ) -> Result<InterfaceId, InterfaceError> {
        self.check_new_name(&spec.name)?;
        let parent = self.interface(spec.parent).ok_or(InterfaceError::Unknown)?;
        let (parent_name, above) = (parent.name.clone(), parent.row().clone());
        if above.is_sub_interface() {
            return Err(InterfaceError::NotAPort(parent_name));
        }
        self.make_room()?;
        let input = self.node_of(&spec.name, &spec.input)?;
        let output = self.node_of(&spec.name, OUTPUT)?;
        let id = self.free_interface_id()?;
        let row = InterfaceRow {
            up: false,
            virtual_macs: Arc::default(),
            promiscuous: false,
            input,
            output,
            shares_output: true,
            tx: above.output,
            parent: spec.parent,
            host: None,
            encapsulation: spec.encapsulation.unwrap_or_default(),
            chains: [Chain::default(); ARCS_MAX],
            ..above
        };
        self.interfaces.parts.entry(spec.parent).or_default().insert(id);
        let passes_on_only = spec.encapsulation.is_none();
        self.place_interface(
            id,
            spec.name,
            Box::new(NoDevice),
            Facts { link_up: above.up, passes_on_only, takes_offloads: false },
            row,
        );
        Ok(id)
    }

    /// The sub-interfaces of an interface, by number.
    pub fn sub_interfaces(&self, parent: InterfaceId) -> impl Iterator<Item = InterfaceId> {
        self.interfaces.parts.get(&parent).into_iter().flatten().copied()
    }

    pub(crate) fn forget_sub_interface(&mut self, id: InterfaceId, parent: InterfaceId) {
        if let Some(parts) = self.interfaces.parts.get_mut(&parent) {
            parts.remove(&id);
            if parts.is_empty() {
                self.interfaces.parts.remove(&parent);
            }
        }
    }

    /// The MTU to be remembered when an interface is to have `mtu_bytes`: that of a sub-interface
    /// which is not its parent's.
    pub(crate) fn own_mtu(
        &self,
        id: InterfaceId,
        mtu_bytes: u32,
    ) -> Result<Option<u32>, InterfaceError> {
        let parent = self.interface(id).ok_or(InterfaceError::Unknown)?.row().parent;
        let Some(above) = self.interface(parent) else { return Ok(None) };
        let parent_bytes = above.row().mtu_bytes;
        if mtu_bytes > parent_bytes {
            let parent = above.name.clone();
            return Err(InterfaceError::MtuBeyondParent { mtu_bytes, parent_bytes, parent });
        }
        Ok((mtu_bytes != parent_bytes).then_some(mtu_bytes))
    }

    /// An interface has changed: its link is its state, and its sub-interfaces have its address
    /// and, unless they have one of their own that it takes, its MTU.
    pub(crate) fn sub_interfaces_follow(&mut self, parent: InterfaceId) {
        let Some(above) = self.interface(parent).map(|interface| interface.row().clone()) else {
            return;
        };
        let parts: Vec<InterfaceId> = self.sub_interfaces(parent).collect();
        for id in parts {
            let has_room = self.make_room().is_ok();
            let Some(before) = self.interface(id).map(|part| part.row().clone()) else { continue };
            let followed = self.change_row_anyway(id, has_room, |part| {
                part.link_up = above.up;
                part.row.mac = above.mac;
                part.row.mtu_bytes =
                    part.own_mtu.map_or(above.mtu_bytes, |own| own.min(above.mtu_bytes));
                Ok(())
            });
            debug_assert!(followed.is_ok(), "it was there a moment ago");
            let Some(after) = self.interface(id).map(|part| part.row().clone()) else { continue };
            for (changed, what) in [
                (before.mac != after.mac, InterfaceChange::Mac),
                (before.mtu_bytes != after.mtu_bytes, InterfaceChange::Mtu),
                (before.up != after.up, InterfaceChange::State),
            ] {
                if changed {
                    self.notify_observers(id, what);
                }
            }
        }
    }
}

/// The declaration of `sub-interface-output`: one node for all of them, so that a vector to
/// hundreds of sub-interfaces stays one vector.
pub(crate) fn output_node() -> NodeSpec {
    let help = "Counts what sub-interfaces send, and gives it to their parents";
    shared_output_node(OUTPUT, help).takes_offloads()
}
