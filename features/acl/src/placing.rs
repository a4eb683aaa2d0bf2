//! On which paths the nodes stand.

use quiver_control::ETHERNET_INPUT;
use quiver_core::control::interfaces::InterfaceError;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use crate::compiled::Compiled;
use crate::config::Lists;
use crate::filter::Place;

/// Who needs virtual reassembly.
const WHO: &str = "acl";

/// What an interface needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// Nodes before what it receives.
    pub input: bool,
    /// Nodes before what it sends.
    pub output: bool,
    /// Lists that filter what it receives.
    filters_input: bool,
    /// Do its lists make sessions?
    pub is_stateful: bool,
}

impl Wants {
    /// With these lists for what it receives and sends. Sessions see both directions. With `keeps`
    /// there are sessions that stay while there is a list.
    pub fn of([input, output]: [Option<&Compiled>; 2], keeps: bool) -> Wants {
        let makes = |lists: Option<&Compiled>| lists.is_some_and(|lists| lists.reflects || keeps);
        let is_stateful = makes(input) || makes(output);
        Wants {
            input: input.is_some() || is_stateful,
            output: output.is_some() || is_stateful,
            filters_input: input.is_some(),
            is_stateful,
        }
    }
}

/// Does an interface bridge what it receives?
fn is_layer_two(engine: &Engine, id: InterfaceId) -> bool {
    let Some(interface) = engine.interface(id) else { return false };
    let row = interface.row();
    row.mac != [0; 6] && engine.node_id(ETHERNET_INPUT) != Some(row.input)
}

/// Let the nodes that an interface needs stand on its path, and no others.
pub(crate) fn place(
    engine: &mut Engine,
    lists: &mut Lists,
    id: InterfaceId,
    wants: Wants,
) -> Result<(), InterfaceError> {
    let bridges = is_layer_two(engine, id);
    let is_bare = engine.interface(id).is_some_and(|interface| interface.row().mac == [0; 6]);
    lists.published().set_bare(id, is_bare);
    for family in [Family::Ip4, Family::Ip6] {
        let mut set = |place: Place, enabled| {
            engine.set_feature(id, place.arc(family), place.node(family), enabled)
        };
        set(Place::Routed, wants.input)?;
        set(Place::LayerTwo, wants.input && bridges)?;
        set(Place::Sent, wants.output)?;
    }
    // Fragments belong to sessions by their ports.
    let reassembles = wants.is_stateful || wants.filters_input && lists.reassembles();
    if reassembles != lists.reassembled.contains(&id) {
        for family in [Family::Ip4, Family::Ip6] {
            reassemble(engine, id, family, reassembles)?;
        }
        if reassembles {
            lists.reassembled.insert(id);
        } else {
            lists.reassembled.remove(&id);
        }
    }
    Ok(())
}

/// Learn the ports of an interface's fragments by virtual reassembly, or no more.
fn reassemble(
    engine: &mut Engine,
    id: InterfaceId,
    family: Family,
    needed: bool,
) -> Result<(), InterfaceError> {
    let (arc, node) = match family {
        Family::Ip4 => ("ip4-unicast", "ip4-sv-reassembly-feature"),
        Family::Ip6 => ("ip6-unicast", "ip6-sv-reassembly-feature"),
    };
    engine.need_feature(id, arc, node, WHO, needed)
}
