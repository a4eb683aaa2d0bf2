//! The control thread learns what workers ask for, and forgets what is too old.

use quiver_control::{EventValue, Field, Topic, publish, wants};
use quiver_core::{Engine, InterfaceId};
use quiver_tables::mac::{DomainIndex, Gone, Learned, StampMinutes};

use crate::events::{Happened, MacEvent};
use crate::learn_requests::Request;
use crate::state::Bridges;

/// Requests of one worker's node that are served in one turn of the control loop at most.
const REQUESTS_PER_TURN: usize = 4096;
/// How often a slice of the table is swept while there is something to sweep.
const SWEEP_NS: u64 = 5_000_000;
/// Segments in a slice: some hundred microseconds.
const SEGMENTS_PER_SLICE: usize = 8;
/// How often memory that no worker sees any more is made free.
const COLLECT_NS: u64 = 20_000_000;

/// MAC addresses that a bridge learned, followed and forgot.
pub(crate) static MAC: Topic = Topic {
    name: "mac",
    help: "a bridge domain learned a MAC address, saw it move to another port, or forgot it for \
        its age",
    fields: &[
        Field { key: "event", help: "learned, moved or aged" },
        Field { key: "mac", help: "the address" },
        Field { key: "domain", help: "the number of the bridge domain" },
        Field { key: "interface", help: "the port that it is behind, or was" },
        Field { key: "from", help: "the port that it was behind before it moved" },
    ],
};

/// Let clients hear of what happened to addresses since event `after`.
fn publish_since(engine: &mut Engine, after: u64) {
    if !wants(engine, &MAC) {
        return;
    }
    let Some(bridges) = engine.get::<Bridges>() else { return };
    for MacEvent { happened, key, domain, port, .. } in bridges.events.since(after) {
        let name = |id: InterfaceId| EventValue::Text(engine.interface_name(id));
        let from = match happened {
            Happened::Moved { from } => name(*from),
            Happened::Learned | Happened::Aged => EventValue::None,
        };
        let (event, mac) = (EventValue::Word(happened.word()), EventValue::Mac(key.mac().0));
        publish(
            engine,
            &MAC,
            [event, mac, EventValue::Number((*domain).into()), name(*port), from],
        );
    }
}

pub(crate) fn start(engine: &mut Engine) {
    engine.on_turn(serve);
    engine.every(SWEEP_NS, sweep);
    let collect = |engine: &mut Engine| {
        if let Some(bridges) = engine.get_mut::<Bridges>() {
            bridges.macs.collect();
        }
    };
    engine.every(COLLECT_NS, collect);
    engine.on_reclaim(collect);
}

/// Learn what workers ask for.
fn serve(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    let Some(bridges) = engine.get_mut::<Bridges>() else { return };
    let (offices, before) = (bridges.offices.clone(), bridges.events.last());
    let more = offices.take(REQUESTS_PER_TURN, |request| bridges.learn(request, now_ns));
    if engine.get::<Bridges>().is_some_and(|bridges| bridges.events.last() != before) {
        publish_since(engine, before);
    }
    if more {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

impl Bridges {
    fn learn(&mut self, Request { key, seen }: Request, now_ns: u64) {
        let (port, number) = (seen.entry().port(), self.number(key.domain()));
        match self.macs.learn(key, seen) {
            Learned::New => self.events.add(now_ns, Happened::Learned, key, number, port),
            Learned::Moved { from } => {
                self.events.add(now_ns, Happened::Moved { from }, key, number, port)
            }
            Learned::TableFull | Learned::DomainFull => self.events.refused += 1,
            Learned::Known | Learned::Stands | Learned::TooLate => {}
        }
    }

    /// Forget what was learned by a port.
    pub(crate) fn flush_port(&mut self, id: InterfaceId) {
        self.macs.flush(id);
    }
}

/// A slice of what was flushed or is too old.
fn sweep(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    let now = StampMinutes::from_ns(now_ns);
    let Some(bridges) = engine.get_mut::<Bridges>() else { return };
    if bridges.swept_minute != now.0 {
        bridges.swept_minute = now.0;
        if bridges.domains.values().any(|domain| domain.mac_age_minutes > 0) {
            bridges.macs.want_sweep();
        }
    }
    if !bridges.macs.is_sweeping() {
        return;
    }
    let mut ages =
        vec![None; bridges.domains.values().map(|d| usize::from(d.index.0) + 1).max().unwrap_or(0)];
    for domain in bridges.domains.values().filter(|domain| domain.mac_age_minutes > 0) {
        ages[usize::from(domain.index.0)] = Some(domain.mac_age_minutes);
    }
    let age = |index: DomainIndex| ages.get(usize::from(index.0)).copied().flatten();
    let mut aged = Vec::new();
    bridges.macs.sweep(now, SEGMENTS_PER_SLICE, age, |key, entry, why| {
        if why == Gone::Aged {
            aged.push((key, entry.port()));
        }
    });
    if aged.is_empty() {
        return;
    }
    bridges.offices.forget();
    let before = bridges.events.last();
    for (key, port) in aged {
        let number = bridges.number(key.domain());
        bridges.events.add(now_ns, Happened::Aged, key, number, port);
    }
    publish_since(engine, before);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use quiver_core::memory::epoch::Epochs;
    use quiver_core::{InterfaceId, NodeId};
    use quiver_tables::exact::Seed;
    use quiver_tables::mac::{MacKey, MacTable, MacWriter, StampMinutes};
    use quiver_wire::MacAddress;

    use crate::learn_requests::{Asker, LearnRings, Request};

    /// Stations behind each worker's port.
    const STATIONS: u64 = 200;

    /// What `l2-learn` does with a vector of all stations of a port.
    fn vector(table: &MacTable, asker: &mut Asker, port: InterfaceId, now_ns: u64) {
        asker.begin(now_ns);
        let seen = table.expected(port, StampMinutes(0));
        for station in 0..STATIONS {
            let key = key(port, station);
            let found = table.lookup(key);
            if !found.is_current(seen) {
                asker.ask(Request { key, seen }, found, now_ns);
            }
        }
        asker.end();
    }

    fn key(port: InterfaceId, station: u64) -> MacKey {
        let number = 0x0200_0000_0000 + (u64::from(port.0) << 16) + station;
        MacKey::new(quiver_tables::mac::DomainIndex(1), MacAddress::from_u64(number))
    }

    /// Workers on threads of their own ask while the control thread learns, flushes and removes.
    /// Whatever was interleaved, each worker's next vector after the last change has all of its
    /// stations learned, without any time passing: no worker remembers to have asked for what was
    /// forgotten since.
    #[test]
    fn a_flush_beside_learning_on_several_workers_loses_no_station_for_long() {
        let epochs = Epochs::new(3);
        let mut macs = MacWriter::new(&epochs, 100_000, Seed::random()).expect("memory");
        let domain = macs.open_domain().expect("room");
        let ports = [InterfaceId(1), InterfaceId(2), InterfaceId(3)];
        ports.iter().for_each(|port| macs.join(*port, domain, NodeId(1), 0));
        let (offices, table) = (LearnRings::default(), macs.table());
        let (stops, vectors) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let workers = ports.map(|port| {
                let (mut asker, table) = (offices.open(), &table);
                let mut reader = epochs.reader(port.index() - 1);
                let (stops, vectors) = (&stops, &vectors);
                scope.spawn(move || {
                    reader.wake();
                    while !stops.load(Ordering::Relaxed) {
                        vector(table, &mut asker, port, 1_000_000_000);
                        vectors.fetch_add(1, Ordering::Relaxed);
                        reader.quiescent();
                        std::thread::yield_now();
                    }
                    reader.sleep();
                    asker
                })
            });
            let mut round = 0;
            while round < 2000 || vectors.load(Ordering::Relaxed) < 300 {
                round += 1;
                offices.take(512, |Request { key, seen }| {
                    let _ = macs.learn(key, seen);
                });
                match round % 4 {
                    0 => macs.flush(ports[round / 4 % 3]),
                    2 => {
                        let _ = macs.remove(key(ports[round / 4 % 3], round as u64 % STATIONS));
                        offices.forget();
                    }
                    _ => std::thread::yield_now(),
                }
                macs.collect();
            }
            stops.store(true, Ordering::Relaxed);
            for (worker, port) in workers.into_iter().zip(ports) {
                let mut asker = worker.join().expect("no panic");
                offices.take(usize::MAX, |Request { key, seen }| {
                    let _ = macs.learn(key, seen);
                });
                // Requests are paced by the clock; this one gives each worker room for all of its
                // stations.
                vector(&table, &mut asker, port, 1_001_000_000);
                offices.take(usize::MAX, |Request { key, seen }| {
                    let _ = macs.learn(key, seen);
                });
                let unknown =
                    (0..STATIONS).filter(|station| macs.get(key(port, *station)).is_none()).count();
                assert_eq!(unknown, 0, "behind port {}", port.0);
            }
        });
    }
}
