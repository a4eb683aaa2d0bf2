//! LACP on the control thread: what members hear, what they say, and the clock.

use quiver_core::worker::Worker;
use quiver_core::worker::event::Event;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use quiver_wire::lacp::{Lacpdu, PDU_BYTES, SLOW_GROUP};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

use crate::config::{Bond, Bonds, port_number};
use crate::refresh::refresh;
use crate::slow_protocols;

/// How often the machines look at the clock. A tenth of the shortest time that LACP knows.
const LOOK_NS: u64 = 100_000_000;

/// Listen to members, and let time pass.
pub(crate) fn start(engine: &mut Engine) {
    engine.on_event(slow_protocols::NODE, hear);
    engine.every(LOOK_NS, |engine| {
        let lacp = |bond: &&Bond| bond.aggregator.is_some();
        let bonds = engine.get::<Bonds>().into_iter().flat_map(Bonds::all);
        let ids: Vec<InterfaceId> = bonds.filter(lacp).map(|bond| bond.id).collect();
        ids.into_iter().for_each(|id| refresh(engine, id));
    });
}

/// A member's partner has spoken.
fn hear(engine: &mut Engine, event: &Event) {
    let Ok(pdu) = Lacpdu::parse(event.bytes()) else { return };
    let now_ns = engine.now_ns();
    let Some(bonds) = engine.get_mut::<Bonds>() else { return };
    // It may have left its bond while the event was under way.
    let Some(id) = bonds.bond_of(event.interface) else { return };
    if let Some(aggregator) = bonds.bond_mut(id).and_then(|bond| bond.aggregator.as_mut()) {
        aggregator.hear(port_number(event.interface), &pdu, now_ns);
        refresh(engine, id);
    }
}

/// Tell LACP how a bond's members are, run its machines, and send what they have to say.
pub(crate) fn speak(engine: &mut Engine, id: InterfaceId) {
    let Some(interface) = engine.interface(id) else { return };
    let (admin_up, mac) = (interface.admin_up, MacAddress(interface.row().mac));
    let Some(bond) = engine.get::<Bonds>().and_then(|bonds| bonds.bond(id)) else { return };
    if bond.aggregator.is_none() {
        return;
    }
    let up = |id: InterfaceId| engine.interface(id).is_some_and(|member| member.row().up);
    let members: Vec<_> = bond.members.iter().map(|m| (m.id, admin_up && up(m.id))).collect();
    let now_ns = engine.now_ns();
    let bond = engine.get_mut::<Bonds>().and_then(|bonds| bonds.bond_mut(id));
    let Some(aggregator) = bond.and_then(|bond| bond.aggregator.as_mut()) else { return };
    aggregator.set_system(mac);
    let mut last_words = Vec::new();
    for (member, enabled) in members {
        let last = aggregator.set_enabled(port_number(member), enabled, now_ns);
        last_words.extend(last.map(|pdu| (member, pdu)));
    }
    let pdus = aggregator.run(now_ns);
    for (member, pdu) in last_words {
        send_last(engine, member, &pdu);
    }
    for (port, pdu) in pdus {
        send(engine, InterfaceId(u32::from(port) - 1), &pdu);
    }
}

/// Let a worker send a PDU by a member.
pub(crate) fn send(engine: &mut Engine, member: InterfaceId, pdu: &Lacpdu) {
    if let Some(output) = engine.interface(member).map(|interface| interface.row().output) {
        send_by(engine, member, output, pdu);
    }
}

/// The last PDU of a member that was set down while its link is still there: its output takes
/// nothing any more, so it is given to the device itself.
fn send_last(engine: &mut Engine, member: InterfaceId, pdu: &Lacpdu) {
    let device = engine.interface(member).filter(|interface| interface.link_up);
    if let Some(tx) = device.map(|interface| interface.row().tx) {
        send_by(engine, member, tx, pdu);
    }
}

fn send_by(engine: &mut Engine, member: InterfaceId, node: NodeId, pdu: &Lacpdu) {
    let Some(mac) = engine.interface(member).map(|interface| MacAddress(interface.row().mac))
    else {
        return;
    };
    let mut frame = vec![0; EthernetHeader::LEN + PDU_BYTES];
    let header = EthernetHeader::new(SLOW_GROUP, mac, EtherType::SLOW);
    let (front, behind) = frame.split_at_mut(EthernetHeader::LEN);
    if header.write(front).is_err() || pdu.emit(behind).is_err() {
        return; // cannot be: there is room for both
    }
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        // Without a buffer, which `show buffers` counts, the next PDU is the one that arrives.
        worker.inject(&frame, node, InterfaceId::NONE, member);
    });
}
