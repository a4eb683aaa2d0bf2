//! Families of interfaces.

use std::collections::HashMap;

use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::graph::counters::{Count, InterfaceCounters};
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::collect::{Sampled, Scope, collect_each, sampled};
use crate::text::{Family, Labels, Text};

type Field = fn(&InterfaceCounters) -> &Count;

/// Each counter of an interface: the name and help of ours, VPP's name, and where it is.
const COUNTERS: [(&str, &str, Option<&str>, Field); 12] = [
    (
        "quiver_interface_rx_packets_total",
        "Packets received",
        Some("interfaces_rx_packets"),
        |row| &row.rx_packets,
    ),
    (
        "quiver_interface_rx_bytes_total",
        "Bytes received, from layer 2 on, without FCS",
        Some("interfaces_rx_bytes"),
        |row| &row.rx_bytes,
    ),
    (
        "quiver_interface_tx_packets_total",
        "Packets given to the device",
        Some("interfaces_tx_packets"),
        |row| &row.tx_packets,
    ),
    (
        "quiver_interface_tx_bytes_total",
        "Bytes given to the device, from layer 2 on, without FCS",
        Some("interfaces_tx_bytes"),
        |row| &row.tx_bytes,
    ),
    (
        "quiver_interface_drops_total",
        "Packets received here that were dropped",
        Some("interfaces_drops"),
        |row| &row.drops,
    ),
    (
        "quiver_interface_punts_total",
        "Packets received here for the control thread or the host",
        Some("interfaces_punt"),
        |row| &row.punts,
    ),
    (
        "quiver_interface_rx_no_buffer_total",
        "Frames for which no buffer was free",
        Some("interfaces_rx_no_buf"),
        |row| &row.rx_no_buffer,
    ),
    (
        "quiver_interface_rx_errors_total",
        "Frames received that were not valid",
        Some("interfaces_rx_error"),
        |row| &row.rx_errors,
    ),
    (
        "quiver_interface_tx_errors_total",
        "Packets that the device did not take",
        Some("interfaces_tx_error"),
        |row| &row.tx_errors,
    ),
    (
        "quiver_interface_rx_ip4_packets_total",
        "IPv4 packets received",
        Some("interfaces_ip4"),
        |row| &row.ip4,
    ),
    (
        "quiver_interface_rx_ip6_packets_total",
        "IPv6 packets received",
        Some("interfaces_ip6"),
        |row| &row.ip6,
    ),
    (
        "quiver_interface_rx_ring_full_total",
        "Looks at a receive ring that found it nearly full (memif)",
        None,
        |row| &row.rx_ring_full,
    ),
];

/// What the counters of an interface were when it was created, by worker: numbers of interfaces
/// that are gone are taken again, and their counters go on. Commands that clear counters change
/// nothing here.
#[derive(Default)]
struct AsCreated(HashMap<(InterfaceId, WorkerId), [u64; COUNTERS.len()]>);

fn workers(engine: &Engine) -> impl Iterator<Item = WorkerId> + use<> {
    (0..engine.worker_count()).map(|worker| WorkerId(worker as u16))
}

pub(crate) fn start(engine: &mut Engine) {
    engine.insert(AsCreated::default());
    engine.on_interface_change(follow_interface);
    let vpp = COUNTERS.iter().enumerate().filter_map(|(place, (_, help, name, field))| {
        let family = Family::vpp((*name)?, help);
        Some(sampled(family, move |engine, text, (id, worker), labels| {
            text.count(labels, counted(engine, *id, *worker, place, *field));
        }))
    });
    collect_each(engine, by_thread, vpp.collect());
    let own = COUNTERS.iter().enumerate().map(|(place, (name, help, _, field))| {
        sampled(Family::counter(name, help), move |engine: &Engine, text, id, labels| {
            let all = workers(engine).map(|worker| counted(engine, *id, worker, place, *field));
            text.count(labels, all.sum());
        })
    });
    let states = [
        state("quiver_interface_up", "1 when packets may come in and go out", |interface| {
            u64::from(interface.row().up)
        }),
        state("quiver_interface_admin_up", "1 when the operator set it up", |interface| {
            u64::from(interface.admin_up)
        }),
        state("quiver_interface_link_up", "1 when the device has a link", |interface| {
            u64::from(interface.link_up)
        }),
        state("quiver_interface_mtu_bytes", "Largest layer 3 packet", |interface| {
            u64::from(interface.row().mtu_bytes)
        }),
    ];
    collect_each(engine, by_name, own.chain(states).collect());
}

fn state(
    name: &'static str,
    help: &'static str,
    value: fn(&Interface) -> u64,
) -> Sampled<InterfaceId> {
    sampled(Family::gauge(name, help), move |engine: &Engine, text: &mut Text, id, labels| {
        if let Some(interface) = engine.interface(*id) {
            text.count(labels, value(interface));
        }
    })
}

/// As VPP numbers threads: the control thread is 0.
fn by_thread(engine: &Engine, _: Scope) -> Vec<((InterfaceId, WorkerId), Labels)> {
    let labelled = |interface: &Interface, worker: WorkerId| {
        let (index, thread) = (interface.id.0, worker.0 + 1);
        Labels::new([("interface", &interface.name), ("index", &index), ("thread", &thread)])
    };
    let all = engine.interfaces_by_name().flat_map(|interface| {
        workers(engine).map(move |worker| ((interface.id, worker), labelled(interface, worker)))
    });
    all.collect()
}

fn by_name(engine: &Engine, _: Scope) -> Vec<(InterfaceId, Labels)> {
    let all = engine.interfaces_by_name();
    all.map(|one| (one.id, Labels::new([("interface", &one.name)]))).collect()
}

fn counted(engine: &Engine, id: InterfaceId, worker: WorkerId, place: usize, field: Field) -> u64 {
    let now = engine.worker_counters(worker).map_or(0, |all| field(all.interface(id)).get());
    let base = engine.get::<AsCreated>().filter(|created| !created.0.is_empty());
    let base = base.and_then(|created| created.0.get(&(id, worker))).map_or(0, |row| row[place]);
    now.wrapping_sub(base)
}

fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if !matches!(change, InterfaceChange::Created | InterfaceChange::Deleted) {
        return;
    }
    for worker in workers(engine) {
        let row = engine.worker_counters(worker).map(|all| all.interface(id));
        let row = row.map_or([0; COUNTERS.len()], |row| COUNTERS.map(|(.., of)| of(row).get()));
        let Some(created) = engine.get_mut::<AsCreated>() else { return };
        created.0.remove(&(id, worker));
        if change == InterfaceChange::Created && row != [0; COUNTERS.len()] {
            created.0.insert((id, worker), row);
        }
    }
}
