//! Interfaces of tunnels: what they send goes on to a node that puts headers in front, and leaves
//! by another interface.

use std::sync::Arc;

use crate::control::engine::Engine;
use crate::control::interfaces::{Facts, InterfaceError};
use crate::graph::arc::{ARCS_MAX, Chain};
use crate::graph::builtin::shared_output_node;
use crate::graph::interface::{Encapsulation, InterfaceRow};
use crate::graph::node::NodeSpec;
use crate::ids::{InterfaceId, NodeId};
use crate::worker::device::Device;

/// The node that tunnels send by whose headers may stand in front of super-frames.
pub const OUTPUT: &str = "tunnel-output";
/// The node that other tunnels send by.
pub const FINISHED_OUTPUT: &str = "tunnel-output-finished";

/// What a feature says of the tunnel that it makes.
pub struct TunnelInterfaceSpec {
    /// Its name, unique in the router.
    pub name: String,
    /// The control thread's handle.
    pub device: Box<dyn Device>,
    /// Layer 2 address; zero where there is none.
    pub mac: [u8; 6],
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
    /// The node that received packets go to: `ethernet-input`, …
    pub input: String,
    /// The node that takes what the tunnel sends. The tunnel is in
    /// [`Packet::tx`](crate::Packet::tx).
    pub encap: NodeId,
    /// Can super-frames be cut behind the tunnel's headers? Else they are cut before.
    pub takes_offloads: bool,
}

impl Engine {
    /// Make the interface of a tunnel. It is down until [`set_admin_up`](Self::set_admin_up).
    ///
    /// # Errors
    /// The name is taken or malformed, the input node is missing, or there are too many interfaces.
    pub fn create_tunnel_interface(
        &mut self,
        spec: TunnelInterfaceSpec,
    ) -> Result<InterfaceId, InterfaceError> {
        self.check_new_name(&spec.name)?;
        self.make_room()?;
        let input = self.node_of(&spec.name, &spec.input)?;
        let output = if spec.takes_offloads { OUTPUT } else { FINISHED_OUTPUT };
        let output = self.node_of(&spec.name, output)?;
        let id = self.free_interface_id()?;
        let row = InterfaceRow {
            up: false,
            mac: spec.mac,
            virtual_macs: Arc::default(),
            promiscuous: false,
            mtu_bytes: spec.mtu_bytes,
            input,
            output,
            shares_output: true,
            tx: spec.encap,
            parent: InterfaceId::NONE,
            host: None,
            encapsulation: Encapsulation::default(),
            chains: [Chain::default(); ARCS_MAX],
        };
        let facts =
            Facts { link_up: true, passes_on_only: false, takes_offloads: spec.takes_offloads };
        self.place_interface(id, spec.name, spec.device, facts, row);
        Ok(id)
    }
}

/// The declaration of `tunnel-output`: one node for all tunnels, so that a vector to hundreds of
/// them stays one vector.
pub(crate) fn output_node() -> NodeSpec {
    let help = "Counts what tunnels send, and gives it to the nodes that encapsulate";
    shared_output_node(OUTPUT, help).takes_offloads()
}

/// The declaration of `tunnel-output-finished`: super-frames are cut in front of it.
pub(crate) fn finished_output_node() -> NodeSpec {
    let help = "As tunnel-output, for tunnels behind whose headers super-frames cannot be cut";
    shared_output_node(FINISHED_OUTPUT, help)
}
