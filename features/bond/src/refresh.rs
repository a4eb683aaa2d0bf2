//! Which members are active, and what follows when that changes or an interface does.

use std::cmp::Reverse;

use quiver_control::aggregates::{self, AggregateChange};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

use crate::config::{Bond, Bonds, follow_bond, forget_bond, forget_member};
use crate::lacp::Port;
use crate::lacp_control::speak;
use crate::mode::Mode;
use crate::tables::{BondRow, BondTable, MemberRow, Takes};

/// The members that are ready to send: they are up, and LACP distributes by them.
fn ready_of(engine: &Engine, bond: &Bond) -> Vec<InterfaceId> {
    let is_up = |id: InterfaceId| engine.interface(id).is_some_and(|member| member.row().up);
    let is_ready = |id: InterfaceId| {
        is_up(id) && (bond.mode != Mode::Lacp || bond.port(id).is_some_and(Port::is_distributing))
    };
    bond.members.iter().map(|member| member.id).filter(|id| is_ready(*id)).collect()
}

/// The members that may send, the preferred one first: those that are ready, but for those that a
/// protocol which watches them finds dead.
fn active_of(engine: &Engine, bond: &Bond) -> Vec<InterfaceId> {
    let ready = aggregates::ready(engine, bond.id);
    let mut up: Vec<_> = bond.members.iter().collect();
    up.retain(|member| {
        ready.contains(&member.id) && aggregates::is_alive(engine, bond.id, member.id)
    });
    if bond.mode == Mode::ActiveBackup {
        // A member that sends goes on until a heavier one comes; the sort keeps the order of the
        // rest.
        let sends = bond.active.first();
        up.sort_by_key(|member| (Reverse(member.weight), Some(&member.id) != sends));
    }
    up.into_iter().map(|member| member.id).collect()
}

fn takes(bond: &Bond, member: InterfaceId) -> Takes {
    match bond.mode {
        Mode::Lacp if !bond.port(member).is_some_and(Port::is_collecting) => Takes::Nothing,
        Mode::ActiveBackup if bond.active.first() != Some(&member) => Takes::Own,
        _ => Takes::All,
    }
}

fn table_of(engine: &Engine, bonds: &Bonds) -> BondTable {
    let mut table = BondTable::default();
    for bond in bonds.all() {
        let Bond { mode, balance, .. } = *bond;
        let watched = aggregates::watch(engine, bond.id).map(|watch| watch.addresses);
        table.set_bond(bond.id, BondRow { mode, balance, active: bond.active.clone() });
        for member in &bond.members {
            let takes = takes(bond, member.id);
            table.set_member(
                member.id,
                MemberRow { bond: bond.id, takes, lacp: mode == Mode::Lacp, watched },
            );
        }
    }
    table
}

/// Look anew at a bond's members: let LACP hear of them, tell workers which of them send, and
/// whether the bond has a link.
pub(crate) fn refresh(engine: &mut Engine, id: InterfaceId) {
    speak(engine, id);
    let Some(bonds) = engine.get::<Bonds>() else { return };
    match bonds.bond(id).map(|bond| ready_of(engine, bond)) {
        Some(ready) => aggregates::set_ready(engine, id, &ready),
        None => aggregates::remove(engine, id),
    }
    let Some(bonds) = engine.get::<Bonds>() else { return };
    let active = bonds.bond(id).map(|bond| active_of(engine, bond)).unwrap_or_default();
    let Some(bonds) = engine.get_mut::<Bonds>() else { return };
    let mut moved = false;
    if let Some(bond) = bonds.bond_mut(id) {
        let before = bond.active.first();
        moved = bond.mode == Mode::ActiveBackup && before.is_some() && before != active.first();
        bond.active.clone_from(&active);
    }
    let Some(table) = engine.get::<Bonds>().map(|bonds| table_of(engine, bonds)) else { return };
    if let Some(bonds) = engine.get_mut::<Bonds>() {
        bonds.publish(table);
    }
    // A bond that is being deleted is gone already.
    let _ = engine.set_link_up(id, !active.is_empty());
    if moved && !active.is_empty() {
        engine.say_moved(id);
    }
}

/// A protocol that watches members has begun, ended, or found one dead or alive.
pub(crate) fn follow_watch(engine: &mut Engine, id: InterfaceId, change: AggregateChange) {
    if change == AggregateChange::Watch
        && engine.get::<Bonds>().is_some_and(|bonds| bonds.bond(id).is_some())
    {
        refresh(engine, id);
    }
}

/// Bonds and members follow one another.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let Some(bonds) = engine.get::<Bonds>() else { return };
    if let Some(bond) = bonds.bond_of(id) {
        match change {
            InterfaceChange::Deleted => drop(forget_member(engine, bond, id)),
            InterfaceChange::State => refresh(engine, bond),
            _ => {}
        }
        return;
    }
    let Some(bond) = bonds.bond(id) else { return };
    let members: Vec<InterfaceId> = bond.members.iter().map(|member| member.id).collect();
    match change {
        InterfaceChange::Deleted => forget_bond(engine, id),
        InterfaceChange::State if bond.mode == Mode::Lacp => refresh(engine, id),
        InterfaceChange::Mac | InterfaceChange::Mtu | InterfaceChange::Promiscuous => {
            for member in members {
                if let Err(error) = follow_bond(engine, id, member) {
                    let (name, bond) = (engine.interface_name(member), engine.interface_name(id));
                    tracing::warn!("{name} does not follow its bond {bond}: {error}");
                }
            }
        }
        _ => {}
    }
}
