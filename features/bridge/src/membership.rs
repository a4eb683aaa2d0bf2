//! Interfaces join and leave bridge domains.

use quiver_control::Refusal;
use quiver_control::modes::{self, LayerTwo};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_tables::mac::{Configured, MacKey, StampMinutes};
use quiver_wire::MacAddress;

use crate::bvi_mtu::follow_members;
use crate::nodes;
use crate::state::{BridgePort, Bridges, PortKind, Switches};

/// The mode's name.
const MODE: &str = "l2 bridge";

/// How an interface joins.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// The domain's number.
    pub domain: u32,
    /// What it is to be in the domain.
    pub kind: PortKind,
    /// Its split-horizon group; 0 is none.
    pub group: u8,
}

/// Put an interface into a bridge domain, which is made when there is none of the number.
///
/// # Errors
/// The domain does not take the interface, or the interface cannot leave its present mode.
pub fn join(engine: &mut Engine, id: InterfaceId, join: Join) -> Result<(), Refusal> {
    check(engine, id, join)?;
    let now = engine.get::<Bridges>().and_then(|bridges| bridges.ports.get(&id).copied());
    match now {
        Some(port) if port.domain == join.domain && port.kind == join.kind => {
            engine.with(|_, bridges: &mut Bridges| regroup(bridges, id, join));
            return enter_mode(engine, id, join);
        }
        Some(_) => {
            modes::leave(engine, id)?;
        }
        None => {}
    }
    engine.with(|engine, bridges: &mut Bridges| {
        if !bridges.domains.contains_key(&join.domain) {
            bridges.open(join.domain, Switches::default(), 0)?;
        }
        enroll(engine, bridges, id, join)
    })?;
    let entered = enter_mode(engine, id, join);
    if entered.is_err() {
        leave(engine, id)?;
    }
    follow_members(engine, join.domain);
    entered
}

/// All that can be wrong, before anything is done.
fn check(engine: &Engine, id: InterfaceId, join: Join) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    let interface = engine.interface(id).ok_or_else(|| Refusal::new(format!("{name} is gone")))?;
    modes::check_free(engine, id)?;
    modes::check_frames(engine, id)?;
    let is_bvi = join.kind == PortKind::Bvi;
    if is_bvi && interface.device.kind() != "loopback" {
        let refusal = Refusal::new(format!("{name} cannot be the routed interface of a bridge"));
        return Err(refusal.remedy("make a loopback for it: `create loopback interface`"));
    }
    if !is_bvi && interface.device.kind() == "loopback" {
        let refusal =
            Refusal::new(format!("{name} is a loopback, which bridges nothing but its own frames"));
        return Err(refusal
            .remedy(format!("`set interface l2 bridge {name} {} bvi` routes by it", join.domain)));
    }
    let domain = engine.get::<Bridges>().and_then(|bridges| bridges.domains.get(&join.domain));
    let (other, what) = match join.kind {
        PortKind::Normal => (None, ""),
        PortKind::Bvi => (domain.and_then(|domain| domain.bvi), "routed interface"),
        PortKind::UuFwd => (domain.and_then(|domain| domain.uu_fwd), "uu-fwd port"),
    };
    if let Some(other) = other.filter(|other| *other != id) {
        let other = engine.interface_name(other);
        let refusal =
            Refusal::new(format!("bridge domain {} has {other} as its {what}", join.domain));
        return Err(refusal.remedy(format!("take it out first: `set interface l3 {other}`")));
    }
    Ok(())
}

fn regroup(bridges: &mut Bridges, id: InterfaceId, join: Join) {
    if let Some(port) = bridges.ports.get_mut(&id) {
        port.group = join.group;
    }
    bridges.macs.set_group(id, join.group);
    bridges.publish(join.domain);
}

fn enter_mode(engine: &mut Engine, id: InterfaceId, join: Join) -> Result<(), Refusal> {
    let mut with = format!("bridge-domain {}", join.domain);
    if let Some(word) = join.kind.word() {
        with += " ";
        with += word;
    }
    if join.group > 0 {
        with += &format!(" split-horizon group {}", join.group);
    }
    let input = (join.kind != PortKind::Bvi).then_some(nodes::INPUT);
    modes::enter(engine, id, LayerTwo { mode: MODE, with, input, end: leave })
}

fn enroll(
    engine: &mut Engine,
    bridges: &mut Bridges,
    id: InterfaceId,
    join: Join,
) -> Result<(), Refusal> {
    let Join { domain: number, kind, group } = join;
    let is_bvi = kind == PortKind::Bvi;
    let index = bridges.domain(number)?.index;
    let gone = || Refusal::new("a node of the bridge is gone");
    let output = match is_bvi {
        true => engine.node_id(nodes::BVI_INPUT).ok_or_else(gone)?,
        false => engine.interface(id).ok_or_else(gone)?.row().output,
    };
    if is_bvi {
        engine.set_feature(id, "interface-output", nodes::BVI_OUTPUT, true)?;
    }
    bridges.macs.join(id, index, output, group);
    let learn = modes::learns(engine, id);
    let port =
        BridgePort { domain: number, group, output, kind, learn, forward: true, flood: true };
    bridges.ports.insert(id, port);
    if is_bvi {
        if let Err(refusal) = own_address(engine, bridges, id, number) {
            withdraw(engine, bridges, id)?;
            return Err(refusal);
        }
        bridges.domain_mut(number)?.bvi = Some(id);
    }
    if kind == PortKind::UuFwd {
        bridges.domain_mut(number)?.uu_fwd = Some(id);
    }
    bridges.publish(number);
    Ok(())
}

/// The address of a domain's routed interface is known.
fn own_address(
    engine: &Engine,
    bridges: &mut Bridges,
    id: InterfaceId,
    number: u32,
) -> Result<(), Refusal> {
    let Some(mac) = engine.interface(id).map(|interface| interface.row().mac) else {
        return Ok(());
    };
    let key = MacKey::new(bridges.domain(number)?.index, MacAddress(mac));
    let entry = Configured {
        port: Some(id),
        is_static: true,
        is_filter: false,
        is_bvi: true,
        far_end: None,
    };
    let done = bridges.macs.configure(key, entry, StampMinutes::from_ns(engine.now_ns()));
    done.map(drop).map_err(|error| Refusal::of_table(engine, error))
}

/// What [`modes::leave`] leaves to be done.
fn leave(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let number =
        engine.get::<Bridges>().and_then(|bridges| bridges.ports.get(&id)).map(|port| port.domain);
    engine.with(|engine, bridges: &mut Bridges| withdraw(engine, bridges, id))?;
    engine.limit_mtu(id, None).map_err(|error| Refusal::new(error.to_string()))?;
    if let Some(number) = number {
        follow_members(engine, number);
    }
    Ok(())
}

fn withdraw(engine: &mut Engine, bridges: &mut Bridges, id: InterfaceId) -> Result<(), Refusal> {
    let Some(port) = bridges.ports.remove(&id) else { return Ok(()) };
    bridges.macs.leave(id);
    bridges.added.retain(|_, port| *port != id);
    if let Ok(domain) = bridges.domain_mut(port.domain) {
        match port.kind {
            PortKind::Normal => {}
            PortKind::Bvi => domain.bvi = None,
            PortKind::UuFwd => domain.uu_fwd = None,
        }
    }
    bridges.publish_without(id, port.domain);
    if port.is_bvi() {
        engine.set_feature(id, "interface-output", nodes::BVI_OUTPUT, false)?;
    }
    Ok(())
}

/// What is learned by a port without a link does not hold, and a routed interface's address is that
/// of the interface.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let Some(port) = engine.get::<Bridges>().and_then(|bridges| bridges.ports.get(&id).copied())
    else {
        return;
    };
    if change == InterfaceChange::Mtu && !port.is_bvi() {
        return follow_members(engine, port.domain);
    }
    let is_up = engine.interface(id).is_some_and(|interface| interface.row().up);
    engine.with(|engine, bridges: &mut Bridges| match change {
        InterfaceChange::State if !is_up => bridges.macs.flush(id),
        InterfaceChange::Mac if port.is_bvi() => {
            let own = |bridges: &Bridges| {
                let of_port = |(_, entry): &(MacKey, quiver_tables::mac::MacEntry)| {
                    entry.is_bvi() && entry.port() == id
                };
                bridges.macs.iter().filter(of_port).map(|(key, _)| key).collect::<Vec<_>>()
            };
            for key in own(bridges) {
                bridges.macs.remove(key);
            }
            if let Err(refusal) = own_address(engine, bridges, id, port.domain) {
                tracing::warn!(
                    "the bridge does not know its routed interface's new address: {refusal}"
                );
            }
        }
        _ => {}
    });
}
