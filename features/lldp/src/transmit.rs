//! What this router says of itself, and when (IEEE 802.1AB §9.2.7.5, §9.2.8).

use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_wire::lldp::{
    Id, LLDPDU_BYTES_MAX, ManagementAddress, NEAREST_BRIDGE, TEXT_BYTES_MAX, Writer, capability,
    chassis, kind, port,
};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress, WireError};

use crate::config::{Lldp, Port};
use crate::text::encode_oid;

/// How often it is looked who is to be told something.
const LOOK_NS: u64 = 250_000_000;
/// LLDPDUs a second apart that a new neighbour gets (§9.2.5.19, txFastInit).
const FAST_COUNT: u8 = 4;
const SECOND_NS: u64 = 1_000_000_000;
const SYSTEM_DESCRIPTION: &str =
    concat!("Quiver ", env!("CARGO_PKG_VERSION"), ", a software router");
/// Bytes of the shortest frame, without its check sequence (IEEE 802.3 §3.2.8).
const FRAME_BYTES_MIN: usize = 60;
/// Numbers of address families (RFC 3232's list).
const FAMILY_IP4: u8 = 1;
const FAMILY_IP6: u8 = 2;
/// The interface's number is the router's own (ifIndex).
const BY_INDEX: u8 = 2;

/// Let time pass.
pub(crate) fn start(engine: &mut Engine) {
    engine.every(LOOK_NS, look);
}

/// A new neighbour is told soon, and more than once.
pub(crate) fn greet(port: &mut Port) {
    port.fast = FAST_COUNT;
    port.due_ns = 0;
}

fn look(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    let Some(lldp) = engine.get_mut::<Lldp>() else { return };
    let mut due = Vec::new();
    for (id, port) in &mut lldp.ports {
        port.neighbours.age(now_ns, &mut port.statistics);
        if now_ns >= port.due_ns {
            due.push(*id);
        }
    }
    let ttl_s = lldp.ttl_s();
    for id in due {
        say(engine, id, ttl_s);
    }
}

/// Neighbours are to forget this port (§9.1.2 b: the shutdown LLDPDU).
pub(crate) fn take_back(engine: &mut Engine, id: InterfaceId) {
    say(engine, id, 0);
}

/// A port goes down: its neighbours are to forget it, before nothing can be sent.
pub(crate) fn say_last(engine: &mut Engine, id: InterfaceId) {
    if engine.get::<Lldp>().is_some_and(|lldp| lldp.ports.contains_key(&id)) {
        take_back(engine, id);
        if let Err(stalled) = engine.wait_for_worker(WorkerId(0)) {
            tracing::warn!("{}: the last LLDPDU: {stalled}", engine.interface_name(id));
        }
    }
}

/// Send an LLDPDU, if the interface is up. When it is not, the next look comes too soon, and that
/// is all.
fn say(engine: &mut Engine, id: InterfaceId, ttl_s: u16) {
    let now_ns = engine.now_ns();
    let Some(row) = engine.interface(id).map(|interface| interface.row()).filter(|row| row.up)
    else {
        return;
    };
    let (mac, output) = (MacAddress(row.mac), row.output);
    let mut frame = vec![0; EthernetHeader::LEN + LLDPDU_BYTES_MAX];
    let header = EthernetHeader::new(NEAREST_BRIDGE, mac, EtherType::LLDP);
    let (front, behind) = frame.split_at_mut(EthernetHeader::LEN);
    let written = header.write(front).and_then(|_| lldpdu(engine, id, ttl_s, behind));
    let length = match written {
        Ok(length) => EthernetHeader::LEN + length,
        Err(error) => return tracing::warn!("{}: {error}", engine.interface_name(id)),
    };
    frame.truncate(length.max(FRAME_BYTES_MIN));
    let sent = engine.post(WorkerId(0), move |worker: &mut Worker| {
        // Without a buffer, which `show buffers` counts, the next LLDPDU is the one that arrives.
        worker.inject(&frame, output, InterfaceId::NONE, id);
    });
    let Some(lldp) = engine.get_mut::<Lldp>() else { return };
    let interval_ns = u64::from(lldp.tx_interval_s) * SECOND_NS;
    let Some(port) = lldp.ports.get_mut(&id) else { return };
    port.statistics.frames_out += u64::from(sent);
    port.sent_ns = Some(now_ns);
    port.due_ns = now_ns + if port.fast > 0 { SECOND_NS } else { interval_ns };
    port.fast = port.fast.saturating_sub(1);
}

/// The router as a chassis: the address of its first interface that has one.
pub(crate) fn chassis_mac(engine: &Engine) -> MacAddress {
    let macs = engine.all_interfaces().map(|interface| MacAddress(interface.row().mac));
    macs.into_iter().find(|mac| mac.is_unicast()).unwrap_or(MacAddress::ZERO)
}

/// The system's name: the one it was given, or the host's.
pub(crate) fn system_name(lldp: &Lldp) -> String {
    let given = lldp.system_name.clone();
    let hosts = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name =
        given.or_else(hosts).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let mut name = name.unwrap_or_else(|| "quiver".to_owned());
    while name.len() > TEXT_BYTES_MAX {
        name.pop();
    }
    name
}

/// Write what is said of an interface.
fn lldpdu(
    engine: &Engine,
    id: InterfaceId,
    ttl_s: u16,
    out: &mut [u8],
) -> Result<usize, WireError> {
    let name = engine.interface_name(id);
    let mac = chassis_mac(engine);
    let from = Id { subtype: chassis::MAC, bytes: &mac.0 };
    let mut writer = Writer::begin(
        out,
        from,
        Id { subtype: port::INTERFACE_NAME, bytes: name.as_bytes() },
        ttl_s,
    )?;
    let lldp = engine.get::<Lldp>();
    let (Some(lldp), Some(port), false) =
        (lldp, lldp.and_then(|lldp| lldp.ports.get(&id)), ttl_s == 0)
    else {
        return writer.finish(); // a shutdown says no more
    };
    let words = &port.words;
    writer
        .put(kind::PORT_DESCRIPTION, &[words.description.as_ref().unwrap_or(&name).as_bytes()])?;
    writer.put(kind::SYSTEM_NAME, &[system_name(lldp).as_bytes()])?;
    writer.put(kind::SYSTEM_DESCRIPTION, &[SYSTEM_DESCRIPTION.as_bytes()])?;
    writer.capabilities(capability::BRIDGE | capability::ROUTER, capability::ROUTER)?;
    let oid = words.oid.as_deref().and_then(encode_oid).unwrap_or_default();
    let mut manage = |family: u8, address: &[u8]| {
        let (interface_subtype, interface) = (BY_INDEX, id.0);
        writer.management(ManagementAddress {
            family,
            address,
            interface_subtype,
            interface,
            oid: &oid,
        })
    };
    if let Some(ip4) = words.ip4 {
        manage(FAMILY_IP4, &ip4.octets())?;
    }
    if let Some(ip6) = words.ip6 {
        manage(FAMILY_IP6, &ip6.octets())?;
    }
    writer.finish()
}
