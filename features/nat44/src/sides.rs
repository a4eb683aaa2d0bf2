//! Which interfaces are inside and outside, and the features that follow.

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};

use crate::config::{Nat44, WHO, with_enabled};
use crate::node::{IN2OUT, OUT2IN};
use crate::tables::Sides;

const ARC: &str = "ip4-unicast";
const REASSEMBLY: &str = "ip4-sv-reassembly-feature";

/// Let an interface be inside, outside, both or neither.
pub(crate) fn change(
    engine: &mut Engine,
    id: InterfaceId,
    change: impl FnOnce(&mut Sides),
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let before = nat.sides.get(&id).copied().unwrap_or_default();
        let mut sides = before;
        change(&mut sides);
        if sides == before {
            let name = engine.interface_name(id);
            return Err(Refusal::new(format!("{name} is that already"))
                .remedy("`show nat44 interfaces` lists them"));
        }
        set(engine, nat, id, sides)
    })
}

/// Does an interface translate what leaves by it, wherever it came from?
fn has_output(nat: &Nat44) -> bool {
    nat.sides.values().any(|sides| sides.output)
}

/// Set the features of an interface; `implied` says that it receives packets for one that
/// translates what leaves by it.
fn apply(engine: &mut Engine, id: InterfaceId, sides: Sides, implied: bool) -> Result<(), Refusal> {
    let inside = sides.inside || (implied && !sides.outside);
    engine.need_feature(id, ARC, REASSEMBLY, WHO, inside || sides.outside)?;
    engine.set_feature(id, ARC, OUT2IN, sides.outside)?;
    engine.set_feature(id, ARC, IN2OUT, inside)?;
    Ok(())
}

/// Set the sides of an interface.
pub(crate) fn set(
    engine: &mut Engine,
    nat: &mut Nat44,
    id: InterfaceId,
    sides: Sides,
) -> Result<(), Refusal> {
    let before = nat.sides.get(&id).copied().unwrap_or_default();
    let implied_before = has_output(nat);
    if sides == Sides::default() {
        nat.sides.remove(&id);
    } else {
        nat.sides.insert(id, sides);
    }
    let implied = has_output(nat);
    nat.shared.set_sides(id, sides);
    if let Err(error) = apply(engine, id, sides, implied) {
        nat.shared.set_sides(id, before);
        if before == Sides::default() {
            nat.sides.remove(&id);
        } else {
            nat.sides.insert(id, before);
        }
        apply(engine, id, before, implied_before)?;
        return Err(error);
    }
    if implied != implied_before {
        spread(engine, nat, id);
    }
    Ok(())
}

/// Set the features of all interfaces but `except` again. An interface that cannot have them (one
/// without IPv4, say) is left alone.
pub(crate) fn spread(engine: &mut Engine, nat: &Nat44, except: InterfaceId) {
    let implied = has_output(nat);
    let all: Vec<_> = engine.all_interfaces().map(|i| i.id).filter(|id| *id != except).collect();
    for id in all {
        let sides = nat.sides.get(&id).copied().unwrap_or_default();
        let _ = apply(engine, id, sides, implied);
    }
}

/// There is a new interface.
pub(crate) fn follow_new(engine: &mut Engine, nat: &Nat44, id: InterfaceId) {
    if nat.enabled.is_some() && has_output(nat) {
        let _ = apply(engine, id, Sides::default(), true);
    }
}
