//! What other features call ([`VlanInterfaces`]): they make and delete sub-interfaces by VLAN.

use quiver_control::Refusal;
use quiver_control::layer_two::{VlanInterfaces, VlanOf};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::EtherType;
use quiver_wire::vlan::VlanId;

use super::frame::TagType;
use super::matching::{Matching, Vid};
use super::sub_interfaces::{self, SubInterfaces};

/// Let features find the calls.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(VlanInterfaces { find, create, delete });
}

fn matching(of: VlanOf) -> Option<Matching> {
    let (kind, outer) = (TagType::of(EtherType(of.ether_type))?, VlanId::new(of.vlan)?);
    Some(Matching::Tagged { kind, outer: Vid::Exactly(outer), inner: None, exact: true })
}

fn find(engine: &Engine, of: VlanOf) -> Option<InterfaceId> {
    let wanted = matching(of)?;
    let mut all = engine.get::<SubInterfaces>()?.all().iter();
    all.find(|(_, known)| known.parent == of.parent && known.matching == wanted).map(|(id, _)| *id)
}

fn sentence(refusal: Refusal) -> String {
    refusal.to_string()
}

fn create(engine: &mut Engine, of: VlanOf) -> Result<InterfaceId, String> {
    let matching = matching(of).ok_or_else(|| format!("{} is no VLAN", of.vlan))?;
    sub_interfaces::create(engine, of.parent, of.vlan.into(), matching).map_err(sentence)
}

fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), String> {
    sub_interfaces::delete(engine, id).map_err(sentence)
}
