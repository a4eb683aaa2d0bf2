//! Groups that features join beside the operator.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};

/// Calls into `quiver-group-membership`, which puts them into the engine when it starts.
#[derive(Clone, Copy)]
pub struct GroupMembership {
    /// Listen to a group on an interface, from any source. Each join needs one
    /// [`leave`](Self::leave).
    pub join: fn(&mut Engine, InterfaceId, IpAddr),
    /// One listener fewer. Routers are notified when the last one leaves (RFC 3376 §5.1, RFC 3810
    /// §6.1).
    pub leave: fn(&mut Engine, InterfaceId, IpAddr),
}
