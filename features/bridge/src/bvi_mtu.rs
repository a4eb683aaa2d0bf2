//! The MTU of a bridge's routed interface: never more than the least of the other ports takes.

use quiver_core::Engine;

use crate::state::Bridges;

/// Limit the MTU of the routed interface of a bridge domain to the least MTU of the domain's other
/// ports.
pub(crate) fn follow_members(engine: &mut Engine, number: u32) {
    let Some(bridges) = engine.get::<Bridges>() else { return };
    let Some(bvi) = bridges.domains().get(&number).and_then(|domain| domain.bvi) else { return };
    let members =
        bridges.ports().iter().filter(|(_, port)| port.domain == number && !port.is_bvi());
    let mtus =
        members.filter_map(|(id, _)| engine.interface(*id).map(|member| member.row().mtu_bytes));
    let least = mtus.min();
    if let Err(error) = engine.limit_mtu(bvi, least) {
        let name = engine.interface_name(bvi);
        tracing::warn!(
            "{name} keeps its MTU, although the ports of bridge domain {number} take less: {error}"
        );
    }
}
