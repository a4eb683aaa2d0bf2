//! Records on their way from the rings of workers to the exporter.

use std::net::{IpAddr, Ipv4Addr};

use quiver_core::Engine;
use quiver_export::ipfix::exporter::IpfixExporter;
use quiver_export::moment::Moment;
use quiver_export::route::Routed;
use quiver_export::translated::{self, End, Observed};
use quiver_wire::IpProtocol;

use crate::config::Flowprobe;
use crate::flow::FlowRecord;
use crate::key::Shape;
use crate::probe::MILLISECOND_NS;
use crate::templates;

/// Records of a worker that a turn exports.
const RECORDS_PER_TURN: usize = 1_024;
/// Losses are reported to the collector this often at most, nanoseconds.
const LOSSES_NS: u64 = 1_000_000_000;

/// On each turn of the control loop.
pub(crate) fn turn(engine: &mut Engine) {
    let Some(own) = engine.get_mut::<Flowprobe>() else { return };
    if own.records.is_idle() && own.lost() == own.reported.0 {
        return;
    }
    let more = engine.with(|engine, own: &mut Flowprobe| export(engine, own, RECORDS_PER_TURN));
    if more {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

/// Export at most `max` records of each worker. True when more wait.
pub(crate) fn export(engine: &mut Engine, own: &mut Flowprobe, max: usize) -> bool {
    let (at, domain) = (Moment::of(engine), own.settings.domain);
    if engine.get::<IpfixExporter>().is_none() {
        return false;
    }
    engine.with(|engine, exporter: &mut IpfixExporter| {
        let Flowprobe { records, exported, .. } = own;
        let more = records.take(max, |record| {
            let unix_ms = |ms: u64| at.unix_ns_at(ms * MILLISECOND_NS) / MILLISECOND_NS;
            let times = (unix_ms(record.first_ms()), unix_ms(record.last_ms()));
            let (routed, behind) = (routed(engine, &record), behind(engine, &record));
            *exported += 1;
            exporter.put(at, domain, templates::of(&record), |fields| {
                templates::write(&record, times, routed, behind, fields);
            });
        });
        report_losses(own, exporter, at);
        more
    })
}

/// The routes of a record's addresses.
fn routed(engine: &Engine, record: &FlowRecord) -> Routed {
    let came_in = if record.is_output() { record.other() } else { record.interface() };
    let addresses = record.addresses();
    let found = addresses
        .and_then(|(source, destination)| Routed::of(engine, came_in, source, destination));
    found.unwrap_or_default()
}

/// Source and destination of an IPv4 flow as it leaves: behind the router's translators, where its
/// packets were recorded in front of them.
fn behind(engine: &Engine, record: &FlowRecord) -> (End, End) {
    let (sport, dport) = record.ports();
    let ends = match record.addresses() {
        Some((IpAddr::V4(source), IpAddr::V4(destination))) => {
            ((source, sport), (destination, dport))
        }
        _ => return ((Ipv4Addr::UNSPECIFIED, 0), (Ipv4Addr::UNSPECIFIED, 0)),
    };
    let has_ports = IpProtocol(record.protocol()).has_ports();
    if record.is_output() || !has_ports || !record.shape().has(Shape::L4) {
        return ends;
    }
    let (source, destination) = ends;
    let came_in = record.interface();
    translated::of(engine, &Observed { came_in, protocol: record.protocol(), source, destination })
}

/// Let the collector know how many records were lost before they came to the exporter.
fn report_losses(own: &mut Flowprobe, exporter: &mut IpfixExporter, at: Moment) {
    let (lost, (reported, reported_ns)) = (own.lost(), own.reported);
    let is_early = reported_ns != 0 && at.now_ns.saturating_sub(reported_ns) < LOSSES_NS;
    if lost == reported || is_early {
        return;
    }
    own.reported = (lost, at.now_ns);
    exporter.put(at, own.settings.domain, &templates::LOSSES, |fields| {
        fields.u32(std::process::id());
        fields.u64(lost);
    });
}
