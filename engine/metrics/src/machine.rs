//! Families of the process, its workers and its buffers.

use std::time::{SystemTime, UNIX_EPOCH};

use quiver_control::commands::Built;
use quiver_core::control::watchdog::{RETIRED_MAX, STRETCHES_MAX};
use quiver_core::cpu::clocks_per_second;
use quiver_core::graph::counters::{
    Count, LONG_PASS_CLASSES, LONG_PASS_NS, LONG_WORKER_CALL_NS, NODES_MAX, WorkerCounters,
};
use quiver_core::{Engine, NodeId, WorkerId};

use crate::collect::{collect, collect_each, sampled};
use crate::scrape::Exporter;
use crate::text::{Family, Labels, Text};

/// When the router started, kept in the engine.
struct Started(SystemTime);

pub(crate) fn start(engine: &mut Engine) {
    engine.insert(Started(SystemTime::now()));
    collect(engine, system);
    collect(engine, process);
    collect(engine, buffers);
    workers(engine);
    collect(engine, scrapes);
}

fn one(text: &mut Text, family: Family, value: u64) {
    text.family(&family);
    text.count(&Labels::default(), value);
}

fn real(text: &mut Text, family: Family, value: f64) {
    text.family(&family);
    text.value(&Labels::default(), value);
}

fn system(engine: &Engine, text: &mut Text) {
    let started = engine.get::<Started>().map_or(UNIX_EPOCH, |started| started.0);
    let boot_s = started.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let up_s = started.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64());
    let workers = engine.worker_count() as u64;
    one(text, Family::vpp("sys_num_worker_threads", "Workers"), workers);
    real(text, Family::vpp("sys_boottime", "When the router started, seconds since 1970"), boot_s);
    real(text, Family::vpp("sys_uptime", "Seconds since the router started"), up_s);
    real(text, Family::gauge("quiver_uptime_seconds", "Since the router started"), up_s);
    one(text, Family::gauge("quiver_workers", "Workers"), workers);
    real(
        text,
        Family::gauge("quiver_tsc_hertz", "Clocks of the time stamp counter in a second"),
        clocks_per_second(),
    );
    let built = engine.get::<Built>();
    text.family(&Family::info("quiver_build_info", "Which router this is"));
    text.count(
        &Labels::new([
            ("version", &env!("CARGO_PKG_VERSION")),
            ("commit", &built.map_or("", |built| built.commit)),
            ("variant", &engine.variant().name()),
        ]),
        1,
    );
    let waiting = engine.waiting();
    text.family(&Family::gauge(
        "quiver_reclamation_pending",
        "What waits until every worker has finished a pass",
    ));
    let kinds = [("values", waiting.retired), ("table_stretches", waiting.stretches)];
    for (kind, count) in kinds {
        text.count(&Labels::new([("kind", &kind)]), count as u64);
    }
    text.family(&Family::gauge(
        "quiver_reclamation_pending_max",
        "How much may wait before changes are refused",
    ));
    for (kind, most) in [("values", RETIRED_MAX), ("table_stretches", STRETCHES_MAX)] {
        text.count(&Labels::new([("kind", &kind)]), most as u64);
    }
}

/// Ticks of a second in `/proc/self/stat` (USER_HZ, proc_pid_stat(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// A number of `/proc/self/status`, in the unit that it has there.
fn status_number(status: &str, key: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Seconds of processor time of `/proc/self/stat`: the fields 14 and 15, behind the name, which is
/// in brackets.
fn cpu_seconds(stat: &str) -> f64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// The names that Prometheus's own client libraries use.
fn process(_: &Engine, text: &mut Text) {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = file("/proc/self/status");
    let bytes = |key: &str| status_number(&status, key) * 1024;
    let cpu_s = cpu_seconds(&file("/proc/self/stat"));
    real(
        text,
        Family::counter("process_cpu_seconds_total", "Processor time of all threads"),
        cpu_s,
    );
    for (name, help, value) in [
        ("process_threads", "Threads", status_number(&status, "Threads")),
        ("process_virtual_memory_bytes", "Address space of the process", bytes("VmSize")),
        (
            "process_resident_memory_bytes",
            "Resident memory of the process, without huge pages",
            bytes("VmRSS"),
        ),
        ("quiver_huge_page_memory_bytes", "Memory in huge pages", bytes("HugetlbPages")),
    ] {
        one(text, Family::gauge(name, help), value);
    }
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    one(text, Family::gauge("process_open_fds", "Open descriptors"), open as u64);
}

fn buffers(engine: &Engine, text: &mut Text) {
    let pool = engine.pool();
    let (total, free, cached) = (pool.total(), pool.free(), pool.cached());
    // Caches report once per pass: the sum can be off by what moves just now.
    let (used, available) = (total.saturating_sub(free), free.saturating_sub(cached));
    let labels = Labels::new([("pool", &"default")]);
    for (family, count) in [
        (Family::vpp("buffer_pools_available", "Buffers that are free"), available),
        (Family::vpp("buffer_pools_cached", "Buffers in the caches of workers"), cached),
        (Family::vpp("buffer_pools_used", "Buffers in use"), used),
        (Family::gauge("quiver_buffers", "Packet buffers"), total),
        (Family::gauge("quiver_buffers_used", "Packet buffers in use"), used),
        (Family::gauge("quiver_buffers_cached", "Packet buffers in caches of workers"), cached),
    ] {
        text.family(&family);
        text.count(&labels, count as u64);
    }
    text.family(&Family::counter(
        "quiver_buffer_failures_total",
        "Times that no packet buffer was free",
    ));
    text.count(&labels, pool.failures());
    let bytes = pool.memory().size_bytes() as u64;
    let heap = Labels::new([("heap", &"packet buffers")]);
    text.family(&Family::vpp("mem_total", "Bytes of a kind of memory"));
    text.count(&heap, bytes);
    text.family(&Family::vpp("mem_used", "Bytes of a kind of memory in use"));
    text.count(&heap, (used * pool.stride_bytes()) as u64);
    one(text, Family::gauge("quiver_buffer_memory_bytes", "Memory of packet buffers"), bytes);
}

/// Seconds that a worker spent on packets: the clocks of its nodes, also of those that are gone,
/// without those in which a queue had nothing.
fn busy_s(counters: &WorkerCounters) -> f64 {
    let nodes = 0..NODES_MAX as u16;
    let clocks: u64 = nodes.map(|node| counters.node(NodeId(node)).clocks.get()).sum();
    clocks.saturating_sub(counters.idle_clocks.get()) as f64 / clocks_per_second()
}

fn workers(engine: &mut Engine) {
    let all = |engine: &Engine, _| {
        let workers = (0..engine.worker_count()).map(|worker| WorkerId(worker as u16));
        workers.map(|worker| (worker, Labels::new([("worker", &worker.0)]))).collect()
    };
    let count = |name, help, value: fn(&WorkerCounters) -> &Count| {
        sampled(
            Family::counter(name, help),
            move |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                if let Some(counters) = engine.worker_counters(*worker) {
                    text.count(labels, value(counters).get());
                }
            },
        )
    };
    let families = vec![
        count("quiver_worker_passes_total", "Passes of a worker", |all| &all.passes),
        count("quiver_worker_sleeps_total", "Times that a worker slept", |all| &all.sleeps),
        count("quiver_worker_no_vector_total", "Packets for which no vector was free", |all| {
            &all.no_frame
        }),
        count(
            "quiver_worker_events_lost_total",
            "Events for which the control thread was too slow",
            |all| &all.events_lost,
        ),
        sampled(
            Family::counter(
                "quiver_worker_busy_seconds_total",
                "Time of a worker that went into packets; its idle share is 1 less the rate",
            ),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                if let Some(counters) = engine.worker_counters(*worker) {
                    text.value(labels, busy_s(counters));
                }
            },
        ),
        sampled(
            Family::counter(
                "quiver_worker_polling_seconds_total",
                "Time of a worker that went into looks at queues which had nothing",
            ),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                if let Some(counters) = engine.worker_counters(*worker) {
                    let clocks = counters.idle_clocks.get() as f64;
                    text.value(labels, clocks / clocks_per_second());
                }
            },
        ),
        sampled(
            Family::gauge("quiver_worker_asleep", "1 while a worker sleeps"),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                text.count(labels, u64::from(engine.is_asleep(*worker)));
            },
        ),
        sampled(
            Family::gauge(
                "quiver_worker_stalled_seconds",
                "For how long a worker finishes no pass, 0 when it does not stall",
            ),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                let stalled = engine.health(*worker).and_then(|health| health.stalled_ns);
                text.value(labels, stalled.unwrap_or(0) as f64 / 1e9);
            },
        ),
        sampled(
            Family::counter("quiver_worker_stalls_total", "Stalls of a worker"),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                text.count(labels, engine.health(*worker).map_or(0, |health| health.stalls));
            },
        ),
        sampled(
            Family::histogram(
                "quiver_worker_pass_seconds",
                "How long passes of a worker took, from short ones on",
            ),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                if let Some(counters) = engine.worker_counters(*worker) {
                    let (passes, long) = (counters.passes.get(), &counters.long_passes);
                    classes(text, labels, LONG_PASS_NS, passes, long, None);
                }
            },
        ),
        sampled(
            Family::histogram(
                "quiver_worker_call_seconds",
                "How long worker calls of the control thread took",
            ),
            |engine: &Engine, text: &mut Text, worker: &WorkerId, labels: &Labels| {
                if let Some(counters) = engine.worker_counters(*worker) {
                    let (calls, long) = (counters.worker_calls.get(), &counters.long_worker_calls);
                    let sum_s = counters.worker_call_ns.get() as f64 / 1e9;
                    classes(text, labels, LONG_WORKER_CALL_NS, calls, long, Some(sum_s));
                }
            },
        ),
    ];
    collect_each(engine, all, families);
}

/// A histogram of what took from `least_ns` × 2^k, by k: its last class has no end.
fn classes(
    text: &mut Text,
    labels: &Labels,
    least_ns: u64,
    all: u64,
    long: &[Count; LONG_PASS_CLASSES],
    sum_s: Option<f64>,
) {
    let long: [u64; LONG_PASS_CLASSES] = std::array::from_fn(|class| long[class].get());
    let all_long: u64 = long.iter().sum();
    // A worker counts a pass before it counts it as long.
    let all = all.max(all_long);
    let mut at_most = all - all_long;
    let buckets = long.iter().enumerate().map(|(class, count)| {
        let bucket = ((least_ns << class) as f64 / 1e9, at_most);
        at_most += count;
        bucket
    });
    text.histogram(labels, buckets, all, sum_s);
}

fn scrapes(engine: &Engine, text: &mut Text) {
    let Some(exporter) = engine.get::<Exporter>() else { return };
    let last = exporter.last;
    one(text, Family::counter("quiver_scrapes_total", "Scrapes written"), exporter.scrapes);
    one(text, Family::counter("quiver_scrape_answers_total", "Scrapes sent"), exporter.answers);
    real(
        text,
        Family::gauge(
            "quiver_scrape_control_seconds",
            "Time of the control thread that the last scrape took",
        ),
        last.worked_s,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_of_the_process_is_found() {
        let status = "VmSize:\t  100 kB\nThreads:\t7\nVmRSS:\t   20 kB\n";
        assert_eq!(status_number(status, "VmRSS"), 20);
        assert_eq!(status_number(status, "Threads"), 7);
        assert_eq!(status_number(status, "HugetlbPages"), 0);
        let stat = "7 (a ) name) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 3 4 20 0 7 0 99 5 6";
        assert!((cpu_seconds(stat) - 2.0).abs() < 1e-9);
        assert!(cpu_seconds("").abs() < 1e-9);
    }
}
