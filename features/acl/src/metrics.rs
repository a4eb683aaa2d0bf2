//! What Prometheus reads of access lists: sessions, and the log.

use std::sync::atomic::Ordering;

use quiver_core::Engine;
use quiver_export::records::KindCounts;
use quiver_metrics::{Family, Labels, Text, collect};

use crate::config::Lists;
use crate::log_config::AclLog;

const SESSIONS: Family = Family::gauge("quiver_acl_sessions", "Live sessions of access lists");
const SESSIONS_MAX: Family =
    Family::gauge("quiver_acl_sessions_max", "Sessions that access lists may have");
const MADE: Family =
    Family::counter("quiver_acl_sessions_made_total", "Sessions that access lists made");
const EXPIRED: Family = Family::counter(
    "quiver_acl_sessions_expired_total",
    "Sessions of access lists whose time was over",
);
const RECORDS: Family =
    Family::counter("quiver_acl_log_records_total", "Records of rules with log that workers wrote");
const LOST: Family = Family::counter(
    "quiver_acl_log_records_lost_total",
    "Records of rules with log that came faster than the control thread took them",
);

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        let Some(lists) = engine.get::<Lists>() else { return };
        let sessions = &lists.published().sessions;
        for (family, value) in [
            (&SESSIONS, sessions.live() as u64),
            (&SESSIONS_MAX, lists.room.most as u64),
            (&MADE, sessions.made.load(Ordering::Relaxed)),
            (&EXPIRED, sessions.expired.load(Ordering::Relaxed)),
        ] {
            text.family(family);
            text.count(&Labels::default(), value);
        }
        add(engine, text, &RECORDS, |counts| counts.made);
        add(engine, text, &LOST, |counts| counts.lost);
    });
}

fn add(engine: &Engine, text: &mut Text, family: &Family, value: fn(KindCounts) -> u64) {
    let Some(log) = engine.get::<AclLog>() else { return };
    text.family(family);
    for (action, counts) in log.counts() {
        text.count(&Labels::new([("action", &action)]), value(counts));
    }
}
